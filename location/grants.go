package location

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
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
)

// FieldManager owns what this package writes on the hub.
const FieldManager = "network-presence-location"

// Connections say by what projects are connected.
type Connections interface {
	// Connection names what connects a project, or would: it differs where this hub is told
	// to look elsewhere than before.
	Connection(project string) string
	// Gone tells whether what Connection names is not there. An error means that nobody can
	// say.
	Gone(ctx context.Context, project string) (bool, error)
}

// grant names one copy: a project's LocationBindings for a location.
type grant struct{ Project, Location string }

// Grants copies the LocationBindings of connected projects to the hub, where the Index
// finds them.
//
// A copy is deleted when its LocationBinding was seen to go; when it is missing and the
// project, asked for all that it has, has others; and when the project is not connected any
// longer, by what had connected it. A project that does not answer, or that has none at all
// without having been seen to delete them, keeps its copies.
type Grants struct {
	hub         client.Client
	recorder    events.EventRecorder
	connections Connections

	mu       sync.Mutex
	sources  map[string]*listing[*v1alpha.LocationBinding] // by project
	claims   map[string]map[grant]bool                     // grants whose copy has, or would have, a name
	clashes  map[grant]bool                                // whose name is taken
	enqueue  func(grant)
	deferred []grant // changes from before the controller started
}

// grantWorkers is how many copies are looked at at once: few, but not one alone, which
// might wait for a project that does not answer.
const grantWorkers = 4

// NewGrants adds the copying of LocationBindings to the hub's manager.
func NewGrants(mgr manager.Manager, connections Connections) (*Grants, error) {
	g := &Grants{
		hub:         mgr.GetClient(),
		recorder:    mgr.GetEventRecorder(FieldManager),
		connections: connections,
		sources:     map[string]*listing[*v1alpha.LocationBinding]{},
		claims:      map[string]map[grant]bool{},
		clashes:     map[grant]bool{},
	}
	err := builder.TypedControllerManagedBy[grant](mgr).
		Named("grants").
		WithOptions(controller.TypedOptions[grant]{
			MaxConcurrentReconciles: grantWorkers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[grant](5*time.Millisecond, 30*time.Second),
		}).
		WatchesRawSource(source.TypedKind(mgr.GetCache(), &v1alpha.LocationBinding{}, handler.TypedEnqueueRequestsFromMapFunc(g.about))).
		WatchesRawSource(source.TypedFunc[grant](g.start)).
		Complete(g)
	if err != nil {
		return nil, fmt.Errorf("set up the copies of LocationBindings: %w", err)
	}
	return g, nil
}

// about are the grants that an object on the hub is a copy of, or has the name of.
func (g *Grants) about(_ context.Context, copied *v1alpha.LocationBinding) []grant {
	g.mu.Lock()
	grants := slices.Collect(maps.Keys(g.claims[copied.Name]))
	g.mu.Unlock()
	if of, ours := grantOf(copied); ours && !slices.Contains(grants, of) {
		grants = append(grants, of)
	}
	return grants
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

func (g *Grants) changed(changed grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.enqueue == nil {
		g.deferred = append(g.deferred, changed)
		return
	}
	g.enqueue(changed)
}

// Follow takes up a project that was connected, or connected anew.
func (g *Grants) Follow(project string, plane Plane) {
	g.mu.Lock()
	if known := g.sources[project]; known != nil && known.plane == plane {
		g.mu.Unlock()
		return
	}
	followed := newListing(plane, func(b *v1alpha.LocationBinding) string { return string(b.Spec.LocationRef.Name) })
	g.sources[project] = followed
	g.mu.Unlock()
	g.count()
	followed.follow(&v1alpha.LocationBinding{},
		func(location string) { g.changed(grant{project, location}) },
		func() {
			g.count()
			g.all(plane.Context(), project)
		})
}

// Forget lets go a project that was disconnected. It may be called again once what
// connected the project is gone.
func (g *Grants) Forget(ctx context.Context, project string) {
	g.mu.Lock()
	delete(g.sources, project)
	g.mu.Unlock()
	g.count()
	g.all(ctx, project)
}

// count sets the metric of the sources.
func (g *Grants) count() {
	g.mu.Lock()
	defer g.mu.Unlock()
	states := map[string]int{"unread": 0, "read": 0, "empty": 0}
	for _, followed := range g.sources {
		states[followed.state()]++
	}
	for state, count := range states {
		grantSources.WithLabelValues(state).Set(float64(count))
	}
}

// all looks at each of a project's copies.
func (g *Grants) all(ctx context.Context, project string) {
	var copies v1alpha.LocationBindingList
	if err := g.hub.List(ctx, &copies, client.MatchingLabels{
		v1alpha.ManagedByLabel: v1alpha.ManagedByHub, v1alpha.ProjectLabel: projectLabel(project),
	}); err != nil {
		return // the process starts, and looks at each copy then; or it ends
	}
	for _, copied := range copies.Items {
		g.changed(grant{project, copied.Labels[v1alpha.LocationLabel]})
	}
}

// Reconcile brings one copy up to what the project has.
func (g *Grants) Reconcile(ctx context.Context, grant grant) (reconcile.Result, error) {
	g.mu.Lock()
	followed := g.sources[grant.Project]
	g.mu.Unlock()
	if followed == nil {
		return reconcile.Result{}, g.unfollowed(ctx, grant)
	}
	bindings, absence := followed.look(grant.Location)
	if wished := choose(bindings); wished != nil {
		return reconcile.Result{}, g.write(ctx, grant, wished)
	}
	switch {
	case absence == unread:
		return reconcile.Result{}, nil // no answer is no answer: what was copied stays
	case absence == deleted || len(bindings) > 0: // the latter are being deleted
		return reconcile.Result{}, g.prune(ctx, grant)
	}
	return reconcile.Result{}, g.missing(ctx, grant, followed)
}

// unfollowed looks at the copy of a project that is not connected now.
func (g *Grants) unfollowed(ctx context.Context, grant grant) error {
	copied, err := g.copyOf(ctx, grant)
	if err != nil || copied == nil {
		return err
	}
	had, has := copied.Annotations[v1alpha.ConnectionAnnotation], g.connections.Connection(grant.Project)
	if had != has {
		g.keep(copied, "ConnectedElsewhere", "project %q is not connected, and was by %q where this hub would look for %q: this copy stays; "+
			"if the project is gone, delete the copy", grant.Project, had, has)
		return nil
	}
	gone, err := g.connections.Gone(ctx, grant.Project)
	if err != nil {
		return fmt.Errorf("look whether project %q is disconnected: %w", grant.Project, err)
	}
	if !gone {
		return nil // its kubeconfig may be broken, or is read in a moment
	}
	return g.prune(ctx, grant)
}

// missing looks at a copy whose LocationBinding is in no list, but was not seen to go.
func (g *Grants) missing(ctx context.Context, grant grant, followed *listing[*v1alpha.LocationBinding]) error {
	copied, err := g.copyOf(ctx, grant)
	if err != nil || copied == nil {
		return err
	}
	answer, err := followed.ask(ctx, &v1alpha.LocationBindingList{}, grant.Location)
	g.count()
	if err != nil {
		return fmt.Errorf("list the LocationBindings of project %q: %w", grant.Project, err)
	}
	switch answer {
	case answerGone:
		return g.prune(ctx, grant)
	case answerEmpty:
		g.keep(copied, "SourceEmpty", "project %q has no LocationBinding at all, and none was seen to be deleted: this copy stays; "+
			"if the project may use nothing any longer, delete the copy", grant.Project)
	}
	return nil
}

// choose picks the LocationBinding that answers for a location: a usable one before any
// other, then by name. One that is being deleted answers for nothing.
func choose(bindings []*v1alpha.LocationBinding) *v1alpha.LocationBinding {
	candidates := slices.DeleteFunc(slices.Clone(bindings), func(b *v1alpha.LocationBinding) bool { return !b.DeletionTimestamp.IsZero() })
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

// keep says why a copy stays that nothing answers for.
func (g *Grants) keep(copied *v1alpha.LocationBinding, reason, note string, args ...any) {
	g.recorder.Eventf(copied, nil, corev1.EventTypeWarning, reason, "Keep", note, args...)
}

// claim notes that a grant's copy has, or would have, its name: whatever happens to the
// object of that name is looked at.
func (g *Grants) claim(name string, of grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.claims[name] == nil {
		g.claims[name] = map[grant]bool{}
	}
	g.claims[name][of] = true
}

func (g *Grants) disclaim(name string, of grant) {
	g.clash(of, false)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.claims[name], of)
	if len(g.claims[name]) == 0 {
		delete(g.claims, name)
	}
}

// clash notes whether the name of a grant's copy is taken.
func (g *Grants) clash(of grant, taken bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.clashes, of)
	if taken {
		g.clashes[of] = true
	}
	grantClashes.Set(float64(len(g.clashes)))
}

// leave says that a grant cannot be copied, since something else has the name.
func (g *Grants) leave(ctx context.Context, grant grant, holder *v1alpha.LocationBinding) {
	g.clash(grant, true)
	why := fmt.Sprintf("is not ours (no label %s=%s): delete or rename it", v1alpha.ManagedByLabel, v1alpha.ManagedByHub)
	if other, ours := grantOf(holder); ours {
		why = fmt.Sprintf("is the copy of the grant of location %q to project %q: rename one of the projects or locations", other.Location, other.Project)
	}
	g.recorder.Eventf(holder, nil, corev1.EventTypeWarning, "NameTaken", "Leave",
		"the grant of location %q to project %q cannot be copied here: this object has its name and %s", grant.Location, grant.Project, why)
	log.FromContext(ctx).Error(errors.New("name taken"), "LocationBinding not copied",
		"project", grant.Project, "location", grant.Location, "name", holder.Name, "holder", why)
}
