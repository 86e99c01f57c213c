// Package cases has presences with each link of the chain broken in turn, for the tests of
// how they are judged and of how that is shown.
package cases

import (
	"encoding/json"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/inspect"
	"go.datum.net/network-presence/interpreter"
	"go.datum.net/network-presence/presence"
)

// Now is when all sights were seen.
var Now = time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC)

// Case is a presence, and what is to be said of it.
type Case struct {
	// Name in the words of a file's name.
	Name  string
	Sight *inspect.Sight
	// Broken is the step of the marked link, and Cell its cell. Empty where none is.
	Broken inspect.Step
	Cell   string
	// Cause is part of the cause, Advice of the advice. Empty for none at all.
	Cause  string
	Advice string
}

func ago(d time.Duration) metav1.Time { return metav1.NewTime(Now.Add(-d)) }

// builder makes a Sight different.
type builder func(*inspect.Sight)

// Whole is a presence with nothing wrong, in two cells.
func Whole(changes ...builder) *inspect.Sight {
	key := presence.Key{Namespace: "ns-acme", Network: "default", Location: "us-central-1"}
	s := &inspect.Sight{
		Key: key, Asked: "web", Now: Now,
		Namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace, CreationTimestamp: ago(48 * time.Hour), Labels: map[string]string{
			v1alpha.UpstreamClusterNameLabel: "cluster-acme", v1alpha.UpstreamNamespaceLabel: "default",
		}}},
		Grants:   []*v1alpha.LocationBinding{grant("acme", key.Location)},
		Clusters: []*clusterv1alpha1.Cluster{Cluster("us-1", key.Location), Cluster("us-2", key.Location), Cluster("eu-1", "eu-west-1")},
		Works:    map[string]*workv1alpha1.Work{"us-1": work(), "us-2": work()},
		Unseen:   map[string]string{},
	}
	s.Bindings = []*v1alpha.NetworkBinding{Binding("web", metav1.ConditionTrue, v1alpha.ReasonNetworkContextReady, `network "default" is present in location "us-central-1"`)}
	context := Context()
	s.Contexts = []*v1alpha.NetworkContext{context}
	s.Placement = placement(context, "us-1", "us-2")
	for _, change := range changes {
		change(s)
	}
	if context := s.Context(); context != nil && s.Placement != nil {
		context.Status = interpreter.Aggregate(context, s.Placement.Status.AggregatedStatus, Now)
	}
	return s
}

func grant(project, location string) *v1alpha.LocationBinding {
	return &v1alpha.LocationBinding{
		ObjectMeta: metav1.ObjectMeta{Name: project + "." + location, Generation: 1, CreationTimestamp: ago(24 * time.Hour), Labels: map[string]string{
			v1alpha.ManagedByLabel: v1alpha.ManagedByHub, v1alpha.ProjectLabel: project, v1alpha.LocationLabel: location,
		}},
		Spec: v1alpha.LocationBindingSpec{LocationRef: v1alpha.LocationReference{Name: v1alpha.Name(location)}},
	}
}

// Cluster is a cell that is well and serves a location.
func Cluster(name, location string) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: ago(48 * time.Hour), Labels: map[string]string{}}}
	if location != "" {
		cluster.Labels[v1alpha.TopologyLocationLabel] = location
	}
	cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: ago(time.Hour)}}
	cluster.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: v1alpha.SchemeGroupVersion.String(), Resources: []clusterv1alpha1.APIResource{
		{Kind: "NetworkContext"}, {Kind: "NetworkInterface"}, {Kind: "NetworkInterfaceClaim"},
	}}}
	return cluster
}

// Binding is a binding that was answered three minutes ago.
func Binding(name string, status metav1.ConditionStatus, reason, message string) *v1alpha.NetworkBinding {
	binding := &v1alpha.NetworkBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns-acme", Name: name, Generation: 1, CreationTimestamp: ago(time.Hour)},
		Spec: v1alpha.NetworkBindingSpec{
			Network: v1alpha.NetworkReference{Name: "default"}, Location: v1alpha.BindingLocationReference{Name: "us-central-1"},
		},
		Status: v1alpha.NetworkBindingStatus{Conditions: []metav1.Condition{{
			Type: v1alpha.NetworkBindingReady, Status: status, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: ago(3 * time.Minute),
		}}},
	}
	if reason == v1alpha.ReasonNetworkContextReady {
		binding.Status.NetworkContextRef = &v1alpha.NetworkContextReference{Namespace: "ns-acme", Name: "default-us-central-1"}
	}
	return binding
}

// Context is a context on the hub.
func Context() *v1alpha.NetworkContext {
	return &v1alpha.NetworkContext{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns-acme", Name: "default-us-central-1", UID: "context-1", Generation: 2, CreationTimestamp: ago(time.Hour),
			Labels: map[string]string{v1alpha.NetworkUIDLabel: "network-1"}, Finalizers: []string{v1alpha.PresenceFinalizer},
		},
		Spec: v1alpha.NetworkContextSpec{
			Network: v1alpha.LocalNetworkReference{Name: "default"}, Location: v1alpha.LocationReference{Name: "us-central-1"},
			IPFamilies: []v1alpha.IPFamily{v1alpha.IPv6}, MTU: 1400, NetworkGeneration: 4,
		},
	}
}

func report(generation int64) v1alpha.CellReport {
	return v1alpha.CellReport{NetworkGeneration: generation, NetworkUID: "network-1", IPFamilies: []v1alpha.IPFamily{v1alpha.IPv6}, MTU: 1400, Holders: ptr.To[int64](2)}
}

func item(cell string, report v1alpha.CellReport) workv1alpha2.AggregatedStatusItem {
	raw, err := json.Marshal(report)
	if err != nil {
		panic(err) // plain values only
	}
	return workv1alpha2.AggregatedStatusItem{ClusterName: cell, Applied: true, Health: workv1alpha2.ResourceHealthy, Status: &runtime.RawExtension{Raw: raw}}
}

func placement(context *v1alpha.NetworkContext, cells ...string) *workv1alpha2.ResourceBinding {
	placement := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: context.Namespace, Name: context.Name + "-networkcontext", Generation: 3, CreationTimestamp: ago(time.Hour)},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{
				APIVersion: v1alpha.SchemeGroupVersion.String(), Kind: "NetworkContext", Namespace: context.Namespace, Name: context.Name, UID: context.UID,
			},
			SchedulerName: "network-presence-scheduler",
		},
		Status: workv1alpha2.ResourceBindingStatus{Conditions: []metav1.Condition{
			{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue, Reason: workv1alpha2.BindingReasonSuccess},
			{Type: workv1alpha2.FullyApplied, Status: metav1.ConditionTrue, LastTransitionTime: ago(time.Hour)},
		}},
	}
	for _, cell := range cells {
		placement.Spec.Clusters = append(placement.Spec.Clusters, workv1alpha2.TargetCluster{Name: cell})
		placement.Status.AggregatedStatus = append(placement.Status.AggregatedStatus, item(cell, report(4)))
	}
	return placement
}

func work() *workv1alpha1.Work {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: "default-us-central-1-6c9d5b7f4", Generation: 2, CreationTimestamp: ago(50 * time.Minute)}}
	meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Reason: "Applied"})
	return work
}

func answered(reason, message string) builder {
	return func(s *inspect.Sight) {
		s.Bindings[0] = Binding("web", metav1.ConditionFalse, reason, message)
	}
}

// unplaced takes away all that Karmada made.
func unplaced(s *inspect.Sight) {
	s.Placement.Spec.Clusters, s.Placement.Status = nil, workv1alpha2.ResourceBindingStatus{}
	s.Works = map[string]*workv1alpha1.Work{}
}

// unmade takes away the context and all after it.
func unmade(s *inspect.Sight) {
	s.Contexts, s.Placement, s.Works = nil, nil, map[string]*workv1alpha1.Work{}
}

func scheduled(s *inspect.Sight, message string) {
	s.Placement.Status.Conditions = []metav1.Condition{{
		Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: workv1alpha2.BindingReasonNoClusterFit, Message: message,
	}}
}

// lost has a cell not answer.
func lost(s *inspect.Sight, names ...string) {
	for _, cluster := range s.Clusters {
		for _, name := range names {
			if cluster.Name == name {
				cluster.Status.Conditions[0].Status, cluster.Status.Conditions[0].LastTransitionTime = metav1.ConditionFalse, ago(10*time.Minute)
			}
		}
	}
}

func reported(s *inspect.Sight, n int, change func(*v1alpha.CellReport)) {
	changed := report(4)
	change(&changed)
	s.Placement.Status.AggregatedStatus[n] = item(s.Placement.Spec.Clusters[n].Name, changed)
}

// refused is the state of a cell that objects to the copy.
func refusedBy(s *inspect.Sight, cell, message string) {
	meta.SetStatusCondition(&s.Works[cell].Status.Conditions, metav1.Condition{
		Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse, Reason: "AppliedFailed", Message: message,
	})
	for n := range s.Placement.Status.AggregatedStatus {
		if s.Placement.Status.AggregatedStatus[n].ClusterName == cell {
			s.Placement.Status.AggregatedStatus[n].Applied, s.Placement.Status.AggregatedStatus[n].AppliedMessage = false, message
		}
	}
}

// held is a presence that nobody asks for, with addresses out.
func held(s *inspect.Sight) {
	s.Bindings, s.Asked = nil, ""
	meta.SetStatusCondition(&s.Contexts[0].Status.Conditions, metav1.Condition{
		Type: v1alpha.NetworkContextDeclared, Status: metav1.ConditionFalse, Reason: v1alpha.ReasonAddressesHeld,
		Message: "no binding needs this network here, but addresses are still held in us-1, us-2; it is deleted when the last of them goes",
	})
}

func forbidden(kinds ...string) builder {
	return func(s *inspect.Sight) {
		for _, kind := range kinds {
			s.Unseen[kind] = "you may not read this: " + kind + " is forbidden"
			switch kind {
			case inspect.KindNamespace:
				s.Namespace = nil
			case inspect.KindGrant:
				s.Grants = nil
			case inspect.KindPlacement:
				s.Placement, s.Works = nil, nil // which Works there are is read from it
			case inspect.KindCluster:
				s.Clusters = nil
			}
		}
	}
}

// reportedBefore leaves in the context what the placement says of the cells.
func reportedBefore(s *inspect.Sight) {
	s.Contexts[0].Status = interpreter.Aggregate(s.Contexts[0], s.Placement.Status.AggregatedStatus, Now)
}

func older(context *v1alpha.NetworkContext) *v1alpha.NetworkContext {
	doomed := context.DeepCopy()
	doomed.DeletionTimestamp = ptr.To(ago(time.Minute))
	doomed.UID = types.UID("context-0")
	return doomed
}
