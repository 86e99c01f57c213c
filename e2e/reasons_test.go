package e2e

import (
	"fmt"
	"strings"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/providers/kubeconfig"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/e2e/controlplane"
)

// Each reason of a binding's Ready is entered by its cause and left when that cause alone
// goes: by a watch, with nobody touching the binding.
var _ = Describe("A binding's Ready", func() {
	var w *world

	BeforeEach(func(ctx SpecContext) { w = newWorld(ctx) })

	It("is Unknown/Pending by the CRD's default while no controller has looked", func(ctx SpecContext) {
		pause(controlplane.HubProcess)
		binding := w.bind(ctx, "pending", "default", near)
		Expect(hub().Get(ctx, client.ObjectKeyFromObject(binding), binding)).To(Succeed())
		Expect(ready(binding)).To(SatisfyAll(HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", v1alpha.ReasonPending)))
		resume(controlplane.HubProcess)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkNotFound)
	})

	It("is ProjectUnresolved while the namespace names no project", func(ctx SpecContext) {
		withoutAdmission(ctx)
		w.declareNetwork(ctx, "default")
		namespace := &corev1.Namespace{}
		Expect(hub().Get(ctx, client.ObjectKey{Name: w.namespace}, namespace)).To(Succeed())
		labelled := namespace.DeepCopy()
		delete(namespace.Labels, v1alpha.UpstreamClusterNameLabel)
		Expect(hub().Update(ctx, namespace)).To(Succeed())

		binding := w.bind(ctx, "unlabelled", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonProjectUnresolved)
		Expect(ready(binding).Message).To(ContainSubstring(v1alpha.UpstreamClusterNameLabel))

		By("an empty label names no project either")
		namespace.Labels[v1alpha.UpstreamClusterNameLabel] = ""
		Expect(hub().Update(ctx, namespace)).To(Succeed())
		w.staysReason(ctx, binding, v1alpha.ReasonProjectUnresolved)

		By("labelling it as it was")
		labelled.ResourceVersion = namespace.ResourceVersion
		Expect(hub().Update(ctx, labelled)).To(Succeed())
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
	})

	It("is ProjectUnresolved while the project is not connected", func(ctx SpecContext) {
		w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "disconnected", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		context := w.context(ctx, "default", near)

		Expect(plane.DisconnectProject(ctx, w.project)).To(Succeed())
		w.expectReason(ctx, binding, v1alpha.ReasonProjectUnresolved)
		Expect(w.context(ctx, "default", near).UID).To(Equal(context.UID), "a regression withdraws nothing")

		Expect(plane.ConnectProject(ctx, w.project)).To(Succeed())
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		Expect(w.context(ctx, "default", near).UID).To(Equal(context.UID))
	})

	It("is LocationNotAvailable while the project has no usable LocationBinding", func(ctx SpecContext) {
		w.declareNetwork(ctx, "default")
		w.revoke(ctx, near)
		binding := w.bind(ctx, "closed", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonLocationNotAvailable)
		Expect(ready(binding).Message).To(SatisfyAll(ContainSubstring(w.project), ContainSubstring(near)))

		By("the LocationBinding appearing")
		w.grant(ctx, near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		copied := w.copyIn(ctx, cellOf(near), "default", near)

		By("the LocationBinding becoming Available=False, then available again")
		w.setAvailable(ctx, near, metav1.ConditionFalse)
		w.expectReason(ctx, binding, v1alpha.ReasonLocationNotAvailable)
		w.setAvailable(ctx, near, metav1.ConditionTrue)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)

		By("the LocationBinding going, which takes nothing that was delivered")
		w.revoke(ctx, near)
		w.expectReason(ctx, binding, v1alpha.ReasonLocationNotAvailable)
		Expect(w.copyIn(ctx, cellOf(near), "default", near).UID).To(Equal(copied.UID))
	})

	It("is LocationNotAvailable for a location that nobody knows", func(ctx SpecContext) {
		w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "nowhere", "default", "atlantis-1")
		w.expectReason(ctx, binding, v1alpha.ReasonLocationNotAvailable)
	})

	It("is NetworkNotFound while the project has no such network", func(ctx SpecContext) {
		binding := w.bind(ctx, "early", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkNotFound)

		w.declareNetwork(ctx, "default")
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
	})

	It("is NetworkNotFound for a network in a namespace that is not the mirrored one", func(ctx SpecContext) {
		withoutAdmission(ctx)
		w.declareNetwork(ctx, "default")
		binding := w.newBinding("elsewhere", "default", near)
		binding.Spec.Network.Namespace = "kube-system"
		Expect(hub().Create(ctx, binding)).To(Succeed())
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkNotFound)
		Expect(ready(binding).Message).To(ContainSubstring(`spec.network.namespace is "kube-system"`))
		Expect(w.contexts(ctx)).To(BeEmpty())
	})

	It("is NetworkContextNotReady while no cell serves the location", func(ctx SpecContext) {
		w.declareNetwork(ctx, "default")
		w.grant(ctx, "us-west-9")
		binding := w.bind(ctx, "no-cell", "default", "us-west-9")
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextNotReady)
		w.eventually(ctx, func(g Gomega) {
			w.refresh(ctx, g, binding)
			g.Expect(ready(binding).Message).To(ContainSubstring(`no cell serves location "us-west-9"`))
		})

		By("a cell being labelled")
		relabel(ctx, spareCell, "us-west-9")
		DeferCleanup(func(ctx SpecContext) { relabel(ctx, spareCell, "") })
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		w.copyIn(ctx, spareCell, "default", "us-west-9")
	})

	It("says which cell cannot be reached, and withdraws nothing", func(ctx SpecContext) {
		w.declareNetwork(ctx, "default")
		lost, kept := w.bind(ctx, "lost", "default", far), w.bind(ctx, "kept", "default", near)
		w.expectReason(ctx, lost, v1alpha.ReasonNetworkContextReady)
		w.expectReason(ctx, kept, v1alpha.ReasonNetworkContextReady)
		context := w.context(ctx, "default", far)

		stop(ctx, plane.Cell(cellOf(far)).Process())
		w.expectReason(ctx, lost, v1alpha.ReasonNetworkContextNotReady)
		Expect(ready(lost).Message).To(ContainSubstring(fmt.Sprintf("cell %s unreachable since", cellOf(far))))
		w.staysReason(ctx, kept, v1alpha.ReasonNetworkContextReady)

		restart(ctx, plane.Cell(cellOf(far)).Process())
		w.expectReason(ctx, lost, v1alpha.ReasonNetworkContextReady)
		Expect(w.context(ctx, "default", far).UID).To(Equal(context.UID))
	})

	It("is answered within a namespace that no label makes a hub namespace", func(ctx SpecContext) {
		withoutAdmission(ctx)
		stray := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "stray-"}}
		Expect(hub().Create(ctx, stray)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(hub().Delete(ctx, stray)).To(Succeed()) })
		binding := w.newBinding("stray", "default", near)
		binding.Namespace = stray.Name
		Expect(hub().Create(ctx, binding)).To(Succeed())
		w.expectReason(ctx, binding, v1alpha.ReasonProjectUnresolved)
	})
})

var _ = Describe("A project that cannot be reached", func() {
	It("holds up no other, and what was last known of it stays", func(ctx SpecContext) {
		w, other := newWorld(ctx), newWorldIn(ctx, otherProject)
		w.declareNetwork(ctx, "default")
		other.declareNetwork(ctx, "default")
		before := w.bind(ctx, "before", "default", near)
		w.expectReason(ctx, before, v1alpha.ReasonNetworkContextReady)

		pause(plane.Project(w.project).Process())
		DeferCleanup(func() { resume(plane.Project(w.project).Process()) })
		during := other.bind(ctx, "during", "default", near)
		other.expectReason(ctx, during, v1alpha.ReasonNetworkContextReady)
		w.staysReason(ctx, before, v1alpha.ReasonNetworkContextReady)

		By("restarting the hub's controllers while it does not answer")
		stop(ctx, controlplane.HubProcess)
		restart(ctx, controlplane.HubProcess)
		late := other.bind(ctx, "late", "default", far)
		other.expectReason(ctx, late, v1alpha.ReasonNetworkContextReady)
		w.staysReason(ctx, before, v1alpha.ReasonNetworkContextReady)
		unanswered := w.bind(ctx, "unanswered", "other", near)
		w.expectReason(ctx, unanswered, v1alpha.ReasonProjectUnresolved)
		Expect(ready(unanswered).Message).To(ContainSubstring("has not answered yet"))

		resume(plane.Project(w.project).Process())
		w.expectReason(ctx, unanswered, v1alpha.ReasonNetworkNotFound)
	})

	It("is told from one whose kubeconfig is broken, which holds up no other either", func(ctx SpecContext) {
		broken := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.ProjectsNamespace, Name: "broken", Labels: map[string]string{kubeconfig.DefaultKubeconfigSecretLabel: "true"}},
			Data:       map[string][]byte{"kubeconfig": []byte("not a kubeconfig")},
		}
		Expect(hub().Create(ctx, broken)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(hub().Delete(ctx, broken)).To(Succeed()) })
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		w.expectReason(ctx, w.bind(ctx, "fine", "default", near), v1alpha.ReasonNetworkContextReady)
	})
})

var _ = Describe("Names", func() {
	It("of two pairs that spell the same are told apart", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "a")
		w.declareNetwork(ctx, "a-us")
		w.grant(ctx, "us-central-1")
		w.grant(ctx, "central-1")
		one := w.bind(ctx, "one", "a", "us-central-1")
		other := w.bind(ctx, "other", "a-us", "central-1")
		w.eventually(ctx, func(g Gomega) {
			w.refresh(ctx, g, one)
			w.refresh(ctx, g, other)
			g.Expect(one.Status.NetworkContextRef).NotTo(BeNil())
			g.Expect(other.Status.NetworkContextRef).NotTo(BeNil())
		})
		names := []string{one.Status.NetworkContextRef.Name, other.Status.NetworkContextRef.Name}
		Expect(names).To(ConsistOf(Equal("a-us-central-1"), MatchRegexp(`^a-us-central-1-[0-9a-f]{10}$`)))
		Expect(w.context(ctx, "a", "us-central-1").Spec.Network.Name).To(BeEquivalentTo("a"))
		Expect(w.context(ctx, "a-us", "central-1").Spec.Network.Name).To(BeEquivalentTo("a-us"))
	})

	It("of 63 characters work", func(ctx SpecContext) {
		w := newWorld(ctx)
		network, location := strings.Repeat("n", 63), strings.Repeat("l", 63)
		w.declareNetwork(ctx, network)
		w.grant(ctx, location)
		relabel(ctx, spareCell, location)
		DeferCleanup(func(ctx SpecContext) { relabel(ctx, spareCell, "") })
		w.expectReason(ctx, w.bind(ctx, strings.Repeat("b", 63), network, location), v1alpha.ReasonNetworkContextReady)
		w.copyIn(ctx, spareCell, network, location)
	})

	DescribeTable("that are wrong are refused with the field and what is right",
		func(ctx SpecContext, change func(*v1alpha.NetworkBinding), says ...string) {
			w := newWorld(ctx)
			binding := w.newBinding("wrong", "default", near)
			change(binding)
			err := hub().Create(ctx, binding)
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			for _, part := range says {
				Expect(err.Error()).To(ContainSubstring(part))
			}
		},
		Entry("a network of 64 characters", func(b *v1alpha.NetworkBinding) { b.Spec.Network.Name = v1alpha.Name(strings.Repeat("n", 64)) }, "spec.network.name", "63"),
		Entry("a location of 64 characters", func(b *v1alpha.NetworkBinding) { b.Spec.Location.Name = v1alpha.Name(strings.Repeat("l", 64)) }, "spec.location.name", "63"),
		Entry("no location", func(b *v1alpha.NetworkBinding) { b.Spec.Location.Name = "" }, "spec.location.name"),
		Entry("no label's value", func(b *v1alpha.NetworkBinding) { b.Spec.Network.Name = "Default!" }, "spec.network.name", "Default!"),
	)

	It("of a binding's network and location cannot be changed", func(ctx SpecContext) {
		w := newWorld(ctx)
		binding := w.bind(ctx, "fixed", "default", near)
		changed := binding.DeepCopy()
		changed.Spec.Network.Name = "other"
		Expect(hub().Patch(ctx, changed, client.MergeFrom(binding))).To(MatchError(ContainSubstring("spec.network is immutable")))
		changed = binding.DeepCopy()
		changed.Spec.Location.Name = far
		Expect(hub().Patch(ctx, changed, client.MergeFrom(binding))).To(MatchError(ContainSubstring("spec.location is immutable")))
	})
})

var _ = Describe("A context", func() {
	It("deleted by hand comes back", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "first", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		before := w.context(ctx, "default", near)
		Expect(hub().Delete(ctx, before)).To(Succeed())
		w.eventually(ctx, func(g Gomega) {
			contexts := w.contexts(ctx)
			g.Expect(contexts).To(HaveLen(1))
			g.Expect(contexts[0].UID).NotTo(Equal(before.UID))
		})
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		w.copyIn(ctx, cellOf(near), "default", near)
	})

	It("edited by hand is mended, but for what others added", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		w.expectReason(ctx, w.bind(ctx, "first", "default", near), v1alpha.ReasonNetworkContextReady)
		context := w.context(ctx, "default", near)
		edited := context.DeepCopy()
		edited.Spec.MTU = 1300
		edited.Labels["example.com/added"] = "kept"
		Expect(as(presenceController).Patch(ctx, edited, client.MergeFrom(context))).To(Succeed())
		w.eventually(ctx, func(g Gomega) {
			mended := w.context(ctx, "default", near)
			g.Expect(mended.Spec.MTU).To(BeEquivalentTo(8000))
			g.Expect(mended.Labels).To(HaveKeyWithValue("example.com/added", "kept"))
		})
	})

	It("does not mind foreign objects in its namespace, nor a foreign object of its name", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "default-" + near}}
		Expect(hub().Create(ctx, foreign)).To(Succeed())
		w.expectReason(ctx, w.bind(ctx, "first", "default", near), v1alpha.ReasonNetworkContextReady)
		Expect(hub().Get(ctx, client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
		Expect(foreign.OwnerReferences).To(BeEmpty())
	})
})

var _ = Describe("A network", func() {
	It("with a presence is kept until its contexts are gone, and its bindings stay", func(ctx SpecContext) {
		w := newWorld(ctx)
		network := w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "first", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		Expect(upstream(w.project).Get(ctx, client.ObjectKeyFromObject(network), network)).To(Succeed())
		Expect(network.Finalizers).To(ContainElement(v1alpha.PresenceFinalizer))

		Expect(upstream(w.project).Delete(ctx, network)).To(Succeed())
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkNotFound)
		w.eventually(ctx, func(g Gomega) {
			err := upstream(w.project).Get(ctx, client.ObjectKeyFromObject(network), network)
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the network is still there: %v", err)
			g.Expect(w.contexts(ctx)).To(BeEmpty())
			g.Expect(w.copies(ctx, cellOf(near))).To(BeEmpty())
		})
	})

	It("re-created under its name is another one", func(ctx SpecContext) {
		w := newWorld(ctx)
		network := w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "first", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		before := w.context(ctx, "default", near)

		Expect(upstream(w.project).Delete(ctx, network)).To(Succeed())
		w.eventually(ctx, func(g Gomega) {
			err := upstream(w.project).Get(ctx, client.ObjectKeyFromObject(network), network)
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the network is still there: %v", err)
		})
		again := w.declareNetwork(ctx, "default")
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		after := w.context(ctx, "default", near)
		Expect(after.UID).NotTo(Equal(before.UID))
		Expect(after.Labels).To(HaveKeyWithValue(v1alpha.NetworkUIDLabel, string(again.UID)))
		w.eventually(ctx, func(g Gomega) {
			copies := w.copies(ctx, cellOf(near))
			g.Expect(copies).To(HaveLen(1))
			g.Expect(copies[0].Labels).To(HaveKeyWithValue(v1alpha.NetworkUIDLabel, string(again.UID)))
		})
	})

	It("without a presence carries no finalizer of ours, and loses it with its last presence", func(ctx SpecContext) {
		w := newWorld(ctx)
		network := w.declareNetwork(ctx, "default")
		refused := w.bind(ctx, "refused", "default", "atlantis-1")
		w.expectReason(ctx, refused, v1alpha.ReasonLocationNotAvailable)
		Expect(upstream(w.project).Get(ctx, client.ObjectKeyFromObject(network), network)).To(Succeed())
		Expect(network.Finalizers).To(BeEmpty())

		binding := w.bind(ctx, "first", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		Expect(hub().Delete(ctx, binding)).To(Succeed())
		w.eventually(ctx, func(g Gomega) {
			g.Expect(upstream(w.project).Get(ctx, client.ObjectKeyFromObject(network), network)).To(Succeed())
			g.Expect(network.Finalizers).To(BeEmpty())
		})
	})
})

var _ = Describe("While nothing happens", func() {
	It("nothing is written for a minute, not even for what is refused", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		w.expectReason(ctx, w.bind(ctx, "fine", "default", near), v1alpha.ReasonNetworkContextReady)
		w.expectReason(ctx, w.bind(ctx, "closed", "default", "atlantis-1"), v1alpha.ReasonLocationNotAvailable)
		w.expectReason(ctx, w.bind(ctx, "absent", "absent", near), v1alpha.ReasonNetworkNotFound)
		w.grant(ctx, "empty-1")
		w.expectReason(ctx, w.bind(ctx, "empty", "default", "empty-1"), v1alpha.ReasonNetworkContextNotReady)

		var before map[string]string
		By("letting the last writes land")
		w.eventually(ctx, func(g Gomega) {
			now := w.versions(ctx)
			defer func() { before = now }()
			g.Expect(now).To(Equal(before))
		}, time.Second)
		Consistently(func() map[string]string { return w.versions(ctx) }, time.Minute, time.Second).Should(Equal(before))
	})
})

var _ = Describe("Without our scheduler", func() {
	It("nothing is placed anywhere, and the binding says so", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		stop(ctx, controlplane.SchedulerProcess)
		DeferCleanup(func(ctx SpecContext) { restart(ctx, controlplane.SchedulerProcess) })
		binding := w.bind(ctx, "waiting", "default", near)
		w.eventually(ctx, func(g Gomega) {
			w.refresh(ctx, g, binding)
			g.Expect(ready(binding).Message).To(ContainSubstring(`scheduler "network-presence-scheduler" has not placed`))
		})
		for _, cell := range allCells() {
			Expect(w.copies(ctx, cell)).To(BeEmpty())
		}
		restart(ctx, controlplane.SchedulerProcess)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
	})
})

// relabel sets or, with an empty location, takes away a cell's location label.
func relabel(ctx SpecContext, cell, location string) {
	cluster := &clusterv1alpha1.Cluster{}
	Expect(hub().Get(ctx, client.ObjectKey{Name: cell}, cluster)).To(Succeed())
	changed := cluster.DeepCopy()
	if changed.Labels == nil {
		changed.Labels = map[string]string{}
	}
	delete(changed.Labels, v1alpha.TopologyLocationLabel)
	if location != "" {
		changed.Labels[v1alpha.TopologyLocationLabel] = location
	}
	Expect(hub().Patch(ctx, changed, client.MergeFrom(cluster))).To(Succeed())
}
