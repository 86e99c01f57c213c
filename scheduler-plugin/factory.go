package locationauthority

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-io/karmada/pkg/scheduler/framework"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/location"
)

// create is the plugin's factory. The scheduler calls it once, with nothing to reach the
// hub by, before it is elected leader. It returns once the plugin knows all that is on the
// hub: one that answered before would refuse what may run, and Karmada retries no refusal.
func (o *Options) create(ctx context.Context) (framework.Plugin, error) {
	if o.SyncTimeout <= 0 {
		return nil, fmt.Errorf("%s: --%s is %s: it must be longer than 0", Name, syncTimeoutFlag, o.SyncTimeout)
	}
	configuration, err := location.ReadConfiguration(o.Configuration)
	if err != nil {
		return nil, fmt.Errorf("%s: --%s: %w", Name, configurationFlag, err)
	}
	config, err := clientcmd.BuildConfigFromFlags(o.Master, o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%s: read the kubeconfig of the hub %q: %w", Name, o.Kubeconfig, err)
	}
	config.QPS = -1 // the hub's own fairness decides
	authority, err := o.follow(ctx, config, configuration)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	return New(authority), nil
}

// retryInterval paces the attempts to reach the hub at start-up.
const retryInterval = 500 * time.Millisecond

// follow returns an authority that knows the hub and follows it until ctx ends.
func (o *Options) follow(ctx context.Context, config *rest.Config, configuration location.Configuration) (*location.Authority, error) {
	limit, cancel := context.WithTimeout(ctx, o.SyncTimeout)
	defer cancel()
	began := time.Now()
	var (
		authority *location.Authority
		hub       cache.Cache
		last      error
	)
	faults := &faults{}
	err := wait.PollUntilContextCancel(limit, retryInterval, true, func(context.Context) (bool, error) {
		authority = location.NewAuthority(configuration)
		hub, last = newCache(config, authority, faults)
		if last == nil {
			last = authority.Watch(ctx, hub)
		}
		return last == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("reach the hub at %s within %s: %w", config.Host, o.SyncTimeout, errors.Join(last, context.Cause(ctx)))
	}
	go func() {
		if err := hub.Start(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "the plugin's watches ended", "plugin", Name)
		}
	}()
	if !toolscache.WaitForCacheSync(limit.Done(), authority.HasSynced) {
		return nil, fmt.Errorf("list what decides placement on the hub at %s within %s: %w", config.Host, o.SyncTimeout, faults.join())
	}
	klog.FromContext(ctx).Info("location authority knows the hub", "plugin", Name, "took", time.Since(began).Round(time.Millisecond))
	return authority, nil
}

// newCache is a cache of the hub that keeps no more than the authority looks at.
func newCache(config *rest.Config, authority *location.Authority, faults *faults) (cache.Cache, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha.AddToScheme, clusterv1alpha1.Install} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	hub, err := cache.New(config, cache.Options{
		Scheme: scheme, DefaultTransform: authority.Trim, DefaultWatchErrorHandler: faults.note,
	})
	if err != nil {
		return nil, fmt.Errorf("make the cache: %w", err)
	}
	return hub, nil
}

// faults are the last errors of the watches, by kind.
type faults struct {
	mu    sync.Mutex
	kinds map[string]error
}

// note is told of each failed list or watch.
func (f *faults) note(ctx context.Context, reflector *toolscache.Reflector, err error) {
	f.mu.Lock()
	if f.kinds == nil {
		f.kinds = map[string]error{}
	}
	f.kinds[reflector.TypeDescription()] = err
	f.mu.Unlock()
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
}

// join is one error that names each kind; it says so where none failed.
func (f *faults) join() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.kinds) == 0 {
		return errors.New("no answer")
	}
	var texts []string
	for _, kind := range slices.Sorted(maps.Keys(f.kinds)) {
		texts = append(texts, fmt.Sprintf("%s: %v", kind, f.kinds[kind]))
	}
	return errors.New(strings.Join(texts, "; "))
}
