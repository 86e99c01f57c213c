package e2e

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/e2e/controlplane"
)

var _ = Describe("The hub's controllers", func() {
	It("serve one project that is given by flag instead of Secrets", func(ctx SpecContext) {
		w, other := newWorld(ctx), newWorldIn(ctx, otherProject)
		w.declareNetwork(ctx, "default")
		stop(ctx, controlplane.HubProcess)
		const single = "hub-of-one-project"
		Expect(plane.StartHub(ctx, single, "--single-project="+w.project,
			"--single-project-kubeconfig="+plane.Project(w.project).Kubeconfig)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(plane.Forget(ctx, single)).To(Succeed())
			restart(ctx, controlplane.HubProcess)
		})
		w.expectReason(ctx, w.bind(ctx, "first", "default", near), v1alpha.ReasonNetworkContextReady)
		other.expectReason(ctx, other.bind(ctx, "other", "default", near), v1alpha.ReasonProjectUnresolved)
	})

	It("hand over to another replica when the leader dies", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		stop(ctx, controlplane.HubProcess)
		const leader, follower = "hub-leader", "hub-follower"
		Expect(plane.StartHub(ctx, leader, "--leader-elect=true")).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			restart(ctx, controlplane.HubProcess)
			// Nobody renews it from here on, which who checks the installation would report.
			Expect(hub().Delete(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.ProjectsNamespace, Name: "network-presence-hub"}})).To(Succeed())
		})
		w.expectReason(ctx, w.bind(ctx, "first", "default", near), v1alpha.ReasonNetworkContextReady)
		Expect(plane.StartHub(ctx, follower, "--leader-elect=true")).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(plane.Forget(ctx, follower)).To(Succeed()) })

		Expect(plane.Forget(ctx, leader)).To(Succeed())
		w.expectReason(ctx, w.bind(ctx, "second", "default", far), v1alpha.ReasonNetworkContextReady)
	})
})

var _ = Describe("The embedded control plane", func() {
	It("is not started over one that runs", func(ctx SpecContext) {
		_, err := controlplane.Start(ctx, controlplane.Options{Dir: filepath.Join(state, "state")})
		Expect(err).To(MatchError(controlplane.ErrUp))
		Expect(err.Error()).To(ContainSubstring("make down"))
		Expect(plane.Dead()).To(Succeed())
	})
})
