package v1alpha

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NetworkInterfaceSpec is an interface on a network. Fields that are not named here
// belong to other components and are kept.
//
// +kubebuilder:pruning:PreserveUnknownFields
type NetworkInterfaceSpec struct {
	// Network that the interface is on.
	//
	// +required
	Network LocalNetworkReference `json:"network"`
	// MTU of the interface, in bytes; follows that of the network.
	//
	// +optional
	MTU int32 `json:"mtu,omitempty"`
}

// NetworkInterfaceStatus is what other components report of an interface. Nothing of it
// is ours.
//
// +kubebuilder:pruning:PreserveUnknownFields
type NetworkInterfaceStatus struct{}

// NetworkInterface is an interface on a network in a cell. While it exists, its addresses
// are out.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=nic,categories=networking
// +kubebuilder:printcolumn:name="Network",type=string,JSONPath=`.spec.network.name`
// +kubebuilder:printcolumn:name="MTU",type=integer,JSONPath=`.spec.mtu`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NetworkInterface struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec NetworkInterfaceSpec `json:"spec"`
	// +optional
	Status NetworkInterfaceStatus `json:"status,omitzero"`
}

// NetworkInterfaceList is a list of NetworkInterfaces.
//
// +kubebuilder:object:root=true
type NetworkInterfaceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NetworkInterface `json:"items"`
}

func init() { schemeBuilder.Register(&NetworkInterface{}, &NetworkInterfaceList{}) }
