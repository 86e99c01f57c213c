package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/util/names"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/e2e/controlplane"
	"go.datum.net/network-presence/interpreter"
)

// placement is Karmada's ResourceBinding of a context, with what its cells report.
func (w *world) placement(ctx context.Context, g Gomega, context *v1alpha.NetworkContext) *workv1alpha2.ResourceBinding {
	placement := &workv1alpha2.ResourceBinding{}
	key := client.ObjectKey{Namespace: w.namespace, Name: names.GenerateBindingName("NetworkContext", context.Name)}
	g.Expect(hub().Get(ctx, key, placement)).To(Succeed())
	return placement
}

// reportOf is what Karmada has of a cell's report on a context.
func (w *world) reportOf(ctx context.Context, g Gomega, context *v1alpha.NetworkContext, cell string) v1alpha.CellReport {
	var report v1alpha.CellReport
	for _, item := range w.placement(ctx, g, context).Status.AggregatedStatus {
		if item.ClusterName == cell {
			g.Expect(item.Status).NotTo(BeNil())
			g.Expect(json.Unmarshal(item.Status.Raw, &report)).To(Succeed())
		}
	}
	return report
}

func (w *world) setMTU(ctx context.Context, network *v1alpha.Network, mtu int32) {
	GinkgoHelper()
	Expect(upstream(w.project).Get(ctx, client.ObjectKeyFromObject(network), network)).To(Succeed())
	edited := network.DeepCopy()
	edited.Spec.MTU = mtu
	Expect(upstream(w.project).Patch(ctx, edited, client.MergeFrom(network))).To(Succeed())
	*network = *edited
}

// hasMessage waits until a binding's message has a part.
func (w *world) hasMessage(ctx context.Context, binding *v1alpha.NetworkBinding, part string) {
	GinkgoHelper()
	w.eventually(ctx, func(g Gomega) {
		w.refresh(ctx, g, binding)
		g.Expect(ready(binding).Message).To(ContainSubstring(part))
	})
}

// hold keeps a cell's copy from going, as the holder of an address would.
func hold(ctx context.Context, cell string, copied *v1alpha.NetworkContext) {
	GinkgoHelper()
	held := copied.DeepCopy()
	held.Finalizers = append(held.Finalizers, "example.com/held")
	Expect(inCell(cell).Patch(ctx, held, client.MergeFrom(copied))).To(Succeed())
	DeferCleanup(letGo, cell, copied)
}

func letGo(ctx context.Context, cell string, copied *v1alpha.NetworkContext) {
	GinkgoHelper()
	held := &v1alpha.NetworkContext{}
	err := inCell(cell).Get(ctx, client.ObjectKeyFromObject(copied), held)
	if apierrors.IsNotFound(err) || held.UID != copied.UID {
		return
	}
	Expect(err).NotTo(HaveOccurred())
	free := held.DeepCopy()
	free.Finalizers = nil
	Expect(client.IgnoreNotFound(inCell(cell).Patch(ctx, free, client.MergeFrom(held)))).To(Succeed())
}

var _ = Describe("What the cells report", Label("forms"), func() {
	It("is seen on the ResourceBinding, the context and the binding, through delivery, edit and withdrawal", func(ctx SpecContext) {
		w := newWorld(ctx)
		network := w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "first", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		context := w.context(ctx, "default", near)

		seen := func(mtu int32) func(Gomega) {
			return func(g Gomega) {
				Expect(upstream(w.project).Get(ctx, client.ObjectKeyFromObject(network), network)).To(Succeed())
				report := w.reportOf(ctx, g, context, cellOf(near))
				g.Expect(report.MTU).To(Equal(mtu))
				g.Expect(report.NetworkGeneration).To(Equal(network.Generation))
				g.Expect(report.NetworkUID).To(Equal(network.UID))
				g.Expect(report.IPFamilies).To(ConsistOf(v1alpha.IPv4, v1alpha.IPv6))
				g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(context), context)).To(Succeed())
				g.Expect(context.Status.Cells).To(HaveLen(1))
				g.Expect(context.Status.Cells[0].Name).To(Equal(cellOf(near)))
				g.Expect(context.Status.Cells[0].MTU).To(Equal(mtu))
				for _, kind := range []string{v1alpha.NetworkContextReady, v1alpha.NetworkContextConverged} {
					g.Expect(meta.IsStatusConditionTrue(context.Status.Conditions, kind)).To(BeTrue(), kind)
				}
				g.Expect(meta.FindStatusCondition(context.Status.Conditions, v1alpha.NetworkContextHeld)).NotTo(BeNil())
			}
		}
		w.eventually(ctx, seen(8000))
		w.setMTU(ctx, network, 1400)
		w.eventually(ctx, seen(1400))
		w.staysReason(ctx, binding, v1alpha.ReasonNetworkContextReady)

		Expect(hub().Delete(ctx, binding)).To(Succeed())
		w.eventually(ctx, func(g Gomega) {
			g.Expect(w.contexts(ctx)).To(BeEmpty())
			g.Expect(w.copies(ctx, cellOf(near))).To(BeEmpty())
		})
	})

	It("says which cell refuses an update, and why", func(ctx SpecContext) {
		w := newWorld(ctx)
		network := w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "first", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		lift := refuseUpdates(ctx, cellOf(near), w.copyIn(ctx, cellOf(near), "default", near))

		w.setMTU(ctx, network, 1400)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextNotReady)
		Expect(ready(binding).Message).To(SatisfyAll(ContainSubstring("not applied in cell "+cellOf(near)), ContainSubstring("frozen for the spec")))

		lift(ctx)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		w.eventually(ctx, func(g Gomega) {
			g.Expect(w.copyIn(ctx, cellOf(near), "default", near).Spec.MTU).To(BeEquivalentTo(1400))
		})
	})

	It("never calls a copy ready that is being deleted", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "first", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		doomed := w.copyIn(ctx, cellOf(near), "default", near)
		hold(ctx, cellOf(near), doomed)

		Expect(hub().Delete(ctx, w.context(ctx, "default", near))).To(Succeed())
		w.hasMessage(ctx, binding, "the copy in cell "+cellOf(near)+" is being deleted")
		w.staysReason(ctx, binding, v1alpha.ReasonNetworkContextNotReady)

		letGo(ctx, cellOf(near), doomed)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		Expect(w.copyIn(ctx, cellOf(near), "default", near).UID).NotTo(Equal(doomed.UID))
	})

	It("says which cell still holds the copy of a deleted predecessor, and leaves that as it was", func(ctx SpecContext) {
		w := newWorld(ctx)
		network := w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "first", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		old := w.copyIn(ctx, cellOf(near), "default", near)
		hold(ctx, cellOf(near), old)

		Expect(upstream(w.project).Delete(ctx, network)).To(Succeed())
		w.eventually(ctx, func(g Gomega) {
			err := upstream(w.project).Get(ctx, client.ObjectKeyFromObject(network), network)
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
		})
		again := &v1alpha.Network{ObjectMeta: metav1.ObjectMeta{Namespace: w.upstream, Name: "default"}, Spec: v1alpha.NetworkSpec{MTU: 1400}}
		Expect(upstream(w.project).Create(ctx, again)).To(Succeed())
		w.hasMessage(ctx, binding, "still holds the copy of a deleted predecessor")
		Expect(ready(binding).Message).To(ContainSubstring("cell " + cellOf(near)))
		left := w.copyIn(ctx, cellOf(near), "default", near)
		Expect(left.UID).To(Equal(old.UID))
		Expect(left.Labels).To(HaveKeyWithValue(v1alpha.NetworkUIDLabel, old.Labels[v1alpha.NetworkUIDLabel]))
		Expect(left.Spec).To(Equal(old.Spec))

		letGo(ctx, cellOf(near), old)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		Expect(w.copyIn(ctx, cellOf(near), "default", near).Labels).To(HaveKeyWithValue(v1alpha.NetworkUIDLabel, string(again.UID)))
	})
})

// refuseUpdates has a cell refuse every write of a copy's spec, until lift is called.
func refuseUpdates(ctx context.Context, cell string, copied *v1alpha.NetworkContext) (lift func(context.Context)) {
	GinkgoHelper()
	name := "freeze-" + copied.Namespace
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{v1alpha.SchemeGroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"networkcontexts"},
					},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("object.metadata.namespace != '%s' || object.spec == oldObject.spec", copied.Namespace),
				Message:    "frozen for the spec",
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	Expect(inCell(cell).Create(ctx, policy)).To(Succeed())
	Expect(inCell(cell).Create(ctx, binding)).To(Succeed())
	lift = func(ctx context.Context) {
		GinkgoHelper()
		Expect(client.IgnoreNotFound(inCell(cell).Delete(ctx, binding))).To(Succeed())
		Expect(client.IgnoreNotFound(inCell(cell).Delete(ctx, policy))).To(Succeed())
	}
	DeferCleanup(lift)
	Eventually(func() error {
		tried := copied.DeepCopy()
		tried.Spec.MTU = 1300
		return inCell(cell).Patch(ctx, tried, client.MergeFrom(copied), client.DryRunAll)
	}, patience, 100*time.Millisecond).Should(MatchError(ContainSubstring("frozen for the spec")))
	return lift
}

var _ = Describe("The interpreter webhook", func() {
	BeforeEach(func() {
		if interpreterForm == controlplane.InterpreterLua {
			Skip("the rules are interpreted in Lua")
		}
	})

	It("that does not answer holds up no other kind's status, and what it missed is made up for", func(ctx SpecContext) {
		w := newWorld(ctx)
		network := w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "first", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		deployment := w.deploy(ctx, cellOf(near))

		pause(controlplane.WebhookProcess)
		DeferCleanup(func() { resume(controlplane.WebhookProcess) })
		w.setMTU(ctx, network, 1400)
		w.eventually(ctx, func(g Gomega) {
			g.Expect(w.copyIn(ctx, cellOf(near), "default", near).Spec.MTU).To(BeEquivalentTo(1400))
		})
		w.setReady(ctx, cellOf(near), deployment, 1)
		w.eventually(ctx, func(g Gomega) {
			g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
			g.Expect(deployment.Status.ReadyReplicas).To(BeEquivalentTo(1))
		})
		context := w.context(ctx, "default", near)
		Expect(context.Status.Cells[0].MTU).To(BeEquivalentTo(8000), "nobody interpreted the edit")

		resume(controlplane.WebhookProcess)
		Eventually(func(g Gomega) {
			context := w.context(ctx, "default", near)
			g.Expect(context.Status.Cells[0].MTU).To(BeEquivalentTo(1400))
			g.Expect(meta.IsStatusConditionTrue(context.Status.Conditions, v1alpha.NetworkContextConverged)).To(BeTrue())
		}, 2*time.Minute, 200*time.Millisecond).Should(Succeed())
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
	})

	It("takes up a new certificate without a call that fails", func(ctx SpecContext) {
		var configuration configv1alpha1.ResourceInterpreterWebhookConfiguration
		Expect(hub().Get(ctx, client.ObjectKey{Name: "network-presence"}, &configuration)).To(Succeed())
		target := configuration.Webhooks[0].ClientConfig
		roots := x509.NewCertPool()
		Expect(roots.AppendCertsFromPEM(target.CABundle)).To(BeTrue())
		var serial atomic.Value
		caller := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
			DisableKeepAlives: true, // each call sees the certificate of its time
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, VerifyConnection: func(state tls.ConnectionState) error {
				serial.Store(state.PeerCertificates[0].SerialNumber.String())
				return nil
			}},
		}}
		call := func() { askHealth(ctx, caller, *target.URL) }
		call()
		before := serial.Load()

		for range 3 {
			Expect(plane.RotateWebhookCertificate()).To(Succeed())
			for range 50 {
				call()
			}
		}
		Eventually(func() any { call(); return serial.Load() }, patience, 50*time.Millisecond).ShouldNot(Equal(before))
	})
})

// askHealth asks the webhook as Karmada does.
func askHealth(ctx context.Context, caller *http.Client, url string) {
	GinkgoHelper()
	raw, err := json.Marshal(&v1alpha.NetworkContext{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "asked"}})
	Expect(err).NotTo(HaveOccurred())
	body, err := json.Marshal(&configv1alpha1.ResourceInterpreterContext{
		TypeMeta: metav1.TypeMeta{APIVersion: configv1alpha1.GroupVersion.String(), Kind: "ResourceInterpreterContext"},
		Request: &configv1alpha1.ResourceInterpreterRequest{
			UID: "asked", Kind: interpreter.Kind, Namespace: "ns", Name: "asked",
			Operation: configv1alpha1.InterpreterOperationInterpretHealth, Object: runtime.RawExtension{Raw: raw},
		},
	})
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	response, err := caller.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close() //nolint:errcheck // it is only read
	var answer configv1alpha1.ResourceInterpreterContext
	Expect(json.NewDecoder(response.Body).Decode(&answer)).To(Succeed())
	Expect(answer.Response.Healthy).To(HaveValue(BeFalse()), "a copy that names no network is not healthy")
}

// deploy propagates a Deployment to a cell by the stock scheduler.
func (w *world) deploy(ctx context.Context, cell string) *appsv1.Deployment {
	GinkgoHelper()
	labels := map[string]string{"app": "other"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "other"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "other", Image: "example.com/other"}}},
			},
		},
	}
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "other"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "other"}},
			Placement:         policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cell}}},
		},
	}
	Expect(hub().Create(ctx, policy)).To(Succeed())
	Expect(hub().Create(ctx, deployment)).To(Succeed())
	w.eventually(ctx, func(g Gomega) {
		g.Expect(inCell(cell).Get(ctx, client.ObjectKeyFromObject(deployment), &appsv1.Deployment{})).To(Succeed())
	})
	return deployment
}

// setReady reports, in the place of a cell's own controllers, so many ready replicas.
func (w *world) setReady(ctx context.Context, cell string, deployment *appsv1.Deployment, replicas int32) {
	GinkgoHelper()
	copied := &appsv1.Deployment{}
	Expect(inCell(cell).Get(ctx, client.ObjectKeyFromObject(deployment), copied)).To(Succeed())
	reported := copied.DeepCopy()
	reported.Status = appsv1.DeploymentStatus{ObservedGeneration: copied.Generation, Replicas: replicas, ReadyReplicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas}
	Expect(inCell(cell).Status().Patch(ctx, reported, client.MergeFrom(copied))).To(Succeed())
}
