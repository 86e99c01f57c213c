package location

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"go.datum.net/network-presence/api/v1alpha"
)

const ourScheduler = "network-presence-scheduler"

// joined is a cluster that serves a location and has the APIs of contexts and ConfigMaps.
func joined(name, location string) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if location != "" {
		cluster.Labels = map[string]string{v1alpha.TopologyLocationLabel: location}
	}
	cluster.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		{GroupVersion: "networking.datumapis.com/v1alpha", Resources: []clusterv1alpha1.APIResource{{Kind: "NetworkContext"}}},
		{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Kind: "ConfigMap"}}},
	}
	return cluster
}

// refused is a binding of an object that no cluster was fit for.
func refused(object workv1alpha2.ObjectReference, change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	binding := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name, Generation: 3},
		Spec:       workv1alpha2.ResourceBindingSpec{Resource: object, SchedulerName: ourScheduler, Placement: &policyv1alpha1.Placement{}},
		Status: workv1alpha2.ResourceBindingStatus{Conditions: []metav1.Condition{
			{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: workv1alpha2.BindingReasonNoClusterFit},
		}},
	}
	for _, change := range change {
		change(binding)
	}
	return binding
}

// on places the binding.
func on(clusters ...string) func(*workv1alpha2.ResourceBinding) {
	return func(b *workv1alpha2.ResourceBinding) {
		for _, cluster := range clusters {
			b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster})
		}
		b.Status.Conditions[0].Status, b.Status.Conditions[0].Reason = metav1.ConditionTrue, workv1alpha2.BindingReasonSuccess
		b.Status.SchedulerObservedGeneration = b.Generation
	}
}

func judge(t *testing.T) *settlement {
	t.Helper()
	s, err := newSettlement(NewAuthorityOf(twoKinds(RefuseUnlabelled), smallHub()...), []string{ourScheduler})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatIsAmissWithABinding(t *testing.T) {
	net := contextRef("acme-ns", "net-us", "1")
	config := reference("v1", "ConfigMap", "acme-ns", "c", "")
	without := func(cluster *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
		cluster.Status.APIEnablements = nil
		return cluster
	}
	tainted := joined("us-2", "us")
	tainted.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
	leaving := joined("us-2", "us")
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	two := []*clusterv1alpha1.Cluster{joined("us-2", "us"), joined("us-1", "us"), joined("eu-1", "eu")}
	for _, test := range []struct {
		name     string
		binding  *workv1alpha2.ResourceBinding
		clusters []*clusterv1alpha1.Cluster
		want     []string
	}{
		{"one that waits, and may go now", refused(net), two, []string{"us-1", "us-2"}},
		{"one that is where it belongs", refused(net, on("us-1", "us-2")), two, nil},
		{"one more cell serves its location", refused(net, on("us-1")), two, []string{"us-2"}},
		{"a cell that has no such API", refused(net), []*clusterv1alpha1.Cluster{without(joined("us-1", "us"))}, nil},
		{"a cell that is tainted", refused(net, on("us-1")), []*clusterv1alpha1.Cluster{joined("us-1", "us"), tainted}, nil},
		{"a cell that leaves", refused(net, on("us-1")), []*clusterv1alpha1.Cluster{joined("us-1", "us"), leaving}, nil},
		{"a cell that moved away", refused(net, on("us-1")), []*clusterv1alpha1.Cluster{joined("us-1", "eu")}, []string{"us-1"}},
		{"a cell that lost its label", refused(net, on("us-1")), []*clusterv1alpha1.Cluster{joined("us-1", "")}, nil},
		{"a cell that lost the API", refused(net, on("us-1")), []*clusterv1alpha1.Cluster{without(joined("us-1", "us"))}, nil},
		{"a grant that is not available", refused(contextRef("acme-ns", "net-eu", "2")), two, nil},
		{"and one that was lost", refused(contextRef("acme-ns", "net-eu", "2"), on("eu-1")), two, nil},
		{"another object of the project", refused(config), two, []string{"us-1", "us-2"}},
		{"one that its policy sends elsewhere", refused(config, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"us-1"}}
		}, on("us-1")), two, nil},
		{"one that needs no more clusters", refused(config, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{MaxGroups: 1}}
		}, on("us-1")), two, nil},
		{"one that divides its replicas", refused(config, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Replicas = 2
			b.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}
		}, on("us-1")), two, nil},
		{"but has no cluster at all", refused(config, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Replicas = 2
			b.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}
		}), two, []string{"us-1", "us-2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := placementOf(test.binding)
			if diff := cmp.Diff(test.want, judge(t).amiss(p, test.clusters)); diff != "" {
				t.Errorf("amiss (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyBindingsThatRestAreTriggered(t *testing.T) {
	yes := true
	for _, test := range []struct {
		name   string
		change func(*workv1alpha2.ResourceBinding)
		rests  bool
	}{
		{"one that no cluster was fit for", func(*workv1alpha2.ResourceBinding) {}, true},
		{"one that is placed", on("us-1"), true},
		{"one that the scheduler is at", func(b *workv1alpha2.ResourceBinding) { on("us-1")(b); b.Generation++ }, false},
		{"one that was never looked at", func(b *workv1alpha2.ResourceBinding) { b.Status.Conditions = nil }, false},
		{"one that the scheduler retries", func(b *workv1alpha2.ResourceBinding) {
			b.Status.Conditions[0].Reason = workv1alpha2.BindingReasonSchedulerError
		}, false},
		{"one of another scheduler", func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "default-scheduler" }, false},
		{"one that names no scheduler", func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "" }, false},
		{"one that came along with another", func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = nil }, false},
		{"one that is suspended", func(b *workv1alpha2.ResourceBinding) { b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: &yes} }, false},
		{"one that is being deleted", func(b *workv1alpha2.ResourceBinding) { b.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := placementOf(refused(contextRef("acme-ns", "net-us", "1"), test.change))
			if got := judge(t).rests(p); got != test.rests {
				t.Errorf("rests is %v, want %v", got, test.rests)
			}
		})
	}
}

func TestTheStockSchedulerMayBeOneOfOurs(t *testing.T) {
	s := &settlement{schedulers: []string{"default-scheduler"}}
	p := placementOf(refused(contextRef("acme-ns", "net-us", "1"), func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "" }))
	if !s.rests(p) {
		t.Error("a binding without a scheduler's name is not the stock scheduler's")
	}
}

func TestABindingIsTriggeredAtOnceAndThenEverLater(t *testing.T) {
	var a attempts
	name, now := types.NamespacedName{Namespace: "ns", Name: "b"}, time.Unix(1000, 0)
	var waits []time.Duration
	for {
		due, wait := a.next(name, []string{"us-1"}, now)
		if !due && wait == 0 {
			break
		}
		if due {
			continue
		}
		waits = append(waits, wait)
		now = now.Add(wait)
	}
	want := []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits between attempts (-want +got):\n%s", diff)
	}
	if due, _ := a.next(name, []string{"us-1", "us-2"}, now); !due {
		t.Error("another cluster is amiss, and the binding is not triggered")
	}
	a.again(name)
	if due, _ := a.next(name, []string{"us-1", "us-2"}, now); !due {
		t.Error("something changed, and the binding is not triggered")
	}
	if due, wait := a.next(name, nil, now); due || wait != 0 {
		t.Error("nothing is amiss, and the binding is triggered")
	}
	if due, _ := a.next(name, []string{"us-1", "us-2"}, now); !due {
		t.Error("something is amiss once more, and the binding is not triggered")
	}
}

func TestEachTriggerIsALaterMoment(t *testing.T) {
	at := func(seconds int64, nanoseconds int64) *metav1.Time {
		return &metav1.Time{Time: time.Unix(seconds, nanoseconds)}
	}
	for _, test := range []struct {
		name                 string
		now                  *metav1.Time
		triggered, scheduled *metav1.Time
		want                 int64
	}{
		{"the first", at(1000, 5), nil, nil, 1000},
		{"long after others", at(1000, 5), at(10, 0), at(20, 0), 1000},
		{"in the second of the last", at(1000, 900), at(1000, 0), nil, 1001},
		{"after one that was moved on", at(1000, 900), at(1003, 0), nil, 1004},
		{"in the second in which it was scheduled", at(1000, 900), at(10, 0), at(1000, 0), 1001},
	} {
		t.Run(test.name, func(t *testing.T) {
			var a attempts
			p := placementOf(refused(contextRef("acme-ns", "net-us", "1"), func(b *workv1alpha2.ResourceBinding) {
				b.Spec.RescheduleTriggeredAt, b.Status.LastScheduledTime = test.triggered, test.scheduled
			}))
			name := types.NamespacedName{Name: "b"}
			first := a.moment(name, p, test.now.Time)
			if first.Unix() != test.want || first.Nanosecond() != 0 {
				t.Errorf("moment is %v, want %d", first, test.want)
			}
			// The cache is behind: it shows the binding as it was.
			if second := a.moment(name, p, test.now.Time); !second.After(first) {
				t.Errorf("the next moment %v is not after %v", second, first)
			}
		})
	}
}

func TestTheHubsCacheKeepsWhatIsAskedOfABinding(t *testing.T) {
	trim := TrimBindings([]string{ourScheduler})
	whole := func(b *workv1alpha2.ResourceBinding) {
		b.Annotations = map[string]string{"much": "of it"}
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "us-1"}}
		b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Name: "x"}}
	}
	config := reference("v1", "ConfigMap", "acme-ns", "c", "")
	two := []*clusterv1alpha1.Cluster{joined("us-2", "us"), joined("us-1", "us")}
	s := judge(t)
	for _, test := range []struct {
		name                string
		binding             *workv1alpha2.ResourceBinding
		reports, annotation bool
		ours                bool
	}{
		{"of a context", refused(contextRef("acme-ns", "net-us", "1"), on("us-1"), whole), true, true, true},
		{"of another object", refused(config, on("us-1"), whole), false, false, true},
		{"of another scheduler", refused(config, on("us-1"), whole, func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "other" }), false, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := placementOf(test.binding.DeepCopy())
			object, err := trim(test.binding)
			if err != nil {
				t.Fatal(err)
			}
			kept := object.(*workv1alpha2.ResourceBinding)
			after := placementOf(kept)
			if !test.ours {
				named := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
					Namespace: kept.Namespace, Name: before.object.GetName(), UID: before.object.GetUID(), Generation: before.object.GetGeneration(),
				}}
				if diff := cmp.Diff(named, kept); diff != "" {
					t.Errorf("kept (-its name +kept):\n%s", diff)
				}
			}
			if got := len(kept.Status.AggregatedStatus) > 0; got != test.reports {
				t.Errorf("keeps reports is %v, want %v", got, test.reports)
			}
			if got := kept.Annotations != nil; got != test.annotation {
				t.Errorf("keeps annotations is %v, want %v", got, test.annotation)
			}
			if got := s.rests(after); got != test.ours || s.rests(before) != test.ours {
				t.Errorf("rests is %v, and was %v before, want %v", got, s.rests(before), test.ours)
			}
			if test.ours {
				if diff := cmp.Diff(s.amiss(before, two), s.amiss(after, two)); diff != "" {
					t.Errorf("amiss (-whole +kept):\n%s", diff)
				}
			}
		})
	}
}
