package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/charts"
)

// placed are the UIDs of what carries a pair: its context on the hub and its copy in a cell.
func (w *world) placed(ctx context.Context, network, location, cell string) [2]types.UID {
	GinkgoHelper()
	return [2]types.UID{w.context(ctx, network, location).UID, w.copyIn(ctx, cell, network, location).UID}
}

func policyPriority(ctx context.Context) (int32, error) {
	var policy policyv1alpha1.ClusterPropagationPolicy
	err := hub().Get(ctx, client.ObjectKey{Name: "network-presence"}, &policy)
	if err != nil || policy.Spec.Priority == nil {
		return 0, err
	}
	return *policy.Spec.Priority, nil
}

var _ = Describe("An installation", Serial, func() {
	It("is upgraded, rolled back, uninstalled and made again, and no copy is made anew", func(ctx SpecContext) {
		release, err := plane.HubRelease()
		Expect(err).NotTo(HaveOccurred())
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "b", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		before := w.placed(ctx, "default", near, "us-1")

		By("upgrading")
		Expect(release.Upgrade(ctx, map[string]any{"policy": map[string]any{"priority": 1001}})).To(Succeed())
		Expect(policyPriority(ctx)).To(BeEquivalentTo(1001))
		By("rolling back")
		Expect(release.Rollback()).To(Succeed())
		Expect(policyPriority(ctx)).To(BeEquivalentTo(1000))
		Expect(w.placed(ctx, "default", near, "us-1")).To(Equal(before))

		By("uninstalling, which keeps the CRDs")
		Expect(release.Uninstall()).To(Succeed())
		w.staysReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		Expect(w.placed(ctx, "default", near, "us-1")).To(Equal(before))

		By("installing again")
		Expect(release.Install(ctx)).To(Succeed())
		// The accounts are others now, and the tokens of the old ones are worth nothing.
		Expect(plane.Reidentify(ctx)).To(Succeed())
		w.expectReason(ctx, w.bind(ctx, "second", "default", near), v1alpha.ReasonNetworkContextReady)
		w.expectReason(ctx, w.bind(ctx, "elsewhere", "default", far), v1alpha.ReasonNetworkContextReady)
		Expect(w.placed(ctx, "default", near, "us-1")).To(Equal(before))
	})

	DescribeTable("is taken by an API server, and its pods by the policy restricted",
		func(ctx SpecContext, chart string) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				GenerateName: "restricted-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
			}}
			Expect(plane.Platform().Client.Create(ctx, namespace)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(plane.Platform().Client.Delete(ctx, namespace)).To(Succeed()) })
			manifests, err := charts.Render(chart, namespace.Name, map[string]any{"networkPolicy": map[string]any{"create": true}})
			Expect(err).NotTo(HaveOccurred())
			pods := 0
			for _, object := range objects(manifests) {
				Expect(plane.Platform().Client.Create(ctx, object, client.DryRunAll)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
				if object.GetKind() != "Deployment" {
					continue
				}
				pods++
				var deployment appsv1.Deployment
				Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment)).To(Succeed())
				template := deployment.Spec.Template
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: deployment.Name, Labels: template.Labels}, Spec: template.Spec}
				Expect(plane.Platform().Client.Create(ctx, pod, client.DryRunAll)).To(Succeed())
			}
			Expect(pods).To(BeNumerically(">", 0))
		},
		Entry("of the host's chart", charts.Host),
		Entry("of a cell's chart", charts.Cell),
	)
})

// objects are what a manifest holds. CustomResourceDefinitions are left out: the planes have
// them.
func objects(manifests []byte) []*unstructured.Unstructured {
	GinkgoHelper()
	var found []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return found
		}
		Expect(err).NotTo(HaveOccurred())
		if len(object.Object) > 0 && object.GetKind() != "CustomResourceDefinition" {
			found = append(found, object)
		}
	}
}
