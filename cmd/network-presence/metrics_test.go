package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// prefix starts the name of each metric of ours.
const prefix = "network_presence_"

// labels are those that our metrics may have: none of them is the name of an object.
var labels = []string{"state", "reason", "usable", "reachable", "kind", "operation"}

var described = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "([^"]*)", constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)

// ours are the metrics of all our processes as families without a value, in the way the
// linter looks at them.
func ours(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	registry, ok := metrics.Registry.(*prometheus.Registry)
	if !ok {
		t.Fatalf("the registry is a %T", metrics.Registry)
	}
	descriptions := make(chan *prometheus.Desc, 1000)
	registry.Describe(descriptions)
	close(descriptions)
	var families []*dto.MetricFamily
	for description := range descriptions {
		parts := described.FindStringSubmatch(description.String())
		if parts == nil || !strings.HasPrefix(parts[1], prefix) {
			continue
		}
		metric := &dto.Metric{}
		for _, label := range strings.FieldsFunc(parts[3], func(r rune) bool { return r == ',' || r == ' ' }) {
			metric.Label = append(metric.Label, &dto.LabelPair{Name: ptr.To(label), Value: ptr.To("x")})
		}
		families = append(families, &dto.MetricFamily{
			Name: ptr.To(parts[1]), Help: ptr.To(parts[2]), Type: kind(parts[1]).Enum(), Metric: []*dto.Metric{metric},
		})
	}
	return families
}

// kind is the type that a metric has by its name; a wrong one makes the linter complain.
func kind(name string) dto.MetricType {
	switch {
	case strings.HasSuffix(name, "_total"):
		return dto.MetricType_COUNTER
	case strings.HasSuffix(name, "_seconds"):
		return dto.MetricType_HISTOGRAM
	}
	return dto.MetricType_GAUGE
}

func TestMetricsAreWellNamed(t *testing.T) {
	families := ours(t)
	if len(families) < 12 {
		t.Errorf("%d metrics of ours are registered, want those of hub and webhook", len(families))
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
	for _, family := range families {
		if !strings.HasSuffix(family.GetHelp(), ".") {
			t.Errorf("%s: its help is no sentence: %q", family.GetName(), family.GetHelp())
		}
		for _, label := range family.Metric[0].Label {
			if !slices.Contains(labels, label.GetName()) {
				t.Errorf("%s: label %q is none of %v: would it be the name of an object?", family.GetName(), label.GetName(), labels)
			}
		}
	}
}

// What is gathered has the types that the names promise.
func TestMetricsCanBeGathered(t *testing.T) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), prefix) && family.GetType() != kind(family.GetName()) {
			t.Errorf("%s is a %s", family.GetName(), family.GetType())
		}
	}
}

// Alerts and dashboard use metrics that there are.
func TestAlertsAndDashboardUseMetricsThatThereAre(t *testing.T) {
	known := map[string]bool{}
	for _, family := range ours(t) {
		known[family.GetName()] = true
	}
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		raw, err := os.ReadFile("../../charts/network-presence/files/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(prefix+`[a-z_]+`).FindAllString(string(raw), -1) {
			if !known[strings.TrimSuffix(name, "_bucket")] {
				t.Errorf("%s uses %s, which no process of ours has", file, name)
			}
		}
	}
}
