package lua_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	karmada "github.com/karmada-io/karmada/pkg/webhook/interpreter"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"go.datum.net/network-presence/interpreter"
	"go.datum.net/network-presence/interpreter/cases"
	"go.datum.net/network-presence/lua"
)

// The cases are what somebody thought of. Here both forms are asked about copies and reports
// of which any part may be anything.

func TestFormsAgreeOnAnyCopy(t *testing.T) {
	scripts := load(t, lua.Status)
	rapid.Check(t, func(t *rapid.T) {
		copied := &unstructured.Unstructured{Object: plain(t, anyCopy().Draw(t, "copy"))}
		copied.SetGroupVersionKind(context("", nil).GroupVersionKind())
		report, err := scripts.ReflectStatus(copied)
		if err != nil {
			t.Fatalf("reflect: %v", err)
		}
		agree(t, report.Raw, ask(t, configv1alpha1.InterpreterOperationInterpretStatus, copied, nil).RawStatus.Raw)
		healthy, err := scripts.InterpretHealth(copied)
		if err != nil {
			t.Fatalf("health: %v", err)
		}
		if got := ask(t, configv1alpha1.InterpreterOperationInterpretHealth, copied, nil).Healthy; *got != healthy {
			t.Errorf("healthy is %t in Lua and %t in Go", healthy, *got)
		}
	})
}

func TestFormsAgreeOnAnyReports(t *testing.T) {
	scripts, hub, context := load(t, lua.Status), cases.NewHub(t), cases.Context(t)
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(anyItem(), 0, 4).Draw(t, "items")
		last := rapid.Int64Range(0, 3).Draw(t, "last holders")
		before := context.DeepCopy()
		before.Object["status"] = plain(t, map[string]any{"cells": []any{map[string]any{"name": "cell-a", "holders": last}}})
		aggregated, err := scripts.AggregateStatus(before.DeepCopy(), items)
		if err != nil {
			t.Fatalf("aggregate: %v", err)
		}
		if _, err := hub.Store(aggregated); err != nil {
			t.Errorf("the hub refuses it: %v", err)
		}
		var patch []struct{ Value map[string]any }
		if err := json.Unmarshal(ask(t, configv1alpha1.InterpreterOperationAggregateStatus, before, items).Patch, &patch); err != nil {
			t.Fatal(err)
		}
		status := plain(t, aggregated.Object)["status"].(map[string]any)
		agree(t, timeless(t, status), timeless(t, patch[0].Value))
	})
}

// anyCopy is a copy, of which any part may be anything.
func anyCopy() *rapid.Generator[map[string]any] {
	return object(map[string]*rapid.Generator[any]{
		"metadata": rarelyJunk(object(map[string]*rapid.Generator[any]{
			"labels":            rarelyJunk(object(map[string]*rapid.Generator[any]{"networking.datumapis.com/network-uid": oftenJunk("net-1")}).AsAny()),
			"deletionTimestamp": oftenJunk("2026-01-31T12:00:00Z"),
		}).AsAny()),
		"spec": rarelyJunk(object(map[string]*rapid.Generator[any]{
			"networkGeneration": number(), "mtu": number(), "ipFamilies": families(),
		}).AsAny()),
		"status": rarelyJunk(object(map[string]*rapid.Generator[any]{
			"agent": rarelyJunk(object(map[string]*rapid.Generator[any]{"holders": number()}).AsAny()), "conditions": conditions(),
		}).AsAny()),
	})
}

func anyItem() *rapid.Generator[workv1alpha2.AggregatedStatusItem] {
	report := object(map[string]*rapid.Generator[any]{
		"networkGeneration": number(), "networkUID": oftenJunk("net-1", "net-0"), "ipFamilies": families(), "mtu": number(),
		"holders": number(), "terminating": oftenJunk(true, false), "conditions": conditions(), "error": oftenJunk("", "bad"), "more": junk(),
	})
	return rapid.Custom(func(t *rapid.T) workv1alpha2.AggregatedStatusItem {
		item := workv1alpha2.AggregatedStatusItem{
			ClusterName:    rapid.SampledFrom([]string{"cell-a", "cell-b", "cell-c", ""}).Draw(t, "cluster"),
			Applied:        rapid.IntRange(0, 3).Draw(t, "applied") > 0,
			AppliedMessage: valid(t, rapid.OneOf(rapid.Just(""), rapid.Just("denied\nstack"), rapid.String()).Draw(t, "message")),
			Health:         rapid.SampledFrom([]workv1alpha2.ResourceHealth{"Healthy", "Unhealthy", "Unknown", "", "Fine"}).Draw(t, "health"),
		}
		if rapid.IntRange(0, 4).Draw(t, "reported") > 0 {
			raw, err := json.Marshal(rarelyJunk(report.AsAny()).Draw(t, "report"))
			if err != nil {
				t.Fatal(err)
			}
			if string(raw) != "null" { // Karmada stores none
				item.Status = &runtime.RawExtension{Raw: raw}
			}
		}
		return item
	})
}

// object has some of the fields.
func object(fields map[string]*rapid.Generator[any]) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		drawn := map[string]any{}
		for _, name := range sortedKeys(fields) {
			if rapid.IntRange(0, 5).Draw(t, "has "+name) > 0 {
				drawn[name] = fields[name].Draw(t, name)
			}
		}
		return drawn
	})
}

func number() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Int64Range(0, 9000).AsAny(),
		rapid.SampledFrom([]any{0, -1, 1.5, 1e3, 1e300, 1<<31 - 1, 1 << 31, 1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<63 - 1}),
		rapid.Float64Range(-1e9, 1e9).AsAny(),
		junk(),
	)
}

func families() *rapid.Generator[any] {
	return rarelyJunk(rapid.SliceOfN(oftenJunk("IPv4", "IPv6", "IPv4", "IPv6", "IPv5"), 0, 3).AsAny())
}

func conditions() *rapid.Generator[any] {
	condition := object(map[string]*rapid.Generator[any]{
		"type":               oftenJunk("Accepted", "Held", "Ready", "a", "example.com/Ready", "-a", "a-", "a b", "a/b/c", "A/b", "a..b/c", "a.b/", "/c", "é"),
		"status":             oftenJunk("True", "False", "Unknown", "true"),
		"reason":             oftenJunk("Some", "A", "A,", "A:b", "_A", "1", "A b"),
		"message":            rapid.OneOf(rapid.Custom(func(t *rapid.T) any { return valid(t, rapid.StringN(0, 2000, 4000).Draw(t, "text")) }), junk()),
		"lastTransitionTime": rapid.OneOf(moment(), moment(), moment(), junk()),
		"observedGeneration": number(),
	})
	return rarelyJunk(rapid.SliceOfN(rarelyJunk(condition.AsAny()), 0, 3).AsAny())
}

func moment() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) any {
			return time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "time"), 0).UTC().Format(time.RFC3339)
		}),
		rapid.StringMatching(`20[0-9][0-9]-[0-1][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]Z`).AsAny(),
		rapid.SampledFrom([]any{
			"0001-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "1900-02-29T00:00:00Z", "2000-02-29T00:00:00Z", "2024-02-30T00:00:00Z",
			"2026-01-31T12:00:00+02:00", "2026-01-31T12:00:00.5Z", "2026-01-31t12:00:00z", "2026-01-31T24:00:00Z", "2026-01-31 12:00:00Z", "2026-01-31T1:00:00.5Z",
		}),
	)
}

func oftenJunk(values ...any) *rapid.Generator[any] {
	return rapid.OneOf(rapid.SampledFrom(values), rapid.SampledFrom(values), rapid.SampledFrom(values), junk())
}

func rarelyJunk(sane *rapid.Generator[any]) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if rapid.IntRange(0, 9).Draw(t, "junk") == 9 {
			return junk().Draw(t, "junk")
		}
		return sane.Draw(t, "sane")
	})
}

// junk is what might be anywhere.
func junk() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.SampledFrom([]any{
			nil, true, false, 0, 7, -7, 2.5, "", "7", "null", []any{}, map[string]any{}, []any{nil}, []any{1}, []any{nil, "IPv4"},
			map[string]any{"a": nil}, map[string]any{"1": 1}, []any{map[string]any{}}, map[string]any{"holders": []any{}},
		}),
		rapid.Custom(func(t *rapid.T) any { return valid(t, rapid.String().Draw(t, "text")) }),
	)
}

// valid is a text as it comes out of JSON.
func valid(t *rapid.T, text string) string {
	raw, err := json.Marshal(text)
	if err == nil {
		err = json.Unmarshal(raw, &text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// plain is an object as it comes out of an API server.
func plain(t *rapid.T, object map[string]any) map[string]any {
	raw, err := json.Marshal(map[string]any{"kind": "Any", "object": object})
	if err != nil {
		t.Fatal(err)
	}
	var result unstructured.Unstructured
	if err := result.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return result.Object["object"].(map[string]any)
}

// timeless is a status without the times of transition of its own conditions, which are now.
func timeless(t *rapid.T, status map[string]any) []byte {
	for _, condition := range status["conditions"].([]any) {
		delete(condition.(map[string]any), "lastTransitionTime")
	}
	raw, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// ask has the Go form answer a request.
func ask(t *rapid.T, operation configv1alpha1.InterpreterOperation, object *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) karmada.Response {
	raw, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	handler := &interpreter.Handler{Now: time.Now}
	response := handler.Handle(t.Context(), karmada.Request{ResourceInterpreterRequest: configv1alpha1.ResourceInterpreterRequest{
		Kind: interpreter.Kind, Operation: operation, Object: runtime.RawExtension{Raw: raw}, AggregatedStatus: items,
	}})
	if !response.Successful {
		t.Fatalf("%s: %s", operation, response.Status.Message)
	}
	return response
}

// agree compares what both forms would have stored.
func agree(t *rapid.T, scripts, functions []byte) {
	var inLua, inGo any
	if err := json.Unmarshal(scripts, &inLua); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(functions, &inGo); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(inLua, inGo); diff != "" {
		t.Errorf("the forms differ (-Lua +Go):\n%s", diff)
	}
}

func sortedKeys(fields map[string]*rapid.Generator[any]) []string {
	return slices.Sorted(maps.Keys(fields))
}
