package interpreter_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/interpreter"
	"go.datum.net/network-presence/interpreter/cases"
)

// functions are the rules as Go functions.
type functions struct{}

func (functions) report(object *unstructured.Unstructured) (interpreter.Report, error) {
	raw, err := object.MarshalJSON()
	if err != nil {
		return interpreter.Report{}, err
	}
	copied, err := interpreter.ReadCopy(raw)
	if copied == nil {
		return interpreter.Report{}, err
	}
	return interpreter.Reflect(copied, err), nil
}

func (f functions) ReflectStatus(object *unstructured.Unstructured) (*runtime.RawExtension, error) {
	report, err1 := f.report(object)
	raw, err2 := json.Marshal(report)
	return &runtime.RawExtension{Raw: raw}, errors.Join(err1, err2)
}

func (f functions) InterpretHealth(object *unstructured.Unstructured) (bool, error) {
	report, err := f.report(object)
	return interpreter.Health(report), err
}

func (functions) AggregateStatus(object *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	raw, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var context v1alpha.NetworkContext
	if err := utiljson.Unmarshal(raw, &context); err != nil {
		return nil, err
	}
	status := interpreter.Aggregate(&context, items, time.Now())
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	object.Object["status"] = content
	return object, err
}

func TestFunctionsAnswerAllCases(t *testing.T) {
	cases.Run(t, functions{})
}
