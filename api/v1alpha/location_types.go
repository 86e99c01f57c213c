package v1alpha

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// LocationReady is the condition of a Location in the platform plane that says whether
// the location may be used. Only locations with LocationReady=True are copied to the hub.
const LocationReady = "Ready"

// LocationSpec is a location's identity and topology. Fields that are not named here
// belong to other components and are kept.
//
// +kubebuilder:pruning:PreserveUnknownFields
type LocationSpec struct {
	// LocationClassName names the class of location, such as one run by the provider or
	// brought by a consumer.
	//
	// +optional
	LocationClassName string `json:"locationClassName,omitempty"`
	// Topology places the location, as in {"topology.datum.net/city-code": "DFW"}.
	//
	// +optional
	Topology map[string]string `json:"topology,omitempty"`
	// Coordinates of the location on the globe, as its owner writes them.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +optional
	Coordinates *runtime.RawExtension `json:"coordinates,omitempty"`
	// Provider is what the provider of the location needs to know of it.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +optional
	Provider *runtime.RawExtension `json:"provider,omitempty"`
}

// LocationStatus is what the platform reports of a location. It stays in the platform
// plane.
//
// +kubebuilder:pruning:PreserveUnknownFields
type LocationStatus struct {
	// Conditions of the location; LocationReady is the one that is read here.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Location is a place where cells run, declared in the platform plane.
//
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=loc,categories=networking
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.locationClassName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Location struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec LocationSpec `json:"spec,omitzero"`
	// +optional
	Status LocationStatus `json:"status,omitzero"`
}

// LocationList is a list of Locations.
//
// +kubebuilder:object:root=true
type LocationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Location `json:"items"`
}

func init() { schemeBuilder.Register(&Location{}, &LocationList{}) }
