package cases

import (
	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/inspect"
)

// All are the cases, each link of the chain broken in turn, in its order.
func All() []Case {
	cases := []Case{{Name: "ready", Sight: Whole()}}
	cases = append(cases, onTheGround()...)
	cases = append(cases, ofKarmada()...)
	cases = append(cases, inCells()...)
	return append(cases, others()...)
}

func onTheGround() []Case {
	notReady := v1alpha.ReasonNetworkContextNotReady
	return []Case{
		{Name: "namespace-unlabelled", Broken: inspect.StepProject, Cause: "names no project", Advice: "label the namespace",
			Sight: Whole(answered(v1alpha.ReasonProjectUnresolved, `namespace "ns-acme" names no project`), unmade,
				func(s *inspect.Sight) { delete(s.Namespace.Labels, v1alpha.UpstreamNamespaceLabel) })},
		{Name: "project-disconnected", Broken: inspect.StepProject, Cause: "is not connected", Advice: "a Secret",
			Sight: Whole(answered(v1alpha.ReasonProjectUnresolved, `project "acme", which namespace "ns-acme" belongs to, is not connected`))},
		{Name: "no-grant", Broken: inspect.StepGrant, Cause: "has no LocationBinding for it", Advice: "choose another location",
			Sight: Whole(answered(v1alpha.ReasonLocationNotAvailable, "refused"), unmade, func(s *inspect.Sight) { s.Grants = nil })},
		{Name: "no-network", Broken: inspect.StepContext, Cause: `has no network "default"`, Advice: "have the network made",
			Sight: Whole(answered(v1alpha.ReasonNetworkNotFound, `project "acme" has no network "default" in namespace "default"`), unmade)},
		{Name: "nobody-looked", Broken: inspect.StepContext, Cause: "no controller has looked", Advice: "`network-presence hub` runs",
			Sight: Whole(answered(v1alpha.ReasonPending, "no controller has looked at this binding yet"), unmade)},
		{Name: "context-deleted", Broken: inspect.StepContext, Cause: "is being deleted", Advice: "wait",
			Sight: Whole(answered(notReady, "the network context was deleted"), func(s *inspect.Sight) { s.Contexts[0] = older(s.Contexts[0]) })},
	}
}

func ofKarmada() []Case {
	notReady := v1alpha.ReasonNetworkContextNotReady
	return []Case{
		{Name: "no-policy", Broken: inspect.StepPlacement, Cause: "no ResourceBinding", Advice: "no policy has taken it",
			Sight: Whole(answered(notReady, "no ResourceBinding"), unplaced, func(s *inspect.Sight) { s.Placement = nil })},
		{Name: "no-scheduler", Broken: inspect.StepPlacement, Cause: `scheduler "network-presence-scheduler" has not placed`, Advice: "--scheduler-name=network-presence-scheduler",
			Sight: Whole(answered(notReady, "not placed"), unplaced)},
		{Name: "no-cell", Broken: inspect.StepPlacement, Cause: `no cell serves location "us-central-1"`, Advice: "label the Cluster",
			Sight: Whole(answered(notReady, "no cell"), unplaced, func(s *inspect.Sight) { s.Clusters = s.Clusters[2:] })},
		{Name: "no-cluster-fits", Broken: inspect.StepPlacement, Cause: "did not have the API resource", Advice: "kubectl presence check",
			Sight: Whole(answered(notReady, "no fit"), unplaced, func(s *inspect.Sight) {
				scheduled(s, "0/3 clusters are available: 3 cluster(s) did not have the API resource.")
			})},
		{Name: "no-work", Broken: inspect.StepWork, Cell: "us-2", Cause: "has made no Work", Advice: "karmada-controller-manager",
			Sight: Whole(answered(notReady, "not yet applied in cell us-2"), func(s *inspect.Sight) {
				delete(s.Works, "us-2")
				s.Placement.Status.AggregatedStatus = s.Placement.Status.AggregatedStatus[:1]
			})},
	}
}

func inCells() []Case {
	notReady := v1alpha.ReasonNetworkContextNotReady
	return []Case{
		{Name: "cell-refuses", Broken: inspect.StepWork, Cell: "us-1", Cause: "Karmada cannot write the copy in cell us-1: frozen", Advice: "mend what",
			Sight: Whole(answered(notReady, "not applied in cell us-1: frozen"), func(s *inspect.Sight) { refusedBy(s, "us-1", "frozen\nstack trace") })},
		{Name: "predecessor", Broken: inspect.StepWork, Cell: "us-2", Cause: "deleted predecessor", Advice: "release the NetworkInterfaces",
			Sight: Whole(answered(notReady, "not applied in cell us-2"), func(s *inspect.Sight) {
				refusedBy(s, "us-2", "this cell still holds the copy of a deleted predecessor")
			})},
		{Name: "cell-lost-others-left", Sight: Whole(func(s *inspect.Sight) { lost(s, "us-2") })},
		{Name: "all-cells-lost", Broken: inspect.StepCopy, Cell: "us-1", Cause: "cell us-1 unreachable since 2026-01-02T02:54:05Z", Advice: "bring the cell's API server back",
			Sight: Whole(answered(notReady, "unreachable"), func(s *inspect.Sight) { lost(s, "us-1", "us-2") })},
		{Name: "copy-terminating", Broken: inspect.StepCopy, Cell: "us-2", Cause: "the copy in cell us-2 is being deleted", Advice: "its finalizers",
			Sight: Whole(answered(notReady, "the copy in cell us-2 is being deleted"), func(s *inspect.Sight) {
				reported(s, 1, func(r *v1alpha.CellReport) { r.Terminating = true })
			})},
		{Name: "old-crd", Broken: inspect.StepCopy, Cell: "us-1", Cause: "names no address families", Advice: "upgrade the CustomResourceDefinition",
			Sight: Whole(answered(notReady, "names no address families"), func(s *inspect.Sight) {
				reported(s, 0, func(r *v1alpha.CellReport) { r.IPFamilies = nil })
			})},
		{Name: "not-interpreted", Broken: inspect.StepCopy, Cell: "us-1", Cause: "has not reported yet", Advice: "interpreter",
			Sight: Whole(answered(notReady, "cell us-1 has not reported yet"), func(s *inspect.Sight) {
				s.Placement.Status.AggregatedStatus[0].Status = nil
			})},
	}
}

func others() []Case {
	return []Case{
		{Name: "converging", Sight: Whole(func(s *inspect.Sight) {
			reported(s, 1, func(r *v1alpha.CellReport) { r.NetworkGeneration = 3; r.Holders = nil })
		})},
		{Name: "held", Sight: Whole(held), Cause: "addresses are still held in us-1, us-2", Advice: v1alpha.ForceReleaseAnnotation},
		{Name: "unseen-and-ready", Sight: Whole(reportedBefore, forbidden(inspect.KindNamespace, inspect.KindGrant, inspect.KindPlacement, inspect.KindCluster))},
		{Name: "unseen-and-refused", Broken: inspect.StepGrant, Cause: "may not use location", Advice: "choose another location",
			Sight: Whole(answered(v1alpha.ReasonLocationNotAvailable, `project "acme" may not use location "us-central-1"`), unmade,
				forbidden(inspect.KindNamespace, inspect.KindGrant))},
	}
}
