package cases

import (
	"fmt"
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

// Hub stores contexts as the API server of the hub does: it drops fields that are not
// known, and refuses what the definition does.
type Hub struct {
	schema    *structuralschema.Structural
	validator validation.SchemaValidator
}

// NewHub makes a hub of the definition of NetworkContext.
func NewHub(t testing.TB) *Hub {
	t.Helper()
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
	return &Hub{schema, validator}
}

// Store is a context as it can be read again after a write. The error is that of a write
// that the hub refuses.
func (h *Hub) Store(written *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	text, err := written.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write the context: %w", err)
	}
	stored := &unstructured.Unstructured{}
	if err := stored.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("read the context: %w", err)
	}
	pruning.Prune(stored.Object, h.schema, true)
	faults := validation.ValidateCustomResource(nil, stored.Object, h.validator)
	faults = append(faults, listtype.ValidateListSetsAndMaps(nil, h.schema, stored.Object)...)
	return stored, faults.ToAggregate()
}
