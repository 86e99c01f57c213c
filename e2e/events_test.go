package e2e

import (
	"context"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/presence"
)

// eventsOn are the reasons of the events on an object, each with how often it was seen.
func eventsOn(ctx context.Context, plane client.Reader, object client.Object) map[string]int32 {
	GinkgoHelper()
	var list eventsv1.EventList
	Expect(plane.List(ctx, &list, client.InNamespace(object.GetNamespace()))).To(Succeed())
	seen := map[string]int32{}
	for _, event := range list.Items {
		if event.Regarding.UID != object.GetUID() || event.ReportingController != presence.FieldManager {
			continue
		}
		seen[event.Reason]++
		if event.Series != nil {
			seen[event.Reason] += event.Series.Count - 1
		}
	}
	return seen
}

var _ = Describe("Events", func() {
	It("tell of each change of a binding's reason, and of nothing else, and of what became of its context and network", func(ctx SpecContext) {
		w := newWorld(ctx)
		// Once this one is answered, the hub knows the namespace and the grants.
		w.expectReason(ctx, w.bind(ctx, "first", "other", near), v1alpha.ReasonNetworkNotFound)
		binding := w.bind(ctx, "web", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkNotFound)
		network := w.declareNetwork(ctx, "default")
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		current := w.context(ctx, "default", near)

		var told map[string]int32
		w.eventually(ctx, func(g Gomega) {
			// How often is not asked: the controller may read the binding as it was before its
			// last answer, and count that answer again.
			told = eventsOn(ctx, hub(), binding)
			g.Expect(slices.Collect(maps.Keys(told))).To(ConsistOf(
				v1alpha.ReasonNetworkNotFound, v1alpha.ReasonNetworkContextNotReady, v1alpha.ReasonNetworkContextReady))
			g.Expect(eventsOn(ctx, hub(), current)).To(Equal(map[string]int32{presence.EventContextCreated: 1}))
			g.Expect(eventsOn(ctx, upstream(w.project), network)).To(Equal(map[string]int32{presence.EventNetworkKept: 1}))
		})

		By("edits, which change no reason")
		for _, mtu := range []int32{1400, 1500, 1600} {
			w.setMTU(ctx, network, mtu)
			w.eventually(ctx, func(g Gomega) {
				g.Expect(w.copyIn(ctx, cellOf(near), "default", near).Spec.MTU).To(Equal(mtu))
			})
		}
		Consistently(func() map[string]int32 { return eventsOn(ctx, hub(), binding) }, 3*time.Second, 300*time.Millisecond).Should(Equal(told))

		Expect(hub().Delete(ctx, binding)).To(Succeed())
		w.eventually(ctx, func(g Gomega) {
			g.Expect(eventsOn(ctx, hub(), current)).To(HaveKeyWithValue(presence.EventContextWithdrawn, int32(1)))
			g.Expect(eventsOn(ctx, upstream(w.project), network)).To(HaveKeyWithValue(presence.EventNetworkReleased, int32(1)))
		})
	})
})
