package cell

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"go.datum.net/network-presence/api/v1alpha"
)

// What the agent may do in its cell, and no more. The location is read before anything
// else, and only where it is not given.
//
// +kubebuilder:rbac:groups=networking.datumapis.com,resources=networkcontexts,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=networking.datumapis.com,resources=networkcontexts/status,verbs=patch
// +kubebuilder:rbac:groups=networking.datumapis.com,resources=networkinterfaces,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=networking.datumapis.com,resources=networkinterfaceclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.datumapis.com,resources=networkinterfaceclaims/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update,namespace=network-presence-system
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch,namespace=network-presence-system
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch,namespace=network-presence-system

// LeaseName is the Lease that the replicas of an agent elect their leader by.
const LeaseName = "network-presence-cell"

// Options say how an agent runs. Start from DefaultOptions.
type Options struct {
	// Location that the cell serves. Empty: read from the cell, see ReadLocation.
	Location string
	// AllocationGrace is how long an allocator may take from reading that a claim is
	// eligible to creating its interface. See the package's doc.
	AllocationGrace time.Duration
	// Workers of each controller.
	Workers int
	// LeaderElection lets one of several replicas work. Without it, only one may run:
	// two would not wait for each other's promises.
	LeaderElection bool
	// LeaderElectionNamespace, in the cell, holds the Lease.
	LeaderElectionNamespace string
	// MetricsAddress and ProbeAddress are served at, as host:port; "0" serves none.
	MetricsAddress string
	ProbeAddress   string
}

// DefaultOptions are Options for an agent that runs in its cell as a Pod.
func DefaultOptions() Options {
	return Options{
		AllocationGrace:         5 * time.Second,
		Workers:                 8,
		LeaderElection:          true,
		LeaderElectionNamespace: "network-presence-system",
		MetricsAddress:          ":8080",
		ProbeAddress:            ":8081",
	}
}

// Validate says which option is wrong, and what is right; nil where none is.
func (o Options) Validate() error {
	var faults []error
	if o.Location != "" {
		faults = append(faults, ValidateLocation(o.Location))
	}
	if o.AllocationGrace < 0 {
		faults = append(faults, fmt.Errorf("allocation grace %s is negative: it is a time of zero or more", o.AllocationGrace))
	}
	if o.Workers < 1 {
		faults = append(faults, fmt.Errorf("workers is %d: at least 1 is needed", o.Workers))
	}
	return errors.Join(faults...)
}

// Run runs an agent against the cell that the configuration reaches, at the pace that its
// QPS allows, until the context ends. The error is that of wrong options, of a location that is not known, of a cell that
// lacks the CustomResourceDefinitions, or of a lost leadership; nil when the context ended.
func Run(ctx context.Context, cell *rest.Config, options Options) error {
	if err := options.Validate(); err != nil {
		return err
	}
	agent, err := newAgent(cell, options)
	if err != nil {
		return fmt.Errorf("set up the cell agent: %w", err)
	}
	if options.Location == "" {
		if options.Location, err = ReadLocation(ctx, agent.GetAPIReader()); err != nil {
			return err
		}
	}
	if err := addControllers(ctx, agent, options); err != nil {
		return err
	}
	agent.GetLogger().Info("serving a location", "location", options.Location)
	if err := agent.Start(ctx); err != nil {
		return fmt.Errorf("run the cell agent: %w", err)
	}
	return nil
}

func newAgent(cell *rest.Config, options Options) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	agent, err := manager.New(cell, manager.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform: forgetUnread,
			// Nothing here changes what it reads, and lists are long.
			DefaultUnsafeDisableDeepCopy: ptr.To(true),
		},
		Controller:                    config.Controller{UsePriorityQueue: ptr.To(false)}, // it can deadlock at shutdown: a worker leaves while an item is handed to it
		Metrics:                       metricsserver.Options{BindAddress: options.MetricsAddress},
		HealthProbeBindAddress:        options.ProbeAddress,
		LeaderElection:                options.LeaderElection,
		LeaderElectionID:              LeaseName,
		LeaderElectionNamespace:       options.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true, // the process ends with its context
	})
	if err != nil {
		return nil, err
	}
	return agent, errors.Join(
		agent.AddHealthzCheck("ping", healthz.Ping),
		agent.AddReadyzCheck("cache", synced(agent.GetCache())),
	)
}

// forgetUnread keeps from the cache what is never read and may be large.
func forgetUnread(object any) (any, error) {
	if object, ok := object.(client.Object); ok {
		object.SetManagedFields(nil)
		object.SetAnnotations(nil)
	}
	return object, nil
}

// synced is ready once the cache has seen the cell.
func synced(cell cache.Cache) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		if !cell.WaitForCacheSync(ctx) {
			return errors.New("the cache has not seen the cell yet")
		}
		return nil
	}
}

func addControllers(ctx context.Context, agent manager.Manager, options Options) error {
	if err := indexByNetwork(ctx, agent.GetFieldIndexer()); err != nil {
		return err
	}
	hold := &holdReconciler{
		Client:   agent.GetClient(),
		live:     agent.GetAPIReader(),
		location: options.Location,
		grace:    options.AllocationGrace,
		now:      time.Now,
	}
	report := &reportReconciler{Client: agent.GetClient(), location: options.Location, now: time.Now}
	convergence := &convergenceReconciler{Client: agent.GetClient(), location: options.Location}
	return errors.Join(
		hold.setup(agent, options.Workers),
		report.setup(agent, options.Workers),
		convergence.setup(agent, options.Workers),
	)
}
