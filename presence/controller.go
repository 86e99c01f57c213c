package presence

import (
	"context"
	"errors"
	"fmt"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/location"
	"go.datum.net/network-presence/project"
)

// FieldManager owns what the presence controller writes.
const FieldManager = "network-presence"

const (
	// retryAtFirst and retryAtMost bound the wait after an error, such as an API server
	// that does not answer: none tells when it does again.
	retryAtFirst = 5 * time.Millisecond
	retryAtMost  = 30 * time.Second
)

// Options are what the presence controller is made from. All but Schedulers and Workers must be set.
type Options struct {
	// Authority says which project a hub namespace belongs to and where it may run.
	Authority *location.Index
	// Planes are the connected projects.
	Planes *project.Planes
	// Known tells whether a project is declared as connected, although its control plane
	// may not have been taken up yet: what such a project was last known to have stays.
	Known func(ctx context.Context, project string) bool
	// Schedulers are the names of those that run the plugin LocationAuthority: a context that
	// another places is told of. Nil where nobody knows.
	Schedulers []string
	// Workers is how many presences are looked at at once; 0 means 10.
	Workers int
}

// Reconciler is the presence controller.
type Reconciler struct {
	hub       client.Client
	authority *location.Index
	planes    *project.Planes
	known     func(context.Context, string) bool
	// schedulers as in Options.
	schedulers []string
	recorder   events.EventRecorder
	networks   *networks
	overdue    overdueSince
}

// SetupWithManager adds the presence controller to the hub's manager. The manager's cache
// may trim the ResourceBindings of other objects than contexts, see location.TrimBindings.
func SetupWithManager(ctx context.Context, mgr manager.Manager, options Options) error {
	if err := indexFields(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	r := &Reconciler{
		hub:        mgr.GetClient(),
		authority:  options.Authority,
		planes:     options.Planes,
		known:      options.Known,
		schedulers: options.Schedulers,
		recorder:   mgr.GetEventRecorder(FieldManager),
		overdue:    overdueSince{since: map[Key]time.Time{}},
	}
	countFor(ctx, mgr)
	r.networks = newNetworks(r, mgr.GetAPIReader())
	workers := options.Workers
	if workers == 0 {
		workers = 10
	}
	err := builder.TypedControllerManagedBy[Key](mgr).
		Named("presence").
		WithOptions(controller.TypedOptions[Key]{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[Key](retryAtFirst, retryAtMost),
		}).
		WatchesRawSource(watch(mgr, &v1alpha.NetworkBinding{}, r.keyOfBinding)).
		WatchesRawSource(watch(mgr, &v1alpha.NetworkContext{}, r.keyOfContext)).
		WatchesRawSource(watch(mgr, &workv1alpha2.ResourceBinding{}, r.keysOfPlacement)).
		WatchesRawSource(watch(mgr, &clusterv1alpha1.Cluster{}, r.keysOfCell, cellMatters)).
		WatchesRawSource(subscription(r.authority, r.subscribe)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up the presence controller: %w", err)
	}
	if err := setupSweeper(ctx, mgr); err != nil {
		return fmt.Errorf("set up the sweep: %w", err)
	}
	return nil
}

// Reconcile looks at one presence: it gathers, decides and acts.
func (r *Reconciler) Reconcile(ctx context.Context, key Key) (reconcile.Result, error) {
	s, err := r.gather(ctx, key)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("gather %s: %w", key, err)
	}
	d := decide(s)
	if d.finalizer {
		r.networks.look(s.project, client.ObjectKeyFromObject(s.network))
	}
	if err := r.apply(ctx, &d); err != nil {
		return reconcile.Result{}, err
	}
	again, err := r.nudge(ctx, key, d.overdue)
	if again == 0 || d.again > 0 && d.again < again {
		again = d.again // the end of a delivery that does not come is no event
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// apply does what was decided, all of it that can be done.
func (r *Reconciler) apply(ctx context.Context, d *decision) error {
	var errs []error
	if d.context != nil {
		errs = append(errs, r.writeContext(ctx, d.context))
	}
	for _, context := range d.withdrawn {
		errs = append(errs, r.withdraw(ctx, context))
	}
	for _, context := range d.released {
		errs = append(errs, r.release(ctx, context))
	}
	if d.declared != nil {
		errs = append(errs, r.declare(ctx, d.declared))
	}
	for _, answer := range d.answers {
		errs = append(errs, r.answer(ctx, answer))
	}
	return errors.Join(errs...)
}

// reportUnreachable tells each namespace of a project that its plane does not answer.
func (r *Reconciler) reportUnreachable(change project.Change) {
	for _, namespace := range r.authority.Namespaces(change.Project) {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		r.recorder.Eventf(object, nil, corev1.EventTypeWarning, "ProjectUnreachable", "Probe",
			"the control plane of project %q does not answer; what was last known of it stays: %v", change.Project, change.Err)
	}
	log.Log.WithName("presence").Info("project does not answer; what was last known of it stays",
		"project", change.Project, "error", change.Err.Error())
}
