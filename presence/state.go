package presence

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/api/v1alpha"
)

// State is a presence in one word, for people and for counting.
type State string

// The states of a presence.
const (
	// StateReady means that the network can be used in the location.
	StateReady State = "ready"
	// StateConverging means that it can be used, and that some cell has older rules yet.
	StateConverging State = "converging"
	// StateWaiting means that something on the way to the cells is missing.
	StateWaiting State = "waiting"
	// StateRefused means that it is asked for and may not be, or cannot: no project, no
	// grant, no network.
	StateRefused State = "refused"
	// StateHeld means that nobody asks for it, and that it stays until its addresses go.
	StateHeld State = "held"
)

// StateOf is the state of a presence and the reason of it, from its bindings and its
// context on the hub, which is nil where there is none. The reason is that of a condition;
// a presence without a binding and without held addresses is on its way out: waiting, for
// no reason.
func StateOf(bindings []*v1alpha.NetworkBinding, context *v1alpha.NetworkContext) (state State, reason string) {
	if answer := Answer(bindings); answer != nil {
		return stateOfAnswer(answer, context), answer.Reason
	}
	if context == nil {
		return StateWaiting, ""
	}
	if meta.IsStatusConditionFalse(context.Status.Conditions, v1alpha.NetworkContextDeclared) {
		return StateHeld, v1alpha.ReasonAddressesHeld
	}
	return StateWaiting, ""
}

// Answer is the condition Ready of the bindings for one presence: that of a binding with a
// context before any other, since one that names a foreign namespace is refused by itself.
// Nil where no binding stays. A binding that nobody has answered is Pending.
func Answer(bindings []*v1alpha.NetworkBinding) *metav1.Condition {
	var answer *metav1.Condition
	for _, binding := range bindings {
		if !binding.DeletionTimestamp.IsZero() {
			continue
		}
		ready := meta.FindStatusCondition(binding.Status.Conditions, v1alpha.NetworkBindingReady)
		if ready == nil {
			ready = &metav1.Condition{Type: v1alpha.NetworkBindingReady, Status: metav1.ConditionUnknown, Reason: v1alpha.ReasonPending}
		}
		if answer == nil || binding.Status.NetworkContextRef != nil {
			answer = ready
		}
	}
	return answer
}

func stateOfAnswer(answer *metav1.Condition, context *v1alpha.NetworkContext) State {
	switch answer.Reason {
	case v1alpha.ReasonProjectUnresolved, v1alpha.ReasonLocationNotAvailable, v1alpha.ReasonNetworkNotFound:
		return StateRefused
	}
	if answer.Status != metav1.ConditionTrue {
		return StateWaiting
	}
	if context != nil && meta.IsStatusConditionFalse(context.Status.Conditions, v1alpha.NetworkContextConverged) {
		return StateConverging
	}
	return StateReady
}
