package interpreter

import (
	"cmp"
	"encoding/json"
	"slices"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"go.datum.net/network-presence/api/v1alpha"
)

// Cells are the cells' parts of a context's status, sorted by name, from what Karmada has of
// them. A cell's Message is empty when the cell carries this network's rules, applied and
// healthy, and otherwise a sentence that names the cell and says what is missing. Whether
// the cell can be reached is not known here.
//
// What a cell reports may be anything; see ReadReport. While there is nothing to be read of
// a cell, as when Karmada cannot write its copy, the holders that it last reported stay, as
// the context's status has them: addresses are not given up for want of news.
func Cells(context *v1alpha.NetworkContext, items []workv1alpha2.AggregatedStatusItem) []v1alpha.CellStatus {
	inOrder := make([]*workv1alpha2.AggregatedStatusItem, 0, len(items))
	for i := range items {
		inOrder = append(inOrder, &items[i])
	}
	slices.SortStableFunc(inOrder, func(a, b *workv1alpha2.AggregatedStatusItem) int {
		return cmp.Compare(a.ClusterName, b.ClusterName)
	})
	cells := make([]v1alpha.CellStatus, 0, len(items))
	for _, item := range inOrder {
		// The API server takes each name once.
		if len(cells) == 0 || cells[len(cells)-1].Name != item.ClusterName {
			cells = append(cells, cell(context, item))
		}
	}
	return cells
}

func cell(context *v1alpha.NetworkContext, item *workv1alpha2.AggregatedStatusItem) v1alpha.CellStatus {
	cell := v1alpha.CellStatus{Name: item.ClusterName, Applied: item.Applied}
	raw := rawStatus(item)
	var report Report
	var unreadable error
	if raw != nil {
		report, unreadable = ReadReport(raw)
		cell.CellReport = report.CellReport
	}
	if raw == nil || unreadable != nil || report.Error != "" {
		cell.Holders = cmp.Or(cell.Holders, lastHolders(context, item.ClusterName))
	}
	cell.Message = Clip(lack(context, item, raw != nil, &report, unreadable), mostMessage)
	cell.Health = string(health(item, raw != nil, cell.Message != ""))
	return cell
}

// rawStatus is what Karmada has of a copy's report; nil where it has none.
func rawStatus(item *workv1alpha2.AggregatedStatusItem) []byte {
	if item.Status == nil {
		return nil
	}
	raw := item.Status.Raw
	if raw == nil && item.Status.Object != nil {
		// What cannot be written as JSON has not come from an API server; it reads as "it
		// is not JSON" further on.
		raw, _ = json.Marshal(item.Status.Object)
	}
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func lastHolders(context *v1alpha.NetworkContext, name string) *int64 {
	for i := range context.Status.Cells {
		if context.Status.Cells[i].Name == name {
			return context.Status.Cells[i].Holders
		}
	}
	return nil
}

// lack is the sentence on what keeps a cell from carrying the network's rules, or "".
func lack(context *v1alpha.NetworkContext, item *workv1alpha2.AggregatedStatusItem, reported bool, report *Report, unreadable error) string {
	uid := context.Labels[v1alpha.NetworkUIDLabel]
	switch {
	case uid == "":
		return "the context on the hub " + ailmentUnnamed
	case !item.Applied && item.AppliedMessage != "":
		return "not applied in cell " + item.ClusterName + ": " + firstLine(item.AppliedMessage)
	case !item.Applied:
		return "not yet applied in cell " + item.ClusterName
	case !reported:
		return "cell " + item.ClusterName + " has not reported yet"
	case unreadable != nil:
		return "the report of cell " + item.ClusterName + " cannot be read: " + unreadable.Error()
	case report.NetworkUID != "" && string(report.NetworkUID) != uid:
		return "cell " + item.ClusterName + " still holds a deleted predecessor: its copy is of network UID " +
			string(report.NetworkUID) + ", not " + uid
	}
	if ill := ailment(report); ill != "" {
		return "the copy in cell " + item.ClusterName + " " + ill
	}
	switch item.Health {
	case workv1alpha2.ResourceHealthy:
		return ""
	case workv1alpha2.ResourceUnhealthy:
		return "the copy in cell " + item.ClusterName + " is unhealthy"
	}
	return "the health of the copy in cell " + item.ClusterName + " is not known yet"
}

// health is that which Karmada has of a copy, but never Healthy where something is missing:
// Karmada calls a copy healthy while no interpreter is installed, and another version of
// these rules may have.
func health(item *workv1alpha2.AggregatedStatusItem, reported, lacking bool) workv1alpha2.ResourceHealth {
	switch {
	case item.Health == workv1alpha2.ResourceUnhealthy:
		return workv1alpha2.ResourceUnhealthy
	case item.Health != workv1alpha2.ResourceHealthy || lacking && (!item.Applied || !reported):
		return workv1alpha2.ResourceUnknown
	case lacking:
		return workv1alpha2.ResourceUnhealthy
	}
	return workv1alpha2.ResourceHealthy
}
