// Package project tells which project control planes the hub is connected to, and
// reaches them without ever letting one of them hold up another.
package project

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// Change says that a project control plane was connected, disconnected, or began or
// ceased to answer.
type Change struct {
	// Project is the plane's project.
	Project string
	// Connected is false once the plane was disconnected for good.
	Connected bool
	// Err is why the plane cannot be reached. Nil while it answers.
	Err error
}

// Planes are the project control planes that are connected now. A multicluster manager
// engages them: add Planes to it with Add. The zero value is not usable; see NewPlanes.
type Planes struct {
	mu          sync.RWMutex
	planes      map[string]*Plane
	subscribers []func(Change)
}

// NewPlanes returns an empty set of planes.
func NewPlanes() *Planes {
	return &Planes{planes: map[string]*Plane{}}
}

// Subscribe calls fn after each change, from any goroutine; fn must not block. Planes that
// are connected already are told at once.
func (p *Planes) Subscribe(fn func(Change)) {
	p.mu.Lock()
	p.subscribers = append(p.subscribers, fn)
	names := p.names()
	p.mu.Unlock()
	for _, name := range names {
		fn(Change{Project: name, Connected: true})
	}
}

// Get returns the plane of a project, and false where no such project is connected.
func (p *Planes) Get(project string) (*Plane, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	plane, ok := p.planes[project]
	return plane, ok
}

// Names returns the connected projects, sorted.
func (p *Planes) Names() []string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.names()
}

func (p *Planes) names() []string {
	names := make([]string, 0, len(p.planes))
	for name := range p.planes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Engage takes up a plane that a provider connected, until ctx ends. A plane that is
// connected anew under its name replaces the one before.
func (p *Planes) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	plane := &Plane{
		Project: name.String(),
		Cluster: cl,
		ctx:     ctx,
		log:     log.FromContext(ctx).WithName("project").WithValues("project", name.String()),
	}
	p.mu.Lock()
	p.planes[plane.Project] = plane
	p.mu.Unlock()
	plane.log.Info("project connected")
	p.publish(Change{Project: plane.Project, Connected: true})

	context.AfterFunc(ctx, func() { p.disengage(plane) })
	go plane.probe(func(err error) {
		p.publish(Change{Project: plane.Project, Connected: true, Err: err})
	})
	return nil
}

func (p *Planes) disengage(plane *Plane) {
	p.mu.Lock()
	current := p.planes[plane.Project] == plane
	if current {
		delete(p.planes, plane.Project)
	}
	p.mu.Unlock()
	if !current {
		return // connected anew meanwhile
	}
	plane.log.Info("project disconnected")
	connections.forget(plane.Project)
	p.publish(Change{Project: plane.Project})
}

func (p *Planes) publish(change Change) {
	p.mu.RLock()
	subscribers := p.subscribers
	p.mu.RUnlock()
	for _, fn := range subscribers {
		fn(change)
	}
}

// Start blocks until ctx ends. It makes Planes a runnable of a multicluster manager.
func (p *Planes) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// NeedLeaderElection is false: providers engage planes on the leader only.
func (p *Planes) NeedLeaderElection() bool { return false }

// Plane is one connected project control plane.
type Plane struct {
	// Project is the name under which the plane is connected.
	Project string
	// Cluster reaches the plane. Its cache must not be read for a kind before a Watch of
	// that kind has synced: such a read blocks for as long as the plane does not answer.
	Cluster cluster.Cluster

	ctx context.Context
	log logr.Logger
}

// Reader reads the plane's cache, for kinds whose Watch has synced.
func (p *Plane) Reader() client.Reader { return p.Cluster.GetCache() }

// Live reads the plane itself, past any cache.
func (p *Plane) Live() client.Reader { return p.Cluster.GetAPIReader() }

// Context ends when the plane is disconnected.
func (p *Plane) Context() context.Context { return p.ctx }

const (
	// probeInterval is how often a plane is asked whether it answers, and how long an
	// answer may take. An API server that cannot be reached sends no event.
	probeInterval = 10 * time.Second
	probeTimeout  = 5 * time.Second
)

// probe tells, by onChange, when the plane ceases to answer and when it answers again,
// until the plane is disconnected.
func (p *Plane) probe(onChange func(error)) {
	answers := true
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		err := p.ask()
		if p.ctx.Err() != nil {
			return
		}
		connections.set(p.Project, err == nil)
		if (err == nil) != answers {
			answers = err == nil
			p.log.Info("project control plane", "reachable", answers, "error", err)
			onChange(err)
		}
		select {
		case <-p.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (p *Plane) ask() error {
	client, err := rest.UnversionedRESTClientForConfigAndClient(probeConfig(p.Cluster.GetConfig()), p.Cluster.GetHTTPClient())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(p.ctx, probeTimeout)
	defer cancel()
	return client.Get().AbsPath("/readyz").Do(ctx).Error()
}

// probeConfig is config for requests to no API group in particular.
func probeConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return config
}
