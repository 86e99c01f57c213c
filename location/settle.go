package location

import (
	"context"
	"fmt"
	"slices"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/scheduler/framework"
	"github.com/karmada-io/karmada/pkg/scheduler/framework/plugins/apienablement"
	"github.com/karmada-io/karmada/pkg/scheduler/framework/plugins/clusteraffinity"
	"github.com/karmada-io/karmada/pkg/scheduler/framework/plugins/clustereviction"
	"github.com/karmada-io/karmada/pkg/scheduler/framework/plugins/spreadconstraint"
	"github.com/karmada-io/karmada/pkg/scheduler/framework/plugins/tainttoleration"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultScheduler is the name of Karmada's own scheduler, which places what names none.
const defaultScheduler = "default-scheduler"

// placement is what both kinds of binding have: which object, and which clusters got it.
type placement struct {
	object client.Object // the ResourceBinding or ClusterResourceBinding
	spec   *workv1alpha2.ResourceBindingSpec
	status *workv1alpha2.ResourceBindingStatus
}

// placementOf is what a ResourceBinding or ClusterResourceBinding says. Anything else panics.
func placementOf(object client.Object) placement {
	if binding, ok := object.(*workv1alpha2.ResourceBinding); ok {
		return placement{binding, &binding.Spec, &binding.Status}
	}
	binding := object.(*workv1alpha2.ClusterResourceBinding)
	return placement{binding, &binding.Spec, &binding.Status}
}

// settlement judges whether the scheduler would place an object as it is placed, if it
// looked again now.
type settlement struct {
	authority  *Authority
	schedulers []string
	// filters are Karmada's own, those that look at no more than binding and cluster.
	filters []framework.FilterPlugin
}

func newSettlement(authority *Authority, schedulers []string) (*settlement, error) {
	s := &settlement{authority: authority, schedulers: schedulers}
	for _, create := range []func() (framework.Plugin, error){
		apienablement.New, tainttoleration.New, clusteraffinity.New, clustereviction.New, spreadconstraint.New,
	} {
		plugin, err := create()
		if err != nil {
			return nil, fmt.Errorf("make a filter of Karmada's: %w", err)
		}
		filter, ok := plugin.(framework.FilterPlugin)
		if !ok {
			return nil, fmt.Errorf("plugin %s of Karmada's is no filter", plugin.Name())
		}
		s.filters = append(s.filters, filter)
	}
	return s, nil
}

// ours tells whether a binding is placed by one of our schedulers at all.
func (s *settlement) ours(spec *workv1alpha2.ResourceBindingSpec) bool {
	name := spec.SchedulerName
	if name == "" {
		name = defaultScheduler
	}
	// What has no placement came along with another object, and is never scheduled.
	return spec.Placement != nil && slices.Contains(s.schedulers, name)
}

// rests tells whether the scheduler is done with a binding and looks at it again only when
// it is told to.
func (s *settlement) rests(p placement) bool {
	if !s.ours(p.spec) || p.spec.SchedulingSuspended() || !p.object.GetDeletionTimestamp().IsZero() {
		return false
	}
	scheduled := meta.FindStatusCondition(p.status.Conditions, workv1alpha2.Scheduled)
	switch {
	case scheduled == nil:
		return false // not looked at yet
	case scheduled.Status == metav1.ConditionTrue:
		return p.status.SchedulerObservedGeneration == p.object.GetGeneration()
	}
	// Every other failure is retried by the scheduler itself.
	return scheduled.Reason == workv1alpha2.BindingReasonNoClusterFit
}

// amiss are the clusters that should get the object of a resting binding and did not, or
// have it and should not; sorted.
func (s *settlement) amiss(p placement, clusters []*clusterv1alpha1.Cluster) []string {
	var names []string
	wants := len(p.spec.Clusters) == 0 || everywhere(p.spec)
	for _, cluster := range clusters {
		if s.astray(p, cluster) || wants && s.missing(p, cluster) {
			names = append(names, cluster.Name)
		}
	}
	slices.Sort(names)
	return names
}

// everywhere tells whether an object goes to each cluster that fits, so that one more
// cluster is one more place for it.
func everywhere(spec *workv1alpha2.ResourceBindingSpec) bool {
	duplicated := !spec.IsWorkload() || spec.Placement.ReplicaSchedulingType() == policyv1alpha1.ReplicaSchedulingTypeDuplicated
	return duplicated && len(spec.Placement.SpreadConstraints) == 0
}

// astray tells whether a cluster has what it may not keep.
func (s *settlement) astray(p placement, cluster *clusterv1alpha1.Cluster) bool {
	return p.spec.TargetContains(cluster.Name) && s.authority.Refusal(p.spec, cluster) != ""
}

// missing tells whether a cluster would get what it has not.
func (s *settlement) missing(p placement, cluster *clusterv1alpha1.Cluster) bool {
	if p.spec.TargetContains(cluster.Name) || !cluster.DeletionTimestamp.IsZero() {
		return false
	}
	if s.authority.Refusal(p.spec, cluster) != "" {
		return false
	}
	for _, filter := range s.filters {
		if !filter.Filter(context.Background(), p.spec, p.status, cluster).IsSuccess() {
			return false
		}
	}
	return true
}
