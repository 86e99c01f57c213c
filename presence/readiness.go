package presence

import (
	"fmt"
	"strings"
	"time"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/interpreter"
)

// readiness is the verdict on a context that is there: ready, or exactly what is missing.
func readiness(s *snapshot, context *v1alpha.NetworkContext) *verdict {
	placement := s.placements[context.Name]
	if missing := Unplaced(placement, context, len(s.serving) > 0); missing != "" {
		return refuse(v1alpha.ReasonNetworkContextNotReady, "%s", missing)
	}
	// The rules by which Karmada aggregates, on what it aggregates: a moment earlier than
	// the context's own status has it.
	reports := interpreter.Cells(context, placement.Status.AggregatedStatus)
	carrying := 0
	var missing, unreachable []string
	for _, target := range placement.Spec.Clusters {
		switch cell, joined := s.cells[target.Name]; {
		case !joined:
			continue // unjoined: Karmada takes it off the placement
		case !cell.ready:
			unreachable = append(unreachable, fmt.Sprintf("cell %s unreachable since %s", target.Name, cell.since.UTC().Format(time.RFC3339)))
		default:
			lack := lacking(reports, target.Name)
			if lack == "" {
				carrying++
				continue
			}
			missing = append(missing, lack)
		}
	}
	if len(missing) > 0 || carrying == 0 {
		return refuse(v1alpha.ReasonNetworkContextNotReady, "%s", strings.Join(append(missing, unreachable...), "; "))
	}
	return &verdict{metav1.ConditionTrue, v1alpha.ReasonNetworkContextReady, readyMessage(s, unreachable)}
}

func readyMessage(s *snapshot, unreachable []string) string {
	message := fmt.Sprintf("network %q is present in location %q", s.key.Network, s.key.Location)
	if len(unreachable) == 0 {
		return message
	}
	return message + "; " + strings.Join(unreachable, "; ")
}

// Unplaced says why Karmada has no cell for a context, or "" where it has one. The placement
// is Karmada's ResourceBinding of the context, nil where there is none; served tells whether
// any cell serves the context's location.
func Unplaced(placement *workv1alpha2.ResourceBinding, context *v1alpha.NetworkContext, served bool) string {
	if placement == nil || placement.Spec.Resource.UID != context.UID {
		return "Karmada has not taken the context up yet: no ResourceBinding"
	}
	scheduled := meta.FindStatusCondition(placement.Status.Conditions, workv1alpha2.Scheduled)
	location := context.Spec.Location.Name
	switch {
	case len(placement.Spec.Clusters) > 0:
		return ""
	case !served:
		return fmt.Sprintf("no cell serves location %q: label a Karmada Cluster %s=%s", location, v1alpha.TopologyLocationLabel, location)
	case scheduled == nil:
		return fmt.Sprintf("scheduler %q has not placed ResourceBinding %q yet", placement.Spec.SchedulerName, placement.Name)
	case scheduled.Status != metav1.ConditionTrue:
		return fmt.Sprintf("Karmada places it in no cell: %s", scheduled.Message)
	}
	return fmt.Sprintf("ResourceBinding %q names no cell", placement.Name)
}

// lacking says what a reachable target cell lacks, or "" where the copy is there and well.
func lacking(reports []v1alpha.CellStatus, name string) string {
	for i := range reports {
		if reports[i].Name == name {
			return reports[i].Message
		}
	}
	return fmt.Sprintf("not yet applied in cell %s", name)
}
