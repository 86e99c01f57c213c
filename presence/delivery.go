package presence

import (
	"slices"
	"time"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"k8s.io/apimachinery/pkg/api/meta"

	"go.datum.net/network-presence/api/v1alpha"
)

// deliveryTakes bounds the wait for a delivery that is under way when a context is deleted:
// a scheduler that is down or a cell that does not take the copy holds up no deletion for
// longer.
const deliveryTakes = 10 * time.Second

// delivering is for how long at most the release of a context that is being deleted waits
// for its delivery, 0 where that is not under way. Karmada deletes a copy that it has seen
// in the cell: where the context goes between the copy's creation and that moment, the copy
// stays for ever.
func delivering(s *snapshot, context *v1alpha.NetworkContext) time.Duration {
	if context.Annotations[v1alpha.ForceReleaseAnnotation] == "true" {
		return 0
	}
	placement := s.placements[context.Name]
	if placement != nil && placement.Spec.Resource.UID == context.UID && len(placement.Spec.Clusters) > 0 {
		if slices.ContainsFunc(placement.Spec.Clusters, func(target workv1alpha2.TargetCluster) bool {
			return s.cells[target.Name].ready && !shown(placement, target.Name)
		}) {
			return left(s.now, context.DeletionTimestamp.Time)
		}
		return 0
	}
	if len(context.Status.Cells) > 0 || refused(placement) {
		return 0 // it was delivered before, or is to go nowhere
	}
	return left(s.now, context.CreationTimestamp.Time)
}

// shown tells whether Karmada has seen the copy in a cell.
func shown(placement *workv1alpha2.ResourceBinding, cell string) bool {
	return slices.ContainsFunc(placement.Status.AggregatedStatus, func(item workv1alpha2.AggregatedStatusItem) bool {
		return item.ClusterName == cell && item.Status != nil
	})
}

// refused tells whether the scheduler has found no cell.
func refused(placement *workv1alpha2.ResourceBinding) bool {
	return placement != nil && meta.FindStatusCondition(placement.Status.Conditions, workv1alpha2.Scheduled) != nil
}

func left(now, began time.Time) time.Duration {
	return max(0, began.Add(deliveryTakes).Sub(now))
}
