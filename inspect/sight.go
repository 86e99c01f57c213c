package inspect

import (
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/interpreter"
	"go.datum.net/network-presence/location"
	"go.datum.net/network-presence/presence"
)

// Sight is all that was seen of one presence on a hub, at one time.
type Sight struct {
	Key presence.Key
	// Asked is the name of the binding that was asked about. Empty where a context or a
	// network was.
	Asked string
	// Bindings and Contexts of the pair, contexts oldest first.
	Bindings []*v1alpha.NetworkBinding
	Contexts []*v1alpha.NetworkContext
	// Namespace is the hub namespace. Nil where it is not there, or not to be seen.
	Namespace *corev1.Namespace
	// Grants are the LocationBindings on the hub.
	Grants []*v1alpha.LocationBinding
	// Placement is Karmada's ResourceBinding of Context(). Nil where there is none.
	Placement *workv1alpha2.ResourceBinding
	// Clusters are all cells that are joined.
	Clusters []*clusterv1alpha1.Cluster
	// Works of the placement's targets, by cluster. Those that are not there are absent.
	Works map[string]*workv1alpha1.Work
	// Copies that were read in the cells themselves, by cluster. Those of cells that the
	// user may not look into are absent.
	Copies map[string]*v1alpha.NetworkContext
	// Unseen says of the kinds that could not be read why not. The key is the kind's name.
	Unseen map[string]string
	// Now is when all that was read.
	Now time.Time
}

// The kinds that a user may be forbidden to read, as in Sight.Unseen.
const (
	KindBinding   = "NetworkBinding"
	KindContext   = "NetworkContext"
	KindNamespace = "Namespace"
	KindGrant     = "LocationBinding"
	KindPlacement = "ResourceBinding"
	KindCluster   = "Cluster"
	KindWork      = "Work"
)

// Context is the context that the presence has: one that stays before one that is being
// deleted, and then the newest. Nil where there is none.
func (s *Sight) Context() *v1alpha.NetworkContext {
	var current *v1alpha.NetworkContext
	for _, context := range s.Contexts {
		if current == nil || context.DeletionTimestamp.IsZero() || !current.DeletionTimestamp.IsZero() {
			current = context
		}
	}
	return current
}

// binding is the one that was asked about, or the first that stays. Nil where there is none.
func (s *Sight) binding() *v1alpha.NetworkBinding {
	for _, binding := range s.Bindings {
		if binding.Name == s.Asked {
			return binding
		}
	}
	for _, binding := range s.Bindings {
		if binding.DeletionTimestamp.IsZero() {
			return binding
		}
	}
	return nil
}

// answer is what the binding was told. Nil where there is no binding.
func (s *Sight) answer() *metav1.Condition {
	binding := s.binding()
	if binding == nil {
		return nil
	}
	return presence.Answer([]*v1alpha.NetworkBinding{binding})
}

// told is the binding's message, where its reason is one of these; else "".
func (s *Sight) told(reasons ...string) string {
	answer := s.answer()
	if answer == nil {
		return ""
	}
	for _, reason := range reasons {
		if answer.Reason == reason {
			return answer.Message
		}
	}
	return ""
}

// index is the location authority, with what was seen of the hub.
func (s *Sight) index() *location.Index {
	objects := make([]client.Object, 0, len(s.Grants)+len(s.Clusters)+1)
	if s.Namespace != nil {
		objects = append(objects, s.Namespace)
	}
	for _, grant := range s.Grants {
		objects = append(objects, grant)
	}
	for _, cluster := range s.Clusters {
		objects = append(objects, cluster)
	}
	return location.NewAuthorityOf(location.Configuration{}, objects...).Index
}

// cluster is the Cluster of a name. Nil where none is joined under it, or none is seen.
func (s *Sight) cluster(name string) *clusterv1alpha1.Cluster {
	for _, cluster := range s.Clusters {
		if cluster.Name == name {
			return cluster
		}
	}
	return nil
}

// reports are the cells' parts of the context's status: from Karmada's own account where it
// is seen, which is the newer, and else from the context.
func (s *Sight) reports() map[string]*v1alpha.CellStatus {
	context := s.Context()
	if context == nil {
		return nil
	}
	cells := context.Status.Cells
	if s.Placement != nil && s.Placement.Spec.Resource.UID == context.UID {
		cells = interpreter.Cells(context, s.Placement.Status.AggregatedStatus)
	}
	reports := make(map[string]*v1alpha.CellStatus, len(cells))
	for i := range cells {
		reports[cells[i].Name] = &cells[i]
	}
	return reports
}

// targets are the cells that the context is placed in, as far as that is seen.
func (s *Sight) targets() []string {
	var names []string
	if s.Placement != nil {
		for _, target := range s.Placement.Spec.Clusters {
			names = append(names, target.Name)
		}
		return names
	}
	if context := s.Context(); context != nil && s.Unseen[KindPlacement] != "" {
		for i := range context.Status.Cells {
			names = append(names, context.Status.Cells[i].Name)
		}
	}
	return names
}

// unreachable says since when a cell does not answer Karmada, and is "" where it does or
// where that is not seen.
func unreachable(cluster *clusterv1alpha1.Cluster) string {
	if cluster == nil {
		return ""
	}
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	switch {
	case ready == nil:
		return "cell " + cluster.Name + " has not been reached yet"
	case ready.Status != metav1.ConditionTrue:
		return "cell " + cluster.Name + " unreachable since " + ready.LastTransitionTime.UTC().Format(time.RFC3339)
	}
	return ""
}
