package webhook

import (
	"context"
	"encoding/pem"
	"errors"
	"testing"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	karmada "github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/webhook"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/webhook/request"
	"github.com/karmada-io/karmada/pkg/util/fedinformer/genericmanager"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"go.datum.net/network-presence/interpreter/cases"
	"go.datum.net/network-presence/lua"
)

// asked are the rules as Karmada's own client gets them from a webhook, by the
// configuration that is installed.
type asked struct {
	ctx    context.Context
	client *karmada.CustomizedInterpreter
}

// ask has Karmada's client call the webhook.
func (w *world) ask(t *testing.T) asked {
	t.Helper()
	var configuration configv1alpha1.ResourceInterpreterWebhookConfiguration
	if err := yaml.UnmarshalStrict(lua.Webhook, &configuration); err != nil {
		t.Fatal(err)
	}
	configuration.Webhooks[0].ClientConfig = admissionregistrationv1.WebhookClientConfig{
		URL:      &w.url,
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.authority.certificate.Raw}),
	}
	// The client is made to watch configurations on the hub. None is watched here.
	hub, err := dynamic.NewForConfig(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := karmada.NewCustomizedInterpreter(genericmanager.NewSingleClusterInformerManager(t.Context(), hub, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	client.LoadConfig([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{&configuration})
	return asked{t.Context(), client}
}

var errNotMatched = errors.New("the configuration does not have Karmada ask for this")

func matched(matches bool, err error) error {
	if err == nil && !matches {
		return errNotMatched
	}
	return err
}

func (a asked) ReflectStatus(object *unstructured.Unstructured) (*runtime.RawExtension, error) {
	status, matches, err := a.client.ReflectStatus(a.ctx, &request.Attributes{
		Operation: configv1alpha1.InterpreterOperationInterpretStatus, Object: object,
	})
	return status, matched(matches, err)
}

func (a asked) InterpretHealth(object *unstructured.Unstructured) (bool, error) {
	healthy, matches, err := a.client.InterpretHealth(a.ctx, &request.Attributes{
		Operation: configv1alpha1.InterpreterOperationInterpretHealth, Object: object,
	})
	return healthy, matched(matches, err)
}

func (a asked) AggregateStatus(object *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	aggregated, matches, err := a.client.Patch(a.ctx, &request.Attributes{
		Operation: configv1alpha1.InterpreterOperationAggregateStatus, Object: object, AggregatedStatus: items,
	})
	return aggregated, matched(matches, err)
}

func TestWebhookAnswersAllCases(t *testing.T) {
	cases.Run(t, start(t).ask(t))
}

// Retention and dependencies are Lua in every installation: the webhook is not asked.
func TestWebhookIsAskedForNothingElse(t *testing.T) {
	a := start(t).ask(t)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.datumapis.com/v1alpha", "kind": "NetworkContext",
	}}
	other := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.datumapis.com/v1alpha", "kind": "NetworkBinding",
	}}
	for operation, object := range map[configv1alpha1.InterpreterOperation]*unstructured.Unstructured{
		configv1alpha1.InterpreterOperationRetain:              object,
		configv1alpha1.InterpreterOperationInterpretDependency: object,
		configv1alpha1.InterpreterOperationInterpretReplica:    object,
		configv1alpha1.InterpreterOperationInterpretStatus:     other,
		configv1alpha1.InterpreterOperationAggregateStatus:     other,
	} {
		if a.client.HookEnabled(object.GroupVersionKind(), operation) {
			t.Errorf("Karmada would ask the webhook to %s a %s", operation, object.GetKind())
		}
	}
}
