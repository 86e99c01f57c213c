package presence

import (
	"testing"
	"time"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/api/v1alpha"
)

// A context that is deleted while its delivery is under way would leave its copy behind.
func TestReleaseWaitsForDelivery(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*snapshot)
		wants  time.Duration
	}{
		"every cell has shown its copy": {func(*snapshot) {}, 0},
		"no ResourceBinding yet": {func(s *snapshot) {
			delete(s.placements, s.contexts[0].Name)
		}, deliveryTakes},
		"the ResourceBinding of a predecessor": {func(s *snapshot) {
			s.placements[s.contexts[0].Name].Spec.Resource.UID = "context-0"
		}, deliveryTakes},
		"a ResourceBinding that no scheduler has seen": {func(s *snapshot) {
			s.placements[s.contexts[0].Name].Spec.Clusters = nil
		}, deliveryTakes},
		"the scheduler found no cell": {func(s *snapshot) {
			placement := s.placements[s.contexts[0].Name]
			placement.Spec.Clusters = nil
			placement.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: workv1alpha2.BindingReasonNoClusterFit}}
		}, 0},
		"it was delivered, and its ResourceBinding deleted": {func(s *snapshot) {
			delete(s.placements, s.contexts[0].Name)
			s.contexts[0].Status.Cells = []v1alpha.CellStatus{{Name: "cell-a"}}
		}, 0},
		"a cell has not shown its copy": {func(s *snapshot) {
			s.placements[s.contexts[0].Name].Status.AggregatedStatus = nil
		}, deliveryTakes},
		"a copy that was applied and not seen": {func(s *snapshot) {
			s.placements[s.contexts[0].Name].Status.AggregatedStatus[0].Status = nil
		}, deliveryTakes},
		"for a while": {func(s *snapshot) {
			s.placements[s.contexts[0].Name].Status.AggregatedStatus = nil
			s.now = s.now.Add(deliveryTakes - time.Second)
		}, time.Second},
		"not for ever": {func(s *snapshot) {
			s.placements[s.contexts[0].Name].Status.AggregatedStatus = nil
			s.now = s.now.Add(deliveryTakes)
		}, 0},
		"not for a cell that does not answer": {func(s *snapshot) {
			s.placements[s.contexts[0].Name].Status.AggregatedStatus = nil
			s.cells["cell-a"] = cell{name: "cell-a"}
		}, 0},
		"not where the operator ends every wait": {func(s *snapshot) {
			s.placements[s.contexts[0].Name].Status.AggregatedStatus = nil
			s.contexts[0].Annotations[v1alpha.ForceReleaseAnnotation] = "true"
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := present()
			s.now = now().Time
			s.contexts[0].CreationTimestamp = *now()
			s.contexts[0].DeletionTimestamp = now()
			test.change(s)
			d := decide(s)
			if d.again != test.wants {
				t.Errorf("it is looked at again in %s, not in %s", d.again, test.wants)
			}
			if released := len(d.released) > 0; released != (test.wants == 0) {
				t.Errorf("released: %t, with a wait of %s", released, test.wants)
			}
		})
	}
}
