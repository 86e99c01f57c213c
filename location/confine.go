package location

import (
	"context"
	"fmt"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// confinement keeps Karmada from carrying hub namespaces to every cell: a policy does, to
// those that the project may use.
type confinement struct{ hub client.Client }

// AddConfinement adds the confinement of hub namespaces to the hub's manager. Karmada carries
// a namespace at once, so one that is to go nowhere else must have the label from its
// creation; what is labelled here stays where it was carried meanwhile.
func AddConfinement(mgr manager.Manager) error {
	err := builder.ControllerManagedBy(mgr).
		Named("confinement").
		For(&corev1.Namespace{}, builder.WithPredicates(predicate.NewPredicateFuncs(loose))).
		Complete(&confinement{mgr.GetClient()})
	if err != nil {
		return fmt.Errorf("set up the confinement of namespaces: %w", err)
	}
	return nil
}

// loose tells whether a namespace of a project would be carried everywhere.
func loose(namespace client.Object) bool {
	labels := namespace.GetLabels()
	return hubNamespaceOf(labels).standing == StandingMirror && labels[policyv1alpha1.NamespaceSkipAutoPropagationLabel] != "true" &&
		namespace.GetDeletionTimestamp().IsZero()
}

// Reconcile labels a hub namespace.
func (c *confinement) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var namespace corev1.Namespace
	if err := c.hub.Get(ctx, request.NamespacedName, &namespace); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("get namespace %s: %w", request.Name, err)
	}
	if !loose(&namespace) {
		return reconcile.Result{}, nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, policyv1alpha1.NamespaceSkipAutoPropagationLabel)
	err := c.hub.Patch(ctx, &namespace, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("confine namespace %s: %w", request.Name, err)
	}
	log.FromContext(ctx).Info("namespace confined to the cells that its project may use", "namespace", request.Name)
	return reconcile.Result{}, nil
}
