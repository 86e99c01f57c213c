package location

import (
	"time"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Retriggered is a ResourceBinding changed so that the scheduler looks at it again: its
// moment of triggering, which has no fractions of a second, is always a new one, so that
// two triggers within one second both count.
func Retriggered(binding *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
	triggered := binding.DeepCopy()
	moment := metav1.Now().Rfc3339Copy()
	if last := binding.Spec.RescheduleTriggeredAt; last != nil && !moment.After(last.Time) {
		moment = metav1.NewTime(last.Add(time.Second))
	}
	triggered.Spec.RescheduleTriggeredAt = &moment
	return triggered
}
