package location

import (
	"slices"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// TrimBindings is a transform for the hub's cache. It keeps whole the bindings of
// NetworkContexts; of what else the schedulers place, how it is placed; and no more than
// the name of all others. A hub has many of them.
func TrimBindings(schedulers []string) toolscache.TransformFunc {
	placed := &settlement{schedulers: schedulers}
	return func(object any) (any, error) {
		switch binding := object.(type) {
		case *workv1alpha2.ResourceBinding:
			if kindOf(&binding.Spec.Resource) == contextKind {
				binding.ManagedFields = nil
				return binding, nil
			}
			kept := &workv1alpha2.ResourceBinding{ObjectMeta: bindingIdentity(&binding.ObjectMeta)}
			if binding.Spec.Resource.Kind == contextKind.Kind {
				// Another group's kind: it has the name that the binding of a context would have.
				kept.Spec.Resource = binding.Spec.Resource
			}
			if placed.ours(&binding.Spec) {
				kept.Spec, kept.Status = placementSpec(&binding.Spec), placementStatus(&binding.Status)
			}
			return kept, nil
		case *workv1alpha2.ClusterResourceBinding:
			kept := &workv1alpha2.ClusterResourceBinding{ObjectMeta: bindingIdentity(&binding.ObjectMeta)}
			if placed.ours(&binding.Spec) {
				kept.Spec, kept.Status = placementSpec(&binding.Spec), placementStatus(&binding.Status)
			}
			return kept, nil
		}
		return object, nil
	}
}

func bindingIdentity(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	kept := identity(meta)
	kept.Generation, kept.DeletionTimestamp = meta.Generation, meta.DeletionTimestamp
	return kept
}

// placementSpec leaves out what other components ask of the object itself.
func placementSpec(spec *workv1alpha2.ResourceBindingSpec) workv1alpha2.ResourceBindingSpec {
	kept := *spec
	kept.RequiredBy, kept.Failover = nil, nil
	return kept
}

// placementStatus leaves out what the clusters report.
func placementStatus(status *workv1alpha2.ResourceBindingStatus) workv1alpha2.ResourceBindingStatus {
	kept := *status
	kept.AggregatedStatus = nil
	kept.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c metav1.Condition) bool {
		return c.Type != workv1alpha2.Scheduled
	})
	return kept
}
