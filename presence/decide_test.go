package presence

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"go.datum.net/network-presence/api/v1alpha"
)

// present is a presence with nothing wrong: one binding, one context, one cell.
func present() *snapshot {
	key := Key{Namespace: "ns-acme", Network: "default", Location: "us-central-1"}
	s := &snapshot{
		key:               key,
		project:           "acme",
		upstreamNamespace: "default",
		plane:             planeRead,
		granted:           true,
		network: &v1alpha.Network{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "default", UID: "uid-1", Generation: 3,
				Finalizers: []string{v1alpha.PresenceFinalizer},
			},
			Spec: v1alpha.NetworkSpec{IPFamilies: []v1alpha.IPFamily{v1alpha.IPv6, v1alpha.IPv4}, MTU: 8000},
		},
		bindings: []*v1alpha.NetworkBinding{binding("first")},
		cells:    map[string]cell{"cell-a": {name: "cell-a", ready: true}},
		serving:  []string{"cell-a"},
	}
	context := wish(s, key.plainName())
	context.UID = "context-1"
	s.contexts = []*v1alpha.NetworkContext{context}
	s.placements = map[string]*workv1alpha2.ResourceBinding{context.Name: placed(context, "cell-a")}
	return s
}

func binding(name string) *v1alpha.NetworkBinding {
	return &v1alpha.NetworkBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns-acme", Name: name, Generation: 1},
		Spec: v1alpha.NetworkBindingSpec{
			Network:  v1alpha.NetworkReference{Name: "default"},
			Location: v1alpha.BindingLocationReference{Name: "us-central-1"},
		},
		Status: v1alpha.NetworkBindingStatus{Conditions: []metav1.Condition{{
			Type: v1alpha.NetworkBindingReady, Status: metav1.ConditionUnknown, Reason: v1alpha.ReasonPending,
		}}},
	}
}

func placed(context *v1alpha.NetworkContext, cells ...string) *workv1alpha2.ResourceBinding {
	placement := &workv1alpha2.ResourceBinding{}
	placement.Name = context.Name + "-networkcontext"
	placement.Spec.SchedulerName = "network-presence-scheduler"
	placement.Spec.Resource = workv1alpha2.ObjectReference{Name: context.Name, UID: context.UID}
	for _, cell := range cells {
		placement.Spec.Clusters = append(placement.Spec.Clusters, workv1alpha2.TargetCluster{Name: cell})
		placement.Status.AggregatedStatus = append(placement.Status.AggregatedStatus,
			workv1alpha2.AggregatedStatusItem{ClusterName: cell, Applied: true, Health: workv1alpha2.ResourceHealthy, Status: reported(context)})
	}
	return placement
}

// reported is what a cell reports that has a context as it is.
func reported(context *v1alpha.NetworkContext) *runtime.RawExtension {
	raw, err := json.Marshal(v1alpha.CellReport{
		NetworkGeneration: context.Spec.NetworkGeneration,
		NetworkUID:        types.UID(context.Labels[v1alpha.NetworkUIDLabel]),
		IPFamilies:        context.Spec.IPFamilies,
		MTU:               context.Spec.MTU,
	})
	if err != nil {
		panic(err)
	}
	return &runtime.RawExtension{Raw: raw}
}

func now() *metav1.Time { return &metav1.Time{Time: time.Unix(1000, 0)} }

// outcome is a decision as a test compares it.
type outcome struct {
	Written   string // name of the context written
	Withdrawn []string
	Released  []string
	Declared  string // reason of the condition written
	Finalizer bool
	Reason    string // of the first binding's answer
	Message   string // a part of it
}

func outcomeOf(d decision) outcome {
	o := outcome{Finalizer: d.finalizer}
	if d.context != nil {
		o.Written = d.context.Name
	}
	for _, context := range d.withdrawn {
		o.Withdrawn = append(o.Withdrawn, context.Name)
	}
	for _, context := range d.released {
		o.Released = append(o.Released, context.Name)
	}
	if d.declared != nil {
		o.Declared = d.declared.condition.Reason
	}
	if len(d.answers) > 0 {
		ready := meta.FindStatusCondition(d.answers[0].status.Conditions, v1alpha.NetworkBindingReady)
		o.Reason, o.Message = ready.Reason, ready.Message
	}
	return o
}

func TestDecide(t *testing.T) {
	const ctx = "default-us-central-1"
	for _, test := range []struct {
		name   string
		change func(*snapshot)
		want   outcome
	}{
		{
			"a network that is present is ready", func(*snapshot) {},
			outcome{Reason: v1alpha.ReasonNetworkContextReady},
		}, {
			"a namespace without labels names no project and leaves the context alone", func(s *snapshot) {
				s.project, s.upstreamNamespace, s.plane, s.network = "", "", planeUnknown, nil
				s.bindings[0].Spec.Network.Namespace = "default"
			},
			outcome{Reason: v1alpha.ReasonProjectUnresolved, Message: "names no project: label it"},
		}, {
			"a project that is not connected leaves the context alone",
			func(s *snapshot) { s.plane, s.network = planeUnknown, nil },
			outcome{Reason: v1alpha.ReasonProjectUnresolved, Message: "is not connected"},
		}, {
			"a withdrawn grant leaves the context alone",
			func(s *snapshot) { s.granted, s.refusal = false, "project acme may not use us-central-1" },
			outcome{Reason: v1alpha.ReasonLocationNotAvailable, Message: "may not use"},
		}, {
			"a withdrawn grant does not stop updates of what runs",
			func(s *snapshot) { s.granted = false; s.network.Spec.MTU = 1400 },
			outcome{Written: ctx, Reason: v1alpha.ReasonLocationNotAvailable},
		}, {
			"no grant, no context", func(s *snapshot) { s.granted = false; s.contexts = nil },
			outcome{Reason: v1alpha.ReasonLocationNotAvailable, Finalizer: true},
		}, {
			"a network that does not exist", func(s *snapshot) { s.network, s.contexts = nil, nil },
			outcome{Reason: v1alpha.ReasonNetworkNotFound, Message: `has no network "default"`},
		}, {
			"a network that is gone takes its context along", func(s *snapshot) { s.network = nil },
			outcome{Withdrawn: []string{ctx}, Reason: v1alpha.ReasonNetworkNotFound},
		}, {
			"a project that lists nothing at all takes nothing along", func(s *snapshot) { s.network, s.blank = nil, true },
			outcome{Reason: v1alpha.ReasonNetworkContextReady},
		}, {
			"a network being deleted takes its context along", func(s *snapshot) { s.network.DeletionTimestamp = now() },
			outcome{Withdrawn: []string{ctx}, Reason: v1alpha.ReasonNetworkNotFound, Message: "is being deleted"},
		}, {
			"a network being deleted is let go when its context is gone",
			func(s *snapshot) { s.network.DeletionTimestamp = now(); s.contexts = nil },
			outcome{Finalizer: true, Reason: v1alpha.ReasonNetworkNotFound},
		}, {
			"a network needs its finalizer before it has a context",
			func(s *snapshot) { s.network.Finalizers, s.contexts = nil, nil },
			outcome{Finalizer: true, Reason: v1alpha.ReasonNetworkContextNotReady, Message: "waiting to put finalizer"},
		}, {
			"the first binding makes the context", func(s *snapshot) { s.contexts = nil },
			outcome{Written: ctx, Reason: v1alpha.ReasonNetworkContextNotReady, Message: "being created"},
		}, {
			"a name that another pair has gets a hash", func(s *snapshot) { s.contexts, s.nameTaken = nil, true },
			outcome{Written: "default-us-central-1-efdd616db9", Reason: v1alpha.ReasonNetworkContextNotReady},
		}, {
			"an edited network is written to its context", func(s *snapshot) { s.network.Spec.MTU = 1400; s.network.Generation++ },
			outcome{Written: ctx, Reason: v1alpha.ReasonNetworkContextReady},
		}, {
			"a context edited by hand is mended", func(s *snapshot) { s.contexts[0].Spec.MTU = 1300 },
			outcome{Written: ctx, Reason: v1alpha.ReasonNetworkContextReady},
		}, {
			"a context without its finalizer gets it back", func(s *snapshot) { s.contexts[0].Finalizers = nil },
			outcome{Written: ctx, Reason: v1alpha.ReasonNetworkContextReady},
		}, {
			"a foreign label on a context stays", func(s *snapshot) { s.contexts[0].Labels["other"] = "x" },
			outcome{Reason: v1alpha.ReasonNetworkContextReady},
		}, {
			"a context of a deleted network of the same name goes, and the new one waits",
			func(s *snapshot) { s.network.UID = "uid-2" },
			outcome{Withdrawn: []string{ctx}, Reason: v1alpha.ReasonNetworkContextNotReady, Message: "deleted network of the same name"},
		}, {
			"the last binding takes the context along", func(s *snapshot) { s.bindings = nil },
			outcome{Withdrawn: []string{ctx}},
		}, {
			"a context that somebody else made is left alone", func(s *snapshot) {
				s.bindings = nil
				s.contexts[0].Labels, s.contexts[0].Finalizers = nil, nil
			},
			outcome{Finalizer: false},
		}, {
			"a binding that is being deleted needs nothing",
			func(s *snapshot) { s.bindings[0].DeletionTimestamp = now() },
			outcome{Withdrawn: []string{ctx}},
		}, {
			"the last binding takes the context along without the project, too",
			func(s *snapshot) { s.bindings, s.plane, s.network = nil, planeUnknown, nil },
			outcome{Withdrawn: []string{ctx}},
		}, {
			"a context that holds addresses outlives its last binding", func(s *snapshot) { s.bindings = nil; hold(s, "cell-a") },
			outcome{Declared: v1alpha.ReasonAddressesHeld},
		}, {
			"a binding that comes back finds the context as it was", func(s *snapshot) {
				hold(s, "cell-a")
				meta.SetStatusCondition(&s.contexts[0].Status.Conditions, metav1.Condition{
					Type: v1alpha.NetworkContextDeclared, Status: metav1.ConditionFalse, Reason: v1alpha.ReasonAddressesHeld,
				})
			},
			outcome{Declared: v1alpha.ReasonDeclared, Reason: v1alpha.ReasonNetworkContextReady},
		}, {
			"a cell that was unjoined holds nothing",
			func(s *snapshot) { s.bindings = nil; hold(s, "cell-gone") },
			outcome{Withdrawn: []string{ctx}},
		}, {
			"the annotation ends the wait for addresses", func(s *snapshot) {
				s.bindings = nil
				hold(s, "cell-a")
				s.contexts[0].Annotations = map[string]string{v1alpha.ForceReleaseAnnotation: "true"}
			},
			outcome{Withdrawn: []string{ctx}},
		}, {
			"a context deleted by hand is let go, to come back", func(s *snapshot) { s.contexts[0].DeletionTimestamp = now() },
			outcome{Released: []string{ctx}, Reason: v1alpha.ReasonNetworkContextNotReady, Message: "comes back when it is gone"},
		}, {
			"a context deleted by hand waits for addresses",
			func(s *snapshot) { s.contexts[0].DeletionTimestamp = now(); hold(s, "cell-a") },
			outcome{Declared: v1alpha.ReasonAddressesHeld, Reason: v1alpha.ReasonNetworkContextNotReady, Message: "held in cell-a"},
		}, {
			"a silent project leaves what was said", func(s *snapshot) {
				s.plane, s.network, s.contexts = planeSilent, nil, nil
				s.bindings[0].Status.Conditions[0].Reason = v1alpha.ReasonNetworkNotFound
			},
			outcome{},
		}, {
			"a silent project is named to a binding that was never answered",
			func(s *snapshot) { s.plane, s.network, s.contexts = planeSilent, nil, nil },
			outcome{Reason: v1alpha.ReasonProjectUnresolved, Message: "has not answered yet"},
		}, {
			"a silent project's context goes on being reported", func(s *snapshot) { s.plane, s.network = planeSilent, nil },
			outcome{Reason: v1alpha.ReasonNetworkContextReady},
		}, {
			"a binding for another namespace's network is answered and counts for nothing",
			func(s *snapshot) { s.bindings[0].Spec.Network.Namespace = "other" },
			outcome{Withdrawn: []string{ctx}, Reason: v1alpha.ReasonNetworkNotFound, Message: `spec.network.namespace is "other"`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := present()
			test.change(s)
			got := outcomeOf(decide(s))
			if !strings.Contains(got.Message, test.want.Message) {
				t.Errorf("message %q does not contain %q", got.Message, test.want.Message)
			}
			got.Message = test.want.Message
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func hold(s *snapshot, cellName string) {
	holders := int64(2)
	s.contexts[0].Status.Cells = append(s.contexts[0].Status.Cells, v1alpha.CellStatus{
		Name: cellName, CellReport: v1alpha.CellReport{Holders: &holders},
	})
}

func TestReadinessSaysWhatIsMissing(t *testing.T) {
	down := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		name   string
		change func(*snapshot, *workv1alpha2.ResourceBinding)
		ready  bool
		says   string
	}{
		{"all well", func(*snapshot, *workv1alpha2.ResourceBinding) {}, true, "is present in location"},
		{"no ResourceBinding", func(s *snapshot, _ *workv1alpha2.ResourceBinding) { s.placements = nil }, false, "no ResourceBinding"},
		{"the ResourceBinding of a predecessor", func(_ *snapshot, p *workv1alpha2.ResourceBinding) { p.Spec.Resource.UID = "old" }, false, "no ResourceBinding"},
		{"no cell in the location", func(s *snapshot, p *workv1alpha2.ResourceBinding) { p.Spec.Clusters, s.serving = nil, nil }, false, `no cell serves location "us-central-1"`},
		{"no scheduler", func(_ *snapshot, p *workv1alpha2.ResourceBinding) { p.Spec.Clusters = nil }, false, `scheduler "network-presence-scheduler" has not placed`},
		{"refused by the scheduler", func(_ *snapshot, p *workv1alpha2.ResourceBinding) {
			p.Spec.Clusters = nil
			p.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Message: "0/2 clusters are available"}}
		}, false, "0/2 clusters are available"},
		{"not yet reported", func(_ *snapshot, p *workv1alpha2.ResourceBinding) { p.Status.AggregatedStatus = nil }, false, "not yet applied in cell cell-a"},
		{"refused by the cell", func(_ *snapshot, p *workv1alpha2.ResourceBinding) {
			p.Status.AggregatedStatus[0].Applied, p.Status.AggregatedStatus[0].AppliedMessage = false, "denied by policy"
		}, false, "not applied in cell cell-a: denied by policy"},
		{"unhealthy", func(_ *snapshot, p *workv1alpha2.ResourceBinding) {
			p.Status.AggregatedStatus[0].Health = workv1alpha2.ResourceUnhealthy
		}, false, "unhealthy"},
		{"healthy, with rules of another network", func(s *snapshot, p *workv1alpha2.ResourceBinding) {
			other := s.contexts[0].DeepCopy()
			other.Labels[v1alpha.NetworkUIDLabel] = "uid-0"
			p.Status.AggregatedStatus[0].Status = reported(other)
		}, false, "cell cell-a still holds a deleted predecessor"},
		{"applied, and not reported", func(_ *snapshot, p *workv1alpha2.ResourceBinding) {
			p.Status.AggregatedStatus[0].Status = nil
		}, false, "cell cell-a has not reported yet"},
		{"rules being updated", func(s *snapshot, p *workv1alpha2.ResourceBinding) {
			older := s.contexts[0].DeepCopy()
			older.Spec.NetworkGeneration--
			p.Status.AggregatedStatus[0].Status = reported(older)
		}, true, "is present in location"},
		{"the only cell unreachable", func(s *snapshot, _ *workv1alpha2.ResourceBinding) { s.cells["cell-a"] = cell{since: down} }, false, "cell cell-a unreachable since 2026-01-02T03:04:05Z"},
		{"one of two cells unreachable", func(s *snapshot, _ *workv1alpha2.ResourceBinding) {
			s.placements[s.contexts[0].Name] = placed(s.contexts[0], "cell-a", "cell-b")
			s.cells["cell-b"] = cell{since: down}
		}, true, "cell cell-b unreachable since"},
		{"one of two cells without the copy", func(s *snapshot, _ *workv1alpha2.ResourceBinding) {
			p := placed(s.contexts[0], "cell-a", "cell-b")
			p.Status.AggregatedStatus[1].Applied = false
			s.placements[s.contexts[0].Name] = p
			s.cells["cell-b"] = cell{ready: true}
		}, false, "not yet applied in cell cell-b"},
		{"placed by a scheduler that asks nobody", func(s *snapshot, p *workv1alpha2.ResourceBinding) {
			s.schedulers = []string{"ours"}
			p.Spec.SchedulerName = "default-scheduler"
			p.Annotations = map[string]string{policyv1alpha1.ClusterPropagationPolicyAnnotation: "catch-all"}
		}, true, `cluster policy catch-all has it placed by scheduler "default-scheduler", which does not ask`},
		{"a binding that is another kind's", func(s *snapshot, p *workv1alpha2.ResourceBinding) {
			p.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "example.com/v1", Kind: "NetworkContext", Name: "n", UID: "other"}
		}, false, `is that of example.com/v1 NetworkContext "n"`},
		{"a target that was unjoined", func(s *snapshot, _ *workv1alpha2.ResourceBinding) {
			s.placements[s.contexts[0].Name] = placed(s.contexts[0], "cell-a", "cell-gone")
		}, true, "is present in location"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := present()
			test.change(s, s.placements[s.contexts[0].Name])
			got := readiness(s, s.contexts[0])
			if ready := got.status == metav1.ConditionTrue; ready != test.ready {
				t.Errorf("ready is %v, want %v: %s", ready, test.ready, got.message)
			}
			if !strings.Contains(got.message, test.says) {
				t.Errorf("message %q does not contain %q", got.message, test.says)
			}
		})
	}
}

func TestReportsAreOverdueOnlyWhereACellShouldHaveReported(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*snapshot, *workv1alpha2.ResourceBinding)
		want   bool
	}{
		{"reported", func(*snapshot, *workv1alpha2.ResourceBinding) {}, false},
		{"an older generation reported", func(s *snapshot, _ *workv1alpha2.ResourceBinding) {
			s.contexts[0].Spec.NetworkGeneration++
			s.network.Generation++
		}, true},
		{"health unknown", func(_ *snapshot, p *workv1alpha2.ResourceBinding) {
			p.Status.AggregatedStatus[0].Health = workv1alpha2.ResourceUnknown
		}, true},
		{"not applied", func(s *snapshot, p *workv1alpha2.ResourceBinding) {
			p.Status.AggregatedStatus[0] = workv1alpha2.AggregatedStatusItem{ClusterName: "cell-a"}
		}, false},
		{"unreachable", func(s *snapshot, p *workv1alpha2.ResourceBinding) {
			p.Status.AggregatedStatus[0].Health = workv1alpha2.ResourceUnknown
			s.cells["cell-a"] = cell{}
		}, false},
		{"being deleted", func(s *snapshot, _ *workv1alpha2.ResourceBinding) {
			s.contexts[0].Spec.NetworkGeneration++
			s.contexts[0].DeletionTimestamp = now()
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := present()
			test.change(s, s.placements[s.contexts[0].Name])
			if got := decide(s).overdue != nil; got != test.want {
				t.Errorf("overdue is %v, want %v", got, test.want)
			}
		})
	}
}

func TestOverdueReportsAreTimedFromWhenTheyWereFirstMissed(t *testing.T) {
	o := overdueSince{since: map[Key]time.Time{}}
	key, began := Key{Namespace: "ns"}, time.Unix(1000, 0)
	for _, step := range []struct {
		overdue bool
		after   time.Duration
		want    time.Duration
	}{
		{true, 0, 0}, {true, 10 * time.Second, 10 * time.Second}, {false, 11 * time.Second, 0}, {true, 12 * time.Second, 0}, {true, 15 * time.Second, 3 * time.Second},
	} {
		if got := o.set(key, step.overdue, began.Add(step.after)); got != step.want {
			t.Errorf("after %s: overdue for %s, want %s", step.after, got, step.want)
		}
	}
}

func TestNothingIsWrittenWhereNothingDiffers(t *testing.T) {
	s := present()
	first := decide(s)
	if len(first.answers) != 1 {
		t.Fatalf("got %d answers, want 1", len(first.answers))
	}
	s.bindings[0].Status = first.answers[0].status
	if diff := cmp.Diff(outcome{}, outcomeOf(decide(s))); diff != "" {
		t.Errorf("second decision (-want +got):\n%s", diff)
	}
}

func TestEveryBindingOfAPairGetsTheSameAnswer(t *testing.T) {
	s := present()
	s.bindings = append(s.bindings, binding("second"), binding("third"))
	d := decide(s)
	if len(d.answers) != 3 {
		t.Fatalf("got %d answers, want 3", len(d.answers))
	}
	ignoreTime := cmp.Comparer(func(metav1.Time, metav1.Time) bool { return true })
	for _, answer := range d.answers[1:] {
		if diff := cmp.Diff(d.answers[0].status, answer.status, ignoreTime); diff != "" {
			t.Errorf("answer of %s differs from that of %s:\n%s", answer.binding.Name, d.answers[0].binding.Name, diff)
		}
	}
}

func TestPairsThatSpellOneNameHaveOthers(t *testing.T) {
	one := Key{Namespace: "ns", Network: "a-b", Location: "c"}
	other := Key{Namespace: "ns", Network: "a", Location: "b-c"}
	if one.plainName() != other.plainName() {
		t.Fatalf("%q and %q do not collide", one.plainName(), other.plainName())
	}
	if one.hashedName() == other.hashedName() {
		t.Errorf("both pairs hash to %q", one.hashedName())
	}
	if one.pair() == other.pair() {
		t.Errorf("both pairs are indexed as %q", one.pair())
	}
}
