package e2e

import (
	"context"
	"fmt"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/e2e/controlplane"
)

// as is a client of the hub for somebody else.
func as(user string) client.Client {
	GinkgoHelper()
	config := rest.CopyConfig(plane.Hub().Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	impersonating, err := client.New(config, client.Options{Scheme: controlplane.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return impersonating
}

// consumer is a user with the role of a consumer's controller in a namespace of the hub.
func consumer(ctx context.Context, namespace string) client.Client {
	GinkgoHelper()
	user := "controller-of-" + namespace
	Expect(hub().Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "consumer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "network-consumer"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
	return as(user)
}

// withoutAdmission has the hub take every binding, for the rest of the spec: the controller
// answers what came past admission as well.
func withoutAdmission(ctx context.Context) {
	GinkgoHelper()
	enforced := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	Expect(hub().Get(ctx, client.ObjectKey{Name: "network-presence-bindings"}, enforced)).To(Succeed())
	Expect(hub().Delete(ctx, enforced)).To(Succeed())
	stray := &v1alpha.NetworkBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "stray"},
		Spec:       v1alpha.NetworkBindingSpec{Network: v1alpha.NetworkReference{Name: "n"}, Location: v1alpha.BindingLocationReference{Name: near}},
	}
	takes := func(ctx context.Context) error { return hub().Create(ctx, stray.DeepCopy(), client.DryRunAll) }
	DeferCleanup(func(ctx SpecContext) {
		enforced.ResourceVersion, enforced.UID = "", ""
		Expect(hub().Create(ctx, enforced)).To(Succeed())
		Eventually(takes, patience, "50ms").WithContext(ctx).Should(MatchError(ContainSubstring("is not that of a project")))
	})
	Eventually(takes, patience, "50ms").WithContext(ctx).Should(Succeed())
}

var _ = Describe("The hub", func() {
	It("fills in the labels of a binding, whoever leaves them out", func(ctx SpecContext) {
		w := newWorld(ctx)
		binding := w.newBinding("b", "default", near)
		binding.Labels = map[string]string{"team": "edge", v1alpha.NetworkLabel: "default"}
		Expect(hub().Create(ctx, binding)).To(Succeed())
		Expect(binding.Labels).To(Equal(map[string]string{"team": "edge", v1alpha.NetworkLabel: "default", v1alpha.LocationLabel: near}))

		Expect(hub().Patch(ctx, binding, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":null}}`)))).To(Succeed())
		Expect(binding.Labels).To(Equal(map[string]string{v1alpha.NetworkLabel: "default", v1alpha.LocationLabel: near}))
	})

	DescribeTable("refuses a binding that cannot be right",
		func(ctx SpecContext, change func(*world, *v1alpha.NetworkBinding), field, right string) {
			w := newWorld(ctx)
			binding := w.newBinding("b", "default", near)
			change(w, binding)
			Expect(hub().Create(ctx, binding)).To(MatchError(SatisfyAll(ContainSubstring(field), ContainSubstring(right))))
		},
		Entry("with a label of another network", func(_ *world, b *v1alpha.NetworkBinding) {
			b.Labels = map[string]string{v1alpha.NetworkLabel: "other"}
		}, "metadata.labels[networking.datumapis.com/network] is other", "write default"),
		Entry("with a label of another location", func(_ *world, b *v1alpha.NetworkBinding) {
			b.Labels = map[string]string{v1alpha.LocationLabel: "nowhere"}
		}, "metadata.labels[networking.datumapis.com/location] is nowhere", "write "+near),
		Entry("for a network outside its namespace", func(_ *world, b *v1alpha.NetworkBinding) {
			b.Spec.Network.Namespace = "kube-system"
		}, "spec.network.namespace is kube-system", "mirrors spec-"),
		Entry("in a namespace that is no project's", func(_ *world, b *v1alpha.NetworkBinding) {
			b.Namespace = metav1.NamespaceDefault
		}, "namespace default is not that of a project", "meta.datumapis.com/upstream-cluster-name: cluster-<project>"),
		Entry("for a network whose name is no label", func(_ *world, b *v1alpha.NetworkBinding) {
			b.Spec.Network.Name = "a-name-of-sixty-four-characters-which-is-one-more-than-a-label-has"
		}, "spec.network.name", "63"),
	)

	It("takes a binding's network where it names the namespace that is mirrored", func(ctx SpecContext) {
		w := newWorld(ctx)
		binding := w.newBinding("b", "default", near)
		binding.Spec.Network.Namespace = w.upstream
		Expect(hub().Create(ctx, binding)).To(Succeed())
	})

	It("lets nobody but the presence controller write a context's spec", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		w.expectReason(ctx, w.bind(ctx, "b", "default", near), v1alpha.ReasonNetworkContextReady)
		context := w.context(ctx, "default", near)

		Expect(hub().Patch(ctx, context, mtu(1300))).To(MatchError(ContainSubstring("written by the presence controller alone, not by admin")))
		Expect(hub().Patch(ctx, context, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"team":"edge"}}}`)))).To(Succeed())
		forged := &v1alpha.NetworkContext{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "forged"}, Spec: context.Spec}
		Expect(hub().Create(ctx, forged)).To(MatchError(ContainSubstring("create a NetworkBinding")))
		Expect(as(presenceController).Patch(ctx, context, mtu(1300))).To(Succeed())
		w.eventually(ctx, func(g Gomega) {
			g.Expect(w.context(ctx, "default", near).Spec.MTU).To(BeEquivalentTo(8000), "what was written by hand is put right")
		})
	})

	It("goes on while nobody fills in labels", Serial, func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(plane.Pause(controlplane.WebhookProcess)).To(Succeed())
		DeferCleanup(plane.Resume, controlplane.WebhookProcess)
		binding := w.bind(ctx, "b", "default", near)
		Expect(binding.Labels).To(BeEmpty())
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkNotFound)
	})

	It("lets a consumer's controller do what it must, and no more", func(ctx SpecContext) {
		w, other := newWorld(ctx), newWorldIn(ctx, otherProject)
		w.declareNetwork(ctx, "default")
		c := consumer(ctx, w.namespace)

		binding := w.newBinding("b", "default", near)
		Expect(c.Create(ctx, binding)).To(Succeed())
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		Expect(c.List(ctx, &v1alpha.NetworkBindingList{}, client.InNamespace(w.namespace))).To(Succeed())

		for what, err := range map[string]error{
			"edit a binding":                   c.Patch(ctx, binding.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))),
			"answer a binding":                 c.Status().Patch(ctx, binding.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"status":{"conditions":[]}}`))),
			"read contexts":                    c.List(ctx, &v1alpha.NetworkContextList{}, client.InNamespace(w.namespace)),
			"delete a context":                 c.Delete(ctx, w.context(ctx, "default", near)),
			"read grants":                      c.List(ctx, &v1alpha.LocationBindingList{}),
			"read the kubeconfigs of projects": c.List(ctx, &corev1.SecretList{}, client.InNamespace(controlplane.ProjectsNamespace)),
			"read another project's bindings":  c.List(ctx, &v1alpha.NetworkBindingList{}, client.InNamespace(other.namespace)),
			"bind for another project":         c.Create(ctx, other.newBinding("b", "default", near)),
			"read everyone's bindings":         c.List(ctx, &v1alpha.NetworkBindingList{}),
		} {
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %v", what, err)
		}
		Expect(c.Delete(ctx, binding)).To(Succeed())
	})

	It("was asked for nothing that its processes may not do", Serial, func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "b", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		Expect(hub().Delete(ctx, binding)).To(Succeed())
		w.eventually(ctx, func(g Gomega) { g.Expect(w.contexts(ctx)).To(BeEmpty()) })
		for _, process := range []string{controlplane.HubProcess, controlplane.SchedulerProcess} {
			log, err := plane.Log(process)
			Expect(err).NotTo(HaveOccurred())
			Expect(refusal.FindAllString(log, 3)).To(BeEmpty(), process)
		}
	})
})

// refusal is a line about something that a user's roles do not allow.
var refusal = regexp.MustCompile(`.*User \\?"[^"]*" cannot \w+ resource.*`)

// presenceController is who the hub's controllers are.
const presenceController = "system:serviceaccount:" + controlplane.ProjectsNamespace + ":" + controlplane.HubProcess

// mtu is a patch of a context's MTU.
func mtu(value int) client.Patch {
	return client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"mtu":%d}}`, value))
}
