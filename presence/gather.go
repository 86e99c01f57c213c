package presence

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// gather reads all that a decision about a presence needs, from caches alone.
func (r *Reconciler) gather(ctx context.Context, key Key) (*snapshot, error) {
	s := &snapshot{key: key, now: time.Now(), schedulers: r.schedulers}
	if err := r.gatherHub(ctx, s); err != nil {
		return nil, err
	}
	project, upstreamNamespace, ok := r.authority.Project(key.Namespace)
	if ok {
		s.project, s.upstreamNamespace = project, upstreamNamespace
		s.granted, s.refusal = r.authority.May(project, key.Location)
		if err := r.gatherProject(ctx, s); err != nil {
			return nil, err
		}
	}
	if err := r.gatherPlacements(ctx, s); err != nil {
		return nil, err
	}
	return s, r.gatherCells(ctx, s)
}

func (r *Reconciler) gatherHub(ctx context.Context, s *snapshot) error {
	pair := []client.ListOption{
		client.InNamespace(s.key.Namespace), client.MatchingFields{byPair: s.key.pair()}, client.UnsafeDisableDeepCopy,
	}
	var bindings v1alpha.NetworkBindingList
	if err := r.hub.List(ctx, &bindings, pair...); err != nil {
		return fmt.Errorf("list the bindings of %s: %w", s.key, err)
	}
	for i := range bindings.Items {
		s.bindings = append(s.bindings, &bindings.Items[i])
	}
	var contexts v1alpha.NetworkContextList
	if err := r.hub.List(ctx, &contexts, pair...); err != nil {
		return fmt.Errorf("list the contexts of %s: %w", s.key, err)
	}
	for i := range contexts.Items {
		s.contexts = append(s.contexts, &contexts.Items[i])
	}
	slices.SortFunc(s.contexts, func(a, b *v1alpha.NetworkContext) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return r.gatherName(ctx, s)
}

// gatherName finds whether another pair has the name that this one would take.
func (r *Reconciler) gatherName(ctx context.Context, s *snapshot) error {
	var other v1alpha.NetworkContext
	name := types.NamespacedName{Namespace: s.key.Namespace, Name: s.key.plainName()}
	err := r.hub.Get(ctx, name, &other, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get context %s: %w", name, err)
	}
	s.nameTaken = err == nil && KeyOfContext(&other) != s.key
	return nil
}

func (r *Reconciler) gatherProject(ctx context.Context, s *snapshot) error {
	reader, state := r.networks.reader(s.project)
	s.plane = state
	if state == planeUnknown && r.known(ctx, s.project) {
		s.plane = planeSilent
	}
	if s.plane != planeRead {
		return nil
	}
	var network v1alpha.Network
	err := reader.Get(ctx, types.NamespacedName{Namespace: s.upstreamNamespace, Name: s.key.Network}, &network)
	switch {
	case err == nil:
		s.network = &network
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("get network %q of project %q: %w", s.key.Network, s.project, err)
	}
	var networks v1alpha.NetworkList
	if err := reader.List(ctx, &networks, client.Limit(1), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the networks of project %q: %w", s.project, err)
	}
	s.blank = len(networks.Items) == 0
	return nil
}

func (r *Reconciler) gatherPlacements(ctx context.Context, s *snapshot) error {
	s.placements = map[string]*workv1alpha2.ResourceBinding{}
	for _, context := range s.contexts {
		var placements workv1alpha2.ResourceBindingList
		err := r.hub.List(ctx, &placements, client.InNamespace(context.Namespace),
			client.MatchingFields{byContext: context.Name}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return fmt.Errorf("list the ResourceBindings of context %s/%s: %w", context.Namespace, context.Name, err)
		}
		for i := range placements.Items {
			s.placements[context.Name] = &placements.Items[i]
		}
	}
	return nil
}

// gatherCells reads the cells that serve the location, those that a context is placed in,
// and those that report on one.
func (r *Reconciler) gatherCells(ctx context.Context, s *snapshot) error {
	s.cells = map[string]cell{}
	s.serving = r.authority.Cells(s.key.Location)
	names := slices.Clone(s.serving)
	for _, placement := range s.placements {
		names = append(names, cellsOf(placement)...)
	}
	for _, context := range s.contexts {
		for _, report := range context.Status.Cells {
			names = append(names, report.Name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		var cluster clusterv1alpha1.Cluster
		err := r.hub.Get(ctx, types.NamespacedName{Name: name}, &cluster, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue // unjoined
		}
		if err != nil {
			return fmt.Errorf("get cluster %q: %w", name, err)
		}
		s.cells[name] = cellOf(&cluster)
	}
	return nil
}

func cellOf(cluster *clusterv1alpha1.Cluster) cell {
	c := cell{name: cluster.Name, since: cluster.CreationTimestamp.Time}
	if ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady); ready != nil {
		c.ready = ready.Status == metav1.ConditionTrue
		c.since = ready.LastTransitionTime.Time
	}
	return c
}
