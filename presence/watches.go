package presence

import (
	"context"
	"fmt"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/location"
	"go.datum.net/network-presence/project"
)

// watch looks at the presences that keys names for each change of an object on the hub.
func watch[T client.Object](mgr manager.Manager, object T, keys handler.TypedMapFunc[T, Key], which ...predicate.TypedPredicate[T]) source.TypedSource[Key] {
	return source.TypedKind(mgr.GetCache(), object, handler.TypedEnqueueRequestsFromMapFunc(keys), which...)
}

// cellMatters passes the changes of a Cluster that presences depend on: Karmada writes its
// status all the time.
var cellMatters = predicate.TypedFuncs[*clusterv1alpha1.Cluster]{
	UpdateFunc: func(e event.TypedUpdateEvent[*clusterv1alpha1.Cluster]) bool {
		before, after := cellOf(e.ObjectOld), cellOf(e.ObjectNew)
		return before != after ||
			e.ObjectOld.Labels[v1alpha.TopologyLocationLabel] != e.ObjectNew.Labels[v1alpha.TopologyLocationLabel]
	},
}

// subscription feeds the controller from what is no watch on the hub.
func subscription(authority *location.Index, subscribe func(context.Context, func(...Key))) source.TypedSource[Key] {
	return source.TypedFunc[Key](func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[Key]) error {
		// Nothing is looked at before the authority knows all grants: half of them would
		// be taken for withdrawn.
		if !toolscache.WaitForCacheSync(ctx.Done(), authority.HasSynced) {
			return fmt.Errorf("wait for the location authority: %w", ctx.Err())
		}
		subscribe(ctx, func(keys ...Key) {
			for _, key := range keys {
				queue.Add(key)
			}
		})
		return nil
	})
}

// subscribe looks at presences again when the location authority's answers, the connected
// projects or their Networks change.
func (r *Reconciler) subscribe(ctx context.Context, enqueue func(...Key)) {
	r.authority.Subscribe(func(change location.Change) {
		enqueue(r.keysOfChange(ctx, change)...)
	})
	r.networks.subscribe(func(project string, network types.NamespacedName) {
		enqueue(r.keysOfNetwork(ctx, project, network)...)
	})
	r.planes.Subscribe(func(change project.Change) {
		r.networks.follow(change)
		if change.Err != nil {
			r.reportUnreachable(change)
			return
		}
		enqueue(r.keysOfProject(ctx, change.Project)...)
	})
}

func (r *Reconciler) keyOfBinding(_ context.Context, binding *v1alpha.NetworkBinding) []Key {
	return []Key{KeyOfBinding(binding)}
}

func (r *Reconciler) keyOfContext(_ context.Context, context *v1alpha.NetworkContext) []Key {
	return []Key{KeyOfContext(context)}
}

func (r *Reconciler) keysOfPlacement(ctx context.Context, placement *workv1alpha2.ResourceBinding) []Key {
	if !mayPlaceContext(placement) {
		return nil
	}
	var context v1alpha.NetworkContext
	key := types.NamespacedName{Namespace: placement.Namespace, Name: placement.Spec.Resource.Name}
	if err := r.hub.Get(ctx, key, &context); err != nil {
		return nil // gone, or not seen yet: its own event looks at it
	}
	return []Key{KeyOfContext(&context)}
}

// keysOfCell are the presences placed in a cell, and those in the location that it serves.
func (r *Reconciler) keysOfCell(ctx context.Context, cluster *clusterv1alpha1.Cluster) []Key {
	keys := map[Key]bool{}
	var placements workv1alpha2.ResourceBindingList
	r.list(ctx, &placements, client.MatchingFields{byCell: cluster.Name})
	for i := range placements.Items {
		for _, key := range r.keysOfPlacement(ctx, &placements.Items[i]) {
			keys[key] = true
		}
	}
	if served := cluster.Labels[v1alpha.TopologyLocationLabel]; served != "" {
		r.collect(ctx, keys, client.MatchingFields{byLocation: served})
	}
	return listed(keys)
}

// keysOfChange are the presences that an answer of the location authority is about.
func (r *Reconciler) keysOfChange(ctx context.Context, change location.Change) []Key {
	keys := map[Key]bool{}
	switch change.Kind {
	case location.NamespaceChanged:
		r.collect(ctx, keys, client.InNamespace(change.Namespace))
	case location.GrantChanged:
		for _, namespace := range r.authority.Namespaces(change.Project) {
			r.collect(ctx, keys, client.InNamespace(namespace), client.MatchingFields{byLocation: change.Location})
		}
	case location.CellChanged:
		for _, name := range []string{change.OldLocation, change.Location} {
			if name != "" {
				r.collect(ctx, keys, client.MatchingFields{byLocation: name})
			}
		}
	}
	return listed(keys)
}

func (r *Reconciler) keysOfProject(ctx context.Context, project string) []Key {
	keys := map[Key]bool{}
	for _, namespace := range r.authority.Namespaces(project) {
		r.collect(ctx, keys, client.InNamespace(namespace))
	}
	return listed(keys)
}

// keysOfNetwork are the presences of a project's network; those of all its networks where
// the network has no name.
func (r *Reconciler) keysOfNetwork(ctx context.Context, project string, network types.NamespacedName) []Key {
	if network.Name == "" {
		return r.keysOfProject(ctx, project)
	}
	keys := map[Key]bool{}
	for _, namespace := range r.mirrors(project, network.Namespace) {
		r.collect(ctx, keys, client.InNamespace(namespace), client.MatchingFields{byNetwork: network.Name})
	}
	return listed(keys)
}

// mirrors are the hub namespaces that mirror a namespace of a project.
func (r *Reconciler) mirrors(project, upstreamNamespace string) []string {
	var mirrors []string
	for _, namespace := range r.authority.Namespaces(project) {
		if _, upstream, ok := r.authority.Project(namespace); ok && upstream == upstreamNamespace {
			mirrors = append(mirrors, namespace)
		}
	}
	return mirrors
}

// collect adds the presences of the bindings and contexts that options select.
func (r *Reconciler) collect(ctx context.Context, keys map[Key]bool, options ...client.ListOption) {
	var bindings v1alpha.NetworkBindingList
	r.list(ctx, &bindings, options...)
	for i := range bindings.Items {
		keys[KeyOfBinding(&bindings.Items[i])] = true
	}
	var contexts v1alpha.NetworkContextList
	r.list(ctx, &contexts, options...)
	for i := range contexts.Items {
		keys[KeyOfContext(&contexts.Items[i])] = true
	}
}

// list reads from the hub's cache, which fails only when the process ends.
func (r *Reconciler) list(ctx context.Context, list client.ObjectList, options ...client.ListOption) {
	if err := r.hub.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "list from the cache", "kind", list.GetObjectKind())
	}
}

func listed(keys map[Key]bool) []Key {
	list := make([]Key, 0, len(keys))
	for key := range keys {
		list = append(list, key)
	}
	return list
}
