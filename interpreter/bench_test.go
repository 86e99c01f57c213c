package interpreter

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"go.datum.net/network-presence/api/v1alpha"
)

func exampleReport(i int) Report {
	at := metav1.NewTime(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC))
	return Report{CellReport: v1alpha.CellReport{NetworkGeneration: 4, NetworkUID: "uid", IPFamilies: []v1alpha.IPFamily{"IPv4", "IPv6"}, MTU: 8000, Holders: ptr.To(int64(i)),
		Conditions: []metav1.Condition{
			{Type: "Accepted", Status: "True", Reason: "RulesAccepted", Message: `claims on network "default" are served by these rules`, ObservedGeneration: 3, LastTransitionTime: at},
			{Type: "Held", Status: "True", Reason: "AddressesHeld", Message: `network interfaces of network "default" hold addresses; the context stays until the last of them is gone`, ObservedGeneration: 3, LastTransitionTime: at},
		}}}
}
func BenchmarkAggregate(b *testing.B) {
	var items []workv1alpha2.AggregatedStatusItem
	for i := range 20 {
		raw, _ := json.Marshal(exampleReport(i))
		items = append(items, workv1alpha2.AggregatedStatusItem{ClusterName: fmt.Sprintf("cell-%d", i), Applied: true, Health: "Healthy", Status: &runtime.RawExtension{Raw: raw}})
	}
	ctx := &v1alpha.NetworkContext{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha.NetworkUIDLabel: "uid"}}}
	ctx.Spec.NetworkGeneration = 4
	now := time.Now()
	ctx.Status = Aggregate(ctx, items, now)
	b.Log(ctx.Status.Conditions)
	b.ReportAllocs()
	for b.Loop() {
		Aggregate(ctx, items, now)
	}
}
