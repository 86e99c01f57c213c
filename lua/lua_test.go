package lua_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/declarative"
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
		var customization configv1alpha1.ResourceInterpreterCustomization
		if err := yaml.UnmarshalStrict(manifest, &customization); err != nil {
			t.Fatalf("read a customization: %v", err)
		}
		customizations = append(customizations, &customization)
	}
	karmada := declarative.NewConfigurableInterpreter(nil)
	karmada.LoadConfig(customizations)
	return scripts{karmada}
}

var errNotCustomized = errors.New("Karmada does not find the script")

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

var _ = cmp.Diff
var _ = strings.Cut
