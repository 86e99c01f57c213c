// Package cases is the table of what is interpreted as what. Each form of the rules runs
// through it in the tests of its package.
package cases

import (
	"cmp"
	_ "embed" // the table
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	gocmp "github.com/google/go-cmp/cmp"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Form is one form of the rules, with the part of Karmada's resource interpreter that they
// are.
type Form interface {
	ReflectStatus(object *unstructured.Unstructured) (*runtime.RawExtension, error)
	InterpretHealth(object *unstructured.Unstructured) (bool, error)
	AggregateStatus(object *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error)
}

// turned stands for the time of a transition that happens in the test.
const turned = "now"

//go:embed cases.yaml
var file []byte

// fields are any JSON object: as much of one as a case names.
type fields = map[string]any

type table struct {
	Base struct {
		Copy, Report, Context, Item, Cell fields
		Ready, Converged, Held            string
	}
	// Shared holds what cases refer to.
	Shared   fields
	Copies   []copyCase
	Contexts []contextCase
}

// copyCase is a copy in a cell, its report and its health.
type copyCase struct {
	Name    string
	Copy    fields
	Raw     string
	Report  fields
	Healthy bool
}

// contextCase is a context on the hub with what Karmada has of its cells, and its status.
type contextCase struct {
	Name    string
	Context fields
	Items   []fields
	Cells   []fields
	// Ready, Converged and Held are "STATUS Reason: message".
	Ready, Converged, Held string
	// Keeps are the types of conditions that keep the time that the context has.
	Keeps []string
	// Foreign conditions of the result.
	Foreign []fields
	// Error, where the context cannot be aggregated, is part of what the form says of it.
	Error string
}

// Run holds a form to every case.
func Run(t *testing.T, form Form) {
	t.Helper()
	cases := read(t)
	hub := NewHub(t)
	for _, c := range cases.Copies {
		t.Run("copy: "+c.Name, func(t *testing.T) { cases.runCopy(t, form, c) })
	}
	for _, c := range cases.Contexts {
		t.Run("context: "+c.Name, func(t *testing.T) { cases.runContext(t, form, hub, c) })
	}
}

// Copies are the copies of all cases, as JSON.
func Copies(t testing.TB) [][]byte {
	t.Helper()
	var copies [][]byte
	cases := read(t)
	for _, c := range cases.Copies {
		copies = append(copies, encode(t, cases.copied(t, c).Object))
	}
	return copies
}

// Reports are the reports of all cells of all cases, as JSON.
func Reports(t testing.TB) [][]byte {
	t.Helper()
	var reports [][]byte
	cases := read(t)
	for _, c := range cases.Contexts {
		for _, item := range cases.items(t, c) {
			if item.Status != nil {
				reports = append(reports, item.Status.Raw)
			}
		}
	}
	return reports
}

// Context is the context on the hub that the cases are about, without a status.
func Context(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	return object(t, read(t).Base.Context)
}

func read(t testing.TB) *table {
	var cases table
	if err := yaml.UnmarshalStrict(file, &cases); err != nil {
		t.Fatalf("read the cases: %v", err)
	}
	return &cases
}

// copied is the copy of a case.
func (cases *table) copied(t testing.TB, c copyCase) *unstructured.Unstructured {
	if c.Raw == "" {
		return object(t, merged(t, cases.Base.Copy, c.Copy))
	}
	bare := fields{"apiVersion": cases.Base.Copy["apiVersion"], "kind": cases.Base.Copy["kind"]}
	// A merge would take null for what is to be taken away.
	maps.Copy(bare, decode(t, []byte(c.Raw)))
	return &unstructured.Unstructured{Object: bare}
}

func (cases *table) runCopy(t *testing.T, form Form, c copyCase) {
	copied := cases.copied(t, c)
	status, err := form.ReflectStatus(copied.DeepCopy())
	if err != nil {
		t.Fatalf("reflect: %v", err)
	}
	if diff := gocmp.Diff(merged(t, cases.Base.Report, c.Report), decode(t, status.Raw)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	healthy, err := form.InterpretHealth(copied)
	if err != nil {
		t.Fatalf("health: %v", err)
	}
	if healthy != c.Healthy {
		t.Errorf("healthy is %t, want %t", healthy, c.Healthy)
	}
}

func (cases *table) runContext(t *testing.T, form Form, hub *Hub, c contextCase) {
	context := object(t, merged(t, cases.Base.Context, c.Context))
	items := cases.items(t, c)
	start := time.Now()
	aggregated, err := form.AggregateStatus(context.DeepCopy(), slices.Clone(items))
	if c.Error != "" {
		if err == nil || !strings.Contains(err.Error(), c.Error) {
			t.Fatalf("error is %v, want one with %q", err, c.Error)
		}
		return
	}
	if err != nil {
		t.Fatalf("aggregate: %v", err)
	}
	if diff := gocmp.Diff(without(context, "status"), without(aggregated, "status")); diff != "" {
		t.Errorf("more than the status has changed (-before +after):\n%s", diff)
	}
	stored, err := hub.Store(aggregated)
	if err != nil {
		t.Fatalf("the hub refuses it: %v", err)
	}
	again, err := form.AggregateStatus(stored.DeepCopy(), slices.Clone(items))
	if err != nil {
		t.Fatalf("aggregate again: %v", err)
	}
	// Karmada writes when these differ, to the last type.
	if diff := gocmp.Diff(stored.Object["status"], again.Object["status"]); diff != "" {
		t.Errorf("aggregating again changes the status (-first +second):\n%s", diff)
	}
	got := markTurned(t, stored, start)
	if diff := gocmp.Diff(cases.wanted(t, c, context), got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func (cases *table) items(t testing.TB, c contextCase) []workv1alpha2.AggregatedStatusItem {
	var items []workv1alpha2.AggregatedStatusItem
	for _, item := range c.Items {
		var typed workv1alpha2.AggregatedStatusItem
		if err := json.Unmarshal(encode(t, merged(t, cases.Base.Item, item)), &typed); err != nil {
			t.Fatalf("read an item: %v", err)
		}
		items = append(items, typed)
	}
	return items
}

// wanted is the status that a case wants.
func (cases *table) wanted(t *testing.T, c contextCase, context *unstructured.Unstructured) any {
	conditions := slices.Clone(c.Foreign)
	for kind, text := range map[string]string{
		"Ready":     cmp.Or(c.Ready, cases.Base.Ready),
		"Converged": cmp.Or(c.Converged, cases.Base.Converged),
		"Held":      cmp.Or(c.Held, cases.Base.Held),
	} {
		transition := turned
		if slices.Contains(c.Keeps, kind) {
			transition = transitionOf(t, context, kind)
		}
		conditions = append(conditions, condition(t, kind, text, context.GetGeneration(), transition))
	}
	slices.SortFunc(conditions, func(a, b fields) int { return cmp.Compare(a["type"].(string), b["type"].(string)) })
	status := fields{"observedGeneration": context.GetGeneration(), "conditions": conditions}
	var cells []fields
	for _, cell := range c.Cells {
		cells = append(cells, merged(t, cases.Base.Cell, cell))
	}
	if cells != nil {
		status["cells"] = cells
	}
	return decode(t, encode(t, status))
}

func condition(t *testing.T, kind, text string, generation int64, transition string) fields {
	status, rest, found := strings.Cut(text, " ")
	reason, message, alsoFound := strings.Cut(rest, ": ")
	if !found || !alsoFound {
		t.Fatalf("condition %s is %q, want \"STATUS Reason: message\"", kind, text)
	}
	return fields{
		"type": kind, "status": status, "reason": reason, "message": message,
		"observedGeneration": generation, "lastTransitionTime": transition,
	}
}

func transitionOf(t *testing.T, context *unstructured.Unstructured, kind string) string {
	for _, condition := range conditionsOf(t, context) {
		if condition["type"] == kind {
			return condition["lastTransitionTime"].(string)
		}
	}
	t.Fatalf("the context has no condition %s whose time could be kept", kind)
	return ""
}

// markTurned is the status with the mark in place of each time of transition that is no
// earlier than the start of the test.
func markTurned(t *testing.T, context *unstructured.Unstructured, start time.Time) any {
	for _, condition := range conditionsOf(t, context) {
		transition, err := time.Parse(time.RFC3339, condition["lastTransitionTime"].(string))
		if err != nil {
			t.Fatalf("time of condition %s: %v", condition["type"], err)
		}
		if !transition.Before(start.Truncate(time.Second)) {
			condition["lastTransitionTime"] = turned
		}
	}
	return decode(t, encode(t, fields{"status": context.Object["status"]}))["status"]
}

func conditionsOf(t *testing.T, context *unstructured.Unstructured) []fields {
	list, _, err := unstructured.NestedFieldNoCopy(context.Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	var conditions []fields
	for _, condition := range list.([]any) {
		conditions = append(conditions, condition.(fields))
	}
	return conditions
}

func without(object *unstructured.Unstructured, field string) fields {
	object = object.DeepCopy()
	delete(object.Object, field)
	return object.Object
}

// merged is a base with a case's differences.
func merged(t testing.TB, base, difference fields) fields {
	if difference == nil {
		return decode(t, encode(t, base))
	}
	result, err := jsonpatch.MergePatch(encode(t, base), encode(t, difference))
	if err != nil {
		t.Fatalf("merge a case into its base: %v", err)
	}
	return decode(t, result)
}

func object(t testing.TB, content fields) *unstructured.Unstructured {
	// Whole numbers must be integers, as they come from an API server.
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(encode(t, content)); err != nil {
		t.Fatalf("read an object: %v", err)
	}
	return &object
}

func encode(t testing.TB, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("write %v: %v", value, err)
	}
	return text
}

func decode(t testing.TB, text []byte) fields {
	var object unstructured.Unstructured
	if err := json.Unmarshal([]byte(fmt.Sprintf(`{"kind":"Any","value":%s}`, text)), &object); err != nil {
		t.Fatalf("read %s: %v", text, err)
	}
	content, ok := object.Object["value"].(fields)
	if !ok {
		t.Fatalf("%s is no JSON object", text)
	}
	return content
}
