package interpreter

import (
	"fmt"
	"slices"
	"time"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/api/v1alpha"
)

// Aggregate is the status that a context on the hub should have, from what Karmada has of
// its cells: Cells and the conditions Ready, Converged and Held. What else is in the status
// stays. Given the same items again it returns the same status: now is used only for the
// transition of a condition whose status changes.
//
// The conditions are as far as Karmada tells. A cell that cannot be reached keeps the last
// that it told; who knows which cells can be reached joins that to Ready.
func Aggregate(context *v1alpha.NetworkContext, items []workv1alpha2.AggregatedStatusItem, now time.Time) v1alpha.NetworkContextStatus {
	status := context.Status
	status.ObservedGeneration = context.Generation
	status.Cells = Cells(context, items)
	status.Conditions = slices.Clone(status.Conditions)
	for _, condition := range []metav1.Condition{
		Ready(context, status.Cells),
		converged(context, status.Cells),
		held(status.Cells),
	} {
		condition.ObservedGeneration = context.Generation
		condition.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
		status.Conditions = with(status.Conditions, condition)
	}
	slices.SortStableFunc(status.Conditions, byType)
	return status
}

// with sets a condition, which keeps its time of transition unless its status changes.
func with(conditions []metav1.Condition, condition metav1.Condition) []metav1.Condition {
	for i := range conditions {
		if conditions[i].Type != condition.Type {
			continue
		}
		if conditions[i].Status == condition.Status && !conditions[i].LastTransitionTime.IsZero() {
			condition.LastTransitionTime = conditions[i].LastTransitionTime
		}
		conditions[i] = condition
		return conditions
	}
	return append(conditions, condition)
}

// Ready is the condition Ready of a context that is delivered to these cells and no others,
// all of them in reach: True when there are any and none has a Message. Its time of
// transition and observed generation are left to the caller.
func Ready(context *v1alpha.NetworkContext, cells []v1alpha.CellStatus) metav1.Condition {
	if len(cells) == 0 {
		return noCells(v1alpha.NetworkContextReady)
	}
	var missing []string
	for i := range cells {
		if cells[i].Message != "" {
			missing = append(missing, cells[i].Message)
		}
	}
	if len(missing) > 0 {
		return metav1.Condition{
			Type:    v1alpha.NetworkContextReady,
			Status:  metav1.ConditionFalse,
			Reason:  v1alpha.ReasonCellsNotReady,
			Message: sentence(missing),
		}
	}
	return metav1.Condition{
		Type:    v1alpha.NetworkContextReady,
		Status:  metav1.ConditionTrue,
		Reason:  v1alpha.ReasonCellsReady,
		Message: fmt.Sprintf(`network "%s" is present in location "%s"`, context.Spec.Network.Name, context.Spec.Location.Name),
	}
}

func noCells(kind string) metav1.Condition {
	return metav1.Condition{
		Type:    kind,
		Status:  metav1.ConditionFalse,
		Reason:  v1alpha.ReasonNoCells,
		Message: "the context is delivered to no cell",
	}
}

// converged tells whether every cell carries the generation that is in the spec.
func converged(context *v1alpha.NetworkContext, cells []v1alpha.CellStatus) metav1.Condition {
	if len(cells) == 0 {
		return noCells(v1alpha.NetworkContextConverged)
	}
	var behind []string
	for i := range cells {
		if late := lateness(context, &cells[i]); late != "" {
			behind = append(behind, late)
		}
	}
	if len(behind) > 0 {
		return metav1.Condition{
			Type:    v1alpha.NetworkContextConverged,
			Status:  metav1.ConditionFalse,
			Reason:  v1alpha.ReasonCellsBehind,
			Message: sentence(behind),
		}
	}
	return metav1.Condition{
		Type:    v1alpha.NetworkContextConverged,
		Status:  metav1.ConditionTrue,
		Reason:  v1alpha.ReasonCellsConverged,
		Message: fmt.Sprintf(`every cell carries generation %d of network "%s"`, context.Spec.NetworkGeneration, context.Spec.Network.Name),
	}
}

// lateness says how a cell's rules differ from those in the spec, or is "".
func lateness(context *v1alpha.NetworkContext, cell *v1alpha.CellStatus) string {
	switch {
	case cell.NetworkUID == "":
		return fmt.Sprintf("cell %s reports no rules", cell.Name)
	case string(cell.NetworkUID) != context.Labels[v1alpha.NetworkUIDLabel]:
		return fmt.Sprintf("cell %s carries the rules of another network", cell.Name)
	case cell.NetworkGeneration != context.Spec.NetworkGeneration:
		return fmt.Sprintf("cell %s carries generation %d, not %d", cell.Name, cell.NetworkGeneration, context.Spec.NetworkGeneration)
	}
	return ""
}

// held tells whether addresses of the network are out in some cell. It is Unknown while no
// cell is known to hold any and some cell has nobody to report them.
func held(cells []v1alpha.CellStatus) metav1.Condition {
	var holding, silent []string
	for i := range cells {
		switch {
		case cells[i].Holders == nil:
			silent = append(silent, cells[i].Name)
		case *cells[i].Holders > 0:
			holding = append(holding, cells[i].Name)
		}
	}
	condition := metav1.Condition{
		Type:    v1alpha.NetworkContextHeld,
		Status:  metav1.ConditionFalse,
		Reason:  v1alpha.ReasonNoAddressesHeld,
		Message: "no cell holds addresses",
	}
	if len(holding) > 0 {
		condition.Status = metav1.ConditionTrue
		condition.Reason = v1alpha.ReasonAddressesHeld
		condition.Message = "addresses are held in " + named(holding)
	}
	if len(silent) == 0 {
		return condition
	}
	nobody := "nobody reports holders in " + named(silent)
	if len(holding) > 0 {
		condition.Message += "; " + nobody
		return condition
	}
	condition.Status = metav1.ConditionUnknown
	condition.Reason = v1alpha.ReasonHoldersNotReported
	condition.Message = nobody
	return condition
}
