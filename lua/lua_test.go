package lua_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/declarative"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/declarative/luavm"
	karmada "github.com/karmada-io/karmada/pkg/util/interpreter"
	gopherlua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"go.datum.net/network-presence/interpreter/cases"
	"go.datum.net/network-presence/lua"
)

// scripts are the rules as Karmada runs them from customizations.
type scripts struct {
	*declarative.ConfigurableInterpreter
}

// load has Karmada's own interpreter load customizations.
func load(t testing.TB, manifests ...[]byte) scripts {
	var customizations []*configv1alpha1.ResourceInterpreterCustomization
	for _, manifest := range manifests {
		customizations = append(customizations, customization(t, manifest))
	}
	interpreter := declarative.NewConfigurableInterpreter(nil)
	interpreter.LoadConfig(customizations)
	return scripts{interpreter}
}

func customization(t testing.TB, manifest []byte) *configv1alpha1.ResourceInterpreterCustomization {
	var customization configv1alpha1.ResourceInterpreterCustomization
	if err := yaml.UnmarshalStrict(manifest, &customization); err != nil {
		t.Fatalf("read a customization: %v", err)
	}
	return &customization
}

var errNotCustomized = errors.New("the script is not found by Karmada")

func enabled(found bool, err error) error {
	if err == nil && !found {
		return errNotCustomized
	}
	return err
}

func (s scripts) ReflectStatus(object *unstructured.Unstructured) (*runtime.RawExtension, error) {
	status, found, err := s.ConfigurableInterpreter.ReflectStatus(object)
	return status, enabled(found, err)
}

func (s scripts) InterpretHealth(object *unstructured.Unstructured) (bool, error) {
	healthy, found, err := s.ConfigurableInterpreter.InterpretHealth(object)
	return healthy, enabled(found, err)
}

func (s scripts) AggregateStatus(object *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	aggregated, found, err := s.ConfigurableInterpreter.AggregateStatus(object, items)
	return aggregated, enabled(found, err)
}

func TestScriptsAnswerAllCases(t *testing.T) {
	cases.Run(t, load(t, lua.Retention, lua.Status))
}

// context is a NetworkContext with an own network UID, or none, merged with more.
func context(uid string, more map[string]any) *unstructured.Unstructured {
	labels := map[string]any{"networking.datumapis.com/network": "default"}
	if uid != "" {
		labels["networking.datumapis.com/network-uid"] = uid
	}
	object := map[string]any{
		"apiVersion": "networking.datumapis.com/v1alpha",
		"kind":       "NetworkContext",
		"metadata":   map[string]any{"name": "default-us-central-1", "namespace": "ns-acme", "labels": labels},
		"spec":       map[string]any{"mtu": int64(8000), "ipFamilies": []any{"IPv6"}},
	}
	maps.Copy(object, more)
	return &unstructured.Unstructured{Object: object}
}

func TestRetain(t *testing.T) {
	status := map[string]any{"agent": map[string]any{"holders": int64(3)}, "conditions": []any{}}
	old := map[string]any{"mtu": int64(1460)}
	for name, test := range map[string]struct {
		desired, observed, want *unstructured.Unstructured
		refusal                 string
	}{
		"the status of the agent stays": {
			desired:  context("net-1", nil),
			observed: context("net-1", map[string]any{"spec": old, "status": status}),
			want:     context("net-1", map[string]any{"status": status}),
		},
		"no agent": {
			desired:  context("net-1", nil),
			observed: context("net-1", map[string]any{"spec": old}),
			want:     context("net-1", nil),
		},
		"a copy that lost its label is mended": {
			desired:  context("net-1", nil),
			observed: context("", map[string]any{"status": status}),
			want:     context("net-1", map[string]any{"status": status}),
		},
		"a copy without any labels is mended": {
			desired:  context("net-1", nil),
			observed: context("", map[string]any{"metadata": map[string]any{"name": "default-us-central-1"}}),
			want:     context("net-1", nil),
		},
		"the copy of a deleted predecessor": {
			desired:  context("net-2", nil),
			observed: context("net-1", map[string]any{"status": status}),
			refusal:  "this cell still holds the copy of a deleted predecessor: it is of network UID net-1, not net-2, and goes with its last address",
		},
		"the hub has lost the label": {
			desired:  context("", nil),
			observed: context("net-1", nil),
			refusal:  "this cell still holds the copy of a deleted predecessor: it is of network UID net-1, not none, and goes with its last address",
		},
	} {
		t.Run(name, func(t *testing.T) {
			retained, found, err := load(t, lua.Retention, lua.Status).Retain(test.desired, test.observed)
			if test.refusal != "" {
				// What follows, a stack trace, is Karmada's.
				if first, _, _ := strings.Cut(fmt.Sprint(err), "\n"); first != test.refusal {
					t.Errorf("refused with %q, want %q", first, test.refusal)
				}
				return
			}
			if err := enabled(found, err); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want.Object, retained.Object); diff != "" {
				t.Errorf("retained (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingTravelsWithAContext(t *testing.T) {
	for name, object := range map[string]*unstructured.Unstructured{
		"a context": context("net-1", map[string]any{"spec": map[string]any{"location": map[string]any{"name": "us-central-1"}}}),
		"no spec":   context("", map[string]any{"spec": nil}),
	} {
		t.Run(name, func(t *testing.T) {
			dependencies, found, err := load(t, lua.Retention).GetDependencies(object)
			if err := enabled(found, err); err != nil || len(dependencies) != 0 {
				t.Errorf("%v travel with it, error %v; want nothing", dependencies, err)
			}
		})
	}
}

// Karmada's admission refuses scripts that do not load, and a second script for what has
// one: the two customizations must share none.
func TestCustomizationsCanBeInstalledTogether(t *testing.T) {
	retention, status := customization(t, lua.Retention), customization(t, lua.Status)
	vm, err := luavm.NewWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer vm.Close()
	served := map[string]bool{}
	for _, rule := range karmada.AllResourceInterpreterCustomizationRules {
		first, second := rule.GetScript(retention), rule.GetScript(status)
		if first != "" && second != "" {
			t.Errorf("both customizations have a script for %s", rule.Name())
		}
		if _, err := vm.LoadString(first + second); err != nil {
			t.Errorf("the script for %s does not load: %v", rule.Name(), err)
		}
		served[rule.Name()] = first+second != ""
	}
	want := map[string]bool{
		"InterpretReplica": false, "InterpretComponent": false, "ReviseReplica": false,
		"Retain": true, "InterpretDependency": true, "InterpretStatus": true, "InterpretHealth": true, "AggregateStatus": true,
	}
	if diff := cmp.Diff(want, served); diff != "" {
		t.Errorf("what is customized (-want +got):\n%s", diff)
	}
}

// Karmada's virtual machines are used again: what one script leaves behind, another finds.
func TestScriptsLeaveNothingBehind(t *testing.T) {
	vm := luavm.New(false, 1)
	state, err := vm.NewLuaState()
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	globals := func() map[string]bool {
		names := map[string]bool{}
		state.G.Global.ForEach(func(name, _ gopherlua.LValue) { names[name.String()] = true })
		return names
	}
	want := globals()
	for _, name := range []string{"Retain", "GetDependencies", "ReflectStatus", "InterpretHealth", "AggregateStatus"} {
		want[name] = true
	}
	for _, rule := range karmada.AllResourceInterpreterCustomizationRules {
		for _, manifest := range [][]byte{lua.Retention, lua.Status} {
			if err := state.DoString(rule.GetScript(customization(t, manifest))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := state.DoString("ReflectStatus({}) InterpretHealth({}) AggregateStatus({}, {}) Retain({}, {}) GetDependencies({})"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, globals()); diff != "" {
		t.Errorf("globals (-want +got):\n%s", diff)
	}
}
