package location

import (
	"context"
	"fmt"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// Authority answers whether an object may be in a cluster. The scheduler asks it, and so
// does what has the scheduler look again: both get one answer from the same objects.
type Authority struct {
	*Index
	Subjects *Subjects

	allowUnlabelled bool
}

// NewAuthority returns an authority that knows of nothing yet.
func NewAuthority(configuration Configuration) *Authority {
	return &Authority{
		Index:           NewIndex(),
		Subjects:        NewSubjects(configuration),
		allowUnlabelled: configuration.UnlabelledClusters == AllowUnlabelled,
	}
}

// Watch fills the authority from the hub's cache and keeps it current. The error says
// which kind the hub does not serve.
func (a *Authority) Watch(ctx context.Context, hub cache.Cache) error {
	if err := a.Index.Watch(ctx, hub); err != nil {
		return err
	}
	return a.Subjects.Watch(ctx, hub)
}

// HasSynced tells whether the authority knows all that was on the hub when Watch began.
func (a *Authority) HasSynced() bool { return a.Index.HasSynced() && a.Subjects.HasSynced() }

// Refusal says why the object of a binding may not be in a cluster; it is empty where it
// may, and then nothing was allocated. It reads as a sentence after the number of clusters
// that it is true of, which is how Karmada shows it.
//
// A cluster that has the object keeps it, whatever was withdrawn and whatever is not known:
// a refusal would take it away at once. Only one that serves another location now than
// the object names loses it.
func (a *Authority) Refusal(binding *workv1alpha2.ResourceBindingSpec, cluster *clusterv1alpha1.Cluster) string {
	resource := &binding.Resource
	served := cluster.Labels[v1alpha.TopologyLocationLabel]
	named, naming := a.Subjects.Location(resource)
	if binding.TargetContains(cluster.Name) {
		if naming == NamesOne && served != "" && served != named {
			return fmt.Sprintf("cluster(s) serve another location now than %q, which %s %q is for", named, resource.Kind, resource.Name)
		}
		return ""
	}
	switch {
	case naming == NamingUnknown:
		return fmt.Sprintf("cluster(s) must wait until it is known which location %s %q is for", resource.Kind, resource.Name)
	case naming == NamesOne && served != named:
		return fmt.Sprintf("cluster(s) do not serve location %q: label those that do %s=%s", named, v1alpha.TopologyLocationLabel, named)
	}
	return a.refusalOfProject(resource, served)
}

// refusalOfProject says why a cluster that serves a location may not have an object of the
// project that the object belongs to.
func (a *Authority) refusalOfProject(resource *workv1alpha2.ObjectReference, served string) string {
	kind, namespace := kindOf(resource), resource.Namespace
	if kind == namespaceKind {
		namespace = resource.Name
	}
	if namespace == "" {
		return ""
	}
	project, standing := a.Owner(namespace)
	switch {
	case standing == StandingFree && kind != contextKind:
		return ""
	case standing == StandingUnknown:
		return fmt.Sprintf("cluster(s) must wait until it is known which project namespace %q belongs to", namespace)
	case standing != StandingMirror:
		return fmt.Sprintf("cluster(s) may have nothing of namespace %q, which names no project: set its labels %s and %s",
			namespace, v1alpha.UpstreamClusterNameLabel, v1alpha.UpstreamNamespaceLabel)
	case served == "" && a.allowUnlabelled:
		return ""
	case served == "":
		return fmt.Sprintf("cluster(s) serve no location, and project %q may use only locations: label them %s", project, v1alpha.TopologyLocationLabel)
	}
	if may, why := a.May(project, served); !may {
		return "cluster(s) serve a location that is not open: " + why
	}
	return ""
}

// Trim is a transform for a cache that only an authority reads: it drops what the
// authority does not look at, such as a Cluster's long list of APIs.
func (a *Authority) Trim(object any) (any, error) {
	switch o := object.(type) {
	case *clusterv1alpha1.Cluster:
		return &clusterv1alpha1.Cluster{ObjectMeta: identity(&o.ObjectMeta, v1alpha.TopologyLocationLabel)}, nil
	case *corev1.Namespace:
		return &corev1.Namespace{ObjectMeta: identity(&o.ObjectMeta, v1alpha.UpstreamClusterNameLabel, v1alpha.UpstreamNamespaceLabel)}, nil
	case *v1alpha.NetworkContext:
		return &v1alpha.NetworkContext{ObjectMeta: identity(&o.ObjectMeta), Spec: v1alpha.NetworkContextSpec{Location: o.Spec.Location}}, nil
	case *v1alpha.LocationBinding:
		o.ManagedFields = nil
	case *metav1.PartialObjectMetadata:
		o.ManagedFields, o.Annotations, o.OwnerReferences, o.Finalizers = nil, nil, nil, nil
	case *unstructured.Unstructured:
		return a.Subjects.trim(o), nil
	}
	return object, nil
}

// identity is what is kept of every object, with some of its labels.
func identity(meta *metav1.ObjectMeta, labels ...string) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion}
	for _, label := range labels {
		if value, found := meta.Labels[label]; found {
			metav1.SetMetaDataLabel(&kept, label, value)
		}
	}
	return kept
}

// trim keeps the field that names the location.
func (s *Subjects) trim(object *unstructured.Unstructured) *unstructured.Unstructured {
	kept := &unstructured.Unstructured{Object: map[string]any{}}
	kept.SetGroupVersionKind(object.GroupVersionKind())
	kept.SetNamespace(object.GetNamespace())
	kept.SetName(object.GetName())
	kept.SetUID(object.GetUID())
	kept.SetResourceVersion(object.GetResourceVersion())
	kind := s.kinds[schema.GroupKind{Group: object.GroupVersionKind().Group, Kind: object.GetKind()}]
	if kind == nil || len(kind.field) == 0 {
		return kept
	}
	if named := kind.named(object); named != "" {
		// The path was walked a moment ago.
		_ = unstructured.SetNestedField(kept.Object, named, kind.field...)
	}
	return kept
}

// NewAuthorityOf returns an authority that knows just these objects of a hub and watches
// none. Objects of kinds that it does not look at are passed over.
func NewAuthorityOf(configuration Configuration, objects ...client.Object) *Authority {
	a := NewAuthority(configuration)
	for _, object := range objects {
		switch o := object.(type) {
		case *v1alpha.LocationBinding:
			a.setGrant(o)
		case *corev1.Namespace:
			a.setNamespace(o.Name, o.Labels)
		case *clusterv1alpha1.Cluster:
			a.setCell(o.Name, o.Labels[v1alpha.TopologyLocationLabel])
		default:
			a.Subjects.take(o)
		}
	}
	return a
}
