package location

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	acmetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"go.datum.net/network-presence/api/v1alpha"
	acv1alpha "go.datum.net/network-presence/api/v1alpha/applyconfiguration/api/v1alpha"
)

// FieldManager owns what this package writes on the hub.
const FieldManager = "network-presence-location"

// Plane is a connected project control plane.
type Plane interface {
	// Context ends when the project is disconnected.
	Context() context.Context
	// Watch calls the handler for each object of the kind, and onSynced once it has seen
	// all that was there. It returns at once.
	Watch(object client.Object, handler toolscache.ResourceEventHandler, onSynced func())
	// Reader reads the watched kinds from a cache.
	Reader() client.Reader
}

// grant names one copy: a project's LocationBindings for a location.
type grant struct{ Project, Location string }

// Grants copies the LocationBindings of connected projects to the hub, where the Index
// finds them.
type Grants struct {
	hub      client.Client
	recorder events.EventRecorder
	known    func(ctx context.Context, project string) bool

	mu       sync.Mutex
	sources  map[string]*grantSource
	enqueue  func(grant)
	deferred []grant // changes from before the controller started
}

// grantSource is what is known of one project's LocationBindings.
type grantSource struct {
	plane Plane
	read  bool
	// deleted are the locations whose LocationBinding was seen to be deleted. One that is
	// merely missing from a list that is empty may be there all the same.
	deleted map[string]bool
}

// NewGrants adds the copying of LocationBindings to the hub's manager. Known tells whether
// a project is declared as connected, although it may not be followed yet: only the copies
// of others are pruned as a whole.
func NewGrants(mgr manager.Manager, known func(ctx context.Context, project string) bool) (*Grants, error) {
	g := &Grants{
		hub:      mgr.GetClient(),
		recorder: mgr.GetEventRecorder(FieldManager),
		known:    known,
		sources:  map[string]*grantSource{},
	}
	copies := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, copied *v1alpha.LocationBinding) []grant {
		if project, ours := projectOf(copied); ours {
			return []grant{{project, copied.Labels[v1alpha.LocationLabel]}}
		}
		return nil
	})
	err := builder.TypedControllerManagedBy[grant](mgr).
		Named("grants").
		WithOptions(controller.TypedOptions[grant]{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[grant](5*time.Millisecond, 30*time.Second),
		}).
		WatchesRawSource(source.TypedKind(mgr.GetCache(), &v1alpha.LocationBinding{}, copies)).
		WatchesRawSource(source.TypedFunc[grant](g.start)).
		Complete(g)
	if err != nil {
		return nil, fmt.Errorf("set up the copies of LocationBindings: %w", err)
	}
	return g, nil
}

func (g *Grants) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[grant]) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.enqueue = queue.Add
	for _, changed := range g.deferred {
		queue.Add(changed)
	}
	g.deferred = nil
	return nil
}

func (g *Grants) changed(changed ...grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.enqueue == nil {
		g.deferred = append(g.deferred, changed...)
		return
	}
	for _, grant := range changed {
		g.enqueue(grant)
	}
}

// Follow takes up a project that was connected, or connected anew.
func (g *Grants) Follow(project string, plane Plane) {
	g.mu.Lock()
	if known := g.sources[project]; known != nil && known.plane == plane {
		g.mu.Unlock()
		return
	}
	followed := &grantSource{plane: plane, deleted: map[string]bool{}}
	g.sources[project] = followed
	g.mu.Unlock()

	handle := toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { g.seen(project, followed, object, false) },
		UpdateFunc: func(before, after any) {
			g.seen(project, followed, before, false)
			g.seen(project, followed, after, false)
		},
		DeleteFunc: func(object any) { g.seen(project, followed, object, true) },
	}
	plane.Watch(&v1alpha.LocationBinding{}, handle, func() {
		g.mu.Lock()
		followed.read = true
		g.mu.Unlock()
		g.all(plane.Context(), project)
		var bindings v1alpha.LocationBindingList
		if err := plane.Reader().List(plane.Context(), &bindings); err != nil {
			return // disconnected
		}
		for _, binding := range bindings.Items {
			g.changed(grant{project, string(binding.Spec.LocationRef.Name)})
		}
	})
}

// Forget lets go a project that was disconnected.
func (g *Grants) Forget(ctx context.Context, project string) {
	g.mu.Lock()
	delete(g.sources, project)
	g.mu.Unlock()
	g.all(ctx, project)
}

// seen notes a change of a LocationBinding in a project.
func (g *Grants) seen(project string, followed *grantSource, object any, deleted bool) {
	binding, seen := object.(*v1alpha.LocationBinding)
	if !seen {
		// Missing from a list, as after a lost connection: no deletion was seen.
		unknown, _ := object.(toolscache.DeletedFinalStateUnknown)
		binding, _ = unknown.Obj.(*v1alpha.LocationBinding)
	}
	if binding == nil {
		return
	}
	location := string(binding.Spec.LocationRef.Name)
	g.mu.Lock()
	followed.deleted[location] = deleted && seen
	g.mu.Unlock()
	g.changed(grant{project, location})
}

// all looks at each of a project's copies.
func (g *Grants) all(ctx context.Context, project string) {
	var copies v1alpha.LocationBindingList
	if err := g.hub.List(ctx, &copies, client.MatchingLabels{
		v1alpha.ManagedByLabel: v1alpha.ManagedByHub, v1alpha.ProjectLabel: projectLabel(project),
	}); err != nil {
		return // the process ends
	}
	for _, copied := range copies.Items {
		g.changed(grant{project, copied.Labels[v1alpha.LocationLabel]})
	}
}

// Reconcile brings one copy up to what the project has.
func (g *Grants) Reconcile(ctx context.Context, grant grant) (reconcile.Result, error) {
	g.mu.Lock()
	followed := g.sources[grant.Project]
	read := followed != nil && followed.read
	g.mu.Unlock()
	if !read {
		if followed != nil || g.known(ctx, grant.Project) {
			return reconcile.Result{}, nil // no answer is no answer: what was copied stays
		}
		return reconcile.Result{}, g.prune(ctx, grant)
	}
	var bindings v1alpha.LocationBindingList
	if err := followed.plane.Reader().List(ctx, &bindings); err != nil {
		return reconcile.Result{}, fmt.Errorf("list the LocationBindings of project %q: %w", grant.Project, err)
	}
	wished := choose(bindings.Items, grant.Location)
	if wished != nil {
		return reconcile.Result{}, g.write(ctx, grant, wished)
	}
	g.mu.Lock()
	deleted := followed.deleted[grant.Location]
	g.mu.Unlock()
	if len(bindings.Items) == 0 && !deleted {
		return reconcile.Result{}, g.keep(ctx, grant)
	}
	return reconcile.Result{}, g.prune(ctx, grant)
}

// choose picks the LocationBinding that answers for a location: a usable one before any
// other, then by name. One that is being deleted answers for nothing, nor does a copy of
// ours, where hub and project are one API server.
func choose(bindings []v1alpha.LocationBinding, location string) *v1alpha.LocationBinding {
	var candidates []*v1alpha.LocationBinding
	for i := range bindings {
		binding := &bindings[i]
		if string(binding.Spec.LocationRef.Name) == location && binding.DeletionTimestamp.IsZero() && !managed(binding) {
			candidates = append(candidates, binding)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	return slices.MinFunc(candidates, func(a, b *v1alpha.LocationBinding) int {
		if a.Usable() != b.Usable() {
			if a.Usable() {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
}

func (g *Grants) write(ctx context.Context, grant grant, wished *v1alpha.LocationBinding) error {
	name := CopyName(grant.Project, grant.Location)
	labels := map[string]string{
		v1alpha.ManagedByLabel: v1alpha.ManagedByHub,
		v1alpha.ProjectLabel:   projectLabel(grant.Project),
		v1alpha.LocationLabel:  grant.Location,
	}
	var copied v1alpha.LocationBinding
	err := g.hub.Get(ctx, client.ObjectKey{Name: name}, &copied)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get the copy %q: %w", name, err)
	}
	exists := err == nil
	if exists && !managed(&copied) {
		return g.leave(ctx, grant, &copied)
	}
	if !exists || !conforms(&copied, labels, wished) {
		spec := acv1alpha.LocationBindingSpec().
			WithLocationRef(acv1alpha.LocationReference().WithName(wished.Spec.LocationRef.Name)).
			WithTopology(wished.Spec.Topology)
		if wished.Spec.LocationClassName != "" {
			spec.WithLocationClassName(wished.Spec.LocationClassName)
		}
		if wished.Spec.DisplayName != "" {
			spec.WithDisplayName(wished.Spec.DisplayName)
		}
		configuration := acv1alpha.LocationBinding(name).WithLabels(labels).WithSpec(spec)
		if err := g.hub.Apply(ctx, configuration, client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
			return fmt.Errorf("write the copy %q: %w", name, err)
		}
		log.FromContext(ctx).Info("LocationBinding copied", "project", grant.Project, "location", grant.Location)
	}
	return g.writeConditions(ctx, name, copied.Status.Conditions, wished.Status.Conditions)
}

func (g *Grants) writeConditions(ctx context.Context, name string, have, want []metav1.Condition) error {
	if apiequality.Semantic.DeepEqual(have, want) {
		return nil
	}
	status := acv1alpha.LocationBindingStatus()
	for _, condition := range want {
		status.WithConditions(acmetav1.Condition().
			WithType(condition.Type).WithStatus(condition.Status).WithReason(condition.Reason).
			WithMessage(condition.Message).WithObservedGeneration(condition.ObservedGeneration).
			WithLastTransitionTime(condition.LastTransitionTime))
	}
	configuration := acv1alpha.LocationBinding(name).WithStatus(status)
	if err := g.hub.Status().Apply(ctx, configuration, client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("write the status of the copy %q: %w", name, err)
	}
	return nil
}

func conforms(copied *v1alpha.LocationBinding, labels map[string]string, wished *v1alpha.LocationBinding) bool {
	for key, value := range labels {
		if copied.Labels[key] != value {
			return false
		}
	}
	return apiequality.Semantic.DeepEqual(copied.Spec, wished.Spec)
}

// prune deletes a copy of ours.
func (g *Grants) prune(ctx context.Context, grant grant) error {
	name := CopyName(grant.Project, grant.Location)
	var copied v1alpha.LocationBinding
	err := g.hub.Get(ctx, client.ObjectKey{Name: name}, &copied)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get the copy %q: %w", name, err)
	}
	if !managed(&copied) || !copied.DeletionTimestamp.IsZero() {
		return nil
	}
	err = g.hub.Delete(ctx, &copied, client.Preconditions{UID: &copied.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the copy %q: %w", name, err)
	}
	log.FromContext(ctx).Info("copy of a LocationBinding deleted", "project", grant.Project, "location", grant.Location)
	return nil
}

// keep says that a project lists no LocationBinding at all although none was seen to be
// deleted: that is no reason to take away what it had.
func (g *Grants) keep(ctx context.Context, grant grant) error {
	var copied v1alpha.LocationBinding
	err := g.hub.Get(ctx, client.ObjectKey{Name: CopyName(grant.Project, grant.Location)}, &copied)
	if err != nil || !managed(&copied) {
		return client.IgnoreNotFound(err)
	}
	g.recorder.Eventf(&copied, nil, corev1.EventTypeWarning, "SourceEmpty", "Keep",
		"project %q lists no LocationBinding at all, and none was seen to be deleted: this copy stays", grant.Project)
	return nil
}

func (g *Grants) leave(ctx context.Context, grant grant, foreign *v1alpha.LocationBinding) error {
	g.recorder.Eventf(foreign, nil, corev1.EventTypeWarning, "NameTaken", "Leave",
		"the grant of location %q to project %q cannot be copied here: this object has its name and is not ours (no label %s=%s)",
		grant.Location, grant.Project, v1alpha.ManagedByLabel, v1alpha.ManagedByHub)
	log.FromContext(ctx).Error(errors.New("name taken"), "LocationBinding not copied", "project", grant.Project, "location", grant.Location)
	return nil
}

// CopyName is the name of the hub's copy of a project's LocationBinding for a location. A
// "/" in the project's name is written "--".
func CopyName(project, location string) string {
	return strings.ReplaceAll(project, "/", "--") + "." + location
}

func projectLabel(project string) string { return strings.ReplaceAll(project, "/", "_") }

func managed(binding *v1alpha.LocationBinding) bool {
	return binding.Labels[v1alpha.ManagedByLabel] == v1alpha.ManagedByHub
}

// projectOf is the project that a copy of ours was made from; false for what is none.
func projectOf(copied *v1alpha.LocationBinding) (string, bool) {
	project := copied.Labels[v1alpha.ProjectLabel]
	return strings.ReplaceAll(project, "_", "/"), managed(copied) && project != ""
}
