package main

import (
	"context"
	"fmt"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/location"
	"go.datum.net/network-presence/presence"
	"go.datum.net/network-presence/project"
)

// hubOptions are the flags of the hub's controllers.
type hubOptions struct {
	kubeconfig         string
	platformKubeconfig string
	projects           project.Options

	authorityConfig string
	schedulers      []string
	retriggerQPS    float64
	confine         bool

	metricsAddress string
	healthAddress  string

	leaderElect          bool
	leaderElectNamespace string

	qps     float32
	burst   int
	workers int
}

func newHubCommand() *cobra.Command {
	var options hubOptions
	command := &cobra.Command{
		Use:   "hub",
		Short: "Run the controllers of the hub, a Karmada API server",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runHub(command.Context(), &options)
		},
	}
	options.addFlags(command.Flags())
	return command
}

func (o *hubOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the Karmada API server; unset, the pod's own service account")
	flags.StringVar(&o.platformKubeconfig, "platform-kubeconfig", "", "kubeconfig of the platform plane, whose Locations are copied to the hub; unset, none are")
	flags.StringVar(&o.projects.SecretsNamespace, "project-secrets-namespace", "network-presence-system", "hub namespace of the Secrets that connect projects")
	flags.StringVar(&o.projects.SingleName, "single-project", "", "connect this one project by --single-project-kubeconfig, and read no Secrets")
	flags.StringVar(&o.projects.SingleKubeconfig, "single-project-kubeconfig", "", "kubeconfig of the project named by --single-project")
	flags.StringVar(&o.authorityConfig, "location-authority-config", "", "file that names further kinds which name a location, as given to the scheduler")
	flags.StringSliceVar(&o.schedulers, "scheduler-names", []string{"network-presence-scheduler"}, "names of the schedulers that run the plugin LocationAuthority; bindings of others are left alone")
	flags.Float64Var(&o.retriggerQPS, "retrigger-qps", 100, "how many bindings a second the scheduler is told to look at again, after a change")
	flags.BoolVar(&o.confine, "confine-namespaces", false, "have hub namespaces carried only to the cells that their project may use; the policy must carry them, as that of the chart does with policy.confineNamespaces")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", `where metrics are served; "0" for nowhere`)
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "where healthz and readyz are served")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "act only while holding the lease network-presence-hub")
	flags.StringVar(&o.leaderElectNamespace, "leader-elect-resource-namespace", "network-presence-system", "hub namespace of the lease")
	flags.Float32Var(&o.qps, "kube-api-qps", -1, "requests a second to each API server; negative leaves it to the server's own fairness")
	flags.IntVar(&o.burst, "kube-api-burst", 0, "requests at once to each API server, where --kube-api-qps is positive")
	flags.IntVar(&o.workers, "concurrent-presences", 10, "how many presences are looked at at once")
}

func runHub(ctx context.Context, o *hubOptions) error {
	if (o.projects.SingleName == "") != (o.projects.SingleKubeconfig == "") {
		return fmt.Errorf("--single-project and --single-project-kubeconfig go together: set both or neither")
	}
	config, err := o.config(o.kubeconfig)
	if err != nil {
		return err
	}
	local, err := manager.New(config, o.managerOptions())
	if err != nil {
		return fmt.Errorf("set up the hub: %w", err)
	}
	o.projects.Scheme, o.projects.QPS, o.projects.Burst = local.GetScheme(), o.qps, o.burst
	planes := project.NewPlanes()
	mgr, err := project.NewManager(ctx, local, o.projects, planes)
	if err != nil {
		return err
	}
	authority, err := startAuthority(ctx, local, o)
	if err != nil {
		return err
	}
	connections := o.projects.Connections(local.GetClient(), local.GetAPIReader())
	if err := copyGrants(ctx, local, planes, connections); err != nil {
		return err
	}
	if err := copyLocations(ctx, local, o); err != nil {
		return err
	}
	if o.confine {
		if err := location.AddConfinement(local); err != nil {
			return err
		}
	}
	err = presence.SetupWithManager(ctx, local, presence.Options{
		Authority:  authority.Index,
		Planes:     planes,
		Known:      connections.Known,
		Schedulers: o.schedulers,
		Workers:    o.workers,
	})
	if err != nil {
		return err
	}
	if err := addChecks(local); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// startAuthority follows what decides where objects may be, and has the scheduler look again
// when that changes.
func startAuthority(ctx context.Context, local manager.Manager, o *hubOptions) (*location.Authority, error) {
	if o.retriggerQPS <= 0 {
		return nil, fmt.Errorf("--retrigger-qps is %v: it must be more than 0", o.retriggerQPS)
	}
	configuration, err := location.ReadConfiguration(o.authorityConfig)
	if err != nil {
		return nil, fmt.Errorf("--location-authority-config: %w", err)
	}
	authority := location.NewAuthority(configuration)
	if err := authority.Watch(ctx, local.GetCache()); err != nil {
		return nil, err
	}
	return authority, location.AddRetrigger(local, location.RetriggerOptions{
		Authority: authority, Schedulers: o.schedulers, QPS: o.retriggerQPS, Burst: 2 * int(max(1, o.retriggerQPS)),
	})
}

// copyGrants has the LocationBindings of each connected project copied to the hub.
func copyGrants(ctx context.Context, local manager.Manager, planes *project.Planes, connections *project.Connections) error {
	grants, err := location.NewGrants(local, connections)
	if err != nil {
		return err
	}
	planes.Subscribe(func(change project.Change) {
		if plane, connected := planes.Get(change.Project); connected {
			grants.Follow(change.Project, plane)
			return
		}
		grants.Forget(ctx, change.Project)
	})
	return connections.Watch(ctx, local.GetCache(), func(name string) {
		if _, connected := planes.Get(name); !connected {
			grants.Forget(ctx, name)
		}
	})
}

// copyLocations has the Locations of the platform, where there is one, copied to the hub.
func copyLocations(ctx context.Context, local manager.Manager, o *hubOptions) error {
	if o.platformKubeconfig == "" {
		return nil
	}
	platform, err := o.projects.Platform(ctx, local, o.platformKubeconfig)
	if err != nil {
		return fmt.Errorf("--platform-kubeconfig: %w", err)
	}
	return location.AddLocations(local, platform)
}

func (o *hubOptions) config(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read --kubeconfig %q: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = o.qps, o.burst
	return config, nil
}

func (o *hubOptions) managerOptions() manager.Options {
	return manager.Options{
		Scheme:                        hubScheme(),
		Controller:                    config.Controller{UsePriorityQueue: ptr.To(false)}, // it can deadlock at shutdown: a worker leaves while an item is handed to it
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.healthAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "network-presence-hub",
		LeaderElectionNamespace:       o.leaderElectNamespace,
		LeaderElectionReleaseOnCancel: true,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&workv1alpha2.ResourceBinding{}:        {Transform: location.TrimBindings(o.schedulers)},
				&workv1alpha2.ClusterResourceBinding{}: {Transform: location.TrimBindings(o.schedulers)},
				presence.WorkMetadata():                {Transform: presence.TrimWork},
				&corev1.Secret{}:                       {Namespaces: map[string]cache.Config{o.projects.SecretsNamespace: {}}},
			},
		},
	}
}

func hubScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha.AddToScheme, workv1alpha1.Install, workv1alpha2.Install, clusterv1alpha1.Install,
	} {
		if err := add(scheme); err != nil {
			panic(err) // two packages claim one Go type: a mistake in this program
		}
	}
	return scheme
}

func addChecks(mgr manager.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("set up healthz: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("set up readyz: %w", err)
	}
	return nil
}
