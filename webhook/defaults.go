package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"go.datum.net/network-presence/api/v1alpha"
)

// DefaultsPath is where the API server asks for what a NetworkBinding leaves out.
const DefaultsPath = "/default-networkbinding"

// defaulting serves the admission of NetworkBindings that fills in their labels.
func defaulting() (http.Handler, error) {
	handler, err := admission.StandaloneWebhook(&admission.Webhook{Handler: bindingDefaults{}}, admission.StandaloneOptions{MetricsPath: DefaultsPath})
	if err != nil {
		return nil, fmt.Errorf("make the handler of %s: %w", DefaultsPath, err)
	}
	return handler, nil
}

// bindingDefaults gives a NetworkBinding the labels that its spec asks for, where it has
// none. Those that contradict its spec are not its business: a policy refuses them.
type bindingDefaults struct{}

// Handle answers with a patch. It lets pass what it cannot read: the schema says better what
// is wrong with it.
func (bindingDefaults) Handle(_ context.Context, request admission.Request) admission.Response {
	var binding struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec struct {
			Network, Location struct {
				Name string `json:"name"`
			}
		} `json:"spec"`
	}
	if json.Unmarshal(request.Object.Raw, &binding) != nil {
		return admission.Allowed("")
	}
	var patches []jsonpatch.Operation
	for _, label := range []struct{ key, value string }{
		{v1alpha.NetworkLabel, binding.Spec.Network.Name},
		{v1alpha.LocationLabel, binding.Spec.Location.Name},
	} {
		if _, given := binding.Metadata.Labels[label.key]; !given && label.value != "" {
			patches = append(patches, jsonpatch.NewOperation("add", "/metadata/labels/"+strings.ReplaceAll(label.key, "/", "~1"), label.value))
		}
	}
	if len(patches) > 0 && binding.Metadata.Labels == nil {
		patches = append([]jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/labels", map[string]string{})}, patches...)
	}
	return admission.Patched("", patches...)
}
