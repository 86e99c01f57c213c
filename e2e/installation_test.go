package e2e

import (
	"context"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// placed are the UIDs of what carries a pair: its context on the hub and its copy in a cell.
func (w *world) placed(ctx context.Context, network, location, cell string) [2]types.UID {
	GinkgoHelper()
	return [2]types.UID{w.context(ctx, network, location).UID, w.copyIn(ctx, cell, network, location).UID}
}

func policyPriority(ctx context.Context) (int32, error) {
	var policy policyv1alpha1.ClusterPropagationPolicy
	err := hub().Get(ctx, client.ObjectKey{Name: "network-presence"}, &policy)
	if err != nil || policy.Spec.Priority == nil {
		return 0, err
	}
	return *policy.Spec.Priority, nil
}

var _ = Describe("An installation", Serial, func() {
	It("is upgraded, rolled back, uninstalled and made again, and no copy is made anew", func(ctx SpecContext) {
		release, err := plane.HubRelease()
		Expect(err).NotTo(HaveOccurred())
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "b", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		before := w.placed(ctx, "default", near, "us-1")

		By("upgrading")
		Expect(release.Upgrade(ctx, map[string]any{"policy": map[string]any{"priority": 1001}})).To(Succeed())
		Expect(policyPriority(ctx)).To(BeEquivalentTo(1001))
		By("rolling back")
		Expect(release.Rollback()).To(Succeed())
		Expect(policyPriority(ctx)).To(BeEquivalentTo(1000))
		Expect(w.placed(ctx, "default", near, "us-1")).To(Equal(before))

		By("uninstalling, which keeps the CRDs")
		Expect(release.Uninstall()).To(Succeed())
		w.staysReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		Expect(w.placed(ctx, "default", near, "us-1")).To(Equal(before))

		By("installing again")
		Expect(release.Install(ctx)).To(Succeed())
		// The accounts are others now, and the tokens of the old ones are worth nothing.
		Expect(plane.Reidentify(ctx)).To(Succeed())
		w.expectReason(ctx, w.bind(ctx, "second", "default", near), v1alpha.ReasonNetworkContextReady)
		w.expectReason(ctx, w.bind(ctx, "elsewhere", "default", far), v1alpha.ReasonNetworkContextReady)
		Expect(w.placed(ctx, "default", near, "us-1")).To(Equal(before))
	})
})
