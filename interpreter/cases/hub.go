package cases

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"go.datum.net/network-presence/api/crds"
)

// hub stores contexts as the API server of the hub does: it drops fields that are not
// known, and refuses what the definition does.
type hub struct {
	schema    *structuralschema.Structural
	validator validation.SchemaValidator
}

func newHub(t *testing.T) *hub {
	manifest, err := crds.Files.ReadFile("networking.datumapis.com_networkcontexts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(manifest, &definition); err != nil {
		t.Fatalf("read the definition of NetworkContext: %v", err)
	}
	var properties apiextensions.JSONSchemaProps
	err = apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema, &properties, nil)
	if err != nil {
		t.Fatalf("convert the schema of NetworkContext: %v", err)
	}
	schema, err := structuralschema.NewStructural(&properties)
	if err != nil {
		t.Fatalf("read the schema of NetworkContext: %v", err)
	}
	validator, _, err := validation.NewSchemaValidator(&properties)
	if err != nil {
		t.Fatalf("read the schema of NetworkContext: %v", err)
	}
	return &hub{schema, validator}
}

// store is an object as it can be read again after a write, which must not be refused.
func (h *hub) store(t *testing.T, written *unstructured.Unstructured) *unstructured.Unstructured {
	text, err := written.MarshalJSON()
	if err != nil {
		t.Fatalf("write the context: %v", err)
	}
	stored := object(t, decode(t, text))
	pruning.Prune(stored.Object, h.schema, true)
	faults := validation.ValidateCustomResource(nil, stored.Object, h.validator)
	faults = append(faults, listtype.ValidateListSetsAndMaps(nil, h.schema, stored.Object)...)
	if len(faults) > 0 {
		t.Fatalf("the hub refuses the context: %v", faults.ToAggregate())
	}
	return stored
}
