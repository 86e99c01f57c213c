package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/declarative"
	"github.com/karmada-io/karmada/pkg/util/fedinformer/genericmanager"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/interpreter"
	"go.datum.net/network-presence/lua"
)

// The values of --rules.
const (
	rulesInstalled = "installed"
	rulesOfWebhook = "webhook"
	rulesInLua     = "lua"
)

// rules are the part of Karmada's resource interpreter that is about status.
type rules interface {
	ReflectStatus(object *unstructured.Unstructured) (*runtime.RawExtension, error)
	InterpretHealth(object *unstructured.Unstructured) (bool, error)
	AggregateStatus(object *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error)
}

func (o *interpretOptions) loadRules(ctx context.Context) (rules, error) {
	switch o.rules {
	case rulesInstalled:
		return installedRules(ctx, o.kubeconfig)
	case rulesOfWebhook:
		return functions{}, nil
	case rulesInLua:
		return newScripts()
	}
	return nil, fmt.Errorf("--rules %q is unknown: want %q, %q or %q", o.rules, rulesInstalled, rulesOfWebhook, rulesInLua)
}

// installedRules are those of a hub, in Karmada's own interpreter, which follows them until
// the context ends.
func installedRules(ctx context.Context, kubeconfig string) (rules, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read --kubeconfig %q: %w", kubeconfig, err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect by --kubeconfig %q: %w", kubeconfig, err)
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect by --kubeconfig %q: %w", kubeconfig, err)
	}
	// Services are looked up where a webhook is named by one.
	shared := informers.NewSharedInformerFactory(core, 0)
	services := shared.Core().V1().Services().Lister()
	shared.Start(ctx.Done())
	shared.WaitForCacheSync(ctx.Done())
	installed := resourceinterpreter.NewResourceInterpreter(genericmanager.NewSingleClusterInformerManager(ctx, objects, 0), services)
	if err := installed.Start(ctx); err != nil {
		return nil, fmt.Errorf("read the rules that are installed on the hub: %w", err)
	}
	return installed, nil
}

// functions are the rules that the webhook of this program has.
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

// ReflectStatus is the report on a copy.
func (f functions) ReflectStatus(object *unstructured.Unstructured) (*runtime.RawExtension, error) {
	report, err := f.report(object)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(report)
	return &runtime.RawExtension{Raw: raw}, err
}

// InterpretHealth tells whether a copy is well.
func (f functions) InterpretHealth(object *unstructured.Unstructured) (bool, error) {
	report, err := f.report(object)
	return interpreter.Health(report), err
}

// AggregateStatus is the context with the status that follows from its cells.
func (functions) AggregateStatus(object *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	var context v1alpha.NetworkContext
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &context); err != nil {
		return nil, err
	}
	status := interpreter.Aggregate(&context, items, time.Now())
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, err
	}
	aggregated := object.DeepCopy()
	aggregated.Object["status"] = content
	return aggregated, nil
}

// scripts are the Lua scripts of this program, in Karmada's own virtual machine.
type scripts struct {
	machine *declarative.ConfigurableInterpreter
}

func newScripts() (scripts, error) {
	var customization configv1alpha1.ResourceInterpreterCustomization
	if err := yaml.UnmarshalStrict(lua.Status, &customization); err != nil {
		return scripts{}, fmt.Errorf("read the customization in Lua: %w", err)
	}
	machine := declarative.NewConfigurableInterpreter(nil)
	machine.LoadConfig([]*configv1alpha1.ResourceInterpreterCustomization{&customization})
	return scripts{machine}, nil
}

// ReflectStatus is the report on a copy.
func (s scripts) ReflectStatus(object *unstructured.Unstructured) (*runtime.RawExtension, error) {
	report, _, err := s.machine.ReflectStatus(object)
	return report, err
}

// InterpretHealth tells whether a copy is well.
func (s scripts) InterpretHealth(object *unstructured.Unstructured) (bool, error) {
	healthy, _, err := s.machine.InterpretHealth(object)
	return healthy, err
}

// AggregateStatus is the context with the status that follows from its cells.
func (s scripts) AggregateStatus(object *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	aggregated, _, err := s.machine.AggregateStatus(object, items)
	return aggregated, err
}
