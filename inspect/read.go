package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/util/names"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/presence"
)

// Hub reads a hub with what its user may read.
type Hub struct {
	// Reader reads the hub's API server itself, not a cache.
	Reader client.Reader
	// Cell gives a reader of a cell. Nil where cells are not looked into.
	Cell func(cluster string) client.Reader
}

// cellPatience bounds a look into one cell: it may be far, or gone.
const cellPatience = 3 * time.Second

// reading collects a Sight. What is forbidden is noted, and the first other error kept.
type reading struct {
	*Sight
	err error
}

// note notes that a kind may not be read. It tells whether the read succeeded.
func (r *reading) note(kind string, err error) bool {
	switch {
	case err == nil:
		return true
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		r.Unseen[kind] = "you may not read this: " + err.Error()
	case apierrors.IsNotFound(err):
		// Nothing there is an answer, too.
	case meta.IsNoMatchError(err):
		r.Unseen[kind] = fmt.Sprintf("this API server does not serve %s: is it a hub?", kind)
	case r.err == nil:
		r.err = fmt.Errorf("read %s of presence %s: %w", kind, r.Key, err)
	}
	return false
}

// Presence reads all that there is to be seen of one presence. The error is the first that
// says something else than that the user may not.
func (h *Hub) Presence(ctx context.Context, key presence.Key) (*Sight, error) {
	r := &reading{Sight: &Sight{Key: key, Works: map[string]*workv1alpha1.Work{}, Copies: map[string]*v1alpha.NetworkContext{},
		Unseen: map[string]string{}, Now: time.Now()}}
	h.readOurs(ctx, r)
	h.readGround(ctx, r)
	if current := r.Context(); current != nil {
		h.readPlacement(ctx, r, current)
		h.readCopies(ctx, r, current)
	}
	return r.Sight, r.err
}

// readOurs reads the bindings and contexts of the pair.
func (h *Hub) readOurs(ctx context.Context, r *reading) {
	var bindings v1alpha.NetworkBindingList
	r.note(KindBinding, h.Reader.List(ctx, &bindings, client.InNamespace(r.Key.Namespace)))
	for i := range bindings.Items {
		if presence.KeyOfBinding(&bindings.Items[i]) == r.Key {
			r.Bindings = append(r.Bindings, &bindings.Items[i])
		}
	}
	var contexts v1alpha.NetworkContextList
	r.note(KindContext, h.Reader.List(ctx, &contexts, client.InNamespace(r.Key.Namespace)))
	for i := range contexts.Items {
		if presence.KeyOfContext(&contexts.Items[i]) == r.Key {
			r.Contexts = append(r.Contexts, &contexts.Items[i])
		}
	}
	slices.SortFunc(r.Contexts, func(a, b *v1alpha.NetworkContext) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// readGround reads what decides whether the presence may be, and where.
func (h *Hub) readGround(ctx context.Context, r *reading) {
	var namespace corev1.Namespace
	if r.note(KindNamespace, h.Reader.Get(ctx, client.ObjectKey{Name: r.Key.Namespace}, &namespace)) {
		r.Namespace = &namespace
	} else if r.Unseen[KindNamespace] == "" {
		r.Unseen[KindNamespace] = fmt.Sprintf("there is no namespace %q", r.Key.Namespace)
	}
	var grants v1alpha.LocationBindingList
	r.note(KindGrant, h.Reader.List(ctx, &grants))
	r.Grants = pointers(grants.Items)
	var clusters clusterv1alpha1.ClusterList
	r.note(KindCluster, h.Reader.List(ctx, &clusters))
	r.Clusters = pointers(clusters.Items)
}

// readPlacement reads what Karmada made of the context.
func (h *Hub) readPlacement(ctx context.Context, r *reading, current *v1alpha.NetworkContext) {
	var placement workv1alpha2.ResourceBinding
	name := client.ObjectKey{Namespace: current.Namespace, Name: names.GenerateBindingName("NetworkContext", current.Name)}
	if !r.note(KindPlacement, h.Reader.Get(ctx, name, &placement)) {
		return
	}
	r.Placement = &placement
	for _, cell := range r.targets() {
		var work workv1alpha1.Work
		name := client.ObjectKey{
			Namespace: names.GenerateExecutionSpaceName(cell),
			Name:      names.GenerateWorkName("NetworkContext", current.Name, current.Namespace),
		}
		if r.note(KindWork, h.Reader.Get(ctx, name, &work)) {
			r.Works[cell] = &work
		}
	}
}

// readCopies looks into the cells, where the user may. What cannot be read there is
// known by the cells' reports.
func (h *Hub) readCopies(ctx context.Context, r *reading, current *v1alpha.NetworkContext) {
	if h.Cell == nil {
		return
	}
	for _, cell := range r.targets() {
		if unreachable(r.cluster(cell)) != "" {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, cellPatience)
		var copied v1alpha.NetworkContext
		if err := h.Cell(cell).Get(ctx, client.ObjectKeyFromObject(current), &copied); err == nil {
			r.Copies[cell] = &copied
		}
		cancel()
	}
}

func appliedTo(work *workv1alpha1.Work) bool {
	return meta.IsStatusConditionTrue(work.Status.Conditions, workv1alpha1.WorkApplied)
}

// Pairs are the presences that bindings and contexts of a namespace are about, sorted; of
// all namespaces where it is empty, and of one network where that is named.
func (h *Hub) Pairs(ctx context.Context, namespace, network string) (*Pairs, error) {
	var bindings v1alpha.NetworkBindingList
	if err := h.Reader.List(ctx, &bindings, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list NetworkBindings: %w", err)
	}
	var contexts v1alpha.NetworkContextList
	if err := h.Reader.List(ctx, &contexts, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list NetworkContexts: %w", err)
	}
	return NewPairs(network, pointers(bindings.Items), pointers(contexts.Items)), nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}
