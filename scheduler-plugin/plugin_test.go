package locationauthority

import (
	"context"
	"strings"
	"testing"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/location"
)

// newPlain is the plugin on a hub with project acme, which has the namespace ns and may use
// us, with a namespace of no project, and with one context for us.
func newPlain() *Plugin {
	authority := location.NewIndexOf(location.Content{
		Namespaces: map[string]map[string]string{
			"ns":    {v1alpha.UpstreamClusterNameLabel: "cluster-acme", v1alpha.UpstreamNamespaceLabel: "default"},
			"other": nil,
		},
		Grants: []*v1alpha.LocationBinding{{
			ObjectMeta: metav1.ObjectMeta{Name: "acme.us", Labels: map[string]string{
				v1alpha.ManagedByLabel: v1alpha.ManagedByHub, v1alpha.ProjectLabel: "acme",
			}},
			Spec: v1alpha.LocationBindingSpec{LocationRef: v1alpha.LocationReference{Name: "us"}},
		}},
	})
	return &Plugin{
		authority: authority,
		waiting:   newWaiting(nil),
		subjects: &subjects{contexts: map[types.NamespacedName]string{
			{Namespace: "ns", Name: "net-us"}:    "us",
			{Namespace: "ns", Name: "net-eu"}:    "eu",
			{Namespace: "other", Name: "net-us"}: "us",
		}},
	}
}

func object(kind, namespace, name string) *workv1alpha2.ResourceBindingSpec {
	version := apiVersion
	if kind == "ConfigMap" {
		version = "v1"
	}
	return &workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: version, Kind: kind, Namespace: namespace, Name: name}}
}

func held(spec *workv1alpha2.ResourceBindingSpec) *workv1alpha2.ResourceBindingSpec {
	spec.Clusters = []workv1alpha2.TargetCluster{{Name: "cell"}}
	return spec
}

func cluster(served string) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "cell"}}
	if served != "" {
		c.Labels = map[string]string{v1alpha.TopologyLocationLabel: served}
	}
	return c
}

func TestFilter(t *testing.T) {
	for _, test := range []struct {
		name    string
		spec    *workv1alpha2.ResourceBindingSpec
		served  string
		refusal string // a part; "" where the cluster passes
	}{
		{"a context goes to its location", object("NetworkContext", "ns", "net-us"), "us", ""},
		{"and to no other", object("NetworkContext", "ns", "net-us"), "eu", `do not serve location "us"`},
		{"nor to a cluster without a label", object("NetworkContext", "ns", "net-us"), "", `do not serve location "us"`},
		{"nor where the project may not", object("NetworkContext", "ns", "net-eu"), "eu", `project "acme" may not use location "eu"`},
		{"one that is not known waits", object("NetworkContext", "ns", "unknown"), "us", "is not known yet"},
		{"one of no project is refused", object("NetworkContext", "other", "net-us"), "us", `namespace "other" names no project`},
		{"a location goes where it is served", object("Location", "", "us"), "us", ""},
		{"and nowhere else", object("Location", "", "us"), "eu", `do not serve location "us"`},
		{"what else a project has goes where it may", object("ConfigMap", "ns", "c"), "us", ""},
		{"and nowhere else", object("ConfigMap", "ns", "c"), "eu", "may not use"},
		{"nor to a cluster without a label", object("ConfigMap", "ns", "c"), "", "serve no location"},
		{"what belongs to no project is not ours to judge", object("ConfigMap", "other", "c"), "eu", ""},
		{"unless its namespace is not known yet", object("ConfigMap", "unseen", "c"), "us", "names no project"},
		{"what is there stays without a grant", held(object("NetworkContext", "ns", "net-eu")), "eu", ""},
		{"and without a label", held(object("NetworkContext", "ns", "net-us")), "", ""},
		{"and while it is not known", held(object("NetworkContext", "ns", "unknown")), "us", ""},
		{"and while its namespace is not known", held(object("ConfigMap", "unseen", "c")), "us", ""},
		{"but not where the label names another location now", held(object("NetworkContext", "ns", "net-us")), "eu", "serve another location"},
	} {
		t.Run(test.name, func(t *testing.T) {
			result := newPlain().Filter(context.Background(), test.spec, nil, cluster(test.served))
			if test.refusal == "" {
				if !result.IsSuccess() {
					t.Fatalf("refused: %v", result.AsError())
				}
				return
			}
			if result.IsSuccess() || !strings.Contains(result.AsError().Error(), test.refusal) {
				t.Errorf("got %v, want a refusal with %q", result.AsError(), test.refusal)
			}
		})
	}
}

func TestWhatPassesAllocatesNothing(t *testing.T) {
	plugin, cell := newPlain(), cluster("us")
	for _, spec := range []*workv1alpha2.ResourceBindingSpec{object("NetworkContext", "ns", "net-us"), object("ConfigMap", "ns", "c")} {
		allocations := testing.AllocsPerRun(100, func() {
			if !plugin.Filter(context.Background(), spec, nil, cell).IsSuccess() {
				t.Fatal("refused")
			}
		})
		if allocations != 0 {
			t.Errorf("%s: %v allocations, want none", spec.Resource.Kind, allocations)
		}
	}
}

func TestWhatWasRefusedForNowIsScheduledAgain(t *testing.T) {
	for _, test := range []struct {
		name    string
		spec    *workv1alpha2.ResourceBindingSpec
		served  string
		release func(*Plugin)
		want    int
	}{
		{"a context that became known", object("NetworkContext", "ns", "late"), "us",
			func(p *Plugin) { p.waiting.release(objectKey{contextKind, "ns", "late"}) }, 1},
		{"a grant that came", object("NetworkContext", "ns", "net-eu"), "eu",
			func(p *Plugin) {
				p.waiting.changed(p.authority, location.Change{Kind: location.GrantChanged, Project: "acme", Location: "eu"})
			}, 1},
		{"a grant of another project", object("NetworkContext", "ns", "net-eu"), "eu",
			func(p *Plugin) {
				p.waiting.changed(p.authority, location.Change{Kind: location.GrantChanged, Project: "globex", Location: "eu"})
			}, 0},
		{"a namespace that was labelled", object("NetworkContext", "other", "net-us"), "us",
			func(p *Plugin) {
				p.waiting.changed(p.authority, location.Change{Kind: location.NamespaceChanged, Namespace: "other"})
			}, 1},
		{"what no change can help", object("NetworkContext", "ns", "net-us"), "eu",
			func(p *Plugin) {
				p.waiting.changed(p.authority, location.Change{Kind: location.GrantChanged, Project: "acme", Location: "us"})
			}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			plugin := newPlain()
			plugin.Filter(context.Background(), test.spec, nil, cluster(test.served))
			test.release(plugin)
			if got := plugin.waiting.queue.Len(); got != test.want {
				t.Errorf("%d are scheduled again, want %d", got, test.want)
			}
		})
	}
}
