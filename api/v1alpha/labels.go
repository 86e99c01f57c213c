package v1alpha

const (
	// NetworkLabel names the network of a NetworkBinding or NetworkContext, as in its spec.
	NetworkLabel = "networking.datumapis.com/network"
	// LocationLabel names the location of a NetworkBinding or NetworkContext, as in its
	// spec, and that of a LocationBinding's or Location's copy on the hub.
	LocationLabel = "networking.datumapis.com/location"
	// NetworkUIDLabel on a NetworkContext is the UID of the Network it was made from.
	// A Network re-created under its name has another: its contexts are others, too.
	NetworkUIDLabel = "networking.datumapis.com/network-uid"
	// ProjectLabel on a LocationBinding's copy on the hub is the project it was copied
	// from, written as in UpstreamClusterNameLabel but without the prefix.
	ProjectLabel = "networking.datumapis.com/project"

	// ManagedByLabel marks the copies that the hub controller made on the hub, with the
	// value ManagedByHub. Only those are ever pruned, and they are never a source.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedByHub is the value of ManagedByLabel on our copies.
	ManagedByHub = "network-presence-hub"

	// ConnectionAnnotation on a LocationBinding's copy on the hub is what connected the project
	// that it was copied from. While the hub is told to look elsewhere for projects, the copy
	// stays.
	ConnectionAnnotation = "networking.datumapis.com/connection"

	// UpstreamClusterNameLabel on a hub namespace names its project: the prefix
	// UpstreamClusterNamePrefix, then the project's name with each "/" written "_".
	UpstreamClusterNameLabel = "meta.datumapis.com/upstream-cluster-name"
	// UpstreamClusterNamePrefix starts the value of UpstreamClusterNameLabel.
	UpstreamClusterNamePrefix = "cluster-"
	// UpstreamNamespaceLabel on a hub namespace is the namespace of the project that
	// the hub namespace mirrors.
	UpstreamNamespaceLabel = "meta.datumapis.com/upstream-namespace"

	// TopologyLocationLabel on a Karmada Cluster is the location that the cell serves.
	TopologyLocationLabel = "topology.datum.net/location"
)

const (
	// PresenceFinalizer is held by the hub on a Network with a presence and on each
	// NetworkContext of the hub.
	PresenceFinalizer = "networking.datumapis.com/network-presence"
	// InUseFinalizer is held by the cell agent on a copy while addresses of its network
	// are out.
	InUseFinalizer = "networking.datumapis.com/networkcontext-in-use"
	// RulesRevisionAnnotation on a NetworkContext is the revision of the rules by which what
	// its cells report is to be interpreted. Karmada interprets nothing again because the
	// rules have changed; a changed annotation has it done.
	RulesRevisionAnnotation = "networking.datumapis.com/rules-revision"
	// NudgedAnnotation on a NetworkContext is when its report was last asked for anew, in
	// RFC 3339: Karmada waits ever longer, up to 1000 s, after an interpreter that failed.
	NudgedAnnotation = "networking.datumapis.com/nudged"
	// ForceReleaseAnnotation with the value "true" on a hub NetworkContext ends the wait
	// for addresses that cells hold.
	ForceReleaseAnnotation = "networking.datumapis.com/force-release"
)
