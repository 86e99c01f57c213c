package cell

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

func TestInterfaceHoldsTheCopyUntilItIsReallyGone(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	context := w.deliver(network)
	w.attach("other", "another-network")
	slow := w.attach("slow", network, func(made *v1alpha.NetworkInterface) { made.Finalizers = []string{"example.com/slow"} })
	w.becomesHeld(context)

	w.delete(slow)
	w.staysHeld(context, 2*grace)
	w.delete(context)
	w.staysHeld(context, 2*grace)
	w.Expect(cell.Patch(w.ctx, slow, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
	w.becomesGone(context)
}

func TestLastInterfaceReleasesALiveCopy(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	context := w.deliver(network)
	first, last := w.attach("first", network), w.attach("last", network)
	w.becomesHeld(context)
	w.delete(first)
	w.staysHeld(context, 2*grace)
	w.delete(last)
	w.becomesFree(context)
	w.Expect(w.gone(context)).To(BeFalse())
	w.attach("next", network)
	w.becomesHeld(context)
}

func TestInterfaceThatMovesToAnotherNetwork(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	from, to := w.deliver("from"), w.deliver("to")
	nic := w.attach("nic", "from")
	w.becomesHeld(from)
	nic.Spec.Network.Name = "to"
	w.Expect(cell.Update(w.ctx, nic)).To(Succeed())
	w.becomesHeld(to)
	w.becomesFree(from)
}

func TestInterfaceOfANetworkHoldsACopyOfAnotherLocation(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	moved := w.deliver(network, func(context *v1alpha.NetworkContext) { context.Spec.Location.Name = "eu-west-1" })
	nic := w.attach("nic", network)
	w.becomesHeld(moved)
	w.delete(moved)
	w.staysHeld(moved, 2*grace)
	w.delete(nic)
	w.becomesGone(moved)
}

func TestEligibleClaimDoesNotPinADeletedCopy(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	context := w.deliver(network)
	claim := w.claim("c", network)
	w.eligible(claim)
	w.staysHeld(context, 2*grace)
	w.delete(context)
	w.becomesGone(context)
	w.refused(claim, v1alpha.ReasonNetworkNotAvailableInLocation)
}

func TestRefusedClaimDoesNotHold(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	context := w.deliver(network, func(context *v1alpha.NetworkContext) { context.Spec.IPFamilies = []v1alpha.IPFamily{v1alpha.IPv6} })
	w.refused(w.claim("c", network, v1alpha.IPv4), v1alpha.ReasonAddressFamilyNotCarried)
	w.Expect(w.held(context)).To(BeFalse())
}

// An allocator that read a promise may be late by up to the grace.
func TestWithdrawnPromiseStillBinds(t *testing.T) {
	for name, withdraw := range map[string]func(*world, *v1alpha.NetworkContext, *v1alpha.NetworkInterfaceClaim){
		"context deleted": func(w *world, context *v1alpha.NetworkContext, claim *v1alpha.NetworkInterfaceClaim) {
			w.delete(context)
			w.refused(claim, v1alpha.ReasonNetworkNotAvailableInLocation)
		},
		"claim and context deleted": func(w *world, context *v1alpha.NetworkContext, claim *v1alpha.NetworkInterfaceClaim) {
			w.delete(claim)
			w.delete(context)
		},
		"family taken away, then context deleted": func(w *world, context *v1alpha.NetworkContext, claim *v1alpha.NetworkInterfaceClaim) {
			w.edit(context, func(spec *v1alpha.NetworkContextSpec) { spec.IPFamilies = []v1alpha.IPFamily{v1alpha.IPv6} })
			w.refused(claim, v1alpha.ReasonAddressFamilyNotCarried)
			w.delete(context)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			startAgent(t)
			context := w.deliver(network)
			claim := w.claim("c", network, v1alpha.IPv4)
			w.eligible(claim)
			// Long after the agent's start, whose own wait must not be what holds here.
			w.staysHeld(context, 2*grace)
			withdraw(w, context, claim)
			w.staysHeld(context, grace/4)
			nic := w.attach("late", network)
			w.staysHeld(context, 3*grace)
			w.delete(nic)
			w.becomesGone(context)
		})
	}
}

func TestRestartedAgentKeepsThePromisesOfItsPredecessor(t *testing.T) {
	w := newWorld(t)
	before := startAgent(t)
	context := w.deliver(network)
	claim := w.claim("c", network)
	w.eligible(claim)
	before.end(t, kill)
	w.delete(claim)
	w.delete(context)
	startAgent(t)
	w.staysHeld(context, grace/4)
	nic := w.attach("late", network)
	w.staysHeld(context, 3*grace)
	w.delete(nic)
	w.becomesGone(context)
}

func TestRestartedAgentCatchesUp(t *testing.T) {
	w := newWorld(t)
	before := startAgent(t)
	kept, left := w.deliver("kept"), w.deliver("left")
	w.attach("kept", "kept")
	leaving := w.attach("left", "left")
	w.becomesHeld(kept)
	w.becomesHeld(left)
	before.end(t, kill)

	w.delete(leaving)
	w.delete(left)
	w.delete(kept)
	seen := w.deliver("seen")
	w.attach("seen", "seen")
	startAgent(t)
	w.becomesGone(left)
	w.becomesHeld(seen)
	w.staysHeld(kept, 2*grace)
}

func TestNothingIsWrittenWhileNothingHappens(t *testing.T) {
	w := newWorld(t)
	a := startAgent(t)
	context := w.deliver(network)
	w.attach("nic", network)
	w.eligible(w.claim("c", network))
	w.refused(w.claim("absent", "absent"), v1alpha.ReasonNetworkNotAvailableInLocation)
	w.Eventually(func(g Gomega) {
		g.Expect(w.read(context)).To(Succeed())
		g.Expect(context.Status.Agent).NotTo(BeNil())
		g.Expect(context.Status.Agent.Holders).To(BeEquivalentTo(1))
	}, patience).Should(Succeed())
	w.idle(a, 5*time.Second)
}

// idle checks that the agent, once it has come to rest, neither works nor sends anything.
func (w *world) idle(a *runningAgent, duration time.Duration) {
	w.Helper()
	work := func() [2]float64 {
		return [2]float64{
			a.metric(w, "controller_runtime_reconcile_total"),
			a.metric(w, "rest_client_requests_total", `method="PATCH"`),
		}
	}
	// Reports and promises wait for up to a second, without an event.
	var rest [2]float64
	w.Eventually(func(g Gomega) {
		rest = work()
		g.Consistently(work, grace+500*time.Millisecond).Should(Equal(rest))
	}, 2*patience).Should(Succeed())
	versions := w.versions()
	w.Consistently(work, duration).Should(Equal(rest))
	w.Expect(w.versions()).To(Equal(versions))
}

// versions are the resourceVersions of the objects in the world, by kind and name.
func (w *world) versions() map[string]string {
	w.Helper()
	versions := map[string]string{}
	for kind, list := range map[string]client.ObjectList{
		"context": &v1alpha.NetworkContextList{}, "claim": &v1alpha.NetworkInterfaceClaimList{}, "interface": &v1alpha.NetworkInterfaceList{},
	} {
		w.Expect(cell.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
		objects, err := meta.ExtractList(list)
		w.Expect(err).NotTo(HaveOccurred())
		for _, object := range objects {
			object := object.(client.Object)
			versions[kind+" "+object.GetName()] = object.GetResourceVersion()
		}
	}
	return versions
}
