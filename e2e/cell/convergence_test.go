package cell

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.datum.net/network-presence/api/v1alpha"
)

func numbered(name string, number int) string { return fmt.Sprintf("%s-%d", name, number) }

func (w *world) mtuBecomes(nic *v1alpha.NetworkInterface, mtu int32) {
	w.Helper()
	w.Eventually(func(g Gomega) {
		g.Expect(w.read(nic)).To(Succeed())
		g.Expect(nic.Spec.MTU).To(Equal(mtu))
	}, patience).Should(Succeed())
}

func TestInterfacesFollowTheMTUOfTheirNetwork(t *testing.T) {
	w := newWorld(t)
	a := startAgent(t)
	context := w.deliver(network)
	w.deliver("other")
	nics := []*v1alpha.NetworkInterface{w.attach("a", network), w.attach("b", network)}
	other := w.attach("other", "other")
	right := w.attach("right", network, func(made *v1alpha.NetworkInterface) { made.Spec.MTU = 1400 })
	w.mtuBecomes(right, 8000)
	w.idle(a, time.Second)

	w.edit(context, func(spec *v1alpha.NetworkContextSpec) { spec.MTU = 1300 })
	for _, nic := range append(nics, right) {
		w.mtuBecomes(nic, 1300)
	}
	w.idle(a, time.Second)
	w.Expect(w.read(other)).To(Succeed())
	w.Expect(other.Spec.MTU).To(BeEquivalentTo(8000))
	for _, nic := range nics {
		w.Expect(nic.Generation).To(BeEquivalentTo(2), "one write each")
	}
	w.Expect(other.Generation).To(BeEquivalentTo(1), "no write where nothing differs")
}

func TestOnlyTheMTUOfAnInterfaceIsWritten(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	context := w.deliver(network)
	nic := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha.SchemeGroupVersion.String(),
		"kind":       "NetworkInterface",
		"metadata":   map[string]any{"namespace": w.namespace, "name": "nic"},
		"spec": map[string]any{"network": map[string]any{"name": network}, "mtu": int64(8000),
			"addresses": []any{"2001:db8::7"}},
	}}
	w.Expect(cell.Create(w.ctx, nic)).To(Succeed())
	w.edit(context, func(spec *v1alpha.NetworkContextSpec) { spec.MTU = 1300 })
	w.mtuBecomes(&v1alpha.NetworkInterface{ObjectMeta: w.meta("nic")}, 1300)
	w.Expect(w.read(nic)).To(Succeed())
	addresses, _, _ := unstructured.NestedStringSlice(nic.Object, "spec", "addresses")
	w.Expect(addresses).To(Equal([]string{"2001:db8::7"}))
	for _, entry := range nic.GetManagedFields() {
		if entry.Manager == "network-presence-cell" {
			w.Expect(string(entry.FieldsV1.Raw)).To(Equal(`{"f:spec":{"f:mtu":{}}}`))
		}
	}
}

func TestInterfaceThatIsBeingDeletedFollowsToo(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	context := w.deliver(network)
	slow := w.attach("slow", network, func(made *v1alpha.NetworkInterface) { made.Finalizers = []string{"example.com/slow"} })
	w.becomesHeld(context)
	w.delete(slow)
	w.delete(context)
	w.edit(context, func(spec *v1alpha.NetworkContextSpec) { spec.MTU = 1300 })
	w.mtuBecomes(slow, 1300)
}

func TestAnMTUThatAnOldCRDDroppedIsNotFollowed(t *testing.T) {
	w := newWorld(t)
	a := startAgent(t)
	w.deliver(network, func(context *v1alpha.NetworkContext) { context.Spec.MTU = 0 })
	nic := w.attach("nic", network)
	w.idle(a, time.Second)
	w.Expect(w.read(nic)).To(Succeed())
	w.Expect(nic.Spec.MTU).To(BeEquivalentTo(8000))
}
