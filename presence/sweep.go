package presence

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/util/names"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"go.datum.net/network-presence/api/v1alpha"
)

// sweepAfter is how long Karmada and the garbage collector have to remove by themselves
// what they made for a context that is gone.
const sweepAfter = 5 * time.Second

var swept = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "network_presence_swept_total",
	Help: "Objects of Karmada that were removed because the context they were made for is gone.",
}, []string{"kind"})

func init() {
	metrics.Registry.MustRegister(swept)
	for _, kind := range []string{"ResourceBinding", "Work"} {
		swept.WithLabelValues(kind) // shown from the start, as 0
	}
}

// sweeper removes what Karmada leaves behind of a context that is gone, keyed by the
// context's name: a ResourceBinding that an orphaning deletion cut off, and a Work that was
// made while its ResourceBinding was being deleted. Karmada looks for Works in a cache, so
// that it misses those; a Work that stays keeps the copy in its cell for ever.
type sweeper struct {
	hub client.Client
	// live reads the hub past its cache: it has the last word before anything is deleted.
	live client.Reader

	mu sync.Mutex
	// since is when something was found left over, by the context's name. A process that
	// starts anew waits anew.
	since map[types.NamespacedName]time.Time
}

// byPlacement is the field by which the cache finds Works: the ResourceBinding that each was
// made for, as namespace/name.
const byPlacement = "presence.placement"

var workGroupVersion = schema.GroupVersion(workv1alpha1.GroupVersion)

// WorkMetadata is a Work as the hub's cache has it: manifests may be large, and are read
// only of Works that are to go.
func WorkMetadata() *metav1.PartialObjectMetadata {
	work := &metav1.PartialObjectMetadata{}
	work.SetGroupVersionKind(workGroupVersion.WithKind("Work"))
	return work
}

// TrimWork is a transform for the hub's cache of Works. It keeps whole what may be of a
// context, and no more than the name of all others.
func TrimWork(object any) (any, error) {
	work, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := WorkMetadata()
	kept.Namespace, kept.Name, kept.UID, kept.ResourceVersion = work.Namespace, work.Name, work.UID, work.ResourceVersion
	if placement := placementOf(work); placement.Name != "" {
		kept.DeletionTimestamp = work.DeletionTimestamp
		kept.Annotations = map[string]string{
			workv1alpha2.ResourceBindingNamespaceAnnotationKey: placement.Namespace,
			workv1alpha2.ResourceBindingNameAnnotationKey:      placement.Name,
		}
	}
	return kept, nil
}

func setupSweeper(ctx context.Context, mgr manager.Manager) error {
	s := &sweeper{hub: mgr.GetClient(), live: mgr.GetAPIReader(), since: map[types.NamespacedName]time.Time{}}
	err := mgr.GetFieldIndexer().IndexField(ctx, WorkMetadata(), byPlacement, func(work client.Object) []string {
		if placement := placementOf(work); placement.Name != "" {
			return []string{placement.String()}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index Works by %s: %w", byPlacement, err)
	}
	return builder.ControllerManagedBy(mgr).
		Named("sweep").
		Watches(&v1alpha.NetworkContext{}, &handler.EnqueueRequestForObject{}).
		Watches(&workv1alpha2.ResourceBinding{}, handler.EnqueueRequestsFromMapFunc(contextOfPlacement)).
		WatchesMetadata(WorkMetadata(), handler.EnqueueRequestsFromMapFunc(contextOfWork)).
		Complete(s)
}

func contextOfPlacement(_ context.Context, object client.Object) []reconcile.Request {
	placement := object.(*workv1alpha2.ResourceBinding)
	if !placesContext(placement) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: placement.Namespace, Name: placement.Spec.Resource.Name}}}
}

// placementSuffix ends the name of a ResourceBinding that may be one of ours: a context of
// another group has it too.
var placementSuffix = names.GenerateBindingName("NetworkContext", "")

// placementOf is the ResourceBinding that a Work was made for; empty where that cannot be
// one of a context.
func placementOf(work client.Object) types.NamespacedName {
	annotations := work.GetAnnotations()
	name := annotations[workv1alpha2.ResourceBindingNameAnnotationKey]
	if !strings.HasSuffix(name, placementSuffix) {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: annotations[workv1alpha2.ResourceBindingNamespaceAnnotationKey], Name: name}
}

func contextOfWork(_ context.Context, work client.Object) []reconcile.Request {
	placement := placementOf(work)
	if placement.Name == "" {
		return nil
	}
	placement.Name = strings.TrimSuffix(placement.Name, placementSuffix)
	return []reconcile.Request{{NamespacedName: placement}}
}

// Reconcile removes what is left of the context of a name, once it is gone for long enough.
func (s *sweeper) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	name := request.NamespacedName
	left, err := s.leftovers(ctx, name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if wait := s.wait(name, len(left) > 0, time.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil // no event tells that nobody else removes it
	}
	for _, object := range left {
		if err := s.remove(ctx, object); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, nil
}

// wait is how long what is left has yet to be left alone; 0 where nothing is left.
func (s *sweeper) wait(name types.NamespacedName, left bool, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !left {
		delete(s.since, name)
		return 0
	}
	if _, known := s.since[name]; !known {
		s.since[name] = now
	}
	return sweepAfter - now.Sub(s.since[name])
}

// leftovers are the ResourceBinding of a context that is gone, or else the Works of such a
// ResourceBinding that is gone as well, but for those that are being deleted already.
func (s *sweeper) leftovers(ctx context.Context, name types.NamespacedName) ([]client.Object, error) {
	gone, err := s.gone(ctx, s.hub, name, &v1alpha.NetworkContext{})
	if err != nil || !gone {
		return nil, err
	}
	placement := &workv1alpha2.ResourceBinding{}
	at := types.NamespacedName{Namespace: name.Namespace, Name: names.GenerateBindingName("NetworkContext", name.Name)}
	gone, err = s.gone(ctx, s.hub, at, placement)
	if err != nil {
		return nil, err
	}
	if !gone {
		return leftOf(placement), nil
	}
	works := &metav1.PartialObjectMetadataList{}
	works.SetGroupVersionKind(workGroupVersion.WithKind("WorkList"))
	if err := s.hub.List(ctx, works, client.MatchingFields{byPlacement: at.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Works of ResourceBinding %s: %w", at, err)
	}
	var left []client.Object
	for i := range works.Items {
		if works.Items[i].DeletionTimestamp.IsZero() {
			left = append(left, &works.Items[i])
		}
	}
	return left, nil
}

func leftOf(placement *workv1alpha2.ResourceBinding) []client.Object {
	if !placesContext(placement) || placement.Spec.Resource.UID == "" || !placement.DeletionTimestamp.IsZero() {
		return nil
	}
	return []client.Object{placement}
}

func (s *sweeper) gone(ctx context.Context, reader client.Reader, name types.NamespacedName, object client.Object) (bool, error) {
	err := reader.Get(ctx, name, object)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get %T %s: %w", object, name, err)
	}
	return err != nil, nil
}

// remove deletes a ResourceBinding or a Work, where the hub itself says that it is left over
// and was made for a context of ours.
func (s *sweeper) remove(ctx context.Context, object client.Object) error {
	kind, remove := "ResourceBinding", s.placementLeft
	if _, ok := object.(*workv1alpha2.ResourceBinding); !ok {
		kind, remove = "Work", s.workLeft
	}
	left, err := remove(ctx, object)
	if err != nil || !left {
		return err
	}
	uid, version := object.GetUID(), object.GetResourceVersion()
	err = s.hub.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete the %s %s/%s that is left over: %w", kind, object.GetNamespace(), object.GetName(), err)
	}
	swept.WithLabelValues(kind).Inc()
	log.FromContext(ctx).Info("removed what Karmada left behind", "kind", kind, "object", object.GetNamespace()+"/"+object.GetName())
	return nil
}

func (s *sweeper) placementLeft(ctx context.Context, object client.Object) (bool, error) {
	placement := object.(*workv1alpha2.ResourceBinding)
	of := types.NamespacedName{Namespace: placement.Namespace, Name: placement.Spec.Resource.Name}
	return s.gone(ctx, s.live, of, &v1alpha.NetworkContext{})
}

// workLeft reads what a Work delivers: its name alone does not tell whose it is.
func (s *sweeper) workLeft(ctx context.Context, object client.Object) (bool, error) {
	var work workv1alpha1.Work
	if gone, err := s.gone(ctx, s.live, client.ObjectKeyFromObject(object), &work); gone || err != nil {
		return false, err
	}
	for _, manifest := range work.Spec.Workload.Manifests {
		var delivered unstructured.Unstructured
		if err := delivered.UnmarshalJSON(manifest.Raw); err != nil {
			return false, nil //nolint:nilerr // it delivers something that is none of ours
		}
		ours := delivered.GetObjectKind().GroupVersionKind() == v1alpha.SchemeGroupVersion.WithKind("NetworkContext")
		if !ours || delivered.GetAnnotations()[workv1alpha2.ResourceTemplateUIDAnnotation] == "" {
			return false, nil
		}
		for name, object := range map[types.NamespacedName]client.Object{
			client.ObjectKeyFromObject(&delivered): &v1alpha.NetworkContext{},
			placementOf(&work):                     &workv1alpha2.ResourceBinding{},
		} {
			if gone, err := s.gone(ctx, s.live, name, object); !gone || err != nil {
				return false, err
			}
		}
	}
	return len(work.Spec.Workload.Manifests) > 0, nil
}
