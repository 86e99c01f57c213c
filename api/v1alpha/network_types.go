package v1alpha

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IPAMMode tells who assigns a network's address ranges.
//
// +kubebuilder:validation:Enum=Auto;Policy
type IPAMMode string

// The ways in which a network gets its address ranges.
const (
	IPAMModeAuto   IPAMMode = "Auto"
	IPAMModePolicy IPAMMode = "Policy"
)

// NetworkIPAM is how a network gets its address ranges. Fields that are not named here
// belong to other components and are kept.
//
// +kubebuilder:pruning:PreserveUnknownFields
type NetworkIPAM struct {
	// Mode tells who assigns the ranges.
	//
	// +kubebuilder:default=Auto
	// +optional
	Mode IPAMMode `json:"mode,omitempty"`
}

// NetworkSpec is what a consumer wants of a network. Fields that are not named here
// belong to other components and are kept.
//
// +kubebuilder:pruning:PreserveUnknownFields
type NetworkSpec struct {
	// IPAM is how the network gets its address ranges.
	//
	// +optional
	IPAM NetworkIPAM `json:"ipam,omitzero"`

	// IPFamilies are the address families that the network carries, each once.
	//
	// +kubebuilder:default={IPv4}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="self.all(f, self.exists_one(g, f == g))",message="each address family may be named once"
	// +listType=atomic
	// +optional
	IPFamilies []IPFamily `json:"ipFamilies,omitempty"`

	// MTU is the network's maximum transmission unit, in bytes.
	//
	// +kubebuilder:default=1460
	// +kubebuilder:validation:Minimum=1300
	// +kubebuilder:validation:Maximum=8856
	// +optional
	MTU int32 `json:"mtu,omitempty"`
}

// NetworkStatus is what other components report of a network. Nothing of it is ours.
//
// +kubebuilder:pruning:PreserveUnknownFields
type NetworkStatus struct {
	// Conditions of the network.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Network is a consumer's network, declared in the project control plane.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=net,categories=networking
// +kubebuilder:printcolumn:name="Families",type=string,JSONPath=`.spec.ipFamilies`
// +kubebuilder:printcolumn:name="MTU",type=integer,JSONPath=`.spec.mtu`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Network struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	// +optional
	Spec NetworkSpec `json:"spec,omitzero"`
	// +optional
	Status NetworkStatus `json:"status,omitzero"`
}

// NetworkList is a list of Networks.
//
// +kubebuilder:object:root=true
type NetworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Network `json:"items"`
}

func init() { schemeBuilder.Register(&Network{}, &NetworkList{}) }
