package locationauthority

import (
	"context"
	"fmt"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/scheduler/framework"
	schedulerruntime "github.com/karmada-io/karmada/pkg/scheduler/framework/runtime"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/location"
)

// syncTimeout bounds the wait for the hub at start-up. A plugin that answered before it
// knows the grants would refuse what may run.
const syncTimeout = time.Minute

// NewFactory returns the factory by which the scheduler makes the plugin, once, before it
// is elected leader. The factory is given nothing, so config, called by it, tells how to
// reach the hub. It returns once the plugin knows all that is on the hub; the error says
// what was not to be had. Watches run until ctx ends.
func NewFactory(ctx context.Context, config func() (*rest.Config, error)) schedulerruntime.PluginFactory {
	return func() (framework.Plugin, error) {
		config, err := config()
		if err != nil {
			return nil, fmt.Errorf("%s: read the kubeconfig of the hub: %w", Name, err)
		}
		config.QPS = -1 // the hub's own fairness decides
		plugin, err := newPlugin(ctx, config)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", Name, err)
		}
		return plugin, nil
	}
}

func newPlugin(ctx context.Context, config *rest.Config) (*Plugin, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha.AddToScheme, workv1alpha2.Install, clusterv1alpha1.Install,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	hub, err := cache.New(config, cache.Options{Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, fmt.Errorf("make the cache of the hub: %w", err)
	}
	writer, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make the client of the hub: %w", err)
	}
	p := &Plugin{authority: location.NewIndex(), waiting: newWaiting(writer)}
	p.subjects = &subjects{
		contexts: map[types.NamespacedName]string{},
		known: func(name types.NamespacedName) {
			p.waiting.release(objectKey{contextKind, name.Namespace, name.Name})
		},
	}
	p.authority.Subscribe(func(change location.Change) { p.waiting.changed(p.authority, change) })
	return p, p.start(ctx, hub)
}

// start watches the hub and returns once all that is there is known.
func (p *Plugin) start(ctx context.Context, hub cache.Cache) error {
	syncCtx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if err := p.authority.Watch(syncCtx, hub); err != nil {
		return err
	}
	if err := p.subjects.watch(syncCtx, hub); err != nil {
		return err
	}
	go func() {
		if err := hub.Start(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "the plugin's watches ended", "plugin", Name)
		}
	}()
	if !toolscache.WaitForCacheSync(syncCtx.Done(), p.authority.HasSynced, p.subjects.synced) {
		return fmt.Errorf("the hub did not list LocationBindings, Namespaces, Clusters and NetworkContexts within %s", syncTimeout)
	}
	go p.waiting.run(ctx)
	return nil
}
