package cell

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"go.datum.net/network-presence/api/v1alpha"
)

// delayDeletions makes every deletion of a copy in the world stop, after the API server
// has read the copy and before it deletes it, until the returned channel is closed. The
// other channel tells of each such stop.
func (w *world) delayDeletions() (proceed chan struct{}, stopped chan struct{}) {
	w.Helper()
	proceed, stopped = make(chan struct{}), make(chan struct{}, 100)
	server := httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
			http.Error(answer, err.Error(), http.StatusBadRequest)
			return
		}
		stopped <- struct{}{}
		<-proceed
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		_ = json.NewEncoder(answer).Encode(review) // the API server reports a broken answer
	}))
	w.Cleanup(server.Close)
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "delay-"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "delay.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      ptr.To(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{v1alpha.SchemeGroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"networkcontexts"},
				},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			TimeoutSeconds:          ptr.To(int32(30)),
		}},
	}
	w.Expect(cell.Create(w.ctx, configuration)).To(Succeed())
	w.Cleanup(func() { w.delete(configuration) })
	return proceed, stopped
}

// The API server deletes a copy although a finalizer was added to it, if the deletion had
// read the copy before. No claim may have been promised by then.
func TestNoPromiseOnACopyWhoseDeletionHadBegunBeforeItWasHeld(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	proceed, stopped := w.delayDeletions()
	// The API server takes a new webhook up some time after it was created.
	var context *v1alpha.NetworkContext
	deleted := make(chan error, 1)
	w.Eventually(func() bool {
		context = w.deliver(network)
		go func() { deleted <- cell.Delete(w.ctx, context.DeepCopy()) }()
		select {
		case <-stopped:
			return true
		case err := <-deleted:
			w.Expect(err).NotTo(HaveOccurred())
			return false
		}
	}, patience).Should(BeTrue())

	claim := w.claim("c", network)
	w.becomesHeld(context)
	close(proceed)
	w.Expect(<-deleted).To(Succeed())
	w.Expect(w.gone(context)).To(BeTrue(), "the API server has mended its race: prove is needed no more")
	w.Consistently(func() bool {
		w.Expect(w.read(claim)).To(Succeed())
		return meta.IsStatusConditionTrue(claim.Status.Conditions, v1alpha.NetworkInterfaceClaimNetworkAvailable)
	}, time.Second, 5*time.Millisecond).Should(BeFalse())
	w.refused(claim, v1alpha.ReasonNetworkNotAvailableInLocation)
}
