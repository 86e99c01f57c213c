package interpreter_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	karmada "github.com/karmada-io/karmada/pkg/webhook/interpreter"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"go.datum.net/network-presence/interpreter"
	"go.datum.net/network-presence/interpreter/cases"
)

// FuzzReadReport reads any bytes. What a reading gives can be written and read again
// without a fault.
func FuzzReadReport(f *testing.F) {
	for _, report := range cases.Reports(f) {
		f.Add(report)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		report, _ := interpreter.ReadReport(raw)
		rereadable(t, report)
	})
}

// FuzzReflect reflects any bytes as a copy, with the same to be said of the report.
func FuzzReflect(f *testing.F) {
	for _, copied := range cases.Copies(f) {
		f.Add(copied)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		copied, err := interpreter.ReadCopy(raw)
		if copied == nil {
			if err == nil {
				t.Fatal("neither a copy nor an error")
			}
			return
		}
		rereadable(t, interpreter.Reflect(copied, err))
	})
}

// FuzzHealth judges any bytes as a copy: none is healthy that lacks what health takes.
func FuzzHealth(f *testing.F) {
	for _, copied := range cases.Copies(f) {
		f.Add(copied)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		copied, err := interpreter.ReadCopy(raw)
		if copied == nil {
			return
		}
		if !interpreter.Health(interpreter.Reflect(copied, err)) {
			return
		}
		if err != nil || copied.DeletionTimestamp != nil || len(copied.Labels) == 0 || len(copied.Spec.IPFamilies) == 0 {
			t.Errorf("healthy: %+v, %v", copied, err)
		}
	})
}

// FuzzAggregate aggregates any report beside a sane one. The hub takes the result, the sane
// cell is there, and aggregating again changes nothing.
func FuzzAggregate(f *testing.F) {
	reports := cases.Reports(f)
	for _, report := range reports {
		f.Add("cell-b", true, "", "Healthy", report)
	}
	f.Add("", false, "denied\nstack", "Unknown", []byte("null"))
	hub, form := cases.NewHub(f), functions{}
	f.Fuzz(func(t *testing.T, name string, applied bool, message, health string, raw []byte) {
		// Texts come out of JSON, which has none that are not UTF-8.
		name, message, health = strings.ToValidUTF8(name, "?"), strings.ToValidUTF8(message, "?"), strings.ToValidUTF8(health, "?")
		// These come out of a decoder, which gives valid texts.
		name, message, health = valid(name), valid(message), valid(health)
		items := []workv1alpha2.AggregatedStatusItem{
			{ClusterName: name, Applied: applied, AppliedMessage: message, Health: workv1alpha2.ResourceHealth(health), Status: &runtime.RawExtension{Raw: raw}},
			{ClusterName: "sane", Applied: true, Health: workv1alpha2.ResourceHealthy, Status: &runtime.RawExtension{Raw: reports[0]}},
		}
		aggregated, err := form.AggregateStatus(cases.Context(t), items)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := hub.Store(aggregated)
		if err != nil {
			t.Fatalf("the hub refuses it: %v", err)
		}
		cells, _, err := unstructured.NestedSlice(stored.Object, "status", "cells")
		if err != nil || len(cells) == 0 || name != "sane" && len(cells) != 2 {
			t.Errorf("cells %v, error %v", cells, err)
		}
		again, err := form.AggregateStatus(stored.DeepCopy(), items)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(stored.Object, again.Object); diff != "" {
			t.Errorf("aggregating again changes it (-first +second):\n%s", diff)
		}
	})
}

// FuzzHandler answers any request, and never without saying how it went.
func FuzzHandler(f *testing.F) {
	for _, operation := range append([]configv1alpha1.InterpreterOperation{"", "Retain"}, interpreter.Operations...) {
		for _, copied := range cases.Copies(f) {
			f.Add(string(operation), copied, []byte(`[{"clusterName":"cell-a","applied":true,"status":{}}]`))
		}
	}
	handler := &interpreter.Handler{Now: time.Now}
	f.Fuzz(func(t *testing.T, operation string, object, aggregated []byte) {
		request := karmada.Request{ResourceInterpreterRequest: configv1alpha1.ResourceInterpreterRequest{
			Kind:      interpreter.Kind,
			Operation: configv1alpha1.InterpreterOperation(operation),
			Object:    runtime.RawExtension{Raw: object},
		}}
		if err := json.Unmarshal(aggregated, &request.AggregatedStatus); err != nil {
			return // Karmada's server refuses it
		}
		response := handler.Handle(context.Background(), request)
		if response.Status == nil || !response.Successful && response.Status.Message == "" {
			t.Errorf("no word on how it went: %+v", response)
		}
		if _, err := json.Marshal(response.ResourceInterpreterResponse); err != nil {
			t.Errorf("the response cannot be written: %v", err)
		}
	})
}

func valid(text string) string {
	return strings.ToValidUTF8(text, "?")
}

// rereadable checks that a report comes back from what is stored of it.
func rereadable(t *testing.T, report interpreter.Report) {
	t.Helper()
	raw, err := json.Marshal(report)
	if err != nil {
		t.Fatalf("the report cannot be written: %v", err)
	}
	again, err := interpreter.ReadReport(raw)
	if err != nil {
		t.Fatalf("%s cannot be read: %v", raw, err)
	}
	second, err := json.Marshal(again)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(raw), string(second)); diff != "" {
		t.Errorf("the report changes when it is read (-before +after):\n%s", diff)
	}
}
