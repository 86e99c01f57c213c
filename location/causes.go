package location

import (
	"context"
	"sync"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-io/karmada/pkg/util/names"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// causes gathers what changed since bindings were last looked for.
type causes struct {
	// pending has an element once something was gathered.
	pending chan struct{}

	mu    sync.Mutex
	found found
}

// found is what bindings may wait for.
type found struct {
	clusters   map[string]bool
	namespaces map[string]bool // of the objects
	projects   map[string]bool // the same, by project
	bindings   []types.NamespacedName
}

func newCauses() *causes {
	return &causes{pending: make(chan struct{}, 1), found: newFound()}
}

func newFound() found {
	return found{clusters: map[string]bool{}, namespaces: map[string]bool{}, projects: map[string]bool{}}
}

func (c *causes) note(note func(*found)) {
	c.mu.Lock()
	note(&c.found)
	c.mu.Unlock()
	select {
	case c.pending <- struct{}{}:
	default:
	}
}

// take returns what was gathered, and begins anew.
func (c *causes) take() found {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.found
	c.found = newFound()
	return taken
}

// changed is told of each change of the index.
func (c *causes) changed(change Change) {
	c.note(func(f *found) {
		switch change.Kind {
		case GrantChanged:
			f.projects[change.Project] = true
		case NamespaceChanged:
			f.namespaces[change.Namespace] = true
		case CellChanged:
			f.clusters[change.Cell] = true
		}
	})
}

// named is told of each object that was seen to name a location.
func (c *causes) named(subject Subject) {
	c.note(func(f *found) { f.bindings = append(f.bindings, bindingOf(subject)) })
}

// bindingOf is the name of the ResourceBinding of an object, or of its
// ClusterResourceBinding where the object has no namespace.
func bindingOf(subject Subject) types.NamespacedName {
	return types.NamespacedName{Namespace: subject.Namespace, Name: names.GenerateBindingName(subject.Kind.Kind, subject.Name)}
}

// handler notes the clusters that join and those whose list of APIs changes. A change of
// location is the index's to tell.
func (c *causes) handler() handler.TypedEventHandler[*clusterv1alpha1.Cluster, types.NamespacedName] {
	cluster := func(name string) { c.note(func(f *found) { f.clusters[name] = true }) }
	return handler.TypedFuncs[*clusterv1alpha1.Cluster, types.NamespacedName]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*clusterv1alpha1.Cluster], _ workqueue.TypedRateLimitingInterface[types.NamespacedName]) {
			cluster(e.Object.Name)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*clusterv1alpha1.Cluster], _ workqueue.TypedRateLimitingInterface[types.NamespacedName]) {
			if !apiequality.Semantic.DeepEqual(e.ObjectOld.Status.APIEnablements, e.ObjectNew.Status.APIEnablements) {
				cluster(e.ObjectNew.Name)
			}
		},
	}
}
