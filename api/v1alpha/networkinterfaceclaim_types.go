package v1alpha

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NetworkInterfaceClaimNetworkAvailable is the cell agent's own condition on a claim:
// the network is here and carries what the claim asks for. Whoever allocates addresses
// creates the interface soon after reading True, within the agent's allocation grace (five
// seconds unless it was given another), or reads again: for that long at least the network
// stays, even if it is withdrawn meanwhile.
const NetworkInterfaceClaimNetworkAvailable = "NetworkAvailable"

// Reasons of NetworkInterfaceClaimNetworkAvailable.
const (
	// ReasonNetworkAvailable: the claim may be served (True).
	ReasonNetworkAvailable = "NetworkAvailable"
	// ReasonNetworkNotAvailableInLocation: no usable context of the network is here.
	ReasonNetworkNotAvailableInLocation = "NetworkNotAvailableInLocation"
	// ReasonAddressFamilyNotCarried: the claim names a family that the network lacks.
	ReasonAddressFamilyNotCarried = "AddressFamilyNotCarried"
	// ReasonAddressFamiliesUnknown: the context does not say which families it carries.
	ReasonAddressFamiliesUnknown = "AddressFamiliesUnknown"
)

// NetworkInterfaceClaimSpec asks for an interface on a network. Fields that are not named
// here belong to other components and are kept.
//
// +kubebuilder:pruning:PreserveUnknownFields
type NetworkInterfaceClaimSpec struct {
	// Network that an interface is asked on.
	//
	// +required
	Network LocalNetworkReference `json:"network"`
	// IPFamilies that the interface must have. Unset means what the network carries; a
	// list only narrows that.
	//
	// +kubebuilder:validation:MaxItems=2
	// +listType=atomic
	// +optional
	IPFamilies []IPFamily `json:"ipFamilies,omitempty"`
}

// NetworkInterfaceClaimStatus is the answer to a claim. Fields that are not named here
// belong to other components and are kept.
//
// +kubebuilder:pruning:PreserveUnknownFields
type NetworkInterfaceClaimStatus struct {
	// Conditions of the claim; NetworkInterfaceClaimNetworkAvailable is the cell agent's.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NetworkInterfaceClaim asks for an interface on a network in a cell.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=nicclaim,categories=networking
// +kubebuilder:printcolumn:name="Network",type=string,JSONPath=`.spec.network.name`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="NetworkAvailable")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="NetworkAvailable")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NetworkInterfaceClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec NetworkInterfaceClaimSpec `json:"spec"`
	// +optional
	Status NetworkInterfaceClaimStatus `json:"status,omitzero"`
}

// NetworkInterfaceClaimList is a list of NetworkInterfaceClaims.
//
// +kubebuilder:object:root=true
type NetworkInterfaceClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NetworkInterfaceClaim `json:"items"`
}

func init() { schemeBuilder.Register(&NetworkInterfaceClaim{}, &NetworkInterfaceClaimList{}) }
