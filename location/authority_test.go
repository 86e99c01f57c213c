package location

import (
	"strings"
	"testing"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

func namespaced(name string, labels ...string) *corev1.Namespace {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for i := 0; i < len(labels); i += 2 {
		namespace.Labels[labels[i]] = labels[i+1]
	}
	return namespace
}

func contextFor(namespace, name string, uid types.UID, location string) *v1alpha.NetworkContext {
	return &v1alpha.NetworkContext{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid},
		Spec:       v1alpha.NetworkContextSpec{Location: v1alpha.LocationReference{Name: v1alpha.Name(location)}},
	}
}

// twoKinds are further kinds that name a location: one by a label, one by a field.
func twoKinds(unlabelled UnlabelledClusters) Configuration {
	return Configuration{UnlabelledClusters: unlabelled, Kinds: []NamingKind{
		{APIVersion: "apps/v1", Kind: "Deployment", Location: NamedBy{Label: "where"}},
		{APIVersion: "compute.example.com/v1", Kind: "Workload", Location: NamedBy{Field: "spec.location.name"}},
	}}
}

// smallHub is one on which project acme may use us, not eu, and globex may use neither.
func smallHub() []client.Object {
	deployment := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "acme-ns", Name: "web", Labels: map[string]string{"where": "us"}}}
	deployment.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	roaming := deployment.DeepCopy()
	roaming.Name, roaming.Labels = "roaming", nil
	workload := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "compute.example.com/v1", "kind": "Workload",
		"metadata": map[string]any{"namespace": "acme-ns", "name": "batch"},
		"spec":     map[string]any{"location": map[string]any{"name": "us"}},
	}}
	odd := workload.DeepCopy()
	odd.SetName("odd")
	odd.Object["spec"] = "a string where a map belongs"
	return []client.Object{
		namespaced("acme-ns", v1alpha.UpstreamClusterNameLabel, "cluster-acme", v1alpha.UpstreamNamespaceLabel, "default"),
		namespaced("globex-ns", v1alpha.UpstreamClusterNameLabel, "cluster-globex", v1alpha.UpstreamNamespaceLabel, "default"),
		namespaced("broken", v1alpha.UpstreamClusterNameLabel, "acme"),
		namespaced("free"),
		copied("acme", "us"),
		unavailable(copied("acme", "eu")),
		contextFor("acme-ns", "net-us", "1", "us"),
		contextFor("acme-ns", "net-eu", "2", "eu"),
		contextFor("globex-ns", "net-us", "3", "us"),
		contextFor("free", "net-us", "4", "us"),
		deployment, roaming, workload, odd,
	}
}

func reference(apiVersion, kind, namespace, name string, uid types.UID) workv1alpha2.ObjectReference {
	return workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name, UID: uid}
}

func contextRef(namespace, name string, uid types.UID) workv1alpha2.ObjectReference {
	return reference("networking.datumapis.com/v1alpha", "NetworkContext", namespace, name, uid)
}

func servingCell(location string) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "cell"}}
	if location != "" {
		cluster.Labels = map[string]string{v1alpha.TopologyLocationLabel: location}
	}
	return cluster
}

func TestWhereAnObjectMayGo(t *testing.T) {
	authority := NewAuthorityOf(twoKinds(RefuseUnlabelled), smallHub()...)
	for _, test := range []struct {
		name    string
		object  workv1alpha2.ObjectReference
		served  string
		refusal string // a part; "" where it may
	}{
		{"a context goes to its location", contextRef("acme-ns", "net-us", "1"), "us", ""},
		{"and to no other", contextRef("acme-ns", "net-us", "1"), "eu", `do not serve location "us": label those that do topology.datum.net/location=us`},
		{"nor to a cluster without a label", contextRef("acme-ns", "net-us", "1"), "", `do not serve location "us"`},
		{"nor where its grant is not available", contextRef("acme-ns", "net-eu", "2"), "eu", `project "acme" may not use location "eu": its LocationBinding is not available: closed for works`},
		{"nor where its project has no grant", contextRef("globex-ns", "net-us", "3"), "us", `project "globex" may not use location "us": it has no LocationBinding for it`},
		{"one that was not seen waits", contextRef("acme-ns", "new", "5"), "us", `until it is known which location NetworkContext "new" is for`},
		{"so does one made anew under its name", contextRef("acme-ns", "net-us", "9"), "us", "until it is known"},
		{"one of no project goes nowhere", contextRef("free", "net-us", "4"), "us", `nothing of namespace "free", which names no project`},
		{"one of another version of its kind is the same", reference("networking.datumapis.com/v2", "NetworkContext", "acme-ns", "net-us", "1"), "us", ""},
		{"one of another group is not ours", reference("example.com/v1", "NetworkContext", "free", "net-us", ""), "eu", ""},

		{"a location goes where it is served", reference("networking.datumapis.com/v1alpha", "Location", "", "us", ""), "us", ""},
		{"and nowhere else", reference("networking.datumapis.com/v1alpha", "Location", "", "us", ""), "eu", `do not serve location "us"`},

		{"a labelled kind goes to its location", reference("apps/v1", "Deployment", "acme-ns", "web", ""), "us", ""},
		{"and to no other", reference("apps/v1", "Deployment", "acme-ns", "web", ""), "eu", `do not serve location "us"`},
		{"one without the label goes where its project may", reference("apps/v1", "Deployment", "acme-ns", "roaming", ""), "us", ""},
		{"and nowhere else", reference("apps/v1", "Deployment", "acme-ns", "roaming", ""), "eu", `may not use location "eu"`},
		{"one that was not seen waits", reference("apps/v1", "Deployment", "acme-ns", "new", ""), "us", "until it is known"},
		{"a kind with a field goes to its location", reference("compute.example.com/v1", "Workload", "acme-ns", "batch", ""), "us", ""},
		{"and to no other", reference("compute.example.com/v1", "Workload", "acme-ns", "batch", ""), "eu", "do not serve"},
		{"garbage in the field names none", reference("compute.example.com/v1", "Workload", "acme-ns", "odd", ""), "us", ""},

		{"what else a project has goes where it may", reference("v1", "ConfigMap", "acme-ns", "c", ""), "us", ""},
		{"and nowhere else", reference("v1", "ConfigMap", "globex-ns", "c", ""), "us", `project "globex" may not use location "us"`},
		{"nor to a cluster without a label", reference("v1", "ConfigMap", "acme-ns", "c", ""), "", `project "acme" may use only locations: label them topology.datum.net/location`},
		{"its namespace, too", reference("v1", "Namespace", "", "acme-ns", ""), "us", ""},
		{"and nowhere else", reference("v1", "Namespace", "", "acme-ns", ""), "eu", "may not use"},
		{"what belongs to no project goes anywhere", reference("v1", "ConfigMap", "free", "c", ""), "", ""},
		{"so does its namespace", reference("v1", "Namespace", "", "free", ""), "eu", ""},
		{"and what has no namespace", reference("v1", "PersistentVolume", "", "disk", ""), "", ""},
		{"unless the namespace was not seen", reference("v1", "ConfigMap", "unseen", "c", ""), "us", `until it is known which project namespace "unseen" belongs to`},
		{"or its labels name no project", reference("v1", "ConfigMap", "broken", "c", ""), "us", "set its labels meta.datumapis.com/upstream-cluster-name and meta.datumapis.com/upstream-namespace"},
	} {
		t.Run(test.name, func(t *testing.T) {
			refusal := authority.Refusal(&workv1alpha2.ResourceBindingSpec{Resource: test.object}, servingCell(test.served))
			if (refusal == "") != (test.refusal == "") || !strings.Contains(refusal, test.refusal) {
				t.Errorf("refusal is %q, want %q", refusal, test.refusal)
			}
		})
	}
}

func TestWhatIsThereStays(t *testing.T) {
	authority := NewAuthorityOf(twoKinds(RefuseUnlabelled), smallHub()...)
	for _, test := range []struct {
		name   string
		object workv1alpha2.ObjectReference
		served string
		stays  bool
	}{
		{"where all is well", contextRef("acme-ns", "net-us", "1"), "us", true},
		{"where the grant is not available", contextRef("acme-ns", "net-eu", "2"), "eu", true},
		{"where there is no grant", contextRef("globex-ns", "net-us", "3"), "us", true},
		{"where the cluster lost its label", contextRef("acme-ns", "net-us", "1"), "", true},
		{"while it was not seen", contextRef("acme-ns", "new", "5"), "eu", true},
		{"while its namespace was not seen", reference("v1", "ConfigMap", "unseen", "c", ""), "us", true},
		{"where its project cannot be told", reference("v1", "ConfigMap", "broken", "c", ""), "us", true},
		{"what names no location, wherever", reference("v1", "ConfigMap", "acme-ns", "c", ""), "eu", true},
		{"but not where the cluster moved to another location", contextRef("acme-ns", "net-us", "1"), "eu", false},
		{"nor a location that moved away", reference("networking.datumapis.com/v1alpha", "Location", "", "us", ""), "eu", false},
		{"nor a labelled kind", reference("apps/v1", "Deployment", "acme-ns", "web", ""), "eu", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			refusal := authority.Refusal(&workv1alpha2.ResourceBindingSpec{
				Resource: test.object, Clusters: []workv1alpha2.TargetCluster{{Name: "cell"}},
			}, servingCell(test.served))
			if (refusal == "") != test.stays {
				t.Errorf("refusal is %q; stays should be %v", refusal, test.stays)
			}
		})
	}
}

func TestAnOperatorMayOpenClustersWithoutALabel(t *testing.T) {
	authority := NewAuthorityOf(twoKinds(AllowUnlabelled), smallHub()...)
	for _, test := range []struct {
		name   string
		object workv1alpha2.ObjectReference
		may    bool
	}{
		{"for what names no location", reference("v1", "ConfigMap", "globex-ns", "c", ""), true},
		{"not for a context", contextRef("acme-ns", "net-us", "1"), false},
		{"nor for another that names one", reference("apps/v1", "Deployment", "acme-ns", "web", ""), false},
		{"nor where the project cannot be told", reference("v1", "ConfigMap", "broken", "c", ""), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			refusal := authority.Refusal(&workv1alpha2.ResourceBindingSpec{Resource: test.object}, servingCell(""))
			if (refusal == "") != test.may {
				t.Errorf("refusal is %q; may is to be %v", refusal, test.may)
			}
		})
	}
}

// A cache that only the authority reads keeps less, and must not change an answer by it.
func TestTrimmedObjectsGiveTheSameAnswers(t *testing.T) {
	configuration := twoKinds(RefuseUnlabelled)
	whole := NewAuthorityOf(configuration, smallHub()...)
	var trimmed []client.Object
	for _, object := range smallHub() {
		object.SetAnnotations(map[string]string{"much": "of it"})
		kept, err := whole.Trim(object)
		if err != nil {
			t.Fatal(err)
		}
		trimmed = append(trimmed, kept.(client.Object))
		if kept.(client.Object).GetAnnotations() != nil && object.GetObjectKind().GroupVersionKind().Kind != "" {
			t.Errorf("%T keeps annotations", kept)
		}
	}
	small := NewAuthorityOf(configuration, trimmed...)
	for _, object := range []workv1alpha2.ObjectReference{
		contextRef("acme-ns", "net-us", "1"), contextRef("globex-ns", "net-us", "3"),
		reference("apps/v1", "Deployment", "acme-ns", "web", ""), reference("compute.example.com/v1", "Workload", "acme-ns", "batch", ""),
		reference("v1", "ConfigMap", "acme-ns", "c", ""),
	} {
		for _, served := range []string{"us", "eu", ""} {
			spec := &workv1alpha2.ResourceBindingSpec{Resource: object}
			if want, got := whole.Refusal(spec, servingCell(served)), small.Refusal(spec, servingCell(served)); got != want {
				t.Errorf("%s %s in %q: %q, and trimmed %q", object.Kind, object.Name, served, want, got)
			}
		}
	}
}

func TestSubscribersHearOfObjectsThatNameAnotherLocation(t *testing.T) {
	authority := NewAuthority(twoKinds(RefuseUnlabelled))
	var heard []string
	authority.Subjects.Subscribe(func(subject Subject) { heard = append(heard, subject.Kind.Kind+" "+subject.String()) })
	for _, step := range []struct {
		name   string
		object client.Object
		heard  int
	}{
		{"a context", contextFor("ns", "a", "1", "us"), 1},
		{"the same again", contextFor("ns", "a", "1", "us"), 0},
		{"made anew", contextFor("ns", "a", "2", "us"), 1},
		{"for another location", contextFor("ns", "a", "2", "eu"), 1},
	} {
		heard = nil
		authority.Subjects.take(step.object)
		if len(heard) != step.heard {
			t.Errorf("%s: heard %q, want %d", step.name, heard, step.heard)
		}
	}
}
