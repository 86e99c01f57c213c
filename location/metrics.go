package location

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var retriggers = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "network_presence_retriggers_total",
	Help: "How often the scheduler was told to look at a binding again.",
})

func init() { metrics.Registry.MustRegister(retriggers) }
