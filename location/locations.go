package location

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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

// locations copies the platform's Ready Locations to the hub, without their status. What a
// Grants deletes its copies for, and keeps them for, holds here as well; a Location that is
// seen not to be Ready is as one that was deleted.
type locations struct {
	hub      client.Client
	recorder events.EventRecorder
	listed   *listing[*v1alpha.Location]
}

// AddLocations adds the copying of Locations to the hub's manager.
func AddLocations(mgr manager.Manager, platform Plane) error {
	l := &locations{
		hub:      mgr.GetClient(),
		recorder: mgr.GetEventRecorder(FieldManager),
		listed:   newListing(platform, func(of *v1alpha.Location) string { return of.Name }),
	}
	err := builder.TypedControllerManagedBy[string](mgr).
		Named("locations").
		WithOptions(controller.TypedOptions[string]{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, 30*time.Second),
		}).
		WatchesRawSource(source.TypedKind(mgr.GetCache(), &v1alpha.Location{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, of *v1alpha.Location) []string { return []string{of.Name} }))).
		WatchesRawSource(source.TypedFunc[string](l.start)).
		Complete(reconcile.TypedFunc[string](l.Reconcile))
	if err != nil {
		return fmt.Errorf("set up the copies of Locations: %w", err)
	}
	return nil
}

func (l *locations) start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string]) error {
	l.listed.follow(&v1alpha.Location{}, queue.Add, func() {
		var copies v1alpha.LocationList
		if err := l.hub.List(ctx, &copies, client.MatchingLabels{v1alpha.ManagedByLabel: v1alpha.ManagedByHub}); err != nil {
			return // the process ends
		}
		for _, copied := range copies.Items {
			queue.Add(copied.Name)
		}
	})
	return nil
}

// Reconcile brings one copy up to what the platform has.
func (l *locations) Reconcile(ctx context.Context, name string) (reconcile.Result, error) {
	found, absence := l.listed.look(name)
	if absence == unread {
		return reconcile.Result{}, nil // no answer is no answer: what was copied stays
	}
	copied, err := l.named(ctx, name)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case len(found) > 0 && ready(found[0]):
		return reconcile.Result{}, l.write(ctx, copied, found[0])
	case copied == nil || !managed(copied):
		return reconcile.Result{}, nil
	case len(found) > 0 || absence == deleted:
		return reconcile.Result{}, l.prune(ctx, copied)
	}
	return reconcile.Result{}, l.missing(ctx, copied)
}

func ready(of *v1alpha.Location) bool {
	return of.DeletionTimestamp.IsZero() && meta.IsStatusConditionTrue(of.Status.Conditions, v1alpha.LocationReady)
}

// named gets the hub's Location of a name; nil where there is none.
func (l *locations) named(ctx context.Context, name string) (*v1alpha.Location, error) {
	var found v1alpha.Location
	err := l.hub.Get(ctx, client.ObjectKey{Name: name}, &found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the copy of Location %q: %w", name, err)
	}
	return &found, nil
}

func (l *locations) missing(ctx context.Context, copied *v1alpha.Location) error {
	answer, err := l.listed.ask(ctx, &v1alpha.LocationList{}, copied.Name)
	if err != nil {
		return fmt.Errorf("list the Locations of the platform: %w", err)
	}
	switch answer {
	case answerGone:
		return l.prune(ctx, copied)
	case answerEmpty:
		l.recorder.Eventf(copied, nil, corev1.EventTypeWarning, "SourceEmpty", "Keep",
			"the platform has no Location at all, and none was seen to be deleted: this copy stays; if the location is gone, delete the copy")
	}
	return nil
}

func (l *locations) write(ctx context.Context, copied, of *v1alpha.Location) error {
	switch {
	case copied != nil && copied.UID == of.UID:
		return nil // hub and platform are one API server
	case copied != nil && !managed(copied):
		l.leave(ctx, copied)
		return nil
	}
	wished := wishedLocation(of)
	if copied != nil && covers(copied, wished) && sameLocation(&copied.Spec, &wished.Spec) {
		return nil
	}
	if copied != nil && !sameLocation(&copied.Spec, &wished.Spec) {
		// What somebody else wrote is theirs, and applying takes it away from nobody.
		mended := copied.DeepCopy()
		mended.Spec = wished.Spec
		if err := l.hub.Patch(ctx, mended, client.MergeFrom(copied), client.FieldOwner(FieldManager)); err != nil {
			return fmt.Errorf("mend the copy of Location %q: %w", of.Name, err)
		}
	}
	spec := acv1alpha.LocationSpec().WithTopology(wished.Spec.Topology)
	if wished.Spec.LocationClassName != "" {
		spec.WithLocationClassName(wished.Spec.LocationClassName)
	}
	if wished.Spec.Coordinates != nil {
		spec.WithCoordinates(*wished.Spec.Coordinates)
	}
	if wished.Spec.Provider != nil {
		spec.WithProvider(*wished.Spec.Provider)
	}
	err := l.hub.Apply(ctx, acv1alpha.Location(wished.Name).WithLabels(wished.Labels).WithSpec(spec),
		client.FieldOwner(FieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write the copy of Location %q: %w", of.Name, err)
	}
	log.FromContext(ctx).Info("Location copied", "location", of.Name)
	return nil
}

// wishedLocation is a Location's copy as it should be.
func wishedLocation(of *v1alpha.Location) *v1alpha.Location {
	return &v1alpha.Location{
		ObjectMeta: metav1.ObjectMeta{Name: of.Name, Labels: map[string]string{
			v1alpha.ManagedByLabel: v1alpha.ManagedByHub,
			v1alpha.LocationLabel:  of.Name,
		}},
		Spec: *of.Spec.DeepCopy(), // the original is a cache's
	}
}

func sameLocation(a, b *v1alpha.LocationSpec) bool {
	return a.LocationClassName == b.LocationClassName && apiequality.Semantic.DeepEqual(a.Topology, b.Topology) &&
		sameJSON(a.Coordinates, b.Coordinates) && sameJSON(a.Provider, b.Provider)
}

// sameJSON compares what two texts say, not how it is written.
func sameJSON(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	var one, other any
	if json.Unmarshal(a.Raw, &one) != nil || json.Unmarshal(b.Raw, &other) != nil {
		return false
	}
	return apiequality.Semantic.DeepEqual(one, other)
}

func (l *locations) prune(ctx context.Context, copied *v1alpha.Location) error {
	if !copied.DeletionTimestamp.IsZero() {
		return nil
	}
	err := l.hub.Delete(ctx, copied, client.Preconditions{UID: &copied.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the copy of Location %q: %w", copied.Name, err)
	}
	log.FromContext(ctx).Info("copy of a Location deleted", "location", copied.Name)
	return nil
}

// leave says that a Location cannot be copied, since something else has its name.
func (l *locations) leave(ctx context.Context, foreign *v1alpha.Location) {
	l.recorder.Eventf(foreign, nil, corev1.EventTypeWarning, "NameTaken", "Leave",
		"the platform's Location of this name cannot be copied here: this object is not ours (no label %s=%s): delete it, or let the platform rename its own",
		v1alpha.ManagedByLabel, v1alpha.ManagedByHub)
	log.FromContext(ctx).Error(errors.New("name taken"), "Location not copied", "location", foreign.Name)
}
