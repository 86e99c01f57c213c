package presence

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// collected shows a tally as a scrape does.
type collected tally

func (c collected) Describe(descriptions chan<- *prometheus.Desc) { counted.Describe(descriptions) }

func (c collected) Collect(series chan<- prometheus.Metric) {
	for _, gauge := range c {
		series <- prometheus.MustNewConstMetric(gauge.description, prometheus.GaugeValue, float64(gauge.value), gauge.labels...)
	}
}

func answered(name, location string, status metav1.ConditionStatus, reason string) v1alpha.NetworkBinding {
	b := binding(name)
	b.Spec.Location.Name = v1alpha.Name(location)
	b.Status.Conditions[0].Status, b.Status.Conditions[0].Reason = status, reason
	return *b
}

func TestCountsWhatIsOnAHub(t *testing.T) {
	s := present()
	context := *s.contexts[0]
	context.Status.Cells = []v1alpha.CellStatus{
		{Name: "cell-a", CellReport: v1alpha.CellReport{NetworkGeneration: 3, NetworkUID: "uid-1", Holders: ptr.To[int64](2)}},
		{Name: "cell-b", CellReport: v1alpha.CellReport{NetworkGeneration: 2, NetworkUID: "uid-1", Holders: ptr.To[int64](3)}},
		{Name: "cell-c"},
	}
	held := context
	held.Spec.Location.Name = "far"
	held.Status.Cells = nil
	held.Status.Conditions = []metav1.Condition{{Type: v1alpha.NetworkContextDeclared, Status: metav1.ConditionFalse, Reason: v1alpha.ReasonAddressesHeld}}
	ours := map[string]string{v1alpha.ManagedByLabel: v1alpha.ManagedByHub}
	counts := count([]v1alpha.NetworkBinding{
		answered("first", "us-central-1", metav1.ConditionTrue, v1alpha.ReasonNetworkContextReady),
		answered("second", "us-central-1", metav1.ConditionTrue, v1alpha.ReasonNetworkContextReady),
		answered("third", "nowhere", metav1.ConditionFalse, v1alpha.ReasonLocationNotAvailable),
	}, []v1alpha.NetworkContext{context, held}, []v1alpha.LocationBinding{
		{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: ours}},
		{ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: ours}, Status: v1alpha.LocationBindingStatus{Conditions: []metav1.Condition{
			{Type: v1alpha.LocationBindingAvailable, Status: metav1.ConditionFalse},
		}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "a project's own"}},
	})
	want := `
# HELP network_presence_bindings NetworkBindings on the hub, by the reason of their Ready.
# TYPE network_presence_bindings gauge
network_presence_bindings{reason="LocationNotAvailable"} 1
network_presence_bindings{reason="NetworkContextReady"} 2
# HELP network_presence_copies Copies of contexts in cells.
# TYPE network_presence_copies gauge
network_presence_copies 3
# HELP network_presence_copies_behind Copies in cells that do not carry the generation that their context has.
# TYPE network_presence_copies_behind gauge
network_presence_copies_behind 2
# HELP network_presence_grants Grants of locations to projects on the hub, by whether they are usable.
# TYPE network_presence_grants gauge
network_presence_grants{usable="false"} 1
network_presence_grants{usable="true"} 1
# HELP network_presence_holders NetworkInterfaces that hold addresses of networks, as their cells report.
# TYPE network_presence_holders gauge
network_presence_holders 5
# HELP network_presence_presences Presences on the hub, by state and by the reason of it.
# TYPE network_presence_presences gauge
network_presence_presences{reason="AddressesHeld",state="held"} 1
network_presence_presences{reason="LocationNotAvailable",state="refused"} 1
network_presence_presences{reason="NetworkContextReady",state="ready"} 1
`
	if err := testutil.CollectAndCompare(collected(counts), strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	problems, err := testutil.CollectAndLint(collected(counts))
	if err != nil || len(problems) > 0 {
		t.Errorf("the linter of metrics says %v, %v", problems, err)
	}
}

func TestWaitedUntilReady(t *testing.T) {
	now := time.Now()
	made := now.Add(-time.Hour)
	for name, test := range map[string]struct {
		status metav1.ConditionStatus
		since  time.Time
		want   time.Duration
		became bool
	}{
		"looked at for the first time": {metav1.ConditionUnknown, time.Unix(0, 0), time.Hour, true},
		"refused since a minute":       {metav1.ConditionFalse, now.Add(-time.Minute), time.Minute, true},
		"ready before":                 {metav1.ConditionTrue, now.Add(-time.Minute), 0, false},
	} {
		b := binding("first")
		b.CreationTimestamp = metav1.NewTime(made)
		b.Status.Conditions[0].Status, b.Status.Conditions[0].LastTransitionTime = test.status, metav1.NewTime(test.since)
		got, became := waited(b, now)
		if got.Round(time.Second) != test.want || became != test.became {
			t.Errorf("%s: waited %s, %v; want %s, %v", name, got, became, test.want, test.became)
		}
	}
}

func TestAnnouncesReasonsAndNotMessages(t *testing.T) {
	condition := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Status: status, Reason: reason, Message: message}
	}
	waiting := condition(metav1.ConditionFalse, v1alpha.ReasonNetworkContextNotReady, "not yet applied in cell a")
	for name, test := range map[string]struct {
		before *metav1.Condition
		after  metav1.Condition
		want   string // "" for no event
	}{
		"another message":    {&waiting, condition(metav1.ConditionFalse, v1alpha.ReasonNetworkContextNotReady, "not yet applied in cell b"), ""},
		"on its way":         {ptr.To(condition(metav1.ConditionUnknown, v1alpha.ReasonPending, "")), waiting, corev1.EventTypeNormal},
		"not ready any more": {ptr.To(condition(metav1.ConditionTrue, v1alpha.ReasonNetworkContextReady, "")), waiting, corev1.EventTypeWarning},
		"ready":              {&waiting, condition(metav1.ConditionTrue, v1alpha.ReasonNetworkContextReady, ""), corev1.EventTypeNormal},
		"refused":            {nil, condition(metav1.ConditionFalse, v1alpha.ReasonLocationNotAvailable, ""), corev1.EventTypeWarning},
	} {
		if got, yes := announced(test.before, test.after); got != test.want || yes != (test.want != "") {
			t.Errorf("%s: got %q, %v; want %q", name, got, yes, test.want)
		}
	}
}

// notes records the notes of events.
type notes []string

func (n *notes) Eventf(_, _ runtime.Object, _, _, _, note string, args ...any) {
	*n = append(*n, strings.ReplaceAll(note, "%s", args[0].(string)))
}

var _ events.EventRecorder = (*notes)(nil)

// A note that the API server would refuse is cut, between characters.
func TestNotesAreCut(t *testing.T) {
	var told notes
	tell(&told, client.Object(&v1alpha.NetworkBinding{}), corev1.EventTypeNormal, "Reason", "Action", "a"+strings.Repeat("ä", 600))
	if got := told[0]; len(got) != mostNote-1 || !strings.HasSuffix(got, "ä") {
		t.Errorf("the note has %d bytes and ends in %q", len(got), got[len(got)-2:])
	}
}
