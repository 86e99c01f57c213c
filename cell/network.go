package cell

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// networkKey names a network as claims and interfaces do: by its name, in the namespace
// that mirrors the network's own.
type networkKey struct {
	Namespace string
	Name      string
}

// String is the key as a person reads it in a log.
func (k networkKey) String() string { return k.Namespace + "/" + k.Name }

// byNetwork is the field by which the cache finds a network's contexts, claims and
// interfaces, so that the cost of a reconcile does not depend on what else is in the
// namespace.
const byNetwork = "cell.network"

// indexByNetwork adds the field to the cell's cache.
func indexByNetwork(ctx context.Context, indexer client.FieldIndexer) error {
	for _, object := range []client.Object{
		&v1alpha.NetworkContext{}, &v1alpha.NetworkInterfaceClaim{}, &v1alpha.NetworkInterface{},
	} {
		err := indexer.IndexField(ctx, object, byNetwork, func(object client.Object) []string {
			return []string{networkOf(object).Name}
		})
		if err != nil {
			return fmt.Errorf("index %T by network: %w", object, err)
		}
	}
	return nil
}

// networkOf is the network that a context, claim or interface is about.
func networkOf(object client.Object) networkKey {
	key := networkKey{Namespace: object.GetNamespace()}
	switch object := object.(type) {
	case *v1alpha.NetworkContext:
		key.Name = string(object.Spec.Network.Name)
	case *v1alpha.NetworkInterfaceClaim:
		key.Name = string(object.Spec.Network.Name)
	case *v1alpha.NetworkInterface:
		key.Name = string(object.Spec.Network.Name)
	}
	return key
}

// networksOf is networkOf as a watch wants it.
func networksOf(_ context.Context, object client.Object) []networkKey {
	return []networkKey{networkOf(object)}
}

// of selects a network's objects in the cache.
func of(network networkKey) client.ListOption {
	return &client.ListOptions{
		Namespace:     network.Namespace,
		FieldSelector: fields.OneTermEqualSelector(byNetwork, network.Name),
	}
}

// contextsOf are the network's contexts, of every location.
func contextsOf(ctx context.Context, cache client.Reader, network networkKey) ([]v1alpha.NetworkContext, error) {
	var list v1alpha.NetworkContextList
	if err := cache.List(ctx, &list, of(network)); err != nil {
		return nil, fmt.Errorf("list contexts of network %s: %w", network, err)
	}
	return list.Items, nil
}

// serving is the context that a network is used through in a location: one that stays
// rather than one that is being deleted, which may belong to a predecessor of the network.
// Nil where the location has none.
func serving(contexts []v1alpha.NetworkContext, location string) *v1alpha.NetworkContext {
	var found *v1alpha.NetworkContext
	for i := range contexts {
		context := &contexts[i]
		if string(context.Spec.Location.Name) != location {
			continue
		}
		if found == nil || leaving(found) && !leaving(context) {
			found = context
		}
	}
	return found
}

// leaving tells whether an object is being deleted.
func leaving(object client.Object) bool { return !object.GetDeletionTimestamp().IsZero() }
