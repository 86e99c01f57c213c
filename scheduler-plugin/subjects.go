package locationauthority

import (
	"context"
	"fmt"
	"sync"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"go.datum.net/network-presence/api/v1alpha"
)

// subjects knows the locations that objects name. The scheduler hands a filter no more
// than an object's name.
type subjects struct {
	mu       sync.RWMutex
	contexts map[types.NamespacedName]string
	synced   func() bool
	// known is called with the name of each context once its location is known.
	known func(types.NamespacedName)
}

const (
	contextKind  = "NetworkContext"
	locationKind = "Location"
)

var apiVersion = v1alpha.SchemeGroupVersion.String()

// location is the location that an object names, empty where it is not known yet; and
// false where the object's kind names none.
func (s *subjects) location(object *workv1alpha2.ObjectReference) (string, bool) {
	if object.APIVersion != apiVersion {
		return "", false
	}
	switch object.Kind {
	case locationKind:
		return object.Name, true
	case contextKind:
		s.mu.RLock()
		defer s.mu.RUnlock()
		return s.contexts[types.NamespacedName{Namespace: object.Namespace, Name: object.Name}], true
	}
	return "", false
}

// watch follows the hub's contexts.
func (s *subjects) watch(ctx context.Context, hub cache.Cache) error {
	informer, err := hub.GetInformer(ctx, &v1alpha.NetworkContext{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch NetworkContexts on the hub: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { s.set(object.(*v1alpha.NetworkContext)) },
		UpdateFunc: func(_, object any) { s.set(object.(*v1alpha.NetworkContext)) },
		DeleteFunc: func(object any) {
			if name, err := toolscache.DeletionHandlingObjectToName(object); err == nil {
				s.unset(types.NamespacedName{Namespace: name.Namespace, Name: name.Name})
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch NetworkContexts on the hub: %w", err)
	}
	s.synced = registration.HasSynced
	return nil
}

func (s *subjects) set(context *v1alpha.NetworkContext) {
	name := types.NamespacedName{Namespace: context.Namespace, Name: context.Name}
	s.mu.Lock()
	before := s.contexts[name]
	s.contexts[name] = string(context.Spec.Location.Name)
	s.mu.Unlock()
	if before == "" {
		s.known(name)
	}
}

func (s *subjects) unset(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.contexts, name)
}
