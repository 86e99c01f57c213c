package inspect_test

import (
	"strings"
	"testing"

	"go.datum.net/network-presence/inspect"
	"go.datum.net/network-presence/inspect/cases"
)

// Each broken link is marked, and none after it, whatever else it breaks.
func TestExplainMarksTheFirstBrokenLink(t *testing.T) {
	for _, test := range cases.All() {
		t.Run(test.Name, func(t *testing.T) {
			e := inspect.Explain(test.Sight)
			var step inspect.Step
			var cell string
			if first := e.First(); first != nil {
				step, cell = first.Step, first.Cell
			}
			if step != test.Broken || cell != test.Cell {
				t.Errorf("marked is %q in cell %q, want %q in %q", step, cell, test.Broken, test.Cell)
			}
			if !says(e.Cause, test.Cause) || !says(e.Advice, test.Advice) {
				t.Errorf("cause %q and advice %q, want in them %q and %q", e.Cause, e.Advice, test.Cause, test.Advice)
			}
			if usable := test.Cause == ""; e.Usable() != usable {
				t.Errorf("usable is %v, want %v", e.Usable(), usable)
			}
		})
	}
}

func says(text, part string) bool {
	if part == "" {
		return text == ""
	}
	return strings.Contains(text, part) && !strings.Contains(text, "\n")
}

// Every chain has all of its steps, in their order.
func TestExplainShowsEachStepInOrder(t *testing.T) {
	order := []inspect.Step{inspect.StepProject, inspect.StepGrant, inspect.StepContext, inspect.StepPlacement,
		inspect.StepWork, inspect.StepCopy, inspect.StepHolders}
	for _, test := range cases.All() {
		var steps []inspect.Step
		for _, link := range inspect.Explain(test.Sight).Links {
			if len(steps) == 0 || steps[len(steps)-1] != link.Step {
				steps = append(steps, link.Step)
			}
			if link.State == "" {
				t.Errorf("%s: link %s has no state", test.Name, link.Step)
			}
		}
		if len(steps) != len(order) {
			t.Errorf("%s: steps are %v, want %v", test.Name, steps, order)
			continue
		}
		for i := range order {
			if steps[i] != order[i] {
				t.Errorf("%s: steps are %v, want %v", test.Name, steps, order)
			}
		}
	}
}
