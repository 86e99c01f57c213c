// Package location is the one answer to "can this project run here". The presence
// controller and the scheduler plugin read the same objects on the hub through it, so
// they cannot disagree.
package location

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"

	"go.datum.net/network-presence/api/v1alpha"
)

// ProjectToLabel is the value of v1alpha.UpstreamClusterNameLabel for a project.
func ProjectToLabel(project string) string {
	return v1alpha.UpstreamClusterNamePrefix + strings.ReplaceAll(project, "/", "_")
}

// ProjectFromLabel is the project that a value of v1alpha.UpstreamClusterNameLabel names,
// and false where it names none.
func ProjectFromLabel(value string) (string, bool) {
	name, found := strings.CutPrefix(value, v1alpha.UpstreamClusterNamePrefix)
	return strings.ReplaceAll(name, "_", "/"), found && name != ""
}

// ChangeKind says which of the index's answers changed.
type ChangeKind int

// What can change.
const (
	// GrantChanged: whether Project may use Location.
	GrantChanged ChangeKind = iota
	// NamespaceChanged: which project Namespace belongs to.
	NamespaceChanged
	// CellChanged: which location Cell serves; before OldLocation, now Location, either
	// empty for none.
	CellChanged
)

// Change is one change of an Index.
type Change struct {
	Kind        ChangeKind
	Project     string
	Namespace   string
	Cell        string
	Location    string
	OldLocation string
}

type grantKey struct{ project, location string }

type hubNamespace struct{ project, upstream string }

// Index answers by map look-ups alone. It is safe for concurrent use. Watch fills it.
type Index struct {
	mu         sync.RWMutex
	grants     map[grantKey]string // refusal; "" where the grant is usable
	named      map[string]grantKey // grants, by the name of the copy
	namespaces map[string]hubNamespace
	others     map[string]bool            // namespaces of no project
	projects   map[string]map[string]bool // namespaces of a project
	locations  map[string]string          // location of a cell
	cells      map[string]map[string]bool // cells of a location

	subscribers []func(Change)
	synced      []func() bool
}

// NewIndex returns an index that knows of nothing.
func NewIndex() *Index {
	return &Index{
		grants:     map[grantKey]string{},
		named:      map[string]grantKey{},
		namespaces: map[string]hubNamespace{},
		others:     map[string]bool{},
		projects:   map[string]map[string]bool{},
		locations:  map[string]string{},
		cells:      map[string]map[string]bool{},
	}
}

// Content is what a hub has, for an index that watches none.
type Content struct {
	// Namespaces are labels, by the namespace's name.
	Namespaces map[string]map[string]string
	// Grants are the hub's copies of LocationBindings.
	Grants []*v1alpha.LocationBinding
	// Cells are locations, by the cluster's name.
	Cells map[string]string
}

// NewIndexOf returns an index of just the content.
func NewIndexOf(content Content) *Index {
	i := NewIndex()
	for name, labels := range content.Namespaces {
		i.setNamespace(name, labels)
	}
	for _, grant := range content.Grants {
		i.setGrant(grant)
	}
	for cell, location := range content.Cells {
		i.setCell(cell, location)
	}
	return i
}

// May tells whether a project may use a location and, where it may not, why: a sentence
// that says what to do.
func (i *Index) May(project, location string) (bool, string) {
	i.mu.RLock()
	refusal, found := i.grants[grantKey{project, location}]
	i.mu.RUnlock()
	switch {
	case !found:
		return false, fmt.Sprintf("project %q may not use location %q: it has no LocationBinding for it", project, location)
	case refusal != "":
		return false, fmt.Sprintf("project %q may not use location %q: %s", project, location, refusal)
	}
	return true, ""
}

// Project is the project that a hub namespace belongs to and the namespace in it that is
// mirrored; false where the namespace is no hub namespace.
func (i *Index) Project(namespace string) (project, upstreamNamespace string, ok bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	mirror, ok := i.namespaces[namespace]
	return mirror.project, mirror.upstream, ok
}

// KnowsNamespace tells whether the hub has the namespace, be it of a project or of none.
func (i *Index) KnowsNamespace(namespace string) bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	_, mirror := i.namespaces[namespace]
	return mirror || i.others[namespace]
}

// Namespaces are the hub namespaces of a project, sorted.
func (i *Index) Namespaces(project string) []string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return slices.Sorted(maps.Keys(i.projects[project]))
}

// Cells are the clusters that serve a location, sorted.
func (i *Index) Cells(location string) []string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return slices.Sorted(maps.Keys(i.cells[location]))
}

// Location is the location that a cluster serves; false where it has no label.
func (i *Index) Location(cluster string) (string, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	location, ok := i.locations[cluster]
	return location, ok
}

// Subscribe has fn called after each change, once the index answers by it. fn must not
// block for long: it holds up the watch that saw the change.
func (i *Index) Subscribe(fn func(Change)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.subscribers = append(i.subscribers, fn)
}

func (i *Index) publish(change Change) {
	i.mu.RLock()
	subscribers := i.subscribers
	i.mu.RUnlock()
	for _, fn := range subscribers {
		fn(change)
	}
}

// setGrant takes in a LocationBinding's copy on the hub. What is not our copy is no grant:
// hub and project may be one API server.
func (i *Index) setGrant(copied *v1alpha.LocationBinding) {
	project, ours := projectOf(copied)
	if !ours {
		i.deleteGrant(copied.Name)
		return
	}
	key := grantKey{project, string(copied.Spec.LocationRef.Name)}
	refusal := refusalOf(copied)
	i.mu.Lock()
	before, known := i.grants[key]
	previous, moved := i.named[copied.Name]
	moved = moved && previous != key
	if moved {
		delete(i.grants, previous)
	}
	i.grants[key], i.named[copied.Name] = refusal, key
	i.mu.Unlock()
	if moved {
		i.publish(Change{Kind: GrantChanged, Project: previous.project, Location: previous.location})
	}
	if moved || !known || before != refusal {
		i.publish(Change{Kind: GrantChanged, Project: key.project, Location: key.location})
	}
}

func refusalOf(grant *v1alpha.LocationBinding) string {
	if grant.Usable() {
		return ""
	}
	if !grant.DeletionTimestamp.IsZero() {
		return "its LocationBinding is being deleted"
	}
	available := meta.FindStatusCondition(grant.Status.Conditions, v1alpha.LocationBindingAvailable)
	return fmt.Sprintf("its LocationBinding is not available: %s", available.Message)
}

func (i *Index) deleteGrant(name string) {
	i.mu.Lock()
	key, known := i.named[name]
	delete(i.named, name)
	delete(i.grants, key)
	i.mu.Unlock()
	if known {
		i.publish(Change{Kind: GrantChanged, Project: key.project, Location: key.location})
	}
}

// setNamespace takes in the labels of a namespace.
func (i *Index) setNamespace(name string, labels map[string]string) {
	project, names := ProjectFromLabel(labels[v1alpha.UpstreamClusterNameLabel])
	after := hubNamespace{project, labels[v1alpha.UpstreamNamespaceLabel]}
	if !names || after.upstream == "" {
		after = hubNamespace{}
	}
	i.mu.Lock()
	before, mirrors := i.namespaces[name]
	same := before == after && (mirrors || i.others[name])
	if !same {
		i.dropNamespace(name)
		i.others[name] = after == hubNamespace{}
		if after != (hubNamespace{}) {
			i.namespaces[name] = after
			add(i.projects, project, name)
		}
	}
	i.mu.Unlock()
	if !same {
		i.publish(Change{Kind: NamespaceChanged, Namespace: name, Project: after.project})
	}
}

func (i *Index) deleteNamespace(name string) {
	i.mu.Lock()
	project := i.namespaces[name].project
	i.dropNamespace(name)
	i.mu.Unlock()
	i.publish(Change{Kind: NamespaceChanged, Namespace: name, Project: project})
}

// dropNamespace forgets a namespace; the caller holds the lock.
func (i *Index) dropNamespace(name string) {
	remove(i.projects, i.namespaces[name].project, name)
	delete(i.namespaces, name)
	delete(i.others, name)
}

// setCell takes in the location label of a cluster; empty for one that has none or is gone.
func (i *Index) setCell(cell, location string) {
	i.mu.Lock()
	before := i.locations[cell]
	if before == location {
		i.mu.Unlock()
		return
	}
	if before != "" {
		remove(i.cells, before, cell)
		delete(i.locations, cell)
	}
	if location != "" {
		i.locations[cell] = location
		add(i.cells, location, cell)
	}
	i.mu.Unlock()
	i.publish(Change{Kind: CellChanged, Cell: cell, Location: location, OldLocation: before})
}

func add(sets map[string]map[string]bool, key, member string) {
	if sets[key] == nil {
		sets[key] = map[string]bool{}
	}
	sets[key][member] = true
}

func remove(sets map[string]map[string]bool, key, member string) {
	delete(sets[key], member)
	if len(sets[key]) == 0 {
		delete(sets, key)
	}
}
