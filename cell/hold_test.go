package cell

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"go.datum.net/network-presence/api/v1alpha"
)

// plan is a holdDecision by the names of its objects.
type plan struct {
	Refuse, Hold, Promise, Release []string
	Again                          time.Duration
}

func planOf(d holdDecision) plan {
	p := plan{Again: d.again}
	for _, verdict := range d.refusals {
		p.Refuse = append(p.Refuse, verdict.claim.Name)
	}
	for _, context := range d.holds {
		p.Hold = append(p.Hold, context.Name)
	}
	for _, verdict := range d.promises {
		p.Promise = append(p.Promise, verdict.claim.Name)
	}
	for _, context := range d.releases {
		p.Release = append(p.Release, context.Name)
	}
	return p
}

func TestDecide(t *testing.T) {
	live := aContext("live")
	contexts := func(contexts ...v1alpha.NetworkContext) []v1alpha.NetworkContext { return contexts }
	claims := func(claims ...v1alpha.NetworkInterfaceClaim) []v1alpha.NetworkInterfaceClaim { return claims }
	for name, test := range map[string]struct {
		snapshot holdSnapshot
		want     plan
	}{
		"nothing asks for the context": {
			holdSnapshot{contexts: contexts(live)},
			plan{},
		},
		"a claim waits for its network": {
			holdSnapshot{claims: claims(aClaim("c"))},
			plan{Refuse: []string{"c"}},
		},
		"a refused claim is not refused again": {
			holdSnapshot{claims: claims(aClaim("c", told(nil)))},
			plan{},
		},
		"the context is held before the promise": {
			holdSnapshot{contexts: contexts(live), claims: claims(aClaim("c"))},
			plan{Hold: []string{"live"}, Promise: []string{"c"}},
		},
		"the context arrives for a claim that was refused": {
			holdSnapshot{contexts: contexts(live), claims: claims(aClaim("c", told(nil)))},
			plan{Hold: []string{"live"}, Promise: []string{"c"}},
		},
		"a held context serves one more claim": {
			holdSnapshot{contexts: contexts(aContext("live", held)), claims: claims(aClaim("old", told(&live)), aClaim("new")), promising: true},
			plan{Promise: []string{"new"}},
		},
		"a promise keeps the context held": {
			holdSnapshot{contexts: contexts(aContext("live", held)), claims: claims(aClaim("c", told(&live))), promising: true},
			plan{},
		},
		"a promise on a context whose finalizer was taken off": {
			holdSnapshot{contexts: contexts(live), claims: claims(aClaim("c", told(&live))), promising: true},
			plan{Hold: []string{"live"}},
		},
		"a refused claim holds nothing": {
			holdSnapshot{contexts: contexts(aContext("live", carrying(v1alpha.IPv6))), claims: claims(aClaim("c", asking(v1alpha.IPv4)))},
			plan{Refuse: []string{"c"}},
		},
		"one claim refused, one promised": {
			holdSnapshot{
				contexts: contexts(aContext("live", carrying(v1alpha.IPv6))),
				claims:   claims(aClaim("four", asking(v1alpha.IPv4)), aClaim("six", asking(v1alpha.IPv6))),
			},
			plan{Refuse: []string{"four"}, Hold: []string{"live"}, Promise: []string{"six"}},
		},
		"an interface holds without any claim": {
			holdSnapshot{contexts: contexts(live), occupied: true},
			plan{Hold: []string{"live"}},
		},
		"an interface keeps the context held": {
			holdSnapshot{contexts: contexts(aContext("live", held)), occupied: true},
			plan{},
		},
		"an interface holds a context of another location": {
			holdSnapshot{contexts: contexts(aContext("moved", elsewhere))},
			plan{},
		},
		"an interface holds the contexts of every location": {
			holdSnapshot{contexts: contexts(aContext("moved", elsewhere), live), occupied: true},
			plan{Hold: []string{"moved", "live"}},
		},
		"a claim is not served by another location's context": {
			holdSnapshot{contexts: contexts(aContext("moved", elsewhere)), claims: claims(aClaim("c"))},
			plan{Refuse: []string{"c"}},
		},
		"the last interface has gone": {
			holdSnapshot{contexts: contexts(aContext("live", held))},
			plan{Release: []string{"live"}},
		},
		"the last interface has gone from a context of another location": {
			holdSnapshot{contexts: contexts(aContext("moved", elsewhere, held))},
			plan{Release: []string{"moved"}},
		},
		"a deleted context with an interface stays": {
			holdSnapshot{contexts: contexts(aContext("going", held, deleted)), occupied: true},
			plan{},
		},
		"a deleted context that is not held cannot be": {
			holdSnapshot{contexts: contexts(aContext("going", deleted)), occupied: true},
			plan{},
		},
		"a deleted context: the promise is withdrawn first": {
			holdSnapshot{contexts: contexts(aContext("going", held, deleted)), claims: claims(aClaim("c", told(&live))), promising: true},
			plan{Refuse: []string{"c"}},
		},
		"a deleted context: the withdrawn promise still binds": {
			holdSnapshot{
				contexts: contexts(aContext("going", held, deleted)),
				claims:   claims(aClaim("c", func(c *v1alpha.NetworkInterfaceClaim) { going := aContext("going", deleted); told(&going)(c) })),
				bindsFor: 3 * time.Second,
			},
			plan{Again: 3 * time.Second},
		},
		"a deleted context: the promise of a deleted claim still binds": {
			holdSnapshot{contexts: contexts(aContext("going", held, deleted)), bindsFor: 3 * time.Second},
			plan{Again: 3 * time.Second},
		},
		"a deleted context: no promise binds any more": {
			holdSnapshot{
				contexts: contexts(aContext("going", held, deleted)),
				claims:   claims(aClaim("c", func(c *v1alpha.NetworkInterfaceClaim) { going := aContext("going", deleted); told(&going)(c) })),
			},
			plan{Release: []string{"going"}},
		},
		"a claim that the cache shows too old counts as a promise": {
			holdSnapshot{contexts: contexts(aContext("going", held, deleted)), promising: true},
			plan{},
		},
		"a new claim on a deleted context is refused and keeps nothing": {
			holdSnapshot{contexts: contexts(aContext("going", held, deleted)), claims: claims(aClaim("c"))},
			plan{Refuse: []string{"c"}, Release: []string{"going"}},
		},
		"a successor serves beside its predecessor": {
			holdSnapshot{contexts: contexts(aContext("going", held, deleted), live), claims: claims(aClaim("c")), occupied: true},
			plan{Hold: []string{"live"}, Promise: []string{"c"}},
		},
		"a successor's promise does not keep its predecessor": {
			holdSnapshot{contexts: contexts(aContext("going", held, deleted), live), claims: claims(aClaim("c"))},
			plan{Hold: []string{"live"}, Promise: []string{"c"}, Release: []string{"going"}},
		},
		"a successor takes over the promises of its predecessor": {
			holdSnapshot{contexts: contexts(aContext("going", held, deleted), live), claims: claims(aClaim("c", told(&live))), promising: true},
			plan{Hold: []string{"live"}, Release: []string{"going"}},
		},
		"nothing left but a promise that binds": {
			holdSnapshot{bindsFor: 2 * time.Second},
			plan{Again: 2 * time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.snapshot.location = here
			if diff := cmp.Diff(test.want, planOf(decide(&test.snapshot))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyAMoveOfAnInterfaceChangesHolders(t *testing.T) {
	before, edited, moved := anInterface("i", 1460), anInterface("i", 8000), anInterface("i", 1460)
	moved.Spec.Network.Name = "other"
	for name, test := range map[string]struct {
		after v1alpha.NetworkInterface
		want  bool
	}{"another MTU": {edited, false}, "another network": {moved, true}} {
		if got := holdersChange.Update(event.UpdateEvent{ObjectOld: &before, ObjectNew: &test.after}); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestStandingPromises(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	var all standings
	network := networkKey{"ns", "default"}

	if known := all.of(network, at(0)); !known.ended.Equal(at(0)) {
		t.Errorf("what was promised before the start ended at %v, want the start", known.ended)
	}
	all.of(network, at(10)).observe(true, at(10))
	all.of(network, at(20)).observe(true, at(20))
	if known := all.of(network, at(20)); !known.promising || !known.ended.Equal(at(0)) {
		t.Errorf("while promising: %+v", known)
	}
	all.of(network, at(30)).observe(false, at(30))
	all.of(network, at(40)).observe(false, at(40))
	if known := all.of(network, at(40)); known.promising || !known.ended.Equal(at(30)) {
		t.Errorf("after the promise: ended %v, want %v", known.ended, at(30))
	}
	all.forget(network)
	if known := all.of(network, at(50)); !known.ended.Equal(at(0)) {
		t.Errorf("a network seen anew: ended %v, want the start", known.ended)
	}
}

func TestStandingIsBehindUntilTheCacheShowsTheWrite(t *testing.T) {
	version := func(version string) *v1alpha.NetworkContext {
		context := aContext("c")
		context.ResourceVersion = version
		return &context
	}
	var all standings
	known := all.of(networkKey{"ns", "default"}, time.Unix(0, 0))
	for _, step := range []struct {
		cached string
		want   bool
	}{{"9", true}, {"99", true}, {"100", false}, {"9", false}} {
		if step.cached == "9" && step.want {
			known.wrote(version(""), "100")
		}
		known.catchUp(pointers([]v1alpha.NetworkContext{*version(step.cached)}))
		if got := known.behind(version(step.cached)); got != step.want {
			t.Errorf("cache at %s, written 100: behind = %v, want %v", step.cached, got, step.want)
		}
	}
	known.wrote(version(""), "100")
	known.catchUp(nil)
	if len(known.written) != 0 {
		t.Errorf("remembers the write of an object that has gone: %v", known.written)
	}
}

func TestStandingSettles(t *testing.T) {
	context := aContext("c")
	context.ResourceVersion = "1"
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	known := newStanding(at(0))

	known.saw(&context, true, at(10))
	known.saw(&context, true, at(20))
	if got, want := known.settled[context.UID], at(10).Add(settleTime); !got.Equal(want) {
		t.Errorf("a finalizer that was found settles at %v, want %v", got, want)
	}
	known.proven[context.UID] = true
	known.saw(&context, false, at(30))
	if known.proven[context.UID] {
		t.Error("a context stays proven without its finalizer")
	}
	known.held(&context, at(40))
	known.saw(&context, true, at(39))
	if got := known.settled[context.UID]; !got.Equal(at(40)) {
		t.Errorf("a finalizer that was added settles at %v, want %v", got, at(40))
	}
	known.catchUp(nil)
	if len(known.settled) != 0 {
		t.Errorf("remembers a context that has gone: %v", known.settled)
	}
}
