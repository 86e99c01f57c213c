package project

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// reachable has one series for each connected project.
var reachable = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "network_presence_project_reachable",
	Help: "Whether the control plane of a connected project answers: 1 or 0.",
}, []string{"project"})

func init() { metrics.Registry.MustRegister(reachable) }

func setReachable(project string, answers bool) {
	value := 0.0
	if answers {
		value = 1
	}
	reachable.WithLabelValues(project).Set(value)
}
