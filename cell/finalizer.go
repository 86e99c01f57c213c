package cell

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"go.datum.net/network-presence/api/v1alpha"
)

// A finalizer has settled this long after it was added, or this many times as long as the
// API server took to add it, whichever is more. See prove.
const (
	settleTime   = 300 * time.Millisecond
	settleFactor = 10
)

// cacheLag is how long the cache is given to show what the API server has.
const cacheLag = time.Second

// interfacesPerPage bounds the memory that a live list takes.
const interfacesPerPage = 500

// hold adds the finalizer, and tells whether it is on all of the contexts.
func (r *holdReconciler) hold(ctx context.Context, contexts []*v1alpha.NetworkContext, known *standing) (bool, error) {
	for _, context := range contexts {
		began := r.now()
		held := context.DeepCopy()
		controllerutil.AddFinalizer(held, v1alpha.InUseFinalizer)
		switch err := r.write(ctx, context, held, known); {
		case superseded(err):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("add finalizer %s to context %s: %w",
				v1alpha.InUseFinalizer, client.ObjectKeyFromObject(context), err)
		}
		known.held(context, r.now().Add(max(settleTime, settleFactor*r.now().Sub(began))))
		log.FromContext(ctx).Info("holding a context", "context", client.ObjectKeyFromObject(context))
	}
	return true, nil
}

// prove makes sure that the finalizer on a context counts, and otherwise says when to ask
// again, if no event will tell.
//
// The API server does not delete and look for finalizers at one time: a deletion that read
// the object before a finalizer was added goes on to delete it all the same. So after a
// finalizer was added, deletions that began before it are given time to end, and then the
// API server itself is asked whether the context is still there.
func (r *holdReconciler) prove(ctx context.Context, context *v1alpha.NetworkContext, known *standing) (proven bool, wait time.Duration, err error) {
	if known.proven[context.UID] {
		return true, 0, nil
	}
	if wait := known.settled[context.UID].Sub(r.now()); wait > 0 {
		return false, wait, nil
	}
	var now v1alpha.NetworkContext
	err = r.live.Get(ctx, client.ObjectKeyFromObject(context), &now)
	if errors.IsNotFound(err) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, fmt.Errorf("read context %s from the API server: %w", client.ObjectKeyFromObject(context), err)
	}
	if now.UID != context.UID || !controllerutil.ContainsFinalizer(&now, v1alpha.InUseFinalizer) {
		return false, 0, nil
	}
	known.proven[context.UID] = true
	return true, 0, nil
}

// release removes the finalizer, unless the API server has an interface that the cache
// does not show yet. It says when to look again then: an interface that comes and goes
// while the cache's watch is broken never becomes an event.
func (r *holdReconciler) release(ctx context.Context, network networkKey, contexts []*v1alpha.NetworkContext, known *standing) (time.Duration, error) {
	if len(contexts) == 0 {
		return 0, nil
	}
	occupied, err := r.occupied(ctx, network)
	if err != nil {
		return 0, err
	}
	if occupied {
		return cacheLag, nil
	}
	for _, context := range contexts {
		released := context.DeepCopy()
		controllerutil.RemoveFinalizer(released, v1alpha.InUseFinalizer)
		switch err := r.write(ctx, context, released, known); {
		case superseded(err):
			return 0, nil
		case err != nil:
			return 0, fmt.Errorf("remove finalizer %s from context %s: %w",
				v1alpha.InUseFinalizer, client.ObjectKeyFromObject(context), err)
		}
		log.FromContext(ctx).Info("released a context", "context", client.ObjectKeyFromObject(context))
	}
	return 0, nil
}

// write changes a context, provided that it still is what the decision was made from.
func (r *holdReconciler) write(ctx context.Context, before, after *v1alpha.NetworkContext, known *standing) error {
	unchanged := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Patch(ctx, after, unchanged, FieldOwner); err != nil {
		return err
	}
	known.wrote(after, after.ResourceVersion)
	return nil
}

// occupied asks the API server whether an interface of the network exists.
func (r *holdReconciler) occupied(ctx context.Context, network networkKey) (bool, error) {
	for from := ""; ; {
		var page v1alpha.NetworkInterfaceList
		err := r.live.List(ctx, &page, client.InNamespace(network.Namespace),
			client.Limit(interfacesPerPage), client.Continue(from))
		if err != nil {
			return false, fmt.Errorf("list interfaces in namespace %q from the API server: %w", network.Namespace, err)
		}
		for i := range page.Items {
			if networkOf(&page.Items[i]) == network {
				return true, nil
			}
		}
		if from = page.Continue; from == "" {
			return false, nil
		}
	}
}
