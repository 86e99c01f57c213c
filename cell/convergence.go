package cell

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"go.datum.net/network-presence/api/v1alpha"
	apply "go.datum.net/network-presence/api/v1alpha/applyconfiguration/api/v1alpha"
)

// convergenceReconciler makes one interface's MTU follow its network's. It works by
// interface, not by network, so that ten thousand of them are written side by side, each
// with the MTU of the moment, and one that cannot be written keeps no other from it.
type convergenceReconciler struct {
	client.Client
	location string
}

func (r *convergenceReconciler) setup(agent manager.Manager, workers int) error {
	specChanges := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return builder.ControllerManagedBy(agent).
		Named("convergence").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		For(&v1alpha.NetworkInterface{}, specChanges).
		Watches(&v1alpha.NetworkContext{}, handler.EnqueueRequestsFromMapFunc(r.interfacesOf), specChanges).
		Complete(r)
}

// interfacesOf are the interfaces whose MTU may have to follow a context.
func (r *convergenceReconciler) interfacesOf(ctx context.Context, object client.Object) []reconcile.Request {
	var list v1alpha.NetworkInterfaceList
	if err := r.List(ctx, &list, of(networkOf(object))); err != nil {
		log.FromContext(ctx).Error(err, "list interfaces of a changed context", "network", networkOf(object))
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// Reconcile brings one interface's MTU to its network's.
func (r *convergenceReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var found v1alpha.NetworkInterface
	if err := r.Get(ctx, request.NamespacedName, &found); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	contexts, err := contextsOf(ctx, r, networkOf(&found))
	if err != nil {
		return reconcile.Result{}, err
	}
	mtu, differs := wishedMTU(&found, serving(contexts, r.location))
	if !differs {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.write(ctx, request.NamespacedName, found.UID, mtu)
}

// wishedMTU is the MTU that an interface should have, in bytes, and whether it has another.
// Without a context, or where an old CRD dropped the context's MTU, it is right as it is.
func wishedMTU(found *v1alpha.NetworkInterface, serving *v1alpha.NetworkContext) (mtu int32, differs bool) {
	if serving == nil || serving.Spec.MTU == 0 {
		return found.Spec.MTU, false
	}
	return serving.Spec.MTU, serving.Spec.MTU != found.Spec.MTU
}

// write applies that one field. The UID keeps it from creating an interface that has gone.
func (r *convergenceReconciler) write(ctx context.Context, name types.NamespacedName, uid types.UID, mtu int32) error {
	configuration := apply.NetworkInterface(name.Name, name.Namespace).
		WithUID(uid).
		WithSpec(apply.NetworkInterfaceSpec().WithMTU(mtu))
	err := r.Apply(ctx, configuration, FieldOwner, client.ForceOwnership)
	if err != nil && !superseded(err) {
		return fmt.Errorf("set spec.mtu of interface %s to %d: %w", name, mtu, err)
	}
	return nil
}
