// Package v1alpha holds the kinds of the group networking.datumapis.com: what a
// consumer declares on the hub (NetworkBinding), what travels to the cells
// (NetworkContext), and the kinds of other components that are read on the way.
//
// Names, fields, labels, reasons and finalizers here are wire contracts: other
// components use them.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package=applyconfiguration
// +groupName=networking.datumapis.com
package v1alpha

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// SchemeGroupVersion is the group and version of every kind in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: "networking.datumapis.com", Version: "v1alpha"}

var schemeBuilder = &scheme.Builder{GroupVersion: SchemeGroupVersion}

// AddToScheme registers the kinds of this package.
var AddToScheme = schemeBuilder.AddToScheme

// Install registers the kinds of this package and panics when that fails, which
// only two packages claiming one Go type for one kind can cause.
func Install(s *runtime.Scheme) {
	utilruntime.Must(AddToScheme(s))
}
