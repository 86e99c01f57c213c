package presence

import (
	"time"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"go.datum.net/network-presence/api/v1alpha"
)

// snapshot is all that a decision about one presence is made from, read at one time.
// Its objects belong to caches and are never changed.
type snapshot struct {
	key Key
	now time.Time

	// project that the hub namespace names, and the namespace in it that is mirrored.
	// Empty where it names none.
	project           string
	upstreamNamespace string
	plane             planeState

	// granted tells that the project may use the location; refusal says why not.
	granted bool
	refusal string

	// network is nil where the project has none under the name. blank tells that the
	// project lists nothing at all, which is no answer about one network.
	network *v1alpha.Network
	blank   bool

	bindings []*v1alpha.NetworkBinding
	// contexts of the pair, oldest first: one, but for predecessors that are going.
	contexts []*v1alpha.NetworkContext
	// nameTaken tells that a context of another pair has the plain name.
	nameTaken bool

	// placements are Karmada's ResourceBindings of the contexts, by the context's name.
	placements map[string]*workv1alpha2.ResourceBinding
	// cells that serve the location or that a placement targets, by cluster name.
	cells map[string]cell
	// serving are the names of the cells whose label names the location, sorted.
	serving []string
	// schedulers are the names of those that ask where a project may run; none where that
	// is not known.
	schedulers []string
}

// planeState is how much is known of a project's control plane.
type planeState int

const (
	// planeUnknown: no project of the name is connected.
	planeUnknown planeState = iota
	// planeSilent: the project is connected, and has not answered since we started.
	planeSilent
	// planeRead: what the project has is known.
	planeRead
)

// cell is a Karmada Cluster, as far as a presence depends on it.
type cell struct {
	name  string
	ready bool
	// since is when ready turned to what it is.
	since time.Time
}

// served tells whether a binding asks for a network in the namespace that its hub
// namespace mirrors, as far as that is known. Others are answered and count for nothing.
func (s *snapshot) served(binding *v1alpha.NetworkBinding) bool {
	namespace := binding.Spec.Network.Namespace
	return namespace == "" || namespace == s.upstreamNamespace || s.project == ""
}

// needed tells whether some binding needs the presence.
func (s *snapshot) needed() bool {
	for _, binding := range s.bindings {
		if binding.DeletionTimestamp.IsZero() && s.served(binding) {
			return true
		}
	}
	return false
}

// networkGone tells that the network is known not to exist any more: absent, or being
// deleted.
func (s *snapshot) networkGone() bool {
	if s.plane != planeRead || s.blank {
		return false
	}
	return s.network == nil || !s.network.DeletionTimestamp.IsZero()
}

// networkLive tells that the network exists and stays.
func (s *snapshot) networkLive() bool {
	return s.network != nil && s.network.DeletionTimestamp.IsZero()
}

// current is the context of the network as it is now, or, while the network is not known,
// the one that is there. Nil where there is none.
func (s *snapshot) current() *v1alpha.NetworkContext {
	for _, context := range s.contexts {
		if s.network == nil || context.Labels[v1alpha.NetworkUIDLabel] == string(s.network.UID) {
			return context
		}
	}
	return nil
}

// predecessors are the contexts of a deleted network of the same name, and any second
// context of the pair.
func (s *snapshot) predecessors() []*v1alpha.NetworkContext {
	current := s.current()
	var others []*v1alpha.NetworkContext
	for _, context := range s.contexts {
		if context != current {
			others = append(others, context)
		}
	}
	return others
}
