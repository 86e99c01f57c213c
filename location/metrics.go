package location

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	retriggers = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "network_presence_retriggers_total",
		Help: "How often the scheduler was told to look at a binding again.",
	})
	grantSources = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "network_presence_grant_sources",
		Help: "Connected projects by what is known of their LocationBindings: read; unread, not listed so far; empty, none there though none was seen to be deleted, so that copies are kept.",
	}, []string{"state"})
	grantClashes = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "network_presence_grant_clashes",
		Help: "LocationBindings that are not copied to the hub, since something else there has the name of the copy.",
	})
)

func init() { metrics.Registry.MustRegister(retriggers, grantSources, grantClashes) }
