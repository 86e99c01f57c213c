package webhook

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func TestBindingDefaults(t *testing.T) {
	const labels, network, location = "/metadata/labels", "/metadata/labels/networking.datumapis.com~1network", "/metadata/labels/networking.datumapis.com~1location"
	for name, test := range map[string]struct {
		binding string
		want    []string // paths that are added
	}{
		"no labels":            {`{"spec":{"network":{"name":"n"},"location":{"name":"l"}}}`, []string{labels, network, location}},
		"labels of others":     {`{"metadata":{"labels":{"a":"b"}},"spec":{"network":{"name":"n"},"location":{"name":"l"}}}`, []string{network, location}},
		"one of them":          {`{"metadata":{"labels":{"networking.datumapis.com/network":"n"}},"spec":{"network":{"name":"n"},"location":{"name":"l"}}}`, []string{location}},
		"one that contradicts": {`{"metadata":{"labels":{"networking.datumapis.com/network":"m"}},"spec":{"network":{"name":"n"},"location":{"name":"l"}}}`, []string{location}},
		"no location":          {`{"spec":{"network":{"name":"n"}}}`, []string{labels, network}},
		"an empty object":      {`{}`, nil},
		"what cannot be read":  {`{"spec":{"network":{"name":7}}}`, nil},
		"what is no JSON":      {`{`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			response := bindingDefaults{}.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(test.binding)}}})
			if !response.Allowed {
				t.Fatalf("refused: %v", response.Result)
			}
			var added []string
			for _, patch := range response.Patches {
				if patch.Operation != "add" {
					t.Errorf("operation %s on %s", patch.Operation, patch.Path)
				}
				added = append(added, patch.Path)
			}
			if diff := cmp.Diff(test.want, added); diff != "" {
				t.Errorf("added (-want +got):\n%s", diff)
			}
			if _, err := json.Marshal(response.Patches); err != nil {
				t.Error(err)
			}
		})
	}
}
