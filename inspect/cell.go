package inspect

import (
	"fmt"

	"go.datum.net/network-presence/api/v1alpha"
)

// copyLink judges what a cell has, by its report and by whether it can be reached.
func copyLink(s *Sight, cell string) Link {
	l := Link{Step: StepCopy, Cell: cell, State: LinkOK}
	context := s.Context()
	report := s.reports()[cell]
	if copied := s.Copies[cell]; copied != nil {
		l.of("NetworkContext", copied)
	}
	if away := unreachable(s.cluster(cell)); away != "" {
		awayCopy(s, &l, away)
		return l
	}
	if report == nil {
		l.State, l.Note = LinkWaiting, fmt.Sprintf("cell %s has not reported it yet", cell)
		if s.workApplied(cell) {
			l.broken(reportAdvice, "Karmada has written the copy in cell %s, and has no report of it", cell)
		}
		return l
	}
	l.Object, l.Generation = "NetworkContext "+context.Name, report.NetworkGeneration
	if report.Message != "" {
		l.broken(copyAdvice(report), "%s", report.Message)
		return l
	}
	l.Note = fmt.Sprintf("healthy, with the rules of network generation %d", report.NetworkGeneration)
	if report.NetworkGeneration != context.Spec.NetworkGeneration {
		l.Note += fmt.Sprintf("; generation %d is on its way", context.Spec.NetworkGeneration)
	}
	return l
}

const reportAdvice = "see that Karmada's interpreter for NetworkContexts answers: `kubectl presence check`"

// awayCopy judges a copy in a cell that cannot be reached: that is what keeps the presence
// from being ready only where no other cell carries it.
func awayCopy(s *Sight, l *Link, away string) {
	l.State, l.Note = LinkUnseen, away
	for _, other := range s.targets() {
		report := s.reports()[other]
		if unreachable(s.cluster(other)) == "" && report != nil && report.Message == "" {
			return
		}
	}
	l.broken("bring the cell's API server back, or unjoin the cell; nothing is withdrawn there meanwhile", "%s", away)
}

func (s *Sight) workApplied(cell string) bool {
	work := s.Works[cell]
	return work != nil && appliedTo(work)
}

func copyAdvice(report *v1alpha.CellStatus) string {
	switch {
	case report.Terminating:
		return "wait, or release what still holds the copy in the cell: its finalizers and its NetworkInterfaces"
	case !report.Applied:
		return "wait; if this stays, see the Work and the message in it"
	case report.NetworkGeneration == 0:
		return reportAdvice
	case len(report.IPFamilies) == 0:
		return "upgrade the CustomResourceDefinition of NetworkContext in the cell"
	}
	return "look at the copy in the cell, and at its agent there"
}

// holdersLink tells how many addresses a cell holds. They break nothing.
func holdersLink(s *Sight, cell string) Link {
	l := Link{Step: StepHolders, Cell: cell, State: LinkOK}
	report := s.reports()[cell]
	switch {
	case report == nil:
		l.State, l.Note = LinkWaiting, "no report yet"
	case report.Holders == nil:
		l.State, l.Note = LinkUnseen, "nobody reports holders there: no `network-presence cell` runs in the cell"
	case *report.Holders == 1:
		l.Note = "1 NetworkInterface"
	default:
		l.Note = fmt.Sprintf("%d NetworkInterfaces", *report.Holders)
	}
	return l
}
