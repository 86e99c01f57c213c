package cell

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	known.catchUp(append(pointers(contexts), pointers(claims.Items)...))
	for i := range contexts {
		if known.behind(&contexts[i]) {
			return nil, nil
		}
		known.saw(&contexts[i], controllerutil.ContainsFinalizer(&contexts[i], v1alpha.InUseFinalizer), r.now())
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
	// promises are given, and releases done, once all holds are in place. The promises are
	// about the serving context.
	promises []verdict
	serving  *v1alpha.NetworkContext
	releases []*v1alpha.NetworkContext
	// again is when the last promise has stopped to bind, if anything waits for that: no
	// event tells. Zero where nothing waits.
	again time.Duration
}

func decide(s *holdSnapshot) holdDecision {
	var d holdDecision
	d.serving = serving(s.contexts, s.location)
	eligible := d.judge(s)
	for i := range s.contexts {
		context := &s.contexts[i]
		held := controllerutil.ContainsFinalizer(context, v1alpha.InUseFinalizer)
		needed := s.occupied || eligible && context == d.serving
		switch {
		case needed && !held && !leaving(context):
			d.holds = append(d.holds, context)
		case needed || !held:
			// It is as it should be.
		case s.promising && !eligible:
			// The end of the promise is an event of its claim.
		case s.bindsFor > 0 && !eligible:
			d.again = s.bindsFor
		default:
			// No promise is left, or the serving context keeps them.
			d.releases = append(d.releases, context)
		}
	}
	if s.empty() {
		d.again = s.bindsFor
	}
	return d
}

// judge decides the answers to all claims, and tells whether one of them is a promise.
func (d *holdDecision) judge(s *holdSnapshot) (eligible bool) {
	for i := range s.claims {
		verdict := judge(&s.claims[i], d.serving, s.location)
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
	refused := r.answer(ctx, d.refusals, known)
	held, err := r.hold(ctx, d.holds, known)
	if !held {
		return d.again, errors.Join(refused, err)
	}
	settled, promised := r.promise(ctx, d, known)
	lagging, released := r.release(ctx, network, d.releases, known)
	return soonest(d.again, settled, lagging), errors.Join(refused, promised, released)
}

// soonest is the shortest of the times that are not zero; zero where all are.
func soonest(times ...time.Duration) time.Duration {
	times = slices.DeleteFunc(times, func(time time.Duration) bool { return time <= 0 })
	if len(times) == 0 {
		return 0
	}
	return slices.Min(times)
}

// promise writes the promises, once it is proven that the serving context is held, and
// says when to look again if that takes time.
func (r *holdReconciler) promise(ctx context.Context, d holdDecision, known *standing) (time.Duration, error) {
	if len(d.promises) == 0 {
		return 0, nil
	}
	proven, wait, err := r.prove(ctx, d.serving, known)
	if err != nil || !proven {
		return wait, err
	}
	known.observe(true, r.now()) // even if the answers get lost on their way back
	return 0, r.answer(ctx, d.promises, known)
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
