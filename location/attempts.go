package location

import (
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// firstPatience is how long the scheduler has to look at a binding that it was told to
	// look at, before it is told again: its own caches may have been behind. Twice that the
	// next time, and so on.
	firstPatience = time.Second
	// mostAttempts is how often it is told for one cause. What it still decides as before
	// then, it decides for a reason that is not known here, such as another plugin's.
	mostAttempts = 7
)

// attempts remembers how often, and when last, the scheduler was told to look at a binding.
// What it forgets costs no more than an attempt. The zero value is empty.
type attempts struct {
	mu       sync.Mutex
	bindings map[types.NamespacedName]*attempt
}

type attempt struct {
	amiss  string    // clusters, as they were when last triggered
	count  int       // for these clusters
	at     time.Time // of the last attempt
	moment metav1.Time
}

func (a *attempts) of(name types.NamespacedName) *attempt {
	if a.bindings == nil {
		a.bindings = map[types.NamespacedName]*attempt{}
	}
	if a.bindings[name] == nil {
		a.bindings[name] = &attempt{}
	}
	return a.bindings[name]
}

// next tells whether a binding is to be triggered now, given the clusters that are amiss,
// and counts that. Where it is not, wait is when to look again; 0 for no such time.
func (a *attempts) next(name types.NamespacedName, amiss []string, now time.Time) (due bool, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.bindings[name]
	if len(amiss) == 0 {
		if of != nil {
			of.amiss, of.count = "", 0
		}
		return false, 0
	}
	of = a.of(name)
	if clusters := strings.Join(amiss, " "); clusters != of.amiss {
		of.amiss, of.count = clusters, 0
	}
	if of.count >= mostAttempts {
		return false, 0
	}
	if of.count > 0 {
		if wait := of.at.Add(firstPatience << (of.count - 1)).Sub(now); wait > 0 {
			return false, wait
		}
	}
	of.count, of.at = of.count+1, now
	return true, 0
}

// again has the next attempt made at once: something changed.
func (a *attempts) again(name types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if of := a.bindings[name]; of != nil {
		of.count = 0
	}
}

// failed takes back that an attempt was made.
func (a *attempts) failed(name types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.of(name)
	of.count = max(of.count-1, 0)
	of.at = time.Time{}
}

// moment is the moment of triggering to write: one that the binding did not have before,
// however soon the last was, since the same moment again would be no change; and later
// than the scheduler's last look, since a workload is else not scheduled again.
func (a *attempts) moment(name types.NamespacedName, p placement, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.of(name)
	moment := later(now, &of.moment, p.spec.RescheduleTriggeredAt, p.status.LastScheduledTime)
	of.moment = metav1.NewTime(moment)
	return moment
}

func (a *attempts) forget(name types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.bindings, name)
}
