package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/e2e/story"
)

var _ = Describe("The story that the demo tells", Label("forms"), func() {
	DescribeTable("is seen in every step", func(ctx SpecContext, far string) {
		w := newWorldIn(ctx, otherProject)
		stage := &story.Stage{
			Project: w.project, Upstream: upstream(w.project), UpstreamNamespace: w.upstream,
			Hub: hub(), Namespace: w.namespace,
			Near: near, Far: far, Closed: "ap-south-1",
			Cells: map[string]client.Client{}, Agents: true,
		}
		for _, cell := range cells {
			stage.Cells[cell.Location] = inCell(cell.Name)
		}
		Expect(upstream(w.project).DeleteAllOf(ctx, &v1alpha.LocationBinding{})).To(Succeed())
		for _, step := range story.Steps(stage) {
			By(step.Does)
			Expect(step.Run(ctx, stage)).To(Succeed(), "it did not show %q", step.Shows)
		}
	},
		Entry("with cells that Karmada pushes to", far),
		Entry("with a cell that pulls", pulled),
	)
})
