package cell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"go.datum.net/network-presence/api/v1alpha"
)

// holdReconciler holds a network's copies and answers its claims. One reconciler does
// both, since an answer is a promise that the copy is held: see the package's doc.
type holdReconciler struct {
	client.Client
	// live reads from the API server itself.
	live     client.Reader
	location string
	// grace is how long a promise binds after its end.
	grace     time.Duration
	now       func() time.Time
	standings standings
}

func (r *holdReconciler) setup(agent manager.Manager, workers int) error {
	network := handler.TypedEnqueueRequestsFromMapFunc(networksOf)
	return builder.TypedControllerManagedBy[networkKey](agent).
		Named("hold").
		WithOptions(controller.TypedOptions[networkKey]{MaxConcurrentReconciles: workers}).
		Watches(&v1alpha.NetworkContext{}, network).
		Watches(&v1alpha.NetworkInterfaceClaim{}, network).
		Watches(&v1alpha.NetworkInterface{}, network, builder.WithPredicates(holdersChange)).
		Complete(r)
}

// holdersChange passes what may give a network its first interface or take its last one.
var holdersChange = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return networkOf(e.ObjectOld) != networkOf(e.ObjectNew)
}}

// Reconcile brings the finalizer on a network's copies and the answers to its claims to
// what they should be.
func (r *holdReconciler) Reconcile(ctx context.Context, network networkKey) (reconcile.Result, error) {
	known := r.standings.of(network, r.now())
	s, err := r.gather(ctx, network, known)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	if s.empty() && s.bindsFor <= 0 {
		r.standings.forget(network)
		return reconcile.Result{}, nil
	}
	d := decide(s)
	again, err := r.act(ctx, network, d, known)
	return reconcile.Result{RequeueAfter: again}, err
}

// holdSnapshot is what the decision about one network is made from. Its objects belong to
// the cache and are never changed.
type holdSnapshot struct {
	location string
	// contexts of the network in the namespace, of every location.
	contexts []v1alpha.NetworkContext
	// claims on the network, but for those that the cache shows as they were before our
	// last answer.
	claims []v1alpha.NetworkInterfaceClaim
	// occupied tells that an interface of the network exists.
	occupied bool
	// promising tells that a claim may read a promise now. If none may, bindsFor is how
	// long the last one still binds.
	promising bool
	bindsFor  time.Duration
}

func (s *holdSnapshot) empty() bool {
	return len(s.contexts) == 0 && len(s.claims) == 0 && !s.promising
}

// gather is nil where the cache does not show our last write of a context yet.
func (r *holdReconciler) gather(ctx context.Context, network networkKey, known *standing) (*holdSnapshot, error) {
	contexts, err := contextsOf(ctx, r, network)
	if err != nil {
		return nil, err
	}
	var claims v1alpha.NetworkInterfaceClaimList
	if err := r.List(ctx, &claims, of(network)); err != nil {
		return nil, fmt.Errorf("list claims on network %s: %w", network, err)
	}
	var anyInterface v1alpha.NetworkInterfaceList
	if err := r.List(ctx, &anyInterface, of(network), client.Limit(1)); err != nil {
		return nil, fmt.Errorf("list interfaces of network %s: %w", network, err)
	}
	known.settle(append(pointers(contexts), pointers(claims.Items)...))
	for i := range contexts {
		if known.behind(&contexts[i]) {
			return nil, nil
		}
	}
	s := &holdSnapshot{location: r.location, contexts: contexts, occupied: len(anyInterface.Items) > 0}
	for i := range claims.Items {
		claim := &claims.Items[i]
		behind := known.behind(claim)
		s.promising = s.promising || behind || promised(claim)
		if !behind {
			s.claims = append(s.claims, *claim)
		}
	}
	known.observe(s.promising, r.now())
	s.bindsFor = known.ended.Add(r.grace).Sub(r.now())
	return s, nil
}

// holdDecision is what is to be done about one network, in this order. Its zero value is:
// nothing.
type holdDecision struct {
	refusals []verdict
	holds    []*v1alpha.NetworkContext
	// promises may be given once all holds are in place.
	promises []verdict
	releases []*v1alpha.NetworkContext
	// again is when the last promise has stopped to bind, if anything waits for that: no
	// event tells. Zero where nothing waits.
	again time.Duration
}

func decide(s *holdSnapshot) holdDecision {
	var d holdDecision
	serving := serving(s.contexts, s.location)
	eligible := d.judge(s, serving)
	for i := range s.contexts {
		context := &s.contexts[i]
		held := controllerutil.ContainsFinalizer(context, v1alpha.InUseFinalizer)
		needed := s.occupied || eligible && context == serving
		switch {
		case needed && !held && !leaving(context):
			d.holds = append(d.holds, context)
		case needed || !held || s.promising:
			// Nothing to do; the end of a promise is an event of its claim.
		case s.bindsFor > 0:
			d.again = s.bindsFor
		default:
			d.releases = append(d.releases, context)
		}
	}
	if s.empty() {
		d.again = s.bindsFor
	}
	return d
}

// judge decides the answers to all claims, and tells whether one of them is a promise.
func (d *holdDecision) judge(s *holdSnapshot, serving *v1alpha.NetworkContext) (eligible bool) {
	for i := range s.claims {
		verdict := judge(&s.claims[i], serving, s.location)
		eligible = eligible || verdict.promises()
		switch {
		case !verdict.differs():
		case verdict.promises():
			d.promises = append(d.promises, verdict)
		default:
			d.refusals = append(d.refusals, verdict)
		}
	}
	return eligible
}

// act does what was decided, and says when to look again without an event.
func (r *holdReconciler) act(ctx context.Context, network networkKey, d holdDecision, known *standing) (time.Duration, error) {
	failed := []error{r.answer(ctx, d.refusals, known)}
	held, err := r.hold(ctx, d.holds, known)
	failed = append(failed, err)
	if held {
		failed = append(failed, r.answer(ctx, d.promises, known))
	}
	again, err := r.release(ctx, network, d.releases, known)
	failed = append(failed, err)
	return max(d.again, again), errors.Join(failed...)
}

// answer writes verdicts. One that cannot be written keeps no other from it.
func (r *holdReconciler) answer(ctx context.Context, verdicts []verdict, known *standing) error {
	var failed []error
	for _, verdict := range verdicts {
		version, err := verdict.write(ctx, r)
		known.wrote(verdict.claim, version)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// hold adds the finalizer, and tells whether it is on all of the contexts.
func (r *holdReconciler) hold(ctx context.Context, contexts []*v1alpha.NetworkContext, known *standing) (bool, error) {
	for _, context := range contexts {
		held := context.DeepCopy()
		controllerutil.AddFinalizer(held, v1alpha.InUseFinalizer)
		switch err := r.write(ctx, context, held, known); {
		case superseded(err):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("add finalizer %s to context %s: %w",
				v1alpha.InUseFinalizer, client.ObjectKeyFromObject(context), err)
		}
	}
	return true, nil
}

// cacheLag is how long the cache is given to show what the API server has.
const cacheLag = time.Second

// release removes the finalizer, unless the API server has an interface that the cache
// does not show yet. It says when to look again then: an interface that comes and goes
// while the cache's watch is broken never becomes an event.
func (r *holdReconciler) release(ctx context.Context, network networkKey, contexts []*v1alpha.NetworkContext, known *standing) (time.Duration, error) {
	if len(contexts) == 0 {
		return 0, nil
	}
	occupied, err := r.occupied(ctx, network)
	if err != nil {
		return 0, err
	}
	if occupied {
		return cacheLag, nil
	}
	for _, context := range contexts {
		released := context.DeepCopy()
		controllerutil.RemoveFinalizer(released, v1alpha.InUseFinalizer)
		if err := r.write(ctx, context, released, known); err != nil && !superseded(err) {
			return 0, fmt.Errorf("remove finalizer %s from context %s: %w",
				v1alpha.InUseFinalizer, client.ObjectKeyFromObject(context), err)
		}
	}
	return 0, nil
}

// write changes a context, provided that it still is what the decision was made from.
func (r *holdReconciler) write(ctx context.Context, before, after *v1alpha.NetworkContext, known *standing) error {
	unchanged := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Patch(ctx, after, unchanged, FieldOwner); err != nil {
		return err
	}
	known.wrote(after, after.ResourceVersion)
	return nil
}

// interfacesPerPage bounds the memory that a live list takes.
const interfacesPerPage = 500

// occupied asks the API server whether an interface of the network exists.
func (r *holdReconciler) occupied(ctx context.Context, network networkKey) (bool, error) {
	for from := ""; ; {
		var page v1alpha.NetworkInterfaceList
		err := r.live.List(ctx, &page, client.InNamespace(network.Namespace),
			client.Limit(interfacesPerPage), client.Continue(from))
		if err != nil {
			return false, fmt.Errorf("list interfaces in namespace %q from the API server: %w", network.Namespace, err)
		}
		for i := range page.Items {
			if networkOf(&page.Items[i]) == network {
				return true, nil
			}
		}
		if from = page.Continue; from == "" {
			return false, nil
		}
	}
}

// pointers are the items of a list as objects.
func pointers[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	objects := make([]client.Object, 0, len(items))
	for i := range items {
		objects = append(objects, P(&items[i]))
	}
	return objects
}
