// Package locationauthority is a filter plugin for karmada-scheduler: what belongs to a
// project runs only where the project may, and what names a location only there.
package locationauthority

import (
	"context"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/scheduler/framework"

	"go.datum.net/network-presence/location"
)

// Name is the plugin's name among those of the scheduler.
const Name = "LocationAuthority"

// Plugin asks the location authority. Filter calls no API and, where it lets a cluster
// pass, allocates nothing.
type Plugin struct {
	authority *location.Authority
}

var _ framework.FilterPlugin = &Plugin{}

// New returns the plugin for an authority, which must have synced before the first Filter.
func New(authority *location.Authority) *Plugin { return &Plugin{authority: authority} }

// Name is the plugin's name.
func (p *Plugin) Name() string { return Name }

// success is shared: the scheduler only reads it.
var success = framework.NewResult(framework.Success)

// Filter tells whether the object of a binding may be in a cluster.
func (p *Plugin) Filter(_ context.Context, binding *workv1alpha2.ResourceBindingSpec, _ *workv1alpha2.ResourceBindingStatus, cluster *clusterv1alpha1.Cluster) *framework.Result {
	if refusal := p.authority.Refusal(binding, cluster); refusal != "" {
		return framework.NewResult(framework.Unschedulable, refusal)
	}
	return success
}
