package location

import (
	"context"
	"fmt"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// Watch fills the index from the hub's cache and keeps it current. It must be called
// before the index is asked; HasSynced tells when the answers are whole. The error says
// which kind the hub does not serve.
func (i *Index) Watch(ctx context.Context, hub cache.Cache) error {
	for _, watched := range []struct {
		object client.Object
		set    func(client.Object)
		unset  func(name string)
	}{
		{
			&v1alpha.LocationBinding{},
			func(o client.Object) { i.setGrant(o.(*v1alpha.LocationBinding)) },
			i.deleteGrant,
		}, {
			&corev1.Namespace{},
			func(o client.Object) { i.setNamespace(o.GetName(), o.GetLabels()) },
			i.deleteNamespace,
		}, {
			&clusterv1alpha1.Cluster{},
			func(o client.Object) { i.setCell(o.GetName(), o.GetLabels()[v1alpha.TopologyLocationLabel]) },
			func(name string) { i.setCell(name, "") },
		},
	} {
		registration, err := watch(ctx, hub, watched.object, watched.set, func(name types.NamespacedName) { watched.unset(name.Name) })
		if err != nil {
			return fmt.Errorf("watch %T on the hub: %w", watched.object, err)
		}
		i.mu.Lock()
		i.synced = append(i.synced, registration.HasSynced)
		i.mu.Unlock()
	}
	return nil
}

// HasSynced tells whether the index knows all that was on the hub when Watch began.
func (i *Index) HasSynced() bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return allTrue(i.synced)
}

// allTrue is false of an empty list, which is that of what is not watched yet.
func allTrue(synced []func() bool) bool {
	for _, synced := range synced {
		if !synced() {
			return false
		}
	}
	return len(synced) > 0
}

// watch calls set for each object of a kind in the cache, now and as it changes, and unset
// once it is gone.
func watch(ctx context.Context, hub cache.Cache, object client.Object, set func(client.Object), unset func(types.NamespacedName)) (toolscache.ResourceEventHandlerRegistration, error) {
	informer, err := hub.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	return informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { set(object.(client.Object)) },
		UpdateFunc: func(_, object any) { set(object.(client.Object)) },
		DeleteFunc: func(object any) {
			if name, err := toolscache.DeletionHandlingObjectToName(object); err == nil {
				unset(types.NamespacedName{Namespace: name.Namespace, Name: name.Name})
			}
		},
	})
}
