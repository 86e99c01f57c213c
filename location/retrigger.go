package location

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// RetriggerOptions say whose bindings are scheduled again, and how fast.
type RetriggerOptions struct {
	// Authority that the schedulers ask, too. Required.
	Authority *Authority
	// Schedulers are the names of the schedulers that run the plugin. Bindings of others are
	// never touched.
	Schedulers []string
	// QPS is how many bindings are triggered a second, and Burst how many at once. Each
	// costs the scheduler one round. 100 and 200 where they are 0.
	QPS   float64
	Burst int
}

const (
	defaultRetriggerQPS   = 100
	defaultRetriggerBurst = 200
)

// Retrigger has Karmada's scheduler look at bindings again. The scheduler retries no
// refusal, and sees neither grants nor what objects name, nor the APIs of a cluster, nor a
// cluster that joins. So each binding that rests is compared with what the scheduler would
// do if it looked now; where that differs, it is told to look.
type Retrigger struct {
	hub        client.Client
	settlement *settlement
	limiter    *rate.Limiter
	attempts   attempts
	causes     *causes
}

// AddRetrigger adds the re-triggering to the hub's manager. The manager's cache must have
// bindings as TrimBindings keeps them.
func AddRetrigger(mgr manager.Manager, options RetriggerOptions) error {
	settlement, err := newSettlement(options.Authority, options.Schedulers)
	if err != nil {
		return err
	}
	if options.QPS == 0 {
		options.QPS, options.Burst = defaultRetriggerQPS, defaultRetriggerBurst
	}
	r := &Retrigger{
		hub: mgr.GetClient(), settlement: settlement, causes: newCauses(),
		limiter: rate.NewLimiter(rate.Limit(options.QPS), max(options.Burst, 1)),
	}
	err = builder.TypedControllerManagedBy[types.NamespacedName](mgr).
		Named("retrigger").
		WithOptions(controller.TypedOptions[types.NamespacedName]{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](50*time.Millisecond, 30*time.Second),
		}).
		WatchesRawSource(source.TypedFunc[types.NamespacedName](r.start)).
		WatchesRawSource(watchBindings(mgr, &workv1alpha2.ResourceBinding{})).
		WatchesRawSource(watchBindings(mgr, &workv1alpha2.ClusterResourceBinding{})).
		WatchesRawSource(source.TypedKind(mgr.GetCache(), &clusterv1alpha1.Cluster{}, r.causes.handler())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up the re-triggering: %w", err)
	}
	return nil
}

// watchBindings looks at bindings when they come, and when what they ask for or what became
// of it changes. Reports of the cells change nothing here.
func watchBindings[T client.Object](mgr manager.Manager, object T) source.TypedSource[types.NamespacedName] {
	return source.TypedKind(mgr.GetCache(), object,
		handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, binding T) []types.NamespacedName {
			return []types.NamespacedName{client.ObjectKeyFromObject(binding)}
		}),
		predicate.TypedFuncs[T]{
			UpdateFunc: func(e event.TypedUpdateEvent[T]) bool { return scheduledAnew(e.ObjectOld, e.ObjectNew) },
			DeleteFunc: func(event.TypedDeleteEvent[T]) bool { return true },
		})
}

func scheduledAnew(before, after client.Object) bool {
	old, current := placementOf(before), placementOf(after)
	return before.GetGeneration() != after.GetGeneration() ||
		old.status.SchedulerObservedGeneration != current.status.SchedulerObservedGeneration ||
		!slices.Equal(old.status.Conditions, current.status.Conditions)
}

// start waits for the authority, and then has all bindings that a change may be about
// looked at.
func (r *Retrigger) start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[types.NamespacedName]) error {
	authority := r.settlement.authority
	if !toolscache.WaitForCacheSync(ctx.Done(), authority.HasSynced) {
		return fmt.Errorf("wait for the location authority: %w", ctx.Err())
	}
	authority.Subscribe(r.causes.changed)
	authority.Subjects.Subscribe(func(subject Subject) { r.causes.named(subject) })
	go r.sweep(ctx, queue)
	return nil
}

// Reconcile has one binding scheduled again where that would change something.
func (r *Retrigger) Reconcile(ctx context.Context, name types.NamespacedName) (reconcile.Result, error) {
	p, err := r.read(ctx, name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if p.object == nil || !r.settlement.ours(p.spec) {
		r.attempts.forget(name)
		return reconcile.Result{}, nil
	}
	if !r.settlement.rests(p) {
		return reconcile.Result{}, nil
	}
	clusters, err := r.clusters(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	amiss := r.settlement.amiss(p, clusters)
	due, wait := r.attempts.next(name, amiss, time.Now())
	if !due {
		// No event tells that the scheduler looked and decided as before.
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if err := r.trigger(ctx, p, amiss); err != nil {
		r.attempts.failed(name)
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: firstPatience}, nil
}

// read gets a binding from the cache; nothing where it is gone.
func (r *Retrigger) read(ctx context.Context, name types.NamespacedName) (placement, error) {
	var object client.Object = &workv1alpha2.ResourceBinding{}
	if name.Namespace == "" {
		object = &workv1alpha2.ClusterResourceBinding{}
	}
	if err := r.hub.Get(ctx, name, object); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return placement{}, nil
		}
		return placement{}, fmt.Errorf("get binding %s: %w", name, err)
	}
	return placementOf(object), nil
}

func (r *Retrigger) clusters(ctx context.Context) ([]*clusterv1alpha1.Cluster, error) {
	var list clusterv1alpha1.ClusterList
	if err := r.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Clusters: %w", err)
	}
	clusters := make([]*clusterv1alpha1.Cluster, len(list.Items))
	for n := range list.Items {
		clusters[n] = &list.Items[n]
	}
	return clusters, nil
}

// trigger tells the scheduler to look at a binding again.
func (r *Retrigger) trigger(ctx context.Context, p placement, amiss []string) error {
	name := client.ObjectKeyFromObject(p.object)
	if err := r.limiter.Wait(ctx); err != nil {
		return fmt.Errorf("wait to trigger binding %s: %w", name, err)
	}
	moment := r.attempts.moment(name, p, time.Now())
	patch := fmt.Appendf(nil, `{"spec":{"rescheduleTriggeredAt":%q}}`, moment.Format(time.RFC3339))
	target := p.object.DeepCopyObject().(client.Object)
	err := r.hub.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("trigger binding %s: %w", name, err)
	}
	retriggers.Inc()
	log.FromContext(ctx).Info("had the scheduler look again", "binding", name.String(),
		"object", p.spec.Resource.Kind+" "+p.spec.Resource.Name, "clusters", strings.Join(amiss, " "))
	return nil
}

// sweepInterval is how long changes are gathered before the bindings that they may be about
// are looked for, once for all of them.
const sweepInterval = 100 * time.Millisecond

// sweep has bindings looked at when something changes that they may wait for, until ctx
// ends.
func (r *Retrigger) sweep(ctx context.Context, queue workqueue.TypedRateLimitingInterface[types.NamespacedName]) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.causes.pending:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(sweepInterval):
		}
		bindings, err := r.affected(ctx, r.causes.take())
		if err != nil && !errors.Is(err, context.Canceled) {
			log.FromContext(ctx).Error(err, "look for bindings to schedule again")
		}
		for _, name := range bindings {
			r.attempts.again(name)
			queue.Add(name)
		}
	}
}

// affected are the bindings that something is amiss with, and that the causes may be about.
func (r *Retrigger) affected(ctx context.Context, found found) ([]types.NamespacedName, error) {
	names := slices.Clone(found.bindings)
	for project := range found.projects {
		for _, namespace := range r.settlement.authority.Namespaces(project) {
			found.namespaces[namespace] = true
		}
	}
	for namespace := range found.namespaces {
		var list workv1alpha2.ResourceBindingList
		if err := r.hub.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return names, fmt.Errorf("list the bindings of namespace %s: %w", namespace, err)
		}
		names = append(names, bindingOf(Subject{Kind: namespaceKind, NamespacedName: types.NamespacedName{Name: namespace}}))
		for n := range list.Items {
			names = append(names, client.ObjectKeyFromObject(&list.Items[n]))
		}
	}
	if len(found.clusters) == 0 {
		return names, nil
	}
	clusters, err := r.clusters(ctx)
	if err != nil {
		return names, err
	}
	clusters = slices.DeleteFunc(clusters, func(c *clusterv1alpha1.Cluster) bool { return !found.clusters[c.Name] })
	err = r.each(ctx, func(p placement) {
		if r.settlement.rests(p) && len(r.settlement.amiss(p, clusters)) > 0 {
			names = append(names, client.ObjectKeyFromObject(p.object))
		}
	})
	return names, err
}

// each calls do with every binding.
func (r *Retrigger) each(ctx context.Context, do func(placement)) error {
	var bindings workv1alpha2.ResourceBindingList
	var clusterBindings workv1alpha2.ClusterResourceBindingList
	if err := r.hub.List(ctx, &bindings, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ResourceBindings: %w", err)
	}
	if err := r.hub.List(ctx, &clusterBindings, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ClusterResourceBindings: %w", err)
	}
	for n := range bindings.Items {
		do(placement{&bindings.Items[n], &bindings.Items[n].Spec, &bindings.Items[n].Status})
	}
	for n := range clusterBindings.Items {
		do(placement{&clusterBindings.Items[n], &clusterBindings.Items[n].Spec, &clusterBindings.Items[n].Status})
	}
	return nil
}

// later is a moment after others, in whole seconds as the API keeps it.
func later(now time.Time, others ...*metav1.Time) time.Time {
	moment := now.UTC().Truncate(time.Second)
	for _, other := range others {
		if other != nil && !moment.After(other.Time) {
			moment = other.UTC().Truncate(time.Second).Add(time.Second)
		}
	}
	return moment
}
