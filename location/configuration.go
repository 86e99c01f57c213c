package location

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"go.datum.net/network-presence/api/v1alpha"
)

// What a configuration file says it is.
const (
	ConfigurationAPIVersion = "config.networking.datumapis.com/v1alpha1"
	ConfigurationKind       = "LocationAuthorityConfiguration"
)

// UnlabelledClusters says what a cluster without the label v1alpha.TopologyLocationLabel
// gets of a project's objects that name no location. It never gets one that names one.
type UnlabelledClusters string

const (
	// RefuseUnlabelled is the default: nothing of any project.
	RefuseUnlabelled UnlabelledClusters = "Refuse"
	// AllowUnlabelled means what policies send there, as if all projects might use it.
	AllowUnlabelled UnlabelledClusters = "Allow"
)

// Configuration is what an operator may decide of the location authority. The scheduler
// and the hub's controllers must be given the same. The zero value is one with the
// defaults.
type Configuration struct {
	// APIVersion and Kind of the file: ConfigurationAPIVersion and ConfigurationKind.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// UnlabelledClusters is RefuseUnlabelled where it is empty.
	UnlabelledClusters UnlabelledClusters `json:"unlabelledClusters,omitempty"`
	// Kinds that name a location, beside NetworkContext and Location.
	Kinds []NamingKind `json:"kinds,omitempty"`
}

// NamingKind is a kind whose objects name the location that they are for. One that names
// none is placed as any other object of its project.
type NamingKind struct {
	// APIVersion, with the group, as in apps/v1. Objects are known by group and kind.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Location says where in the object the location is named.
	Location NamedBy `json:"location"`
}

// NamedBy is a place in an object: exactly one of its fields is set.
type NamedBy struct {
	// Label is the key of the label whose value is the location.
	Label string `json:"label,omitempty"`
	// Field is the path of a string, as in spec.location.name.
	Field string `json:"field,omitempty"`
}

// ReadConfiguration reads a file; the path "" is the default configuration. The error
// names each field that is wrong, and what is right.
func ReadConfiguration(path string) (Configuration, error) {
	if path == "" {
		return Configuration{}, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return Configuration{}, fmt.Errorf("read the configuration of the location authority: %w", err)
	}
	configuration, err := ParseConfiguration(content)
	if err != nil {
		return Configuration{}, fmt.Errorf("configuration of the location authority %q: %w", path, err)
	}
	return configuration, nil
}

// ParseConfiguration reads the YAML or JSON of a file. A field that is unknown or named
// twice is an error.
func ParseConfiguration(content []byte) (Configuration, error) {
	var configuration Configuration
	text, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return configuration, err
	}
	wrong, err := kjson.UnmarshalStrict(text, &configuration)
	if err := errors.Join(append(wrong, err)...); err != nil {
		return Configuration{}, err
	}
	return configuration, configuration.validate()
}

func (c *Configuration) validate() error {
	var wrong field.ErrorList
	if c.APIVersion != ConfigurationAPIVersion {
		wrong = append(wrong, field.NotSupported(field.NewPath("apiVersion"), c.APIVersion, []string{ConfigurationAPIVersion}))
	}
	if c.Kind != ConfigurationKind {
		wrong = append(wrong, field.NotSupported(field.NewPath("kind"), c.Kind, []string{ConfigurationKind}))
	}
	switch c.UnlabelledClusters {
	case "", RefuseUnlabelled, AllowUnlabelled:
	default:
		wrong = append(wrong, field.NotSupported(field.NewPath("unlabelledClusters"), c.UnlabelledClusters, []UnlabelledClusters{AllowUnlabelled, RefuseUnlabelled}))
	}
	seen := map[schema.GroupKind]bool{}
	for n, kind := range c.Kinds {
		path := field.NewPath("kinds").Index(n)
		wrong = append(wrong, kind.validate(path)...)
		if group := kind.groupKind(); seen[group] {
			wrong = append(wrong, field.Duplicate(path.Child("kind"), group.String()))
		}
		seen[kind.groupKind()] = true
	}
	return wrong.ToAggregate()
}

func (k *NamingKind) groupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(k.APIVersion, k.Kind).GroupKind()
}

func (k *NamingKind) validate(path *field.Path) field.ErrorList {
	var wrong field.ErrorList
	if version, err := schema.ParseGroupVersion(k.APIVersion); err != nil || version.Version == "" {
		wrong = append(wrong, field.Invalid(path.Child("apiVersion"), k.APIVersion, "must be a version, or a group and a version, as in apps/v1"))
	}
	if k.Kind == "" {
		wrong = append(wrong, field.Required(path.Child("kind"), "the kind of the objects, as in Deployment"))
	}
	if builtIn(k.groupKind()) {
		wrong = append(wrong, field.Forbidden(path.Child("kind"), fmt.Sprintf("%s names its location by rules of its own", k.Kind)))
	}
	return append(wrong, k.Location.validate(path.Child("location"))...)
}

// builtIn tells whether a kind has rules that no configuration changes.
func builtIn(kind schema.GroupKind) bool {
	return kind == contextKind || kind == locationKind || kind == namespaceKind
}

var (
	contextKind   = schema.GroupKind{Group: v1alpha.SchemeGroupVersion.Group, Kind: "NetworkContext"}
	locationKind  = schema.GroupKind{Group: v1alpha.SchemeGroupVersion.Group, Kind: "Location"}
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
)

func (n *NamedBy) validate(path *field.Path) field.ErrorList {
	if (n.Label == "") == (n.Field == "") {
		return field.ErrorList{field.Invalid(path, *n, "must have either label or field")}
	}
	if n.Label != "" {
		if wrong := validation.IsQualifiedName(n.Label); len(wrong) > 0 {
			return field.ErrorList{field.Invalid(path.Child("label"), n.Label, strings.Join(wrong, "; "))}
		}
		return nil
	}
	for _, step := range strings.Split(n.Field, ".") {
		if step == "" || strings.ContainsAny(step, "[]{}$*\"' \t") {
			return field.ErrorList{field.Invalid(path.Child("field"), n.Field, "must be names of fields joined by dots, as in spec.location.name")}
		}
	}
	return nil
}
