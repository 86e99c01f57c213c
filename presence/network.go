package presence

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/project"
)

// projectTimeout bounds a write in a project control plane.
const projectTimeout = 10 * time.Second

// networks follows the Networks of all connected projects, and keeps our finalizer on
// those with a presence. Each project has a queue and a worker of its own, so that one
// which does not answer holds up no other.
type networks struct {
	presences *Reconciler
	live      client.Reader // the hub, past its cache

	mu     sync.RWMutex
	planes map[string]*planeNetworks
	notify func(project string, network types.NamespacedName)
}

func newNetworks(presences *Reconciler, live client.Reader) *networks {
	return &networks{presences: presences, live: live, planes: map[string]*planeNetworks{}}
}

// subscribe has notify called for each Network that changed, and with no name once all
// Networks of a project are known.
func (n *networks) subscribe(notify func(project string, network types.NamespacedName)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notify = notify
}

// follow takes up a project that was connected and lets go one that was disconnected.
func (n *networks) follow(change project.Change) {
	plane, connected := n.presences.planes.Get(change.Project)
	n.mu.Lock()
	defer n.mu.Unlock()
	if !connected {
		delete(n.planes, change.Project)
		return
	}
	if known := n.planes[change.Project]; known != nil && known.plane == plane {
		return
	}
	n.planes[change.Project] = newPlaneNetworks(n, plane)
}

// reader reads a project's Networks from a cache, where it has been filled.
func (n *networks) reader(project string) (client.Reader, planeState) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	plane, ok := n.planes[project]
	switch {
	case !ok:
		return nil, planeUnknown
	case !plane.read.Load():
		return nil, planeSilent
	}
	return plane.plane.Reader(), planeRead
}

// look has the finalizer of a Network looked at.
func (n *networks) look(project string, network types.NamespacedName) {
	n.mu.RLock()
	plane, ok := n.planes[project]
	n.mu.RUnlock()
	if ok {
		plane.enqueue(network)
	}
}

// planeNetworks follows the Networks of one project.
type planeNetworks struct {
	*networks
	plane *project.Plane
	read  atomic.Bool
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[types.NamespacedName]]
}

func newPlaneNetworks(n *networks, plane *project.Plane) *planeNetworks {
	p := &planeNetworks{networks: n, plane: plane}
	skip := true // one controller a project, all of one name
	c, err := controller.NewTypedUnmanaged("network", controller.TypedOptions[types.NamespacedName]{
		Reconciler:         p,
		SkipNameValidation: &skip,
		RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryAtFirst, retryAtMost),
		LogConstructor: func(*types.NamespacedName) logr.Logger {
			return log.Log.WithName("network").WithValues("project", plane.Project)
		},
	})
	if err == nil {
		err = c.Watch(source.TypedFunc[types.NamespacedName](p.start))
	}
	if err != nil { // only a nil reconciler or an empty name can cause it
		panic(fmt.Sprintf("set up the network controller of project %q: %v", plane.Project, err))
	}
	go func() {
		if err := c.Start(plane.Context()); err != nil {
			log.Log.Error(err, "network controller ended", "project", plane.Project)
		}
	}()
	return p
}

// start watches the project's Networks once the queue is there.
func (p *planeNetworks) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[types.NamespacedName]) error {
	p.queue.Store(&queue)
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { p.changed(object) },
		UpdateFunc: func(before, after any) {
			if matters(before.(*v1alpha.Network), after.(*v1alpha.Network)) {
				p.changed(after)
			}
		},
		DeleteFunc: func(object any) { p.changed(object) },
	}
	p.plane.Watch(&v1alpha.Network{}, handler, func() {
		p.read.Store(true)
		p.notify(p.plane.Project, types.NamespacedName{})
	})
	return nil
}

// matters tells whether a change of a Network is one that presences depend on: most
// changes are of its status.
func matters(before, after *v1alpha.Network) bool {
	return before.UID != after.UID || before.Generation != after.Generation ||
		!before.DeletionTimestamp.Equal(after.DeletionTimestamp) || !slices.Equal(before.Finalizers, after.Finalizers)
}

func (p *planeNetworks) changed(object any) {
	name, err := toolscache.DeletionHandlingObjectToName(object)
	if err != nil {
		return // no object at all: nothing of ours
	}
	network := types.NamespacedName{Namespace: name.Namespace, Name: name.Name}
	p.enqueue(network)
	if p.read.Load() {
		p.notify(p.plane.Project, network)
	}
}

func (p *planeNetworks) enqueue(network types.NamespacedName) {
	if queue := p.queue.Load(); queue != nil {
		(*queue).Add(network)
	}
}

// Reconcile puts our finalizer on a Network that has a presence or is about to, and takes
// it off one that has none any more.
func (p *planeNetworks) Reconcile(ctx context.Context, name types.NamespacedName) (reconcile.Result, error) {
	if !p.read.Load() {
		return reconcile.Result{}, nil // all are looked at when they are known
	}
	var network v1alpha.Network
	if err := p.plane.Reader().Get(ctx, name, &network); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	has := controllerutil.ContainsFinalizer(&network, v1alpha.PresenceFinalizer)
	present, err := p.present(ctx, p.presences.hub, &network, client.MatchingFields{byNetworkUID: string(network.UID)})
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted := present || network.DeletionTimestamp.IsZero() && p.asked(ctx, name)
	switch {
	case wanted && !has && network.DeletionTimestamp.IsZero():
		return reconcile.Result{}, p.write(ctx, &network, controllerutil.AddFinalizer)
	case !wanted && has:
		return reconcile.Result{}, p.release(ctx, &network)
	}
	return reconcile.Result{}, nil
}

// release takes the finalizer off a Network once the hub itself, not its cache, has no
// context of it.
func (p *planeNetworks) release(ctx context.Context, network *v1alpha.Network) error {
	present, err := p.present(ctx, p.live, network, client.MatchingLabels{v1alpha.NetworkUIDLabel: string(network.UID)})
	if err != nil || present {
		return err
	}
	return p.write(ctx, network, controllerutil.RemoveFinalizer)
}

// present tells whether the hub has a context of the Network, which selects selects.
func (p *planeNetworks) present(ctx context.Context, hub client.Reader, network *v1alpha.Network, selects client.ListOption) (bool, error) {
	var contexts v1alpha.NetworkContextList
	err := hub.List(ctx, &contexts, selects, client.Limit(1))
	if err != nil {
		return false, fmt.Errorf("list the contexts of network %s/%s of project %q: %w", network.Namespace, network.Name, p.plane.Project, err)
	}
	return len(contexts.Items) > 0, nil
}

// asked tells whether a binding asks for the Network where the project may have it.
func (p *planeNetworks) asked(ctx context.Context, network types.NamespacedName) bool {
	r := p.presences
	for _, namespace := range r.mirrors(p.plane.Project, network.Namespace) {
		var bindings v1alpha.NetworkBindingList
		r.list(ctx, &bindings, client.InNamespace(namespace), client.MatchingFields{byNetwork: network.Name})
		for i := range bindings.Items {
			if p.counts(&bindings.Items[i], network.Namespace) {
				return true
			}
		}
	}
	return false
}

func (p *planeNetworks) counts(binding *v1alpha.NetworkBinding, namespace string) bool {
	asked := binding.Spec.Network.Namespace
	if asked != "" && asked != namespace || !binding.DeletionTimestamp.IsZero() {
		return false
	}
	granted, _ := p.presences.authority.May(p.plane.Project, string(binding.Spec.Location.Name))
	return granted
}

func (p *planeNetworks) write(ctx context.Context, network *v1alpha.Network, change func(client.Object, string) bool) error {
	ctx, cancel := context.WithTimeout(ctx, projectTimeout)
	defer cancel()
	changed := network.DeepCopy()
	change(changed, v1alpha.PresenceFinalizer)
	patch := client.MergeFromWithOptions(network, client.MergeFromWithOptimisticLock{})
	err := p.plane.Cluster.GetClient().Patch(ctx, changed, patch, client.FieldOwner(FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the finalizers of network %s/%s of project %q: %w", network.Namespace, network.Name, p.plane.Project, err)
	}
	p.announce(changed, err)
	log.FromContext(ctx).Info("network finalizers written", "network", network.Namespace+"/"+network.Name, "finalizers", changed.Finalizers)
	return nil
}

// announce tells, in the project, that a Network is kept until its presences are gone, or
// kept no more.
func (p *planeNetworks) announce(network *v1alpha.Network, err error) {
	recorder := p.plane.Cluster.GetEventRecorder(FieldManager)
	switch {
	case err != nil: // it is gone
	case controllerutil.ContainsFinalizer(network, v1alpha.PresenceFinalizer):
		tell(recorder, network, corev1.EventTypeNormal, EventNetworkKept, "Keep",
			"a location needs this network: when it is deleted, it stays until no location has it any more")
	default:
		tell(recorder, network, corev1.EventTypeNormal, EventNetworkReleased, "Release", "no location has this network any more")
	}
}
