package presence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
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
	notes := strangers(s, placement)
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
		return refuse(v1alpha.ReasonNetworkContextNotReady, "%s", strings.Join(slices.Concat(missing, unreachable, notes), "; "))
	}
	return &verdict{metav1.ConditionTrue, v1alpha.ReasonNetworkContextReady, readyMessage(s, append(unreachable, notes...))}
}

func readyMessage(s *snapshot, notes []string) string {
	message := fmt.Sprintf("network %q is present in location %q", s.key.Network, s.key.Location)
	if len(notes) == 0 {
		return message
	}
	return message + "; " + strings.Join(notes, "; ")
}

// strangers says that a context is placed by a scheduler that does not ask where its project
// may be, as that of a policy which was there before ours and which Karmada lets keep what it
// has. Nothing where one of ours places it.
func strangers(s *snapshot, placement *workv1alpha2.ResourceBinding) []string {
	if len(s.schedulers) == 0 || slices.Contains(s.schedulers, placement.Spec.SchedulerName) {
		return nil
	}
	policy := "policy " + placement.Annotations[policyv1alpha1.PropagationPolicyNameAnnotation]
	if name := placement.Annotations[policyv1alpha1.ClusterPropagationPolicyAnnotation]; name != "" {
		policy = "cluster policy " + name
	}
	return []string{fmt.Sprintf("%s has it placed by scheduler %q, which does not ask where the project may run: "+
		"take NetworkContexts out of that policy, and delete the NetworkContext to have it made anew", policy, placement.Spec.SchedulerName)}
}

// namesake is the object of another group's kind that a binding with the name of a context's
// is for; empty where there is none.
func namesake(placement *workv1alpha2.ResourceBinding) string {
	if placement == nil || placement.Spec.Resource.APIVersion == "" || strings.HasPrefix(placement.Spec.Resource.APIVersion, v1alpha.SchemeGroupVersion.Group+"/") {
		return ""
	}
	resource := &placement.Spec.Resource
	return fmt.Sprintf("%s %s %q", resource.APIVersion, resource.Kind, resource.Name)
}

// Unplaced says why Karmada has no cell for a context, or "" where it has one. The placement
// is Karmada's ResourceBinding of the context, nil where there is none; served tells whether
// any cell serves the context's location.
func Unplaced(placement *workv1alpha2.ResourceBinding, context *v1alpha.NetworkContext, served bool) string {
	if other := namesake(placement); other != "" {
		return fmt.Sprintf("ResourceBinding %q is that of %s, whose name Karmada spells the same: delete or rename it", placement.Name, other)
	}
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
