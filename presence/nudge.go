package presence

import (
	"context"
	"fmt"
	"sync"
	"time"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/interpreter"
)

// nudgeAfter is how long a report may be overdue before it is asked for anew, and then
// again.
const nudgeAfter = 20 * time.Second

// overdue tells whether a reachable cell has the context as it is, by Karmada's word, and
// no report of that has come: the interpreter failed, or still does.
func overdue(s *snapshot, context *v1alpha.NetworkContext) bool {
	placement := s.placements[context.Name]
	if placement == nil || !context.DeletionTimestamp.IsZero() || placement.Spec.Resource.UID != context.UID {
		return false
	}
	reports := map[string]v1alpha.CellStatus{}
	for _, report := range interpreter.Cells(context, placement.Status.AggregatedStatus) {
		reports[report.Name] = report
	}
	for _, target := range placement.Spec.Clusters {
		report, reported := reports[target.Name]
		if !s.cells[target.Name].ready || !reported || !report.Applied {
			continue
		}
		if report.NetworkGeneration != context.Spec.NetworkGeneration || report.Health == string(workv1alpha2.ResourceUnknown) {
			return true
		}
	}
	return false
}

// overdueSince remembers since when the reports of presences are overdue. It may forget:
// a report is then asked for a little later.
type overdueSince struct {
	mu    sync.Mutex
	since map[Key]time.Time
}

// set notes whether a presence's report is overdue, and returns for how long it is.
func (o *overdueSince) set(key Key, overdue bool, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !overdue {
		delete(o.since, key)
		return 0
	}
	if _, known := o.since[key]; !known {
		o.since[key] = now
	}
	return now.Sub(o.since[key])
}

// nudge asks for an overdue report: a change of the context reaches the copy, and the
// change of the copy has it interpreted. It returns when to look again, 0 for never.
func (r *Reconciler) nudge(ctx context.Context, key Key, overdue *v1alpha.NetworkContext) (time.Duration, error) {
	now := time.Now()
	waited := r.overdue.set(key, overdue != nil, now)
	if overdue == nil {
		return 0, nil
	}
	if waited < nudgeAfter {
		// Karmada tells of no interpreter that works again, nor of its own waiting.
		return nudgeAfter - waited, nil
	}
	nudged := overdue.DeepCopy()
	metav1.SetMetaDataAnnotation(&nudged.ObjectMeta, v1alpha.NudgedAnnotation, now.UTC().Format(time.RFC3339))
	if err := r.hub.Patch(ctx, nudged, client.MergeFrom(overdue), client.FieldOwner(FieldManager)); err != nil && !gone(err) {
		return 0, fmt.Errorf("ask for the report of context %s/%s: %w", overdue.Namespace, overdue.Name, err)
	}
	nudges.Inc()
	tell(r.recorder, overdue, corev1.EventTypeWarning, EventReportOverdue, "Nudge",
		fmt.Sprintf("a cell has this context for %s, and no report of it has come: asked for it anew; see that the interpreter answers", waited.Round(time.Second)))
	log.FromContext(ctx).Info("report is overdue: asked for it anew", "context", overdue.Name, "overdue", waited.Round(time.Second))
	r.overdue.set(key, false, now)
	return nudgeAfter, nil
}
