package cell

import (
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldOwner owns, in managedFields, what the agent writes by server-side apply.
const FieldOwner = client.FieldOwner("network-presence-cell")

// superseded tells that a write failed because its object has changed or gone since the
// cache was read. The watch is about to tell, and the decision is then made anew.
func superseded(err error) bool { return errors.IsNotFound(err) || errors.IsConflict(err) }

// applied is a condition as server-side apply takes it.
func applied(condition metav1.Condition) *apply.ConditionApplyConfiguration {
	return apply.Condition().
		WithType(condition.Type).
		WithStatus(condition.Status).
		WithReason(condition.Reason).
		WithMessage(condition.Message).
		WithObservedGeneration(condition.ObservedGeneration).
		WithLastTransitionTime(condition.LastTransitionTime)
}
