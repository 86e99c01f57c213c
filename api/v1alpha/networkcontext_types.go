package v1alpha

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The conditions of a NetworkContext on the hub.
const (
	// NetworkContextDeclared, written by the presence controller: some binding needs the
	// context. False with ReasonAddressesHeld while it only waits for addresses to go.
	NetworkContextDeclared = "Declared"
	// NetworkContextReady, written by aggregation: a cell carries the network's rules and
	// no reachable cell is without them.
	NetworkContextReady = "Ready"
	// NetworkContextConverged, written by aggregation: every cell carries the generation
	// in the spec.
	NetworkContextConverged = "Converged"
	// NetworkContextHeld, written by aggregation, and by the cell agent on a copy: addresses
	// of the network are out.
	NetworkContextHeld = "Held"
)

// NetworkContextAccepted is written by the cell agent on a copy: the agent has seen the
// rules in the spec.
const NetworkContextAccepted = "Accepted"

// Reasons of NetworkContextDeclared.
const (
	// ReasonDeclared: bindings need the context.
	ReasonDeclared = "Declared"
	// ReasonAddressesHeld: no binding needs the context, or its network is gone, and the
	// cells named in the message still hold addresses.
	ReasonAddressesHeld = "AddressesHeld"
)

// Reasons of NetworkContextReady and NetworkContextConverged on the hub.
const (
	// ReasonCellsReady: every cell carries the network's rules, applied and healthy.
	ReasonCellsReady = "CellsReady"
	// ReasonCellsNotReady: the message says of each cell that is not ready what is missing.
	ReasonCellsNotReady = "CellsNotReady"
	// ReasonCellsConverged: every cell carries the generation in the spec.
	ReasonCellsConverged = "CellsConverged"
	// ReasonCellsBehind: the message says of each cell that is behind what it carries.
	ReasonCellsBehind = "CellsBehind"
	// ReasonNoCells: the context is delivered to no cell.
	ReasonNoCells = "NoCells"
)

// ReasonHoldersNotReported of NetworkContextHeld on the hub (Unknown): no cell is known
// to hold addresses, and nobody reports holders in those that the message names.
const ReasonHoldersNotReported = "HoldersNotReported"

// Reasons of NetworkContextAccepted, and of NetworkContextHeld beside ReasonAddressesHeld.
const (
	// ReasonRulesAccepted: claims in the cell are served by the copy's rules.
	ReasonRulesAccepted = "RulesAccepted"
	// ReasonOtherLocation: the copy is for another location than its cell's agent serves.
	ReasonOtherLocation = "OtherLocation"
	// ReasonNoAddressesHeld: no NetworkInterface of the network is in the copy's namespace.
	ReasonNoAddressesHeld = "NoAddressesHeld"
)

// NetworkContextSpec is everything that a cell reads of a network. Only the presence
// controller writes it.
type NetworkContextSpec struct {
	// Network that is present.
	//
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.network is immutable"
	// +required
	Network LocalNetworkReference `json:"network"`
	// Location that it is present in.
	//
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.location is immutable"
	// +required
	Location LocationReference `json:"location"`
	// IPFamilies are the address families that the network carries, each once.
	//
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="self.all(f, self.exists_one(g, f == g))",message="each address family may be named once"
	// +listType=atomic
	// +optional
	IPFamilies []IPFamily `json:"ipFamilies,omitempty"`
	// MTU is the network's maximum transmission unit, in bytes.
	//
	// +kubebuilder:validation:Minimum=1300
	// +kubebuilder:validation:Maximum=8856
	// +optional
	MTU int32 `json:"mtu,omitempty"`
	// NetworkGeneration is the metadata.generation of the Network that the fields above
	// were taken from.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	NetworkGeneration int64 `json:"networkGeneration,omitempty"`
}

// CellReport is what one cell really has of a network: the copy's own rules and what the
// cell's agent says of them. Interpretation makes it from the copy, and Karmada keeps it
// in ResourceBinding.status.aggregatedStatus[].status.
type CellReport struct {
	// NetworkGeneration in the copy's spec.
	//
	// +optional
	NetworkGeneration int64 `json:"networkGeneration,omitempty"`
	// NetworkUID in the copy's label: which network the copy belongs to.
	//
	// +optional
	NetworkUID types.UID `json:"networkUID,omitempty"`
	// IPFamilies in the copy's spec. Empty when an old CRD in the cell dropped them.
	//
	// +listType=atomic
	// +optional
	IPFamilies []IPFamily `json:"ipFamilies,omitempty"`
	// MTU in the copy's spec, in bytes.
	//
	// +optional
	MTU int32 `json:"mtu,omitempty"`
	// Holders counts the NetworkInterfaces of the network in the cell. Nil while no agent
	// reports them.
	//
	// +optional
	Holders *int64 `json:"holders,omitempty"`
	// Terminating tells that the copy is being deleted in the cell.
	//
	// +optional
	Terminating bool `json:"terminating,omitempty"`
	// Conditions that the cell's agent reports, sorted by type.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CellStatus is one cell's part of a hub context's status.
type CellStatus struct {
	// Name of the cell's Karmada Cluster.
	//
	// +required
	Name string `json:"name"`
	// Applied tells that Karmada's last write of the copy succeeded.
	//
	// +optional
	Applied bool `json:"applied,omitempty"`
	// Health of the copy as interpreted: Healthy, Unhealthy or Unknown.
	//
	// +optional
	Health string `json:"health,omitempty"`
	// Message says what is wrong with the copy or with the cell's report. Empty when
	// nothing is.
	//
	// +optional
	Message string `json:"message,omitempty"`

	CellReport `json:",inline"`
}

// AgentStatus is what a cell's agent reports in the status of a copy.
type AgentStatus struct {
	// NetworkGeneration of the rules that the agent has seen.
	//
	// +optional
	NetworkGeneration int64 `json:"networkGeneration,omitempty"`
	// NetworkUID of the rules that the agent has seen.
	//
	// +optional
	NetworkUID types.UID `json:"networkUID,omitempty"`
	// Holders counts the NetworkInterfaces of the network in the copy's namespace, those
	// being deleted included: their addresses are still out.
	//
	// +required
	Holders int64 `json:"holders"`
	// ConvergedInterfaces counts those of them whose MTU is the copy's.
	//
	// +optional
	ConvergedInterfaces int64 `json:"convergedInterfaces,omitempty"`
}

// NetworkContextStatus is, on the hub, what the cells report together; on a copy, what
// the cell's agent reports.
type NetworkContextStatus struct {
	// ObservedGeneration is the context's own metadata.generation that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions of the context.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Cells that the context is delivered to, sorted by name. On the hub only.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Cells []CellStatus `json:"cells,omitempty"`
	// Agent is the report of the cell's agent. On a copy only; nil where no agent runs.
	//
	// +optional
	Agent *AgentStatus `json:"agent,omitempty"`
}

// NetworkContext is the presence of one network in one location. The presence controller
// makes one for all NetworkBindings of a pair, and Karmada delivers it to the cells of
// the location.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=nctx,categories=networking
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Network",type=string,JSONPath=`.spec.network.name`
// +kubebuilder:printcolumn:name="Location",type=string,JSONPath=`.spec.location.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MTU",type=integer,priority=1,JSONPath=`.spec.mtu`
// +kubebuilder:printcolumn:name="Families",type=string,priority=1,JSONPath=`.spec.ipFamilies`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type NetworkContext struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec NetworkContextSpec `json:"spec"`
	// +optional
	Status NetworkContextStatus `json:"status,omitzero"`
}

// NetworkContextList is a list of NetworkContexts.
//
// +kubebuilder:object:root=true
type NetworkContextList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NetworkContext `json:"items"`
}

func init() { schemeBuilder.Register(&NetworkContext{}, &NetworkContextList{}) }
