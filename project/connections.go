package project

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/providers/kubeconfig"
)

// Connections say by what projects are connected to the hub.
type Connections struct {
	options Options
	cached  client.Reader
	live    client.Reader
}

// Connections are those by the options. Cached is a reader of the hub's cache, live one of
// the hub itself.
func (o Options) Connections(cached, live client.Reader) *Connections {
	return &Connections{options: o, cached: cached, live: live}
}

// Known tells whether a project is declared as connected: by the single plane's name, or by
// a Secret. Its plane may not be taken up yet, or its kubeconfig may be wrong.
func (c *Connections) Known(ctx context.Context, project string) bool {
	if c.options.SingleName != "" {
		return project == c.options.SingleName
	}
	var secret corev1.Secret
	err := c.cached.Get(ctx, c.secret(project), &secret)
	return err == nil && secret.Labels[kubeconfig.DefaultKubeconfigSecretLabel] == "true"
}

// Connection names what connects a project, or would: the Secret's namespace and name, or
// the flag that gives the single plane.
func (c *Connections) Connection(project string) string {
	if c.options.SingleName != "" {
		return "--single-project"
	}
	return "Secret " + c.secret(project).String()
}

// Gone tells whether what Connection names is not there: there is no such Secret on the
// hub, whatever its labels, or the single plane is another project's. An error is the hub's.
func (c *Connections) Gone(ctx context.Context, project string) (bool, error) {
	if c.options.SingleName != "" {
		return project != c.options.SingleName, nil
	}
	err := c.live.Get(ctx, c.secret(project), &corev1.Secret{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get Secret %s: %w", c.secret(project), err)
	}
	return err != nil, nil
}

// Watch calls gone after each deletion of a Secret that may have connected a project: one
// whose kubeconfig is broken was never taken up, and is not disconnected either.
func (c *Connections) Watch(ctx context.Context, hub cache.Cache, gone func(project string)) error {
	if c.options.SingleName != "" {
		return nil
	}
	informer, err := hub.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch the Secrets of projects: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
		if name, err := toolscache.DeletionHandlingObjectToName(object); err == nil {
			gone(name.Name)
		}
	}})
	return err
}

func (c *Connections) secret(project string) types.NamespacedName {
	return types.NamespacedName{Namespace: c.options.SecretsNamespace, Name: project}
}
