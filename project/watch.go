package project

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchBackoff paces the attempts to start a watch on a plane that does not answer, which
// sends no event when it does.
var watchBackoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Cap: 10 * time.Second, Steps: 1 << 20}

// Watch calls handler for each object of obj's kind in the plane, and onSynced once the
// handler has seen all that was there. It returns at once; a plane that does not answer,
// or does not serve the kind yet, is tried until it does or is disconnected.
func (p *Plane) Watch(obj client.Object, handler toolscache.ResourceEventHandler, onSynced func()) {
	go func() {
		registration, err := p.register(obj, handler)
		if err != nil {
			return // disconnected
		}
		if toolscache.WaitForCacheSync(p.ctx.Done(), registration.HasSynced) {
			onSynced()
		}
	}()
}

func (p *Plane) register(obj client.Object, handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	var registration toolscache.ResourceEventHandlerRegistration
	last := ""
	err := wait.ExponentialBackoffWithContext(p.ctx, watchBackoff, func(ctx context.Context) (bool, error) {
		informer, err := p.Cluster.GetCache().GetInformer(ctx, obj, cache.BlockUntilSynced(false))
		if err == nil {
			registration, err = informer.AddEventHandler(handler)
		}
		if err != nil && err.Error() != last {
			last = err.Error()
			p.log.Info("cannot watch it yet", "kind", fmt.Sprintf("%T", obj), "error", last)
		}
		return err == nil, nil
	})
	return registration, err
}
