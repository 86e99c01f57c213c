package locationauthority

import (
	"context"
	"fmt"
	"sync"
	"time"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/util/names"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/location"
)

// waiting remembers what was refused for something that was not so, or not known, at that
// time. The scheduler retries no refusal, and what the plugin answers by may change a
// moment after it was asked; so each is scheduled again once that changes. What was
// refused before the process started is scheduled again by its start.
type waiting struct {
	hub   client.Client
	queue workqueue.TypedRateLimitingInterface[objectKey]

	mu      sync.Mutex
	objects map[string]map[objectKey]bool // by namespace
}

type objectKey struct{ kind, namespace, name string }

func newWaiting(hub client.Client) *waiting {
	return &waiting{
		hub: hub,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[objectKey](50*time.Millisecond, 30*time.Second)),
		objects: map[string]map[objectKey]bool{},
	}
}

func (w *waiting) add(object *workv1alpha2.ObjectReference) {
	key := objectKey{object.Kind, object.Namespace, object.Name}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.objects[key.namespace] == nil {
		w.objects[key.namespace] = map[objectKey]bool{}
	}
	w.objects[key.namespace][key] = true
}

// release schedules one object again, if it waits.
func (w *waiting) release(key objectKey) {
	w.mu.Lock()
	waits := w.objects[key.namespace][key]
	delete(w.objects[key.namespace], key)
	w.mu.Unlock()
	if waits {
		w.queue.Add(key)
	}
}

// releaseNamespace schedules everything of a namespace that waits again.
func (w *waiting) releaseNamespace(namespace string) {
	w.mu.Lock()
	released := w.objects[namespace]
	delete(w.objects, namespace)
	w.mu.Unlock()
	for key := range released {
		w.queue.Add(key)
	}
}

// changed schedules what an answer of the location authority was about again. A cluster's
// label is a trigger of the scheduler's own.
func (w *waiting) changed(authority *location.Index, change location.Change) {
	switch change.Kind {
	case location.NamespaceChanged:
		w.releaseNamespace(change.Namespace)
	case location.GrantChanged:
		for _, namespace := range authority.Namespaces(change.Project) {
			w.releaseNamespace(namespace)
		}
	case location.CellChanged:
	}
}

// run triggers until ctx ends.
func (w *waiting) run(ctx context.Context) {
	context.AfterFunc(ctx, w.queue.ShutDown)
	for {
		key, down := w.queue.Get()
		if down {
			return
		}
		if err := w.trigger(ctx, key); err != nil {
			klog.FromContext(ctx).Error(err, "schedule again")
			w.queue.AddRateLimited(key)
		} else {
			w.queue.Forget(key)
		}
		w.queue.Done(key)
	}
}

// trigger has the scheduler look at an object's ResourceBinding again. For what is no
// workload a new generation is enough, so the moment need only differ from the one before.
func (w *waiting) trigger(ctx context.Context, key objectKey) error {
	binding := &workv1alpha2.ResourceBinding{}
	name := client.ObjectKey{Namespace: key.namespace, Name: names.GenerateBindingName(key.kind, key.name)}
	if err := w.hub.Get(ctx, name, binding); err != nil {
		return client.IgnoreNotFound(err)
	}
	triggered := location.Retriggered(binding)
	if err := w.hub.Patch(ctx, triggered, client.MergeFrom(binding)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("trigger ResourceBinding %s: %w", name, err)
	}
	return nil
}
