// Package locationauthority is a filter plugin for karmada-scheduler: what belongs to a
// project runs only where the project may, and what names a location only there.
package locationauthority

import (
	"context"
	"fmt"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/scheduler/framework"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/location"
)

// Name is the plugin's name among those of the scheduler.
const Name = "LocationAuthority"

// Plugin answers from indexes alone: Filter calls no API and, where it lets a cluster
// pass, allocates nothing.
type Plugin struct {
	authority *location.Index
	subjects  *subjects
	waiting   *waiting
}

var _ framework.FilterPlugin = &Plugin{}

// Name is the plugin's name.
func (p *Plugin) Name() string { return Name }

// success is shared: the scheduler only reads it.
var success = framework.NewResult(framework.Success)

// Filter tells whether an object may go to a cluster.
//
// A cluster that has the object keeps it, whatever is withdrawn or not known: any result
// but Success would take it away at once. Only one whose label now names another location
// than the object does loses it.
func (p *Plugin) Filter(_ context.Context, spec *workv1alpha2.ResourceBindingSpec, _ *workv1alpha2.ResourceBindingStatus, cluster *clusterv1alpha1.Cluster) *framework.Result {
	object := &spec.Resource
	served := cluster.Labels[v1alpha.TopologyLocationLabel]
	named, names := p.subjects.location(object)
	if spec.TargetContains(cluster.Name) {
		if names && named != "" && served != "" && served != named {
			return refuse("cluster(s) serve another location than %q now", named)
		}
		return success
	}
	if names {
		if named == "" {
			p.waiting.add(object)
			return refuse("the location that %s %q names is not known yet", object.Kind, object.Name)
		}
		if served != named {
			return refuse("cluster(s) do not serve location %q", named)
		}
	}
	return p.granted(object, served, names)
}

// granted tells whether the project that an object belongs to may use a location.
func (p *Plugin) granted(object *workv1alpha2.ObjectReference, served string, names bool) *framework.Result {
	if object.Namespace == "" {
		return success
	}
	project, _, ok := p.authority.Project(object.Namespace)
	if !ok {
		if !names && p.authority.KnowsNamespace(object.Namespace) {
			return success // of no project: none of our business
		}
		p.waiting.add(object)
		return refuse("namespace %q names no project that may use a location", object.Namespace)
	}
	if served == "" {
		return refuse("cluster(s) serve no location: label them %s", v1alpha.TopologyLocationLabel)
	}
	if may, why := p.authority.May(project, served); !may {
		p.waiting.add(object)
		return refuse("%s", why)
	}
	return success
}

func refuse(format string, args ...any) *framework.Result {
	return framework.NewResult(framework.Unschedulable, fmt.Sprintf(format, args...))
}
