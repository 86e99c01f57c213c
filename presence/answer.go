package presence

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/api/v1alpha"
)

// verdict is what a binding's Ready says.
type verdict struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

func refuse(reason, format string, args ...any) *verdict {
	return &verdict{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
}

// answer gives every binding of the pair the same verdict, but for those that ask for
// another namespace's network.
func (d *decision) answer(s *snapshot) {
	shared := judge(s)
	for _, binding := range s.bindings {
		given := shared
		if !s.served(binding) {
			given = refuse(v1alpha.ReasonNetworkNotFound,
				"spec.network.namespace is %q, but this hub namespace mirrors namespace %q of project %q: "+
					"leave it unset or name that one", binding.Spec.Network.Namespace, s.upstreamNamespace, s.project)
		}
		if given == nil {
			given = silentProject(s, binding)
		}
		if given == nil || !binding.DeletionTimestamp.IsZero() {
			continue
		}
		if status := statusOf(s, binding, given); !apiequality.Semantic.DeepEqual(status, binding.Status) {
			d.answers = append(d.answers, answer{binding, status})
		}
	}
}

// judge evaluates the reasons in their order. Nil means that the project's control plane
// has not answered and nothing new can be said.
func judge(s *snapshot) *verdict {
	if s.project == "" {
		return refuse(v1alpha.ReasonProjectUnresolved,
			"namespace %q names no project: label it %s=%s<project> and %s=<namespace>",
			s.key.Namespace, v1alpha.UpstreamClusterNameLabel, v1alpha.UpstreamClusterNamePrefix, v1alpha.UpstreamNamespaceLabel)
	}
	if s.plane == planeUnknown {
		return refuse(v1alpha.ReasonProjectUnresolved,
			"project %q, which namespace %q belongs to, is not connected", s.project, s.key.Namespace)
	}
	if !s.granted {
		if s.plane == planeSilent {
			return nil
		}
		return refuse(v1alpha.ReasonLocationNotAvailable, "%s", s.refusal)
	}
	return judgeNetwork(s)
}

func judgeNetwork(s *snapshot) *verdict {
	current := s.current()
	switch {
	case s.plane == planeSilent && current == nil:
		return nil
	case s.networkGone() && s.network != nil:
		return refuse(v1alpha.ReasonNetworkNotFound, "network %q in namespace %q of project %q is being deleted",
			s.key.Network, s.upstreamNamespace, s.project)
	case s.networkGone(), s.network == nil && current == nil:
		return refuse(v1alpha.ReasonNetworkNotFound, "project %q has no network %q in namespace %q",
			s.project, s.key.Network, s.upstreamNamespace)
	case current == nil && len(s.contexts) > 0:
		return refuse(v1alpha.ReasonNetworkContextNotReady,
			"the context of a deleted network of the same name is still here: %s", waitingFor(s, s.contexts[0]))
	case current == nil && !hasFinalizer(s):
		return refuse(v1alpha.ReasonNetworkContextNotReady,
			"waiting to put finalizer %s on network %q in project %q", v1alpha.PresenceFinalizer, s.key.Network, s.project)
	case current == nil:
		return refuse(v1alpha.ReasonNetworkContextNotReady, "the network context is being created")
	case !current.DeletionTimestamp.IsZero():
		return refuse(v1alpha.ReasonNetworkContextNotReady,
			"the network context was deleted and comes back when it is gone: %s", waitingFor(s, current))
	}
	return readiness(s, current)
}

// waitingFor says what a context that is being deleted waits for.
func waitingFor(s *snapshot, context *v1alpha.NetworkContext) string {
	if held := holders(s, context); len(held) > 0 {
		return heldMessage(held)
	}
	return fmt.Sprintf("context %q is being deleted", context.Name)
}

// silentProject is the verdict while the project's control plane has not answered: what
// was said before stays, and a binding that was never answered learns why.
func silentProject(s *snapshot, binding *v1alpha.NetworkBinding) *verdict {
	before := meta.FindStatusCondition(binding.Status.Conditions, v1alpha.NetworkBindingReady)
	if before != nil && before.Reason != v1alpha.ReasonPending && before.Reason != v1alpha.ReasonProjectUnresolved {
		return nil
	}
	return refuse(v1alpha.ReasonProjectUnresolved, "project %q is connected, but its control plane has not answered yet", s.project)
}

func statusOf(s *snapshot, binding *v1alpha.NetworkBinding, given *verdict) v1alpha.NetworkBindingStatus {
	status := *binding.Status.DeepCopy()
	status.NetworkContextRef = nil
	if current := s.current(); current != nil && s.served(binding) {
		status.NetworkContextRef = &v1alpha.NetworkContextReference{Namespace: current.Namespace, Name: current.Name}
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type:               v1alpha.NetworkBindingReady,
		Status:             given.status,
		Reason:             given.reason,
		Message:            given.message,
		ObservedGeneration: binding.Generation,
	})
	return status
}
