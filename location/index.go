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

// Standing says what is known of whose a namespace of the hub is.
type Standing int

const (
	// StandingUnknown means that the hub has no such namespace, or it was not seen yet.
	StandingUnknown Standing = iota
	// StandingFree means that the namespace has neither of the labels of a hub namespace.
	StandingFree
	// StandingUnresolved means that it has one of them, but they name no project and namespace.
	StandingUnresolved
	// StandingMirror means that it mirrors a namespace of a project.
	StandingMirror
)

type grantKey struct{ project, location string }

// hubNamespace is whose a namespace is. Project and upstream are empty unless it is a
// mirror.
type hubNamespace struct {
	standing          Standing
	project, upstream string
}

// Index answers by map look-ups alone. It is safe for concurrent use. Watch fills it.
type Index struct {
	mu         sync.RWMutex
	grants     map[grantKey]string // refusal; "" where the grant is usable
	named      map[string]grantKey // grants, by the name of the copy
	namespaces map[string]hubNamespace
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
		projects:   map[string]map[string]bool{},
		locations:  map[string]string{},
		cells:      map[string]map[string]bool{},
	}
}

// May tells whether a project may use a location and, where it may not, why: a sentence
// that says what to do.
func (i *Index) May(project, location string) (bool, string) {
	i.mu.RLock()
	refusal, found := i.grants[grantKey{project, location}]
	i.mu.RUnlock()
	switch {
	case !found:
		return false, fmt.Sprintf("project %q may not use location %q: it has no LocationBinding for it; make one in the project, or choose another location", project, location)
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
	mirror := i.namespaces[namespace]
	return mirror.project, mirror.upstream, mirror.standing == StandingMirror
}

// Owner is what is known of whose a namespace is; the project is empty unless the
// namespace mirrors one of a project.
func (i *Index) Owner(namespace string) (project string, standing Standing) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	owned := i.namespaces[namespace]
	return owned.project, owned.standing
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
// hub and project may be one API server. Nor is a copy that says another project or
// location than its name does: someone edited it.
func (i *Index) setGrant(copied *v1alpha.LocationBinding) {
	project, ours := projectOf(copied)
	key := grantKey{project, string(copied.Spec.LocationRef.Name)}
	if !ours || copied.Name != CopyName(key.project, key.location) {
		i.deleteGrant(copied.Name)
		return
	}
	refusal := refusalOf(copied)
	i.mu.Lock()
	before, known := i.grants[key]
	i.grants[key], i.named[copied.Name] = refusal, key
	i.mu.Unlock()
	if !known || before != refusal {
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
	if available == nil || available.Message == "" {
		return "its LocationBinding is not available"
	}
	return "its LocationBinding is not available: " + shorten(available.Message)
}

// longest is how many characters of a project's own words enter a reason. Reasons become
// conditions, whose length the API server limits.
const longest = 256

func shorten(words string) string {
	characters := []rune(words)
	if len(characters) <= longest {
		return words
	}
	return string(characters[:longest]) + "…"
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
	after := hubNamespaceOf(labels)
	i.mu.Lock()
	before := i.namespaces[name]
	if before != after {
		remove(i.projects, before.project, name)
		i.namespaces[name] = after
		if after.standing == StandingMirror {
			add(i.projects, after.project, name)
		}
	}
	i.mu.Unlock()
	if before != after {
		i.publish(Change{Kind: NamespaceChanged, Namespace: name, Project: after.project})
	}
}

func hubNamespaceOf(labels map[string]string) hubNamespace {
	cluster, labelled := labels[v1alpha.UpstreamClusterNameLabel]
	upstream, mirrored := labels[v1alpha.UpstreamNamespaceLabel]
	if !labelled && !mirrored {
		return hubNamespace{standing: StandingFree}
	}
	project, names := ProjectFromLabel(cluster)
	if !names || upstream == "" {
		return hubNamespace{standing: StandingUnresolved}
	}
	return hubNamespace{StandingMirror, project, upstream}
}

func (i *Index) deleteNamespace(name string) {
	i.mu.Lock()
	before := i.namespaces[name]
	remove(i.projects, before.project, name)
	delete(i.namespaces, name)
	i.mu.Unlock()
	if before.standing != StandingUnknown {
		i.publish(Change{Kind: NamespaceChanged, Namespace: name, Project: before.project})
	}
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
