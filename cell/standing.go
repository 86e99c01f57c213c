package cell

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// standing is what the agent knows of one network beside the cache. One worker at a time
// uses it, since a controller never works on a key twice at once.
type standing struct {
	// written is the resourceVersion of our last write of an object that the cache has yet
	// to show.
	written map[types.UID]string
	// promising tells that some claim could read a promise when last looked at; ended is
	// when none could any more.
	promising bool
	ended     time.Time
	// settled is when the finalizer on a context has settled, and proven are the contexts
	// that were found held after that.
	settled map[types.UID]time.Time
	proven  map[types.UID]bool
}

func newStanding(began time.Time) *standing {
	return &standing{
		written: map[types.UID]string{},
		ended:   began,
		settled: map[types.UID]time.Time{},
		proven:  map[types.UID]bool{},
	}
}

// wrote remembers a write of an object. An empty version is that of an object that has
// gone.
func (s *standing) wrote(object client.Object, version string) {
	if version != "" {
		s.written[object.GetUID()] = version
	}
}

// held remembers when the finalizer that was added to a context has settled.
func (s *standing) held(context client.Object, settled time.Time) {
	s.settled[context.GetUID()] = settled
}

// saw takes in whether the cache shows the finalizer on a context. One that we do not know
// of is taken for new: a predecessor of this process may have added it just before its end,
// or we did and never heard of it.
func (s *standing) saw(context client.Object, held bool, now time.Time) {
	uid := context.GetUID()
	if !held {
		delete(s.settled, uid)
		delete(s.proven, uid)
		return
	}
	if _, known := s.settled[uid]; !known {
		s.settled[uid] = now.Add(settleTime)
	}
}

// catchUp forgets the writes that the cache shows by now, and all of the objects that it
// shows no more: only what was in the cache was ever written.
func (s *standing) catchUp(cached []client.Object) {
	versions := map[types.UID]string{}
	for _, object := range cached {
		versions[object.GetUID()] = object.GetResourceVersion()
	}
	maps.DeleteFunc(s.written, func(uid types.UID, written string) bool {
		order, err := resourceversion.CompareResourceVersion(versions[uid], written)
		return err != nil || order >= 0 // an object that is gone has no version
	})
	maps.DeleteFunc(s.settled, func(uid types.UID, _ time.Time) bool { return versions[uid] == "" })
	maps.DeleteFunc(s.proven, func(uid types.UID, _ bool) bool { return versions[uid] == "" })
}

// behind tells whether the cache's state of an object is older than our last write of it.
func (s *standing) behind(object client.Object) bool {
	_, ahead := s.written[object.GetUID()]
	return ahead
}

// observe takes in whether any claim can read a promise now.
func (s *standing) observe(promising bool, now time.Time) {
	if s.promising && !promising {
		s.ended = now
	}
	s.promising = promising
}

// standings are the networks that the agent has looked at.
type standings struct {
	mutex sync.Mutex
	began time.Time
	known map[networkKey]*standing
}

// of is a network's standing. What was promised before this process began to work is not
// known, so it counts as having ended at that moment.
func (s *standings) of(network networkKey, now time.Time) *standing {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.known == nil {
		s.began, s.known = now, map[networkKey]*standing{}
	}
	if s.known[network] == nil {
		s.known[network] = newStanding(s.began)
	}
	return s.known[network]
}

// forget drops a network that has nothing left to stand for.
func (s *standings) forget(network networkKey) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.known, network)
}
