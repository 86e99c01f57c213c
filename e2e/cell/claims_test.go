package cell

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"go.datum.net/network-presence/api/v1alpha"
)

func TestClaimIsServedWhenItsContextArrives(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	claim := w.claim("first", network)
	message := w.refused(claim, v1alpha.ReasonNetworkNotAvailableInLocation)
	w.Expect(message).To(Equal(`network "default" is not in location "us-central-1": no NetworkContext of it has arrived ` +
		`in this namespace; it arrives once a NetworkBinding asks for it there`))

	context := w.deliver(network)
	w.eligible(claim)
	w.Expect(w.held(context)).To(BeTrue())

	second := w.claim("second", network)
	w.eligible(second)
	other := w.claim("other", "another-network")
	w.refused(other, v1alpha.ReasonNetworkNotAvailableInLocation)
}

func TestClaimIsFoundACopyWhateverItIsNamed(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	w.deliver(network, func(context *v1alpha.NetworkContext) { context.Name = "default-us-central-1-0123456789" })
	w.deliver("other", func(context *v1alpha.NetworkContext) { context.Spec.Location.Name = "eu-west-1" })
	w.eligible(w.claim("c", network))
	w.refused(w.claim("other", "other"), v1alpha.ReasonNetworkNotAvailableInLocation)
}

func TestClaimFamilies(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	carried := func(families ...v1alpha.IPFamily) func(*v1alpha.NetworkContext) {
		return func(context *v1alpha.NetworkContext) { context.Spec.IPFamilies = families }
	}
	six := w.deliver("six", carried(v1alpha.IPv6))
	w.deliver("both")
	pruned := w.deliver("pruned", carried())

	w.Expect(w.eligible(w.claim("both-unset", "both"))).To(HaveSuffix("carries IPv4 and IPv6"))
	w.Expect(w.eligible(w.claim("both-narrowed", "both", v1alpha.IPv4))).To(HaveSuffix("carries IPv4"))
	w.Expect(w.eligible(w.claim("six-unset", "six"))).To(HaveSuffix("carries IPv6"))

	four := w.claim("six-four", "six", v1alpha.IPv4)
	w.Expect(w.refused(four, v1alpha.ReasonAddressFamilyNotCarried)).To(ContainSubstring("asks for IPv4"))
	w.edit(six, func(spec *v1alpha.NetworkContextSpec) { spec.IPFamilies = dual })
	w.eligible(four)

	unset := w.claim("pruned-unset", "pruned")
	w.refused(unset, v1alpha.ReasonAddressFamiliesUnknown)
	w.Expect(w.held(pruned)).To(BeFalse())
	w.edit(pruned, func(spec *v1alpha.NetworkContextSpec) { spec.IPFamilies = dual })
	w.eligible(unset)
}

func TestClaimsOfANetworkFollowAnEditOfTheContext(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	context := w.deliver(network)
	claims := []*v1alpha.NetworkInterfaceClaim{w.claim("a", network), w.claim("b", network, v1alpha.IPv6)}
	for _, claim := range claims {
		w.eligible(claim)
	}
	w.edit(context, func(spec *v1alpha.NetworkContextSpec) { spec.IPFamilies = []v1alpha.IPFamily{v1alpha.IPv4} })
	w.Eventually(func() string { return w.eligible(claims[0]) }, patience).Should(HaveSuffix("carries IPv4"))
	w.refused(claims[1], v1alpha.ReasonAddressFamilyNotCarried)
}

// A promise is never older than the finalizer that backs it.
func TestContextIsHeldBeforeAClaimIsPromised(t *testing.T) {
	w := newWorld(t)
	contexts, err := cell.Watch(w.ctx, &v1alpha.NetworkContextList{}, client.InNamespace(w.namespace))
	w.Expect(err).NotTo(HaveOccurred())
	defer contexts.Stop()
	claims, err := cell.Watch(w.ctx, &v1alpha.NetworkInterfaceClaimList{}, client.InNamespace(w.namespace))
	w.Expect(err).NotTo(HaveOccurred())
	defer claims.Stop()

	w.claim("c", network)
	startAgent(t)
	w.deliver(network)
	heldAt := firstVersion(t, contexts, func(object client.Object) bool {
		return controllerutil.ContainsFinalizer(object, v1alpha.InUseFinalizer)
	})
	promisedAt := firstVersion(t, claims, func(object client.Object) bool {
		return meta.IsStatusConditionTrue(object.(*v1alpha.NetworkInterfaceClaim).Status.Conditions, v1alpha.NetworkInterfaceClaimNetworkAvailable)
	})
	order, err := resourceversion.CompareResourceVersion(heldAt, promisedAt)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(order).To(Equal(-1), "held at %s, promised at %s", heldAt, promisedAt)
}

// firstVersion is the resourceVersion at which a watched object first was as wished.
func firstVersion(t *testing.T, events watch.Interface, wished func(client.Object) bool) string {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case event := <-events.ResultChan():
			if object, ok := event.Object.(client.Object); ok && wished(object) {
				return object.GetResourceVersion()
			}
		case <-deadline:
			t.Fatalf("no event within %s was as wished", patience)
		}
	}
}

func TestClaimOnADeletedContextIsRefusedOnce(t *testing.T) {
	w := newWorld(t)
	a := startAgent(t)
	context := w.deliver(network)
	waiting := w.claim("waiting", network)
	w.eligible(waiting)
	w.attach("nic", network)
	w.delete(context)
	w.Expect(w.refused(waiting, v1alpha.ReasonNetworkNotAvailableInLocation)).To(ContainSubstring("is being deleted"))
	late := w.claim("late", network)
	w.Expect(w.refused(late, v1alpha.ReasonNetworkNotAvailableInLocation)).To(ContainSubstring("is being deleted"))

	w.idle(a, 3*time.Second)
	w.Expect(w.gone(context)).To(BeFalse())
}

func TestClaimIsServedByTheSuccessorOfADeletedContext(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	first := w.deliver(network)
	claim := w.claim("c", network)
	nic := w.attach("nic", network)
	w.eligible(claim)
	w.becomesHeld(first)
	w.delete(first)
	w.refused(claim, v1alpha.ReasonNetworkNotAvailableInLocation)
	w.delete(nic)
	w.becomesGone(first)
	w.Expect(w.refused(claim, v1alpha.ReasonNetworkNotAvailableInLocation)).NotTo(BeEmpty())

	second := w.deliver(network)
	w.eligible(claim)
	w.Expect(w.held(second)).To(BeTrue())
}

func TestAgentKeepsWhatOthersWriteOnAClaim(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha.SchemeGroupVersion.String(),
		"kind":       "NetworkInterfaceClaim",
		"metadata":   map[string]any{"namespace": w.namespace, "name": "c"},
		"spec":       map[string]any{"network": map[string]any{"name": network}, "subnetClass": "private"},
	}}
	w.Expect(cell.Create(w.ctx, claim)).To(Succeed())
	typed := &v1alpha.NetworkInterfaceClaim{ObjectMeta: w.meta("c")}
	w.refused(typed, v1alpha.ReasonNetworkNotAvailableInLocation)

	w.Expect(w.read(claim)).To(Succeed())
	conditions, _, err := unstructured.NestedSlice(claim.Object, "status", "conditions")
	w.Expect(err).NotTo(HaveOccurred())
	allocated := map[string]any{"type": "Allocated", "status": "False", "reason": "Waiting", "message": "",
		"lastTransitionTime": "2025-01-01T00:00:00Z"}
	w.Expect(unstructured.SetNestedSlice(claim.Object, append(conditions, allocated), "status", "conditions")).To(Succeed())
	w.Expect(unstructured.SetNestedField(claim.Object, "nic-7", "status", "boundTo")).To(Succeed())
	w.Expect(cell.Status().Update(w.ctx, claim)).To(Succeed())

	w.deliver(network)
	w.eligible(typed)
	w.Expect(w.read(claim)).To(Succeed())
	boundTo, _, _ := unstructured.NestedString(claim.Object, "status", "boundTo")
	class, _, _ := unstructured.NestedString(claim.Object, "spec", "subnetClass")
	w.Expect([]string{boundTo, class}).To(Equal([]string{"nic-7", "private"}))
	w.Expect(meta.FindStatusCondition(typed.Status.Conditions, "Allocated")).To(Equal(&metav1.Condition{
		Type: "Allocated", Status: metav1.ConditionFalse, Reason: "Waiting",
		LastTransitionTime: metav1.NewTime(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Local()),
	}))
}
