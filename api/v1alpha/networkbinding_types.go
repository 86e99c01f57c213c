package v1alpha

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NetworkBindingReady is the one condition of a NetworkBinding: is the network usable in
// the location.
const NetworkBindingReady = "Ready"

// The reasons of NetworkBindingReady, in the order in which they are evaluated.
const (
	// ReasonPending: no controller has looked yet (Unknown).
	ReasonPending = "Pending"
	// ReasonProjectUnresolved: the namespace names no project that the hub is connected to.
	ReasonProjectUnresolved = "ProjectUnresolved"
	// ReasonLocationNotAvailable: the project has no usable LocationBinding for the location.
	ReasonLocationNotAvailable = "LocationNotAvailable"
	// ReasonNetworkNotFound: the network does not exist in the project.
	ReasonNetworkNotFound = "NetworkNotFound"
	// ReasonNetworkContextNotReady: the presence exists and is not usable yet; the message
	// says what is missing.
	ReasonNetworkContextNotReady = "NetworkContextNotReady"
	// ReasonNetworkContextReady: the network is present in the location (True).
	ReasonNetworkContextReady = "NetworkContextReady"
)

// NetworkReference names a Network in the project that the hub namespace belongs to.
type NetworkReference struct {
	// Namespace of the Network in the project. Unset, it is the one that the hub namespace
	// mirrors; no other is served.
	//
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the Network.
	//
	// +required
	Name Name `json:"name"`
}

// BindingLocationReference names the Location that a network is needed in.
type BindingLocationReference struct {
	// Namespace is a leftover of namespaced locations.
	//
	// Deprecated: accepted and ignored; locations have no namespace.
	//
	// +kubebuilder:default=default
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the Location.
	//
	// +required
	Name Name `json:"name"`
}

// ConsumerReference names what needs the network, for people to read. Nothing decides by it.
type ConsumerReference struct {
	// APIGroup of the consumer; empty for the core group.
	//
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind of the consumer.
	//
	// +kubebuilder:validation:MinLength=1
	// +required
	Kind string `json:"kind"`
	// Name of the consumer.
	//
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// NetworkBindingSpec says which network is needed where.
type NetworkBindingSpec struct {
	// Network that is needed. It cannot be changed: delete the binding and create another.
	//
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.network is immutable: delete this binding and create another"
	// +required
	Network NetworkReference `json:"network"`
	// Location that it is needed in. It cannot be changed: delete the binding and create
	// another.
	//
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.location is immutable: delete this binding and create another"
	// +required
	Location BindingLocationReference `json:"location"`
	// Consumer is what needs the network, where that is no hub object which could own the
	// binding.
	//
	// +optional
	Consumer *ConsumerReference `json:"consumer,omitempty"`
}

// NetworkContextReference names the NetworkContext that serves a binding.
type NetworkContextReference struct {
	// Namespace of the context: the binding's own.
	//
	// +required
	Namespace string `json:"namespace"`
	// Name of the context.
	//
	// +required
	Name string `json:"name"`
}

// NetworkBindingStatus is the answer to a binding.
type NetworkBindingStatus struct {
	// NetworkContextRef names the context that serves the binding. Nil while there is none.
	//
	// +optional
	NetworkContextRef *NetworkContextReference `json:"networkContextRef,omitempty"`
	// Conditions of the binding: NetworkBindingReady.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NetworkBinding declares that one consumer needs a network in a location. It lives in
// the project's hub namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=nb,categories=networking
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Network",type=string,JSONPath=`.spec.network.name`
// +kubebuilder:printcolumn:name="Location",type=string,JSONPath=`.spec.location.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type NetworkBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec NetworkBindingSpec `json:"spec"`
	// +kubebuilder:default={conditions: {{type: "Ready", status: "Unknown", reason: "Pending", message: "no controller has looked at this binding yet", lastTransitionTime: "1970-01-01T00:00:00Z"}}}
	// +optional
	Status NetworkBindingStatus `json:"status,omitzero"`
}

// NetworkBindingList is a list of NetworkBindings.
//
// +kubebuilder:object:root=true
type NetworkBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NetworkBinding `json:"items"`
}

func init() { schemeBuilder.Register(&NetworkBinding{}, &NetworkBindingList{}) }
