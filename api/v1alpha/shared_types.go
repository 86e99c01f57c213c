package v1alpha

// IPFamily is an address family that a network carries.
//
// +kubebuilder:validation:Enum=IPv4;IPv6
type IPFamily string

// The address families.
const (
	IPv4 IPFamily = "IPv4"
	IPv6 IPFamily = "IPv6"
)

// Name is the name of a Network or Location: at most 63 characters, since it is a
// label's value as well.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
type Name string

// LocalNetworkReference names a Network in the namespace that the object's own
// namespace mirrors.
type LocalNetworkReference struct {
	// Name of the Network.
	//
	// +required
	Name Name `json:"name"`
}

// LocationReference names a Location.
type LocationReference struct {
	// Name of the Location.
	//
	// +required
	Name Name `json:"name"`
}
