package presence

import (
	"context"
	"fmt"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// The fields by which the hub's cache finds what a reconcile needs, so that its cost does
// not depend on what else is in the namespace.
const (
	byPair       = "presence.pair"        // bindings, contexts: network and location
	byNetwork    = "presence.network"     // bindings, contexts: network
	byLocation   = "presence.location"    // bindings, contexts: location
	byNetworkUID = "presence.network-uid" // contexts: the network's UID
	byContext    = "presence.context"     // ResourceBindings: the context they place
	byCell       = "presence.cell"        // ResourceBindings: each cluster they place on
)

func (k Key) pair() string { return k.Network + "/" + k.Location }

// indexFields adds the fields to the hub's cache.
func indexFields(ctx context.Context, indexer client.FieldIndexer) error {
	key := func(object client.Object) Key {
		switch object := object.(type) {
		case *v1alpha.NetworkBinding:
			return KeyOfBinding(object)
		case *v1alpha.NetworkContext:
			return KeyOfContext(object)
		}
		return Key{}
	}
	pair := func(object client.Object) []string { return []string{key(object).pair()} }
	network := func(object client.Object) []string { return []string{key(object).Network} }
	location := func(object client.Object) []string { return []string{key(object).Location} }

	for _, field := range []struct {
		object client.Object
		name   string
		values client.IndexerFunc
	}{
		{&v1alpha.NetworkBinding{}, byPair, pair},
		{&v1alpha.NetworkBinding{}, byNetwork, network},
		{&v1alpha.NetworkBinding{}, byLocation, location},
		{&v1alpha.NetworkContext{}, byPair, pair},
		{&v1alpha.NetworkContext{}, byNetwork, network},
		{&v1alpha.NetworkContext{}, byLocation, location},
		{&v1alpha.NetworkContext{}, byNetworkUID, networkUIDOf},
		{&workv1alpha2.ResourceBinding{}, byContext, contextOf},
		{&workv1alpha2.ResourceBinding{}, byCell, cellsOf},
	} {
		if err := indexer.IndexField(ctx, field.object, field.name, field.values); err != nil {
			return fmt.Errorf("index %T by %s: %w", field.object, field.name, err)
		}
	}
	return nil
}

func networkUIDOf(object client.Object) []string {
	return []string{object.GetLabels()[v1alpha.NetworkUIDLabel]}
}

func contextOf(object client.Object) []string {
	placement := object.(*workv1alpha2.ResourceBinding)
	if !mayPlaceContext(placement) {
		return nil
	}
	return []string{placement.Spec.Resource.Name}
}

func cellsOf(object client.Object) []string {
	placement := object.(*workv1alpha2.ResourceBinding)
	cells := make([]string, 0, len(placement.Spec.Clusters))
	for _, target := range placement.Spec.Clusters {
		cells = append(cells, target.Name)
	}
	return cells
}

// mayPlaceContext tells whether a placement is a context's, or that of another group's kind,
// which may have the name that a context's would have.
func mayPlaceContext(placement *workv1alpha2.ResourceBinding) bool {
	return placement.Spec.Resource.Kind == "NetworkContext"
}

func placesContext(placement *workv1alpha2.ResourceBinding) bool {
	resource := placement.Spec.Resource
	return resource.Kind == "NetworkContext" && resource.APIVersion == v1alpha.SchemeGroupVersion.String()
}
