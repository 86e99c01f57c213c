package presence

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/interpreter"
)

// The reasons of events that are no reason of a condition.
const (
	// EventContextCreated is a context that was made, or made anew.
	EventContextCreated = "ContextCreated"
	// EventContextWithdrawn is a context that is deleted since nobody needs it.
	EventContextWithdrawn = "ContextWithdrawn"
	// EventReportOverdue is a cell's report that was asked for anew.
	EventReportOverdue = "ReportOverdue"
	// EventNetworkKept is a Network that got our finalizer.
	EventNetworkKept = "NetworkKept"
	// EventNetworkReleased is a Network that lost our finalizer.
	EventNetworkReleased = "NetworkReleased"
)

// mostNote is how many bytes of a note the API server takes.
const mostNote = 1024

// tell records an event. The recorder counts those that repeat, and writes them in the
// background: an event is never waited for.
func tell(recorder events.EventRecorder, object client.Object, kind, reason, action, note string) {
	if recorder == nil {
		return
	}
	recorder.Eventf(object, nil, kind, reason, action, "%s", interpreter.Clip(note, mostNote))
}

// announced tells whether a binding's new answer is worth an event, and of which kind. It
// is when the reason changes: messages change while cells come and go.
func announced(before *metav1.Condition, after metav1.Condition) (kind string, yes bool) {
	if before != nil && before.Reason == after.Reason && before.Status == after.Status {
		return "", false
	}
	if after.Status == metav1.ConditionTrue {
		return corev1.EventTypeNormal, true
	}
	if after.Reason == v1alpha.ReasonNetworkContextNotReady && (before == nil || before.Reason == v1alpha.ReasonPending) {
		return corev1.EventTypeNormal, true // on its way, as it should be
	}
	return corev1.EventTypeWarning, true
}
