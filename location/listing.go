package location

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// Plane is a control plane that objects are copied from to the hub.
type Plane interface {
	// Context ends when the plane is disconnected.
	Context() context.Context
	// Watch calls the handler for each object of the kind, and onSynced once it has seen
	// all that was there. It returns at once.
	Watch(object client.Object, handler toolscache.ResourceEventHandler, onSynced func())
	// Live reads the plane itself, past any cache.
	Live() client.Reader
}

// absence says how an object is known not to be there.
type absence int

const (
	// unread means that nothing is known: the plane has not listed its objects yet.
	unread absence = iota
	// missing means that it is in no list, but was not seen to go. In the middle of a list
	// that is taken in anew, or in one of a plane that lost what it had, everything is.
	missing
	// deleted means that it was seen to go, or to be for something else.
	deleted
)

// listing is what was seen of one kind in a plane. Objects are found by a key, which several
// may share: that of LocationBindings is the location.
type listing[T client.Object] struct {
	plane Plane
	keyOf func(T) string

	mu      sync.Mutex
	read    bool
	objects map[string]map[string]T // by key, then by name
	deleted map[string]bool
	// empty tells that the plane was asked, and said that it has no object at all.
	empty bool
}

func newListing[T client.Object](plane Plane, keyOf func(T) string) *listing[T] {
	return &listing[T]{plane: plane, keyOf: keyOf, objects: map[string]map[string]T{}, deleted: map[string]bool{}}
}

// follow begins to watch the kind of object. It calls changed for each key that something
// changed of, and all once everything was listed, or after the plane had been empty.
func (l *listing[T]) follow(object T, changed func(key string), all func()) {
	put := func(object any) {
		key, filled := l.put(object.(T))
		changed(key)
		if filled {
			all()
		}
	}
	l.plane.Watch(object, toolscache.ResourceEventHandlerFuncs{
		AddFunc: put,
		UpdateFunc: func(before, after any) {
			if key := l.keyOf(before.(T)); key != l.keyOf(after.(T)) || isCopy(after.(T)) {
				l.drop(before.(T), true)
				changed(key)
			}
			put(after)
		},
		DeleteFunc: func(object any) {
			gone, seen := object.(T)
			if !seen {
				// Missing from a list, as after a lost connection.
				unknown, _ := object.(toolscache.DeletedFinalStateUnknown)
				if gone, seen = unknown.Obj.(T); !seen {
					return
				}
				seen = false
			}
			l.drop(gone, seen)
			changed(l.keyOf(gone))
		},
	}, func() {
		l.mu.Lock()
		l.read = true
		keys := l.keys()
		l.mu.Unlock()
		for _, key := range keys {
			changed(key)
		}
		all()
	})
}

func (l *listing[T]) keys() []string {
	var keys []string
	for key := range l.objects {
		keys = append(keys, key)
	}
	return keys
}

// put takes in an object, and tells whether the plane had been empty until then. What we
// copied ourselves is no source, where hub and plane are one API server.
func (l *listing[T]) put(object T) (key string, filled bool) {
	key = l.keyOf(object)
	if isCopy(object) {
		return key, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.objects[key] == nil {
		l.objects[key] = map[string]T{}
	}
	l.objects[key][object.GetName()] = object
	delete(l.deleted, key)
	filled, l.empty = l.empty, false
	return key, filled
}

func (l *listing[T]) drop(object T, seen bool) {
	key := l.keyOf(object)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.objects[key][object.GetName()]; !known {
		return
	}
	delete(l.objects[key], object.GetName())
	if len(l.objects[key]) == 0 {
		delete(l.objects, key)
		l.deleted[key] = seen
	}
}

// look returns the objects of a key; where there is none, what that means.
func (l *listing[T]) look(key string) ([]T, absence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.read {
		return nil, unread
	}
	var objects []T
	for _, object := range l.objects[key] {
		objects = append(objects, object)
	}
	if l.deleted[key] {
		return objects, deleted
	}
	return objects, missing
}

// state is how much is known of the plane, as a label of a metric.
func (l *listing[T]) state() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.read:
		return "unread"
	case l.empty:
		return "empty"
	}
	return "read"
}

// answer is what a plane says when it is asked for what is missing.
type answer int

const (
	// answerThere means that the object is there; the watch is only behind.
	answerThere answer = iota
	// answerGone means that it is not, while others are.
	answerGone
	// answerEmpty means that nothing is there at all. A plane that was emptied, or restored
	// from nothing, says the same as one whose last object was deleted.
	answerEmpty
)

// askTimeout bounds the wait for a plane that is asked for what is missing. Others' copies
// wait meanwhile.
const askTimeout = 5 * time.Second

// ask asks the plane itself whether an object that is missing from what was seen is there.
// The error is the plane's.
func (l *listing[T]) ask(ctx context.Context, list client.ObjectList, key string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := l.plane.Live().List(ctx, list); err != nil {
		return answerThere, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return answerThere, fmt.Errorf("read a %T: %w", list, err)
	}
	items = slices.DeleteFunc(items, func(item runtime.Object) bool { return isCopy(item.(T)) })
	answer := answerGone
	switch {
	case len(items) == 0:
		answer = answerEmpty
	case slices.ContainsFunc(items, func(item runtime.Object) bool { return l.keyOf(item.(T)) == key }):
		answer = answerThere
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.empty = answer == answerEmpty && len(l.objects) == 0
	return answer, nil
}

// isCopy tells whether we made an object. One of ours may have lost its label by hand.
func isCopy(object client.Object) bool {
	return managed(object) || object.GetAnnotations()[v1alpha.ConnectionAnnotation] != ""
}
