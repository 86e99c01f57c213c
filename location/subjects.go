package location

import (
	"context"
	"fmt"
	"strings"
	"sync"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// Naming says what is known of the location that an object names.
type Naming int

const (
	// NamesNone means that the object is for no location in particular.
	NamesNone Naming = iota
	// NamesOne means that it is for one location.
	NamesOne
	// NamingUnknown means that its kind names one, and the object was not seen yet.
	NamingUnknown
)

// Subjects know which location an object names. Of an object, the scheduler and a
// ResourceBinding have no more than its name and UID. Safe for concurrent use; Watch
// fills it.
type Subjects struct {
	kinds map[schema.GroupKind]*subjectKind

	mu          sync.RWMutex
	subscribers []func(Subject)
	synced      []func() bool
}

// Subject is an object that may name a location.
type Subject struct {
	// Kind of the object.
	Kind schema.GroupKind
	// NamespacedName of the object; without a namespace where the kind has none.
	types.NamespacedName
}

// subjectKind is one kind of subject and what its objects name.
type subjectKind struct {
	schema.GroupVersionKind
	// watched is what the informer is asked for.
	watched client.Object
	// named is the location in an object; empty for none.
	named func(client.Object) string
	// field is the path of the string that names it; empty where no field does.
	field []string
	// configured is the kind's path in the configuration; empty for one of ours.
	configured string

	objects map[types.NamespacedName]subject // guarded by Subjects.mu
}

// subject is what is known of one object.
type subject struct {
	uid      types.UID
	location string // empty for none
}

// NewSubjects returns the subjects of the built-in kinds and those of a configuration.
func NewSubjects(configuration Configuration) *Subjects {
	s := &Subjects{kinds: map[schema.GroupKind]*subjectKind{}}
	s.add(&subjectKind{
		GroupVersionKind: v1alpha.SchemeGroupVersion.WithKind(contextKind.Kind),
		watched:          &v1alpha.NetworkContext{},
		named:            func(o client.Object) string { return string(o.(*v1alpha.NetworkContext).Spec.Location.Name) },
	})
	for n, kind := range configuration.Kinds {
		configured := kind.subjects()
		configured.configured = fmt.Sprintf("kinds[%d]", n)
		s.add(configured)
	}
	return s
}

func (s *Subjects) add(kind *subjectKind) {
	kind.objects = map[types.NamespacedName]subject{}
	s.kinds[kind.GroupKind()] = kind
}

// subjects is the kind as it is watched: its metadata alone where that says it all.
func (k *NamingKind) subjects() *subjectKind {
	gvk := schema.FromAPIVersionAndKind(k.APIVersion, k.Kind)
	if label := k.Location.Label; label != "" {
		watched := &metav1.PartialObjectMetadata{}
		watched.SetGroupVersionKind(gvk)
		return &subjectKind{GroupVersionKind: gvk, watched: watched, named: func(o client.Object) string { return o.GetLabels()[label] }}
	}
	watched := &unstructured.Unstructured{}
	watched.SetGroupVersionKind(gvk)
	path := strings.Split(k.Location.Field, ".")
	return &subjectKind{GroupVersionKind: gvk, watched: watched, field: path, named: func(o client.Object) string {
		// What is no string there names no location.
		named, _, _ := unstructured.NestedString(o.(*unstructured.Unstructured).Object, path...)
		return named
	}}
}

// Location is the location that the object of a binding names, empty unless the naming is
// NamesOne. An object that was deleted and made anew under its name is not known before
// it was seen itself.
func (s *Subjects) Location(resource *workv1alpha2.ObjectReference) (string, Naming) {
	kind := kindOf(resource)
	if kind == locationKind {
		return resource.Name, NamesOne
	}
	subjects := s.kinds[kind]
	if subjects == nil {
		return "", NamesNone
	}
	s.mu.RLock()
	known, found := subjects.objects[types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name}]
	s.mu.RUnlock()
	switch {
	case !found || resource.UID != "" && resource.UID != known.uid:
		return "", NamingUnknown
	case known.location == "":
		return "", NamesNone
	}
	return known.location, NamesOne
}

// kindOf is the kind of a binding's object, whatever the version. It allocates nothing.
func kindOf(resource *workv1alpha2.ObjectReference) schema.GroupKind {
	group, _, grouped := strings.Cut(resource.APIVersion, "/")
	if !grouped {
		group = ""
	}
	return schema.GroupKind{Group: group, Kind: resource.Kind}
}

// Subscribe has fn called after an object was seen to name a location, or another than
// before, or none any longer. fn must not block for long.
func (s *Subjects) Subscribe(fn func(Subject)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers = append(s.subscribers, fn)
}

// Watch fills the subjects from the hub's cache and keeps them current. The error says
// which kind the hub does not serve.
func (s *Subjects) Watch(ctx context.Context, hub cache.Cache) error {
	for _, kind := range s.kinds {
		registration, err := watch(ctx, hub, kind.watched,
			func(o client.Object) { s.set(kind, o) },
			func(name types.NamespacedName) { s.unset(kind, name) })
		if err != nil {
			return kind.explain(err)
		}
		s.mu.Lock()
		s.synced = append(s.synced, registration.HasSynced)
		s.mu.Unlock()
	}
	return nil
}

func (k *subjectKind) explain(err error) error {
	if k.configured == "" {
		return fmt.Errorf("watch %s on the hub: %w", k.Kind, err)
	}
	return fmt.Errorf("watch %s on the hub, which %s of the configuration names: %w", k.GroupVersionKind, k.configured, err)
}

// HasSynced tells whether every object that was on the hub when Watch began is known.
func (s *Subjects) HasSynced() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return allTrue(s.synced)
}

func (s *Subjects) set(kind *subjectKind, object client.Object) {
	name := client.ObjectKeyFromObject(object)
	after := subject{object.GetUID(), kind.named(object)}
	s.mu.Lock()
	before, found := kind.objects[name]
	kind.objects[name] = after
	subscribers := s.subscribers
	s.mu.Unlock()
	if found && before == after {
		return
	}
	for _, fn := range subscribers {
		fn(Subject{kind.GroupKind(), name})
	}
}

func (s *Subjects) unset(kind *subjectKind, name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(kind.objects, name)
}

// take takes in one object, as a watch of its kind would hand it over.
func (s *Subjects) take(object client.Object) {
	for _, kind := range s.kinds {
		_, ours := object.(*v1alpha.NetworkContext)
		if ours && kind.GroupKind() == contextKind || object.GetObjectKind().GroupVersionKind().GroupKind() == kind.GroupKind() {
			s.set(kind, object)
		}
	}
}
