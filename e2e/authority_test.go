package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/e2e/controlplane"
	"go.datum.net/network-presence/location"
)

// The names of policies that the hub's chart installs and of Karmada's own scheduler.
const (
	ourPolicy      = "network-presence"
	stockScheduler = "karmada-scheduler"
)

// federate has a ConfigMap of a world placed by a scheduler, and returns its name.
func (w *world) federate(ctx context.Context, name, scheduler string) types.NamespacedName {
	GinkgoHelper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: policyv1alpha1.PropagationSpec{
			SchedulerName:     scheduler,
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap", Name: name}},
		},
	}
	Expect(hub().Create(ctx, policy)).To(Succeed())
	Expect(hub().Create(ctx, object)).To(Succeed())
	return client.ObjectKeyFromObject(object)
}

// targets are the clusters that a binding of the world names.
func (w *world) targets(ctx context.Context, g Gomega, binding string) []string {
	var found workv1alpha2.ResourceBinding
	g.Expect(hub().Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: binding}, &found)).To(Succeed())
	names := []string{}
	for _, target := range found.Spec.Clusters {
		names = append(names, target.Name)
	}
	return names
}

// refused waits until a binding of the world is placed nowhere, and returns why.
func (w *world) refused(ctx context.Context, binding string) string {
	GinkgoHelper()
	var found workv1alpha2.ResourceBinding
	w.eventually(ctx, func(g Gomega) {
		g.Expect(hub().Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: binding}, &found)).To(Succeed())
		g.Expect(meta.IsStatusConditionFalse(found.Status.Conditions, workv1alpha2.Scheduled)).To(BeTrue())
		g.Expect(found.Spec.Clusters).To(BeEmpty())
	})
	return meta.FindStatusCondition(found.Status.Conditions, workv1alpha2.Scheduled).Message
}

var _ = Describe("A Location of the platform", func() {
	It("is copied while it is Ready, and carried to the cells that serve it", func(ctx SpecContext) {
		platform := plane.Platform().Client
		of := &v1alpha.Location{
			ObjectMeta: metav1.ObjectMeta{Name: near},
			Spec:       v1alpha.LocationSpec{LocationClassName: "datum-managed", Topology: map[string]string{"topology.datum.net/city-code": "DFW"}},
		}
		Expect(platform.Create(ctx, of)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(platform.Delete(ctx, of))).To(Succeed()) })
		ready := func(status metav1.ConditionStatus) {
			GinkgoHelper()
			meta.SetStatusCondition(&of.Status.Conditions, metav1.Condition{Type: v1alpha.LocationReady, Status: status, Reason: "Spec"})
			Expect(platform.Status().Update(ctx, of)).To(Succeed())
		}
		Consistently(func() error { return hub().Get(ctx, client.ObjectKey{Name: near}, &v1alpha.Location{}) }, time.Second).
			Should(MatchError(apierrors.IsNotFound, "not found: it is not Ready"))

		ready(metav1.ConditionTrue)
		copied := &v1alpha.Location{}
		Eventually(func() error { return inCell(cellOf(near)).Get(ctx, client.ObjectKey{Name: near}, copied) }, patience, "50ms").Should(Succeed())
		Expect(copied.Spec).To(Equal(of.Spec))
		Expect(hub().Get(ctx, client.ObjectKey{Name: near}, copied)).To(Succeed())
		Expect(copied.Spec).To(Equal(of.Spec))
		Expect(copied.Status.Conditions).To(BeEmpty())
		for _, cell := range allCells() {
			if cell != cellOf(near) {
				Expect(inCell(cell).Get(ctx, client.ObjectKey{Name: near}, copied)).To(MatchError(apierrors.IsNotFound, "not found"), cell)
			}
		}

		ready(metav1.ConditionFalse)
		Eventually(func() error { return inCell(cellOf(near)).Get(ctx, client.ObjectKey{Name: near}, copied) }, patience, "50ms").
			Should(MatchError(apierrors.IsNotFound, "not found"))
	})
})

var _ = Describe("A project that may use no location", func() {
	It("has nothing placed anywhere, and is told what to do", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.revoke(ctx, near)
		w.revoke(ctx, far)
		w.eventually(ctx, func(g Gomega) {
			for _, of := range []string{near, far} {
				g.Expect(hub().Get(ctx, client.ObjectKey{Name: location.CopyName(w.project, of)}, &v1alpha.LocationBinding{})).
					To(MatchError(apierrors.IsNotFound, "not found"))
			}
		})
		w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "b", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonLocationNotAvailable)
		Expect(ready(binding).Message).To(ContainSubstring(`project %q may not use location %q`, w.project, near))

		w.federate(ctx, "shared", controlplane.SchedulerProcess)
		Expect(w.refused(ctx, "shared-configmap")).To(SatisfyAll(
			ContainSubstring(`project %q may not use location %q`, w.project, near), ContainSubstring("make one in the project")))

		By("one location being granted")
		w.grant(ctx, far)
		w.eventually(ctx, func(g Gomega) { g.Expect(w.targets(ctx, g, "shared-configmap")).To(ConsistOf(cellOf(far))) })
	})
})

var _ = Describe("A cell", func() {
	It("whose label names another location now loses the old one's, and gets the new one's", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		w.grant(ctx, "one-1")
		w.grant(ctx, "two-1")
		one, two := w.bind(ctx, "one", "default", "one-1"), w.bind(ctx, "two", "default", "two-1")
		relabel(ctx, spareCell, "one-1")
		DeferCleanup(func(ctx SpecContext) { relabel(ctx, spareCell, "") })
		w.expectReason(ctx, one, v1alpha.ReasonNetworkContextReady)

		relabel(ctx, spareCell, "two-1")
		w.expectReason(ctx, two, v1alpha.ReasonNetworkContextReady)
		w.eventually(ctx, func(g Gomega) { g.Expect(w.copies(ctx, spareCell)).To(HaveLen(1)) })
		copied := w.copyIn(ctx, spareCell, "default", "two-1")
		w.expectReason(ctx, one, v1alpha.ReasonNetworkContextNotReady)

		By("the label going, which takes nothing")
		relabel(ctx, spareCell, "")
		Consistently(func(g Gomega) {
			copies := w.copies(ctx, spareCell)
			g.Expect(copies).To(HaveLen(1))
			g.Expect(copies[0].UID).To(Equal(copied.UID))
		}, 2*time.Second, 200*time.Millisecond).Should(Succeed())
	})

	It("that gets our kinds late is served once it has them", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		w.grant(ctx, "late-1")
		definition := &apiextensionsv1.CustomResourceDefinition{}
		key := client.ObjectKey{Name: "networkcontexts.networking.datumapis.com"}
		Expect(inCell(spareCell).Get(ctx, key, definition)).To(Succeed())
		again := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: key.Name}, Spec: definition.Spec}
		Expect(inCell(spareCell).Delete(ctx, definition)).To(Succeed())
		restore := func(ctx context.Context) {
			Eventually(func() error { return client.IgnoreAlreadyExists(inCell(spareCell).Create(ctx, again.DeepCopy())) }, patience, "50ms").Should(Succeed())
		}
		DeferCleanup(func(ctx SpecContext) {
			restore(ctx)
			relabel(ctx, spareCell, "")
		})
		w.eventually(ctx, func(g Gomega) {
			cluster := &clusterv1alpha1.Cluster{}
			g.Expect(hub().Get(ctx, client.ObjectKey{Name: spareCell}, cluster)).To(Succeed())
			g.Expect(cluster.APIEnablement(v1alpha.SchemeGroupVersion.WithKind("NetworkContext"))).To(Equal(clusterv1alpha1.APIDisabled))
		})
		relabel(ctx, spareCell, "late-1")
		binding := w.bind(ctx, "late", "default", "late-1")
		w.eventually(ctx, func(g Gomega) {
			w.refresh(ctx, g, binding)
			g.Expect(ready(binding).Message).To(ContainSubstring("did not have the API resource"))
		})

		By("the kind being installed there")
		w.eventually(ctx, func(g Gomega) {
			g.Expect(inCell(spareCell).Get(ctx, key, &apiextensionsv1.CustomResourceDefinition{})).To(MatchError(apierrors.IsNotFound, "not found"))
		})
		restore(ctx)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
	})

	It("that joins gets what waits for its location", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		Expect(plane.Unjoin(ctx, cellOf(far))).To(Succeed())
		joined := false
		join := func(ctx SpecContext) {
			if !joined {
				Expect(plane.Join(ctx, cellOf(far))).To(Succeed())
				joined = true
			}
		}
		DeferCleanup(join)
		binding := w.bind(ctx, "early", "default", far)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextNotReady)
		join(ctx)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
	})
})

var _ = Describe("What a project was granted", func() {
	It("stays while its control plane is gone, and while it comes back with nothing", func(ctx SpecContext) {
		w := newWorldIn(ctx, otherProject)
		w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "first", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		copied := w.copyIn(ctx, cellOf(near), "default", near)
		grant := &v1alpha.LocationBinding{}
		Expect(hub().Get(ctx, client.ObjectKey{Name: location.CopyName(w.project, near)}, grant)).To(Succeed())
		process := plane.Project(w.project).Process()
		definitions := &apiextensionsv1.CustomResourceDefinitionList{}
		Expect(upstream(w.project).List(ctx, definitions)).To(Succeed())

		By("its API server being restored from nothing")
		Expect(plane.Restart(ctx, process, "--etcd-prefix=/emptied")).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { restart(ctx, process) })
		for _, definition := range definitions.Items {
			Eventually(func() error {
				return client.IgnoreAlreadyExists(upstream(w.project).Create(ctx, &apiextensionsv1.CustomResourceDefinition{
					ObjectMeta: metav1.ObjectMeta{Name: definition.Name}, Spec: definition.Spec,
				}))
			}, patience, "100ms").Should(Succeed())
		}
		w.eventually(ctx, func(g Gomega) {
			var events eventsv1.EventList
			g.Expect(hub().List(ctx, &events, client.InNamespace(metav1.NamespaceDefault))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(SatisfyAll(HaveField("Reason", "SourceEmpty"), HaveField("Regarding.UID", grant.UID))))
		})

		By("its API server having all again")
		restart(ctx, process)
		w.eventually(ctx, func(g Gomega) { g.Expect(upstream(w.project).List(ctx, &v1alpha.LocationBindingList{})).To(Succeed()) })
		w.staysReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		after := &v1alpha.LocationBinding{}
		Expect(hub().Get(ctx, client.ObjectKeyFromObject(grant), after)).To(Succeed())
		Expect(after.ResourceVersion).To(Equal(grant.ResourceVersion), "the copy was not written")
		Expect(w.copyIn(ctx, cellOf(near), "default", near).UID).To(Equal(copied.UID))

		By("one being deleted then")
		w.revoke(ctx, near)
		w.expectReason(ctx, binding, v1alpha.ReasonLocationNotAvailable)
	})

	It("is placed by a scheduler that died meanwhile, and what is placed is not written again", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		w.expectReason(ctx, w.bind(ctx, "before", "default", near), v1alpha.ReasonNetworkContextReady)
		before := w.copyIn(ctx, cellOf(near), "default", near)
		for n := range 8 {
			if n == 4 {
				stop(ctx, controlplane.SchedulerProcess)
			}
			w.federate(ctx, fmt.Sprintf("c%d", n), controlplane.SchedulerProcess)
		}
		restart(ctx, controlplane.SchedulerProcess)
		restart(ctx, controlplane.HubProcess)
		for n := range 8 {
			w.eventually(ctx, func(g Gomega) {
				g.Expect(w.targets(ctx, g, fmt.Sprintf("c%d-configmap", n))).To(ConsistOf(cellOf(near), cellOf(far)))
			})
		}
		after := w.copyIn(ctx, cellOf(near), "default", near)
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.Generation).To(Equal(before.Generation))
	})
})

var _ = Describe("Our scheduler in the place of Karmada's own", func() {
	It("places what names no scheduler, where its project may be", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.revoke(ctx, far)
		w.declareNetwork(ctx, "default")
		policy := &policyv1alpha1.ClusterPropagationPolicy{}
		Expect(hub().Get(ctx, client.ObjectKey{Name: ourPolicy}, policy)).To(Succeed())
		schedule := func(ctx context.Context, name string) {
			Expect(hub().Delete(ctx, policy.DeepCopy())).To(Succeed()) // its scheduler cannot be changed
			again := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: ourPolicy, Labels: policy.Labels}, Spec: policy.Spec}
			again.Spec.SchedulerName = name
			Eventually(func() error { return hub().Create(ctx, again.DeepCopy()) }, patience, "50ms").Should(Succeed())
		}
		stop(ctx, stockScheduler)
		DeferCleanup(func(ctx SpecContext) {
			restart(ctx, controlplane.SchedulerProcess)
			restart(ctx, controlplane.HubProcess)
			restart(ctx, stockScheduler)
			schedule(ctx, controlplane.SchedulerProcess)
		})
		Expect(plane.Restart(ctx, controlplane.SchedulerProcess, "--scheduler-name=default-scheduler")).To(Succeed())
		Expect(plane.Restart(ctx, controlplane.HubProcess, "--scheduler-names=default-scheduler")).To(Succeed())
		schedule(ctx, "default-scheduler")
		w.federate(ctx, "plain", "")
		w.eventually(ctx, func(g Gomega) { g.Expect(w.targets(ctx, g, "plain-configmap")).To(ConsistOf(cellOf(near))) })
		w.expectReason(ctx, w.bind(ctx, "b", "default", near), v1alpha.ReasonNetworkContextReady)

		By("another location being granted")
		w.grant(ctx, far)
		w.eventually(ctx, func(g Gomega) {
			g.Expect(w.targets(ctx, g, "plain-configmap")).To(ConsistOf(cellOf(near), cellOf(far)))
		})
	})
})

var _ = Describe("A policy for everything", func() {
	It("yields to ours, and the binding says where it came first", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		ours := &policyv1alpha1.ClusterPropagationPolicy{}
		Expect(hub().Get(ctx, client.ObjectKey{Name: ourPolicy}, ours)).To(Succeed())
		catchAll := &policyv1alpha1.ClusterPropagationPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "catch-all"},
			Spec: policyv1alpha1.PropagationSpec{
				ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: v1alpha.SchemeGroupVersion.String(), Kind: "NetworkContext"}},
				Placement:         policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cellOf(near)}}},
			},
		}
		Expect(hub().Create(ctx, catchAll)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(hub().Delete(ctx, catchAll)).To(Succeed()) })
		binding := w.bind(ctx, "after", "default", far)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		Expect(w.copies(ctx, cellOf(near))).To(BeEmpty())

		By("ours coming after it")
		Expect(hub().Delete(ctx, ours.DeepCopy())).To(Succeed())
		install := func(ctx SpecContext) {
			Eventually(func() error {
				again := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: ours.Name, Labels: ours.Labels}, Spec: ours.Spec}
				return client.IgnoreAlreadyExists(hub().Create(ctx, again))
			}, patience, "50ms").Should(Succeed())
		}
		DeferCleanup(install)
		w.eventually(ctx, func(g Gomega) {
			g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(ours), &policyv1alpha1.ClusterPropagationPolicy{})).To(MatchError(apierrors.IsNotFound, "not found"))
		})
		first := w.bind(ctx, "before", "default", near)
		w.eventually(ctx, func(g Gomega) {
			w.refresh(ctx, g, first)
			g.Expect(ready(first).Message).To(ContainSubstring(`cluster policy catch-all has it placed by scheduler "default-scheduler"`))
		})
		install(ctx)
	})
})

var _ = Describe("An object of another group's kind NetworkContext", func() {
	It("that has a context's name is told of, and left as it is", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "NetworkContext"}
		preserve := true
		definition := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: "networkcontexts.example.com"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: kind.Group, Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind.Kind, ListKind: kind.Kind + "List", Plural: "networkcontexts", Singular: "networkcontext"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: kind.Version, Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}},
				}},
			},
		}
		Expect(hub().Create(ctx, definition)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(hub().Delete(ctx, definition)).To(Succeed()) })
		policy := &policyv1alpha1.PropagationPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "foreign"},
			Spec:       policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "example.com/v1", Kind: kind.Kind}}},
		}
		foreign := &unstructured.Unstructured{}
		foreign.SetGroupVersionKind(kind)
		foreign.SetNamespace(w.namespace)
		foreign.SetName("default-" + near)
		Eventually(func() error { return hub().Create(ctx, foreign) }, patience, "50ms").Should(Succeed())
		Expect(hub().Create(ctx, policy)).To(Succeed())
		name := client.ObjectKey{Namespace: w.namespace, Name: "default-" + near + "-networkcontext"}
		w.eventually(ctx, func(g Gomega) { g.Expect(hub().Get(ctx, name, &workv1alpha2.ResourceBinding{})).To(Succeed()) })

		binding := w.bind(ctx, "b", "default", near)
		w.eventually(ctx, func(g Gomega) {
			w.refresh(ctx, g, binding)
			g.Expect(ready(binding).Message).To(ContainSubstring(`is that of example.com/v1 NetworkContext "default-%s"`, near))
		})
		Expect(hub().Get(ctx, client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
	})
})

var _ = Describe("A confined hub namespace", func() {
	It("is carried to the cells that its project may use, and to no other", func(ctx SpecContext) {
		confine(ctx)
		w := newWorld(ctx)
		w.revoke(ctx, far)
		w.eventually(ctx, func(g Gomega) {
			g.Expect(hub().Get(ctx, client.ObjectKey{Name: location.CopyName(w.project, far)}, &v1alpha.LocationBinding{})).
				To(MatchError(apierrors.IsNotFound, "not found"))
		})
		confined := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-confined", Labels: map[string]string{
			v1alpha.UpstreamClusterNameLabel:                 location.ProjectToLabel(w.project),
			v1alpha.UpstreamNamespaceLabel:                   w.upstream,
			policyv1alpha1.NamespaceSkipAutoPropagationLabel: "true",
		}}}
		w.declareNetwork(ctx, "default")
		Expect(hub().Create(ctx, confined)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(hub().Delete(ctx, confined)).To(Succeed()) })
		binding := w.newBinding("b", "default", near)
		binding.Namespace = confined.Name
		Expect(hub().Create(ctx, binding)).To(Succeed())
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		in := func(cell string) error {
			return inCell(cell).Get(ctx, client.ObjectKeyFromObject(confined), &corev1.Namespace{})
		}
		Expect(in(cellOf(near))).To(Succeed())
		for _, cell := range allCells() {
			if cell != cellOf(near) {
				Expect(in(cell)).To(MatchError(apierrors.IsNotFound, "not found"), cell)
			}
		}

		By("another location being granted")
		w.grant(ctx, far)
		w.eventually(ctx, func(g Gomega) { g.Expect(in(cellOf(far))).To(Succeed()) })
		Expect(hub().Delete(ctx, binding)).To(Succeed())
		w.eventually(ctx, func(g Gomega) { g.Expect(contextsIn(ctx, hub(), confined.Name)).To(BeEmpty()) })

		By("one being created without Karmada's label")
		namespace := &corev1.Namespace{}
		w.eventually(ctx, func(g Gomega) {
			g.Expect(hub().Get(ctx, client.ObjectKey{Name: w.namespace}, namespace)).To(Succeed())
			g.Expect(namespace.Labels).To(HaveKeyWithValue(policyv1alpha1.NamespaceSkipAutoPropagationLabel, "true"))
		})
	})
})

// confine has the hub confine namespaces for the rest of the spec, as its charts do where
// they are told to.
func confine(ctx SpecContext) {
	GinkgoHelper()
	policy := &policyv1alpha1.ClusterPropagationPolicy{}
	Expect(hub().Get(ctx, client.ObjectKey{Name: ourPolicy}, policy)).To(Succeed())
	before := policy.DeepCopy()
	policy.Spec.ResourceSelectors = append(policy.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{
		APIVersion: "v1", Kind: "Namespace", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: v1alpha.UpstreamClusterNameLabel, Operator: metav1.LabelSelectorOpExists},
		}},
	})
	role := &rbacv1.ClusterRole{}
	Expect(hub().Get(ctx, client.ObjectKey{Name: controlplane.HubProcess}, role)).To(Succeed())
	permitted := role.DeepCopy()
	permitted.Rules = append(permitted.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"patch"}})
	Expect(hub().Update(ctx, permitted)).To(Succeed())
	Expect(hub().Update(ctx, policy)).To(Succeed())
	Expect(plane.Restart(ctx, controlplane.HubProcess, "--confine-namespaces")).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		restart(ctx, controlplane.HubProcess)
		Expect(hub().Patch(ctx, before, client.RawPatch(types.MergePatchType, selectors(before)))).To(Succeed())
	})
}

// selectors is a patch that gives a policy back what it selected.
func selectors(policy *policyv1alpha1.ClusterPropagationPolicy) []byte {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"resourceSelectors": policy.Spec.ResourceSelectors}})
	Expect(err).NotTo(HaveOccurred())
	return patch
}
