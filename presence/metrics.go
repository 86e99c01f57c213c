package presence

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"go.datum.net/network-presence/api/v1alpha"
)

var (
	readyAfter = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "network_presence_ready_wait_seconds",
		Help:    "How long bindings waited until they were Ready: since their creation, or since they ceased to be.",
		Buckets: prometheus.ExponentialBuckets(0.125, 2, 14), // up to 17 minutes
	})
	nudges = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "network_presence_nudges_total",
		Help: "How often an overdue report of a cell was asked for anew.",
	})
)

// The descriptions of what is counted when it is asked for. No label is the name of an
// object, so that the number of series has a bound.
var (
	presencesDesc = prometheus.NewDesc("network_presence_presences",
		"Presences on the hub, by state and by the reason of it.", []string{"state", "reason"}, nil)
	bindingsDesc = prometheus.NewDesc("network_presence_bindings",
		"NetworkBindings on the hub, by the reason of their Ready.", []string{"reason"}, nil)
	behindDesc = prometheus.NewDesc("network_presence_copies_behind",
		"Copies in cells that do not carry the generation that their context has.", nil, nil)
	copiesDesc = prometheus.NewDesc("network_presence_copies",
		"Copies of contexts in cells.", nil, nil)
	holdersDesc = prometheus.NewDesc("network_presence_holders",
		"NetworkInterfaces that hold addresses of networks, as their cells report.", nil, nil)
	grantsDesc = prometheus.NewDesc("network_presence_grants",
		"Grants of locations to projects on the hub, by whether they are usable.", []string{"usable"}, nil)
)

// census counts what is on the hub, from the hub's cache, when its metrics are asked for. It
// counts nothing in a process that is not the leader: two would be twice as many.
type census struct {
	hub atomic.Pointer[client.Client]
}

var counted = &census{}

func init() { metrics.Registry.MustRegister(readyAfter, nudges, counted) }

// countFor has what is on the hub counted, from when its manager is the leader.
func countFor(ctx context.Context, mgr manager.Manager) {
	go func() {
		select {
		case <-ctx.Done():
		case <-mgr.Elected():
			hub := mgr.GetClient()
			counted.hub.Store(&hub)
		}
	}()
}

// Describe tells what is counted.
func (c *census) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{presencesDesc, bindingsDesc, behindDesc, copiesDesc, holdersDesc, grantsDesc} {
		descriptions <- description
	}
}

// Collect counts.
func (c *census) Collect(series chan<- prometheus.Metric) {
	hub := c.hub.Load()
	if hub == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var bindings v1alpha.NetworkBindingList
	var contexts v1alpha.NetworkContextList
	var grants v1alpha.LocationBindingList
	for _, list := range []client.ObjectList{&bindings, &contexts, &grants} {
		if err := (*hub).List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return // the cache is not filled yet, or the process ends
		}
	}
	for _, count := range count(bindings.Items, contexts.Items, grants.Items) {
		series <- prometheus.MustNewConstMetric(count.description, prometheus.GaugeValue, float64(count.value), count.labels...)
	}
}

// gauge is one series.
type gauge struct {
	description *prometheus.Desc
	labels      []string
	value       int64
}

// tally adds up series.
type tally map[string]*gauge

func (t tally) add(value int64, description *prometheus.Desc, labels ...string) {
	key := description.String()
	for _, label := range labels {
		key += "\x00" + label
	}
	if t[key] == nil {
		t[key] = &gauge{description: description, labels: labels}
	}
	t[key].value += value
}

// count is what there is on a hub, in numbers.
func count(bindings []v1alpha.NetworkBinding, contexts []v1alpha.NetworkContext, grants []v1alpha.LocationBinding) tally {
	t := tally{}
	asked := map[Key][]*v1alpha.NetworkBinding{}
	present := map[Key]*v1alpha.NetworkContext{}
	for i := range bindings {
		key := KeyOfBinding(&bindings[i])
		asked[key] = append(asked[key], &bindings[i])
		if answer := Answer([]*v1alpha.NetworkBinding{&bindings[i]}); answer != nil {
			t.add(1, bindingsDesc, answer.Reason)
		}
	}
	for _, description := range []*prometheus.Desc{copiesDesc, behindDesc, holdersDesc} {
		t.add(0, description)
	}
	for i := range contexts {
		context := &contexts[i]
		present[KeyOfContext(context)] = context
		t.addCells(context)
	}
	for key := range present {
		if _, known := asked[key]; !known {
			asked[key] = nil
		}
	}
	for key, bindings := range asked {
		state, reason := StateOf(bindings, present[key])
		t.add(1, presencesDesc, string(state), reason)
	}
	for i := range grants {
		if grants[i].Labels[v1alpha.ManagedByLabel] != v1alpha.ManagedByHub {
			continue
		}
		usable := "false"
		if grants[i].Usable() {
			usable = "true"
		}
		t.add(1, grantsDesc, usable)
	}
	return t
}

func (t tally) addCells(context *v1alpha.NetworkContext) {
	for i := range context.Status.Cells {
		cell := &context.Status.Cells[i]
		t.add(1, copiesDesc)
		if cell.NetworkGeneration != context.Spec.NetworkGeneration || string(cell.NetworkUID) != context.Labels[v1alpha.NetworkUIDLabel] {
			t.add(1, behindDesc)
		}
		if cell.Holders != nil {
			t.add(*cell.Holders, holdersDesc)
		}
	}
}

// waited is how long a binding waited until it became Ready, and false where it was before.
func waited(binding *v1alpha.NetworkBinding, now time.Time) (time.Duration, bool) {
	before := meta.FindStatusCondition(binding.Status.Conditions, v1alpha.NetworkBindingReady)
	since := binding.CreationTimestamp.Time
	switch {
	case before == nil:
	case before.Status == metav1.ConditionTrue:
		return 0, false
	case before.Status == metav1.ConditionFalse && before.LastTransitionTime.After(since):
		since = before.LastTransitionTime.Time
	}
	return max(0, now.Sub(since)), true
}
