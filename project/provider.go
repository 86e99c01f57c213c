package project

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	"sigs.k8s.io/multicluster-runtime/providers/kubeconfig"
	"sigs.k8s.io/multicluster-runtime/providers/single"
)

// Options say how project control planes are found.
type Options struct {
	// SecretsNamespace is the hub namespace whose Secrets connect projects: those labelled
	// kubeconfig.DefaultKubeconfigSecretLabel "true", each named like its project and
	// holding a kubeconfig. Projects come and go with their Secrets.
	SecretsNamespace string
	// SingleName, unless empty, connects the one plane of SingleKubeconfig under that name,
	// and no Secrets are read.
	SingleName string
	// SingleKubeconfig is the path of the kubeconfig for SingleName.
	SingleKubeconfig string
	// Scheme has the kinds that are read in projects.
	Scheme *runtime.Scheme
	// QPS and Burst limit requests to each plane on this side; a negative QPS leaves it
	// to the plane's own fairness.
	QPS   float32
	Burst int
}

// NewManager returns a multicluster manager on top of local that connects projects as
// options say and tells planes of them. The kubeconfig of a single plane that cannot be
// read is an error.
func NewManager(ctx context.Context, local manager.Manager, options Options, planes *Planes) (mcmanager.Manager, error) {
	provider, setup, err := options.provider(local)
	if err != nil {
		return nil, err
	}
	mgr, err := mcmanager.WithMultiCluster(local, provider)
	if err != nil {
		return nil, fmt.Errorf("set up the manager of project control planes: %w", err)
	}
	if err := mgr.Add(planes); err != nil {
		return nil, fmt.Errorf("set up project control planes: %w", err)
	}
	return mgr, setup(ctx, mgr)
}

type setupFunc func(context.Context, mcmanager.Manager) error

func (o Options) provider(local manager.Manager) (multicluster.Provider, setupFunc, error) {
	if o.SingleName == "" {
		provider := o.secrets()
		return provider, provider.SetupWithManager, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.SingleKubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("read the kubeconfig %q of project %q: %w", o.SingleKubeconfig, o.SingleName, err)
	}
	if err := o.limit(config); err != nil {
		return nil, nil, err
	}
	plane, err := cluster.New(config, o.cluster)
	if err != nil {
		return nil, nil, fmt.Errorf("reach project %q: %w", o.SingleName, err)
	}
	setup := func(context.Context, mcmanager.Manager) error { return local.Add(plane) }
	return single.New(multicluster.ClusterName(o.SingleName), plane), setup, nil
}

func (o Options) secrets() *kubeconfig.Provider {
	return kubeconfig.New(kubeconfig.Options{
		Namespace:      o.SecretsNamespace,
		ClusterOptions: []cluster.Option{o.cluster},
		RESTOptions:    []func(*rest.Config) error{o.limit},
	})
}

func (o Options) limit(config *rest.Config) error {
	config.QPS, config.Burst = o.QPS, o.Burst
	return nil
}

func (o Options) cluster(options *cluster.Options) {
	options.Scheme = o.Scheme
	options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	// A read of a kind that nobody watches would start a watch and wait for it.
	options.Cache.ReaderFailOnMissingInformer = true
}
