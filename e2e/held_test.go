package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/e2e/controlplane"
)

// attach hands out an address in a cell, in the place of whatever allocates them there.
func (w *world) attach(ctx context.Context, cell, name, network string, finalizers ...string) *v1alpha.NetworkInterface {
	GinkgoHelper()
	made := &v1alpha.NetworkInterface{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Finalizers: finalizers},
		Spec:       v1alpha.NetworkInterfaceSpec{Network: v1alpha.LocalNetworkReference{Name: v1alpha.Name(network)}},
	}
	Expect(inCell(cell).Create(ctx, made)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		left := &v1alpha.NetworkInterface{}
		if inCell(cell).Get(ctx, client.ObjectKeyFromObject(made), left) != nil {
			return
		}
		free := left.DeepCopy()
		free.Finalizers = nil
		Expect(client.IgnoreNotFound(inCell(cell).Patch(ctx, free, client.MergeFrom(left)))).To(Succeed())
		Expect(client.IgnoreNotFound(inCell(cell).Delete(ctx, free))).To(Succeed())
	})
	return made
}

// detach gives an address back.
func detach(ctx context.Context, cell string, address *v1alpha.NetworkInterface) {
	GinkgoHelper()
	Expect(inCell(cell).Delete(ctx, address)).To(Succeed())
}

func (w *world) claim(ctx context.Context, cell, name, network string, families ...v1alpha.IPFamily) *v1alpha.NetworkInterfaceClaim {
	GinkgoHelper()
	claim := &v1alpha.NetworkInterfaceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       v1alpha.NetworkInterfaceClaimSpec{Network: v1alpha.LocalNetworkReference{Name: v1alpha.Name(network)}, IPFamilies: families},
	}
	// The namespace is Karmada's to bring, in its own time.
	w.eventually(ctx, func(g Gomega) { g.Expect(inCell(cell).Create(ctx, claim)).To(Succeed()) })
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(inCell(cell).Delete(ctx, claim))).To(Succeed()) })
	return claim
}

// judged waits until a claim is answered with the reason.
func (w *world) judged(ctx context.Context, cell string, claim *v1alpha.NetworkInterfaceClaim, reason string) {
	GinkgoHelper()
	w.eventually(ctx, func(g Gomega) {
		g.Expect(inCell(cell).Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		answer := meta.FindStatusCondition(claim.Status.Conditions, v1alpha.NetworkInterfaceClaimNetworkAvailable)
		g.Expect(answer).To(HaveValue(HaveField("Reason", reason)))
	})
}

// present brings a network to a location and returns its binding, which is Ready, and its
// context on the hub.
func (w *world) present(ctx context.Context, network, location string) (*v1alpha.NetworkBinding, *v1alpha.NetworkContext) {
	GinkgoHelper()
	binding := w.bind(ctx, "first-"+network, network, location)
	w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
	return binding, w.context(ctx, network, location)
}

// known waits until the hub knows that addresses of a context are out.
func (w *world) known(ctx context.Context, held *v1alpha.NetworkContext) {
	GinkgoHelper()
	w.eventually(ctx, func(g Gomega) {
		g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(held), held)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(held.Status.Conditions, v1alpha.NetworkContextHeld)).To(BeTrue(), "%+v", held.Status.Conditions)
	})
}

// waits tells, when it returns, that the context waits for the addresses in a cell.
func (w *world) waits(ctx context.Context, held *v1alpha.NetworkContext, cell string) {
	GinkgoHelper()
	uid := held.UID
	w.eventually(ctx, func(g Gomega) {
		g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(held), held)).To(Succeed())
		g.Expect(held.UID).To(Equal(uid))
		declared := meta.FindStatusCondition(held.Status.Conditions, v1alpha.NetworkContextDeclared)
		g.Expect(declared).To(HaveValue(SatisfyAll(
			HaveField("Status", metav1.ConditionFalse),
			HaveField("Reason", v1alpha.ReasonAddressesHeld),
			HaveField("Message", ContainSubstring(cell)),
		)))
	})
}

// stays fails when a context or its copy, held by the agent, goes within some seconds.
func (w *world) stays(ctx context.Context, held *v1alpha.NetworkContext, cell string) {
	GinkgoHelper()
	Consistently(func(g Gomega) {
		g.Expect(w.contexts(ctx)).To(ContainElement(HaveField("UID", held.UID)))
		g.Expect(w.heldIn(ctx, cell, string(held.Spec.Network.Name))).To(BeTrue())
	}, 2*time.Second, 100*time.Millisecond).WithContext(ctx).Should(Succeed())
}

// heldIn tells whether a cell has a copy of a network's context with the agent's finalizer.
func (w *world) heldIn(ctx context.Context, cell, network string) bool {
	GinkgoHelper()
	var copies v1alpha.NetworkContextList
	Expect(inCell(cell).List(ctx, &copies, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha.NetworkLabel: network})).To(Succeed())
	return slices.ContainsFunc(copies.Items, func(copied v1alpha.NetworkContext) bool {
		return controllerutil.ContainsFinalizer(&copied, v1alpha.InUseFinalizer)
	})
}

var _ = Describe("Held addresses", func() {
	cell := cellOf(near)

	It("keep the network when its last binding goes, and let it go with the last of them", func(ctx SpecContext) {
		w := newWorld(ctx)
		network := w.declareNetwork(ctx, "default")
		binding, held := w.present(ctx, "default", near)
		address := w.attach(ctx, cell, "nic", "default", "example.com/slow")
		w.known(ctx, held)

		Expect(hub().Delete(ctx, binding)).To(Succeed())
		w.waits(ctx, held, cell)
		w.setMTU(ctx, network, 1400)
		w.eventually(ctx, func(g Gomega) {
			g.Expect(w.copyIn(ctx, cell, "default", near).Spec.MTU).To(BeEquivalentTo(1400), "what waits is kept up to date")
		})

		again, found := w.present(ctx, "default", near)
		Expect(found.UID).To(Equal(held.UID))
		w.eventually(ctx, func(g Gomega) {
			g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(held), held)).To(Succeed())
			g.Expect(meta.IsStatusConditionTrue(held.Status.Conditions, v1alpha.NetworkContextDeclared)).To(BeTrue())
		})

		Expect(hub().Delete(ctx, again)).To(Succeed())
		w.waits(ctx, held, cell)
		detach(ctx, cell, address)
		w.stays(ctx, held, cell) // the interface is slow to go, and its address is out until then
		free := address.DeepCopy()
		free.Finalizers = nil
		Expect(inCell(cell).Patch(ctx, free, client.MergeFrom(address))).To(Succeed())
		w.leavesNothing(ctx)
	})

	It("are known to nobody where a cell has no agent, and the hub says so", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.grant(ctx, pulled)
		w.declareNetwork(ctx, "default")
		_, context := w.present(ctx, "default", pulled)
		w.eventually(ctx, func(g Gomega) {
			g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(context), context)).To(Succeed())
			held := meta.FindStatusCondition(context.Status.Conditions, v1alpha.NetworkContextHeld)
			g.Expect(held).To(HaveValue(SatisfyAll(
				HaveField("Status", metav1.ConditionUnknown),
				HaveField("Reason", v1alpha.ReasonHoldersNotReported),
				HaveField("Message", ContainSubstring(cellOf(pulled))),
			)))
		})
	})

	It("survive the deletion of their network, which waits for them", func(ctx SpecContext) {
		w := newWorld(ctx)
		network := w.declareNetwork(ctx, "default")
		binding, held := w.present(ctx, "default", near)
		address := w.attach(ctx, cell, "nic", "default")
		w.known(ctx, held)

		Expect(upstream(w.project).Delete(ctx, network)).To(Succeed())
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkNotFound)
		w.waits(ctx, held, cell)
		w.stays(ctx, held, cell)
		Expect(upstream(w.project).Get(ctx, client.ObjectKeyFromObject(network), network)).To(Succeed())

		detach(ctx, cell, address)
		w.eventually(ctx, func(g Gomega) {
			g.Expect(client.IgnoreNotFound(upstream(w.project).Get(ctx, client.ObjectKeyFromObject(network), network))).To(Succeed())
			g.Expect(w.contexts(ctx)).To(BeEmpty())
		})
		w.leavesNothing(ctx)
	})

	It("are given up by annotation: the hub forgets them, the cell keeps them, and a new network of the name gets nothing of the old one's", func(ctx SpecContext) {
		w := newWorld(ctx)
		network := w.declareNetwork(ctx, "default")
		binding, held := w.present(ctx, "default", near)
		address := w.attach(ctx, cell, "nic", "default")
		w.known(ctx, held)
		Expect(upstream(w.project).Delete(ctx, network)).To(Succeed())
		w.waits(ctx, held, cell)
		old := w.copyIn(ctx, cell, "default", near)

		forced := held.DeepCopy()
		metav1.SetMetaDataAnnotation(&forced.ObjectMeta, v1alpha.ForceReleaseAnnotation, "true")
		Expect(hub().Patch(ctx, forced, client.MergeFrom(held))).To(Succeed())
		w.eventually(ctx, func(g Gomega) { g.Expect(w.contexts(ctx)).To(BeEmpty()) })
		Expect(w.heldIn(ctx, cell, "default")).To(BeTrue())

		w.eventually(ctx, func(g Gomega) {
			again := &v1alpha.Network{ObjectMeta: metav1.ObjectMeta{Namespace: w.upstream, Name: "default"}, Spec: v1alpha.NetworkSpec{MTU: 1400}}
			g.Expect(upstream(w.project).Create(ctx, again)).To(Succeed())
		})
		w.hasMessage(ctx, binding, "still holds the copy of a deleted predecessor")
		left := w.copyIn(ctx, cell, "default", near)
		Expect(left.UID).To(Equal(old.UID))
		Expect(left.Spec).To(Equal(old.Spec))

		detach(ctx, cell, address)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		delivered := w.copyIn(ctx, cell, "default", near)
		Expect(delivered.UID).NotTo(Equal(old.UID))
		Expect(delivered.Spec.MTU).To(BeEquivalentTo(1400))
	})

	It("are not forgotten while the hub's controllers are down", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		binding, held := w.present(ctx, "default", near)
		address := w.attach(ctx, cell, "nic", "default")
		w.known(ctx, held)

		stop(ctx, controlplane.HubProcess)
		DeferCleanup(func(ctx SpecContext) { restart(ctx, controlplane.HubProcess) })
		Expect(hub().Delete(ctx, binding)).To(Succeed())
		restart(ctx, controlplane.HubProcess)
		w.waits(ctx, held, cell)
		w.stays(ctx, held, cell)

		stop(ctx, controlplane.HubProcess)
		detach(ctx, cell, address)
		restart(ctx, controlplane.HubProcess)
		w.leavesNothing(ctx)
	})

	It("are not forgotten while the agent is down, and what it missed is made up for", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		binding, held := w.present(ctx, "default", near)
		address := w.attach(ctx, cell, "nic", "default")
		w.known(ctx, held)

		agent := controlplane.CellAgentProcess(cell)
		stop(ctx, agent)
		DeferCleanup(func(ctx SpecContext) { restart(ctx, agent) })
		Expect(hub().Delete(ctx, binding)).To(Succeed())
		w.waits(ctx, held, cell)
		detach(ctx, cell, address)
		w.stays(ctx, held, cell) // nobody has said that the address is back
		restart(ctx, agent)
		w.leavesNothing(ctx)
	})

	It("are not forgotten while their cell cannot be reached", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		w.declareNetwork(ctx, "other")
		binding, held := w.present(ctx, "default", near)
		unheld, _ := w.present(ctx, "other", near)
		address := w.attach(ctx, cell, "nic", "default")
		w.known(ctx, held)

		stop(ctx, plane.Cell(cell).Process())
		DeferCleanup(func(ctx SpecContext) { restart(ctx, plane.Cell(cell).Process()) })
		w.hasMessage(ctx, binding, "cell "+cell+" unreachable")
		Expect(hub().Delete(ctx, binding)).To(Succeed())
		Expect(hub().Delete(ctx, unheld)).To(Succeed())
		w.waits(ctx, held, cell)
		w.eventually(ctx, func(g Gomega) { g.Expect(w.contexts(ctx)).To(HaveLen(1), "what is not held goes") })

		restart(ctx, plane.Cell(cell).Process())
		w.eventually(ctx, func(g Gomega) { g.Expect(w.copies(ctx, cell)).To(HaveLen(1)) })
		w.stays(ctx, held, cell)
		detach(ctx, cell, address)
		w.leavesNothing(ctx)
	})

	It("of a cell that is unjoined do not count", func(ctx SpecContext) {
		const name, location = "leaving", "ap-south-1"
		Expect(plane.AddCell(ctx, controlplane.Cell{Name: name, Location: location, Agent: true})).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(plane.RemoveCell(ctx, name)).To(Succeed()) })
		w := newWorld(ctx)
		w.grant(ctx, location)
		w.declareNetwork(ctx, "default")
		binding, held := w.present(ctx, "default", location)
		w.attach(ctx, name, "nic", "default")
		w.known(ctx, held)
		Expect(hub().Delete(ctx, binding)).To(Succeed())
		w.waits(ctx, held, name)

		Expect(plane.Unjoin(ctx, name)).To(Succeed())
		w.eventually(ctx, func(g Gomega) { g.Expect(w.contexts(ctx)).To(BeEmpty()) })
	})
})

var _ = Describe("Claims in a cell", func() {
	cell := cellOf(near)

	It("are served as soon as the network carries what they ask for", func(ctx SpecContext) {
		w := newWorld(ctx)
		early := w.claim(ctx, cell, "early", "default")
		w.judged(ctx, cell, early, v1alpha.ReasonNetworkNotAvailableInLocation)
		network := &v1alpha.Network{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.upstream, Name: "default"},
			Spec:       v1alpha.NetworkSpec{IPFamilies: []v1alpha.IPFamily{v1alpha.IPv6}, MTU: 8000},
		}
		Expect(upstream(w.project).Create(ctx, network)).To(Succeed())
		w.bind(ctx, "first", "default", near)
		w.judged(ctx, cell, early, v1alpha.ReasonNetworkAvailable)

		dual := w.claim(ctx, cell, "dual", "default", v1alpha.IPv4, v1alpha.IPv6)
		narrow := w.claim(ctx, cell, "narrow", "default", v1alpha.IPv6)
		w.judged(ctx, cell, dual, v1alpha.ReasonAddressFamilyNotCarried)
		w.judged(ctx, cell, narrow, v1alpha.ReasonNetworkAvailable)
		extended := network.DeepCopy()
		extended.Spec.IPFamilies = []v1alpha.IPFamily{v1alpha.IPv6, v1alpha.IPv4}
		Expect(upstream(w.project).Patch(ctx, extended, client.MergeFrom(network))).To(Succeed())
		w.judged(ctx, cell, dual, v1alpha.ReasonNetworkAvailable)
	})

	It("that are served while the hub deletes always find the network held", func(ctx SpecContext) {
		w := newWorld(ctx)
		rounds, failures := allocationRounds(), make(chan string, allocationRounds())
		for began := 0; began < rounds; began += allocationsAtOnce {
			inParallel(ctx, min(allocationsAtOnce, rounds-began), func(ctx context.Context, number int) {
				if err := w.allocateWhileDeleting(ctx, cell, fmt.Sprintf("net-%d", began+number), number); err != nil {
					failures <- err.Error()
				}
			})
		}
		close(failures)
		var failed []string
		for failure := range failures {
			failed = append(failed, failure)
		}
		Expect(failed).To(BeEmpty())
		w.leavesNothing(ctx)
	})
})
