package project

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Platform adds the platform plane of a kubeconfig to the manager, reached as projects are.
// It need not answer, now or ever. A kubeconfig that cannot be read is an error.
func (o Options) Platform(ctx context.Context, local manager.Manager, kubeconfig string) (*Plane, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %q of the platform: %w", kubeconfig, err)
	}
	if err := o.limit(config); err != nil {
		return nil, err
	}
	platform, err := cluster.New(config, o.cluster)
	if err != nil {
		return nil, fmt.Errorf("reach the platform: %w", err)
	}
	// As a mere function, not as a cluster: the manager waits for the caches of those.
	if err := local.Add(manager.RunnableFunc(platform.Start)); err != nil {
		return nil, fmt.Errorf("set up the platform: %w", err)
	}
	return &Plane{Cluster: platform, ctx: ctx, log: log.FromContext(ctx).WithName("platform")}, nil
}
