package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/e2e/story"
)

var _ = Describe("The story that the demo tells", Ordered, func() {
	It("is seen in every step", func(ctx SpecContext) {
		w := newWorldIn(ctx, otherProject)
		stage := &story.Stage{
			Project: w.project, Upstream: upstream(w.project), UpstreamNamespace: w.upstream,
			Hub: hub(), Namespace: w.namespace,
			Near: near, Far: far, Closed: "ap-south-1",
			Cells: map[string]client.Client{near: inCell(cellOf(near)), far: inCell(cellOf(far)), "": inCell(spareCell)},
		}
		w.revoke(ctx, near)
		w.revoke(ctx, far)
		for _, step := range story.Steps(stage) {
			By(step.Does)
			Expect(step.Run(ctx, stage)).To(Succeed(), "it did not show %q", step.Shows)
		}
	})
})
