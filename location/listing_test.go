package location

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// script is a plane whose watch a test writes.
type script struct {
	handler toolscache.ResourceEventHandler
	synced  func()
}

func (s *script) Context() context.Context { return context.Background() }
func (s *script) Live() client.Reader      { return nil }
func (s *script) Watch(_ client.Object, handler toolscache.ResourceEventHandler, onSynced func()) {
	s.handler, s.synced = handler, onSynced
}

func bindingFor(name, location string) *v1alpha.LocationBinding {
	return &v1alpha.LocationBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha.LocationBindingSpec{LocationRef: v1alpha.LocationReference{Name: v1alpha.Name(location)}},
	}
}

func TestWhatAnAbsenceMeans(t *testing.T) {
	us, eu := bindingFor("us", "us"), bindingFor("eu", "eu")
	for _, test := range []struct {
		name   string
		events func(*script)
		want   absence
	}{
		{"before the list is whole", func(s *script) { s.handler.OnAdd(eu, true) }, unread},
		{"in a list without it", func(s *script) { s.handler.OnAdd(eu, true); s.synced() }, missing},
		{"seen to be deleted", func(s *script) { s.handler.OnAdd(us, true); s.synced(); s.handler.OnDelete(us) }, deleted},
		{"seen to be for another location", func(s *script) { s.handler.OnAdd(us, true); s.synced(); s.handler.OnUpdate(us, bindingFor("us", "ap")) }, deleted},
		{"missing from a list that was taken in anew", func(s *script) {
			s.handler.OnAdd(us, true)
			s.synced()
			s.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "us", Obj: us})
		}, missing},
		{"deleted, made again, then missing", func(s *script) {
			s.handler.OnAdd(us, true)
			s.synced()
			s.handler.OnDelete(us)
			s.handler.OnAdd(us, false)
			s.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "us", Obj: us})
		}, missing},
	} {
		t.Run(test.name, func(t *testing.T) {
			plane := &script{}
			listed := newListing(plane, func(b *v1alpha.LocationBinding) string { return string(b.Spec.LocationRef.Name) })
			changed := map[string]bool{}
			listed.follow(&v1alpha.LocationBinding{}, func(key string) { changed[key] = true }, func() {})
			test.events(plane)
			found, absence := listed.look("us")
			if len(found) > 0 || absence != test.want {
				t.Errorf("found %v, absence %v, want none and %v", found, absence, test.want)
			}
			if test.want == deleted && !changed["us"] {
				t.Error("nobody was told")
			}
		})
	}
}

func TestTheUsableLocationBindingIsCopied(t *testing.T) {
	with := func(name string, change func(*v1alpha.LocationBinding)) *v1alpha.LocationBinding {
		binding := bindingFor(name, "us")
		change(binding)
		return binding
	}
	same := func(*v1alpha.LocationBinding) {}
	deleting := func(b *v1alpha.LocationBinding) { now := metav1.Now(); b.DeletionTimestamp = &now }
	ours := func(b *v1alpha.LocationBinding) {
		b.Labels = map[string]string{v1alpha.ManagedByLabel: v1alpha.ManagedByHub}
	}
	closed := func(b *v1alpha.LocationBinding) { unavailable(b) }
	for _, test := range []struct {
		name    string
		sources []*v1alpha.LocationBinding
		want    string
	}{
		{"none", nil, ""},
		{"one", []*v1alpha.LocationBinding{with("a", same)}, "a"},
		{"the first of two by name", []*v1alpha.LocationBinding{with("b", same), with("a", same)}, "a"},
		{"the usable one", []*v1alpha.LocationBinding{with("a", closed), with("b", same)}, "b"},
		{"one that is not available, for its reason", []*v1alpha.LocationBinding{with("a", closed)}, "a"},
		{"not one that is being deleted", []*v1alpha.LocationBinding{with("a", deleting)}, ""},
		{"not a copy of ours", []*v1alpha.LocationBinding{with("a", ours)}, ""},
		{"not one for another location", []*v1alpha.LocationBinding{bindingFor("a", "eu")}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			plane := &script{}
			listed := newListing(plane, func(b *v1alpha.LocationBinding) string { return string(b.Spec.LocationRef.Name) })
			listed.follow(&v1alpha.LocationBinding{}, func(string) {}, func() {})
			for _, binding := range test.sources {
				plane.handler.OnAdd(binding, true)
			}
			plane.synced()
			found, _ := listed.look("us")
			got := ""
			if chosen := choose(found); chosen != nil {
				got = chosen.Name
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("chosen (-want +got):\n%s", diff)
			}
		})
	}
}
