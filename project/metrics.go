package project

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// connections counts the connected projects by whether they answer. No series has the name
// of a project: a hub may have many, and the event on its namespaces says which.
var connections = &connectionCount{answers: map[string]bool{}, gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "network_presence_projects",
	Help: "Connected projects, by whether their control plane answers.",
}, []string{"reachable"})}

func init() {
	metrics.Registry.MustRegister(connections.gauge)
	connections.show()
}

// connectionCount knows of each connected project whether it answers.
type connectionCount struct {
	mu      sync.Mutex
	answers map[string]bool
	gauge   *prometheus.GaugeVec
}

func (c *connectionCount) set(project string, answers bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[project] = answers
	c.show()
}

func (c *connectionCount) forget(project string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.answers, project)
	c.show()
}

func (c *connectionCount) show() {
	counts := map[bool]int{}
	for _, answers := range c.answers {
		counts[answers]++
	}
	for _, answers := range []bool{true, false} {
		c.gauge.WithLabelValues(strconv.FormatBool(answers)).Set(float64(counts[answers]))
	}
}
