package location

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/api/v1alpha"
)

// copied is the hub's copy of a project's grant of a location.
func copied(project, location string) *v1alpha.LocationBinding {
	return &v1alpha.LocationBinding{
		ObjectMeta: metav1.ObjectMeta{Name: CopyName(project, location), Labels: map[string]string{
			v1alpha.ManagedByLabel: v1alpha.ManagedByHub,
			v1alpha.ProjectLabel:   projectLabel(project),
			v1alpha.LocationLabel:  location,
		}},
		Spec: v1alpha.LocationBindingSpec{LocationRef: v1alpha.LocationReference{Name: v1alpha.Name(location)}},
	}
}

func unavailable(grant *v1alpha.LocationBinding) *v1alpha.LocationBinding {
	grant.Status.Conditions = []metav1.Condition{{
		Type: v1alpha.LocationBindingAvailable, Status: metav1.ConditionFalse, Message: "closed for works",
	}}
	return grant
}

func TestAProjectMayUseALocationWhileItsGrantIsUsable(t *testing.T) {
	deleting := copied("acme", "us")
	deleting.DeletionTimestamp = &metav1.Time{}
	deleting.DeletionTimestamp.Time = metav1.Now().Time
	foreign := copied("acme", "us")
	delete(foreign.Labels, v1alpha.ManagedByLabel)
	edited := copied("acme", "eu")
	edited.Spec.LocationRef.Name = "us"
	relabelled := copied("globex", "us")
	relabelled.Labels[v1alpha.ProjectLabel] = "acme"
	wordy := copied("acme", "us")
	unavailable(wordy).Status.Conditions[0].Message = strings.Repeat("é", 40000)
	for _, test := range []struct {
		name  string
		grant *v1alpha.LocationBinding
		may   bool
		says  string
	}{
		{"usable", copied("acme", "us"), true, ""},
		{"of a project with a slash", copied("acme/prod", "us"), false, "it has no LocationBinding"},
		{"of another location", copied("acme", "eu"), false, `may not use location "us"`},
		{"not available", unavailable(copied("acme", "us")), false, "closed for works"},
		{"being deleted", deleting, false, "is being deleted"},
		{"no copy of ours", foreign, false, "it has no LocationBinding"},
		{"a copy edited to another location", edited, false, "it has no LocationBinding"},
		{"a copy edited to another project", relabelled, false, "it has no LocationBinding"},
		{"not available for a very long reason", wordy, false, strings.Repeat("é", 256) + "…"},
	} {
		t.Run(test.name, func(t *testing.T) {
			index := NewIndex()
			index.setGrant(test.grant)
			may, why := index.May("acme", "us")
			if may != test.may || !strings.Contains(why, test.says) {
				t.Errorf("May is %v, %q; want %v, with %q", may, why, test.may, test.says)
			}
		})
	}
}

func TestAGrantThatGoesIsForgotten(t *testing.T) {
	index := NewIndex()
	index.setGrant(copied("acme/prod", "us"))
	if may, why := index.May("acme/prod", "us"); !may {
		t.Fatalf("not granted: %s", why)
	}
	index.deleteGrant(CopyName("acme/prod", "us"))
	if may, _ := index.May("acme/prod", "us"); may {
		t.Error("granted still")
	}
}

func TestNamespacesNameTheirProjectByTwoLabels(t *testing.T) {
	labels := func(cluster, namespace string) map[string]string {
		return map[string]string{v1alpha.UpstreamClusterNameLabel: cluster, v1alpha.UpstreamNamespaceLabel: namespace}
	}
	type answer struct {
		Project, Upstream string
		OK                bool
		Standing          Standing
	}
	for _, test := range []struct {
		name   string
		labels map[string]string
		want   answer
	}{
		{"both", labels("cluster-acme", "default"), answer{"acme", "default", true, StandingMirror}},
		{"a slash", labels("cluster-acme_prod", "default"), answer{"acme/prod", "default", true, StandingMirror}},
		{"no prefix", labels("acme", "default"), answer{Standing: StandingUnresolved}},
		{"no name", labels("cluster-", "default"), answer{Standing: StandingUnresolved}},
		{"an empty label", labels("", "default"), answer{Standing: StandingUnresolved}},
		{"no namespace", labels("cluster-acme", ""), answer{Standing: StandingUnresolved}},
		{"none", nil, answer{Standing: StandingFree}},
	} {
		t.Run(test.name, func(t *testing.T) {
			index := NewIndex()
			index.setNamespace("ns", test.labels)
			var got answer
			got.Project, got.Upstream, got.OK = index.Project("ns")
			_, got.Standing = index.Owner("ns")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
	if _, standing := NewIndex().Owner("ns"); standing != StandingUnknown {
		t.Error("a namespace that was never seen is known")
	}
}

func TestProjectsAndLabelsConvertBothWays(t *testing.T) {
	for _, project := range []string{"acme", "acme/prod", "a.b-c"} {
		got, ok := ProjectFromLabel(ProjectToLabel(project))
		if got != project || !ok {
			t.Errorf("project %q comes back as %q, %v", project, got, ok)
		}
	}
}

func TestSubscribersReadWhatChanged(t *testing.T) {
	index := NewIndex()
	var changes []Change
	index.Subscribe(func(change Change) { changes = append(changes, change) })
	hub := map[string]string{v1alpha.UpstreamClusterNameLabel: "cluster-acme", v1alpha.UpstreamNamespaceLabel: "default"}
	for _, step := range []struct {
		name string
		do   func()
		want []Change
	}{
		{"a namespace", func() { index.setNamespace("ns", hub) }, []Change{{Kind: NamespaceChanged, Namespace: "ns", Project: "acme"}}},
		{"the same again", func() { index.setNamespace("ns", hub) }, nil},
		{"a grant", func() { index.setGrant(copied("acme", "us")) }, []Change{{Kind: GrantChanged, Project: "acme", Location: "us"}}},
		{"the same grant again", func() { index.setGrant(copied("acme", "us")) }, nil},
		{"the grant withdrawn", func() { index.setGrant(unavailable(copied("acme", "us"))) }, []Change{{Kind: GrantChanged, Project: "acme", Location: "us"}}},
		{"a cell", func() { index.setCell("cell-a", "us") }, []Change{{Kind: CellChanged, Cell: "cell-a", Location: "us"}}},
		{"the cell moved", func() { index.setCell("cell-a", "eu") }, []Change{{Kind: CellChanged, Cell: "cell-a", Location: "eu", OldLocation: "us"}}},
		{"the cell gone", func() { index.setCell("cell-a", "") }, []Change{{Kind: CellChanged, Cell: "cell-a", OldLocation: "eu"}}},
		{"the namespace gone", func() { index.deleteNamespace("ns") }, []Change{{Kind: NamespaceChanged, Namespace: "ns", Project: "acme"}}},
	} {
		changes = nil
		step.do()
		if diff := cmp.Diff(step.want, changes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	if got := index.Namespaces("acme"); len(got) != 0 {
		t.Errorf("project acme still has %v", got)
	}
}

func TestCellsOfALocationAreSorted(t *testing.T) {
	index := NewIndex()
	for _, cell := range []string{"b", "a", "c"} {
		index.setCell(cell, "us")
	}
	index.setCell("b", "eu")
	if diff := cmp.Diff([]string{"a", "c"}, index.Cells("us")); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}
