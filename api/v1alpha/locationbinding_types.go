package v1alpha

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LocationBindingAvailable is the condition of a LocationBinding that withdraws it while
// False. Absent or Unknown, the location may be used.
const LocationBindingAvailable = "Available"

// LocationBindingSpec is a project's grant of a location. Fields that are not named here
// belong to other components and are kept.
//
// +kubebuilder:pruning:PreserveUnknownFields
type LocationBindingSpec struct {
	// LocationRef names the location that the project may use.
	//
	// +required
	LocationRef LocationReference `json:"locationRef"`
	// LocationClassName is the class of the location.
	//
	// +optional
	LocationClassName string `json:"locationClassName,omitempty"`
	// DisplayName is the location's name as shown to people.
	//
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Topology places the location, as in Location.
	//
	// +optional
	Topology map[string]string `json:"topology,omitempty"`
}

// LocationBindingStatus is what the owner of the grant reports of it.
//
// +kubebuilder:pruning:PreserveUnknownFields
type LocationBindingStatus struct {
	// Conditions of the grant; LocationBindingAvailable is the one that is read here.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// LocationBinding is the answer to "can this project use this location". It is declared
// in the project control plane and copied to the hub as <project>.<location>.
//
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=locb,categories=networking
// +kubebuilder:printcolumn:name="Location",type=string,JSONPath=`.spec.locationRef.name`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.metadata.labels.networking\.datumapis\.com/project`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LocationBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec LocationBindingSpec `json:"spec"`
	// +optional
	Status LocationBindingStatus `json:"status,omitzero"`
}

// Usable tells whether the grant may be used now: it is not being deleted and has no
// Available=False.
func (b *LocationBinding) Usable() bool {
	return b.DeletionTimestamp.IsZero() &&
		!meta.IsStatusConditionFalse(b.Status.Conditions, LocationBindingAvailable)
}

// LocationBindingList is a list of LocationBindings.
//
// +kubebuilder:object:root=true
type LocationBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LocationBinding `json:"items"`
}

func init() { schemeBuilder.Register(&LocationBinding{}, &LocationBindingList{}) }
