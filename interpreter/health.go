package interpreter

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/api/v1alpha"
)

const (
	ailmentUnnamed     = "names no network UID: its label " + v1alpha.NetworkUIDLabel + " is missing"
	ailmentTerminating = "is being deleted"
	ailmentNoFamilies  = "names no address families: the CustomResourceDefinition of NetworkContext there may be too old to keep spec.ipFamilies"
)

// Health tells whether a copy serves its network, by its report: it can be read, says which
// network it belongs to, stays, names address families, and is not refused by the cell's
// agent. A copy without an agent is healthy.
//
// That a copy belongs to another network than the context on the hub is not seen here,
// where the hub's context is not known: see Cells.
func Health(report Report) bool {
	return ailment(&report) == ""
}

// ailment completes "the copy in cell X ..." with what is wrong with it, or is "".
func ailment(report *Report) string {
	switch {
	case report.Error != "":
		return "cannot be read: " + report.Error
	case report.NetworkUID == "":
		return ailmentUnnamed
	case report.Terminating:
		return ailmentTerminating
	case len(report.IPFamilies) == 0:
		return ailmentNoFamilies
	}
	accepted := meta.FindStatusCondition(report.Conditions, v1alpha.NetworkContextAccepted)
	if accepted != nil && accepted.Status == metav1.ConditionFalse {
		return "is not accepted by the cell's agent: " + accepted.Message
	}
	return ""
}
