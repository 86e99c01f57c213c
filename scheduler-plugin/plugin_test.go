package locationauthority

import (
	"context"
	"strings"
	"testing"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/scheduler/framework"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/location"
)

func hubNamespace(name, project string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		v1alpha.UpstreamClusterNameLabel: location.ProjectToLabel(project), v1alpha.UpstreamNamespaceLabel: "default",
	}}}
}

func grant(project, of string) *v1alpha.LocationBinding {
	return &v1alpha.LocationBinding{
		ObjectMeta: metav1.ObjectMeta{Name: location.CopyName(project, of), Labels: map[string]string{
			v1alpha.ManagedByLabel: v1alpha.ManagedByHub, v1alpha.ProjectLabel: project,
		}},
		Spec: v1alpha.LocationBindingSpec{LocationRef: v1alpha.LocationReference{Name: v1alpha.Name(of)}},
	}
}

func networkContext(namespace, name, in string) *v1alpha.NetworkContext {
	return &v1alpha.NetworkContext{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha.NetworkContextSpec{Location: v1alpha.LocationReference{Name: v1alpha.Name(in)}},
	}
}

// small is a hub on which project acme may use us and has a context there.
func small() *Plugin {
	return New(location.NewAuthorityOf(location.Configuration{}, []client.Object{
		hubNamespace("ns", "acme"), grant("acme", "us"), networkContext("ns", "net-us", "us"),
	}...))
}

func placed(kind, name string) *workv1alpha2.ResourceBindingSpec {
	resource := workv1alpha2.ObjectReference{APIVersion: v1alpha.SchemeGroupVersion.String(), Kind: kind, Namespace: "ns", Name: name}
	if kind == "ConfigMap" {
		resource.APIVersion = "v1"
	}
	return &workv1alpha2.ResourceBindingSpec{Resource: resource}
}

func cell(served string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Name: "cell", Labels: map[string]string{v1alpha.TopologyLocationLabel: served},
	}}
}

func TestFilterRefusesWithTheReasonOfTheAuthority(t *testing.T) {
	plugin := small()
	if result := plugin.Filter(context.Background(), placed("NetworkContext", "net-us"), nil, cell("us")); !result.IsSuccess() {
		t.Errorf("a context may not go to its own location: %v", result.AsError())
	}
	result := plugin.Filter(context.Background(), placed("NetworkContext", "net-us"), nil, cell("eu"))
	// Any code but this one, and no reason, would be retried for ever or say nothing.
	if result.Code() != framework.Unschedulable || len(result.Reasons()) != 1 || !strings.Contains(result.Reasons()[0], `do not serve location "us"`) {
		t.Errorf("elsewhere it is %v with %q, want one refusal", result.Code(), result.Reasons())
	}
}

func TestWhatPassesAllocatesNothing(t *testing.T) {
	plugin, cluster := small(), cell("us")
	held := placed("NetworkContext", "net-us")
	held.Clusters = []workv1alpha2.TargetCluster{{Name: cluster.Name}}
	for name, spec := range map[string]*workv1alpha2.ResourceBindingSpec{
		"a context": placed("NetworkContext", "net-us"), "anything else": placed("ConfigMap", "c"), "what is there": held,
	} {
		allocations := testing.AllocsPerRun(100, func() {
			if !plugin.Filter(context.Background(), spec, nil, cluster).IsSuccess() {
				t.Fatal("refused")
			}
		})
		if allocations != 0 {
			t.Errorf("%s: %v allocations, want none", name, allocations)
		}
	}
}
