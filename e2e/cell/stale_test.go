package cell

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"go.datum.net/network-presence/api/v1alpha"
)

// blinders stand between an agent and its API server and can keep the events of one
// resource from it, and the answers to its patches of that resource's status.
type blinders struct {
	resource string
	mutex    sync.Mutex
	open     chan struct{} // closed while events pass
	deaf     atomic.Bool   // answers are lost
}

// startBlinded starts an agent that the returned blinders are put on.
func startBlinded(t *testing.T, resource string) (*runningAgent, *blinders) {
	t.Helper()
	target, err := url.Parse(agentAccess.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(agentAccess)
	if err != nil {
		t.Fatal(err)
	}
	b := &blinders{resource: resource, open: make(chan struct{})}
	close(b.open)
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:        func(request *httputil.ProxyRequest) { request.SetURL(target) },
		Transport:      transport,
		FlushInterval:  -1,
		ModifyResponse: b.put,
	})
	a := startAgent(t, func(s *agentSettings) {
		s.Host, s.CAData, s.CertData, s.KeyData = server.URL, nil, nil, nil
	})
	t.Cleanup(func() {
		b.look()
		a.end(t, kill) // or its watches keep the server from closing
		server.Close()
	})
	return a, b
}

// put lets the blinders see a watch of their resource.
func (b *blinders) put(response *http.Response) error {
	watched := strings.HasSuffix(response.Request.URL.Path, "/"+b.resource) && response.Request.URL.Query().Get("watch") != ""
	if watched {
		response.Body = &blinded{ReadCloser: response.Body, blinders: b}
	}
	if b.deaf.Load() && strings.Contains(response.Request.URL.Path, "/"+b.resource+"/") && strings.HasSuffix(response.Request.URL.Path, "/status") {
		return errors.New("the answer is lost")
	}
	return nil
}

// blind keeps events from the agent until look.
func (b *blinders) blind() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.open = make(chan struct{})
}

// look lets all events pass that were kept.
func (b *blinders) look() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	select {
	case <-b.open:
	default:
		close(b.open)
	}
}

type blinded struct {
	io.ReadCloser
	blinders *blinders
}

func (b *blinded) Read(into []byte) (int, error) {
	count, err := b.ReadCloser.Read(into)
	b.blinders.mutex.Lock()
	open := b.blinders.open
	b.blinders.mutex.Unlock()
	<-open
	return count, err
}

// An interface that was created a moment ago may not be in the agent's cache yet when it
// is about to let a copy go.
func TestInterfaceThatTheAgentHasNotSeenHolds(t *testing.T) {
	w := newWorld(t)
	_, eyes := startBlinded(t, "networkinterfaces")
	context := w.deliver(network)
	w.eligible(w.claim("c", network))
	w.staysHeld(context, 2*grace)

	eyes.blind()
	nic := w.attach("unseen", network)
	w.delete(context)
	w.staysHeld(context, 4*grace)
	w.delete(nic)
	// The agent's cache never showed the interface, nor that it went.
	w.becomesGone(context)
	eyes.look()
}

// A copy that the cache shows with a finalizer that the agent has just taken off is not
// one to promise.
func TestNoPromiseOnACopyThatTheCacheShowsTooOld(t *testing.T) {
	w := newWorld(t)
	_, eyes := startBlinded(t, "networkcontexts")
	context := w.deliver(network)
	first := w.claim("first", network)
	w.eligible(first)

	eyes.blind()
	w.delete(first)
	w.becomesFree(context)
	second := w.claim("second", network)
	w.Consistently(func() bool {
		w.Expect(w.read(second)).To(Succeed())
		return len(second.Status.Conditions) == 0
	}, 2*grace).Should(BeTrue())
	eyes.look()
	w.eligible(second)
	w.Expect(w.held(context)).To(BeTrue())
}

// An answer that the cache does not show yet is not written again, and counts.
func TestAnswerThatTheCacheDoesNotShowYet(t *testing.T) {
	w := newWorld(t)
	a, eyes := startBlinded(t, "networkinterfaceclaims")
	claim := w.claim("c", network)
	w.refused(claim, v1alpha.ReasonNetworkNotAvailableInLocation)
	eyes.blind()
	context := w.deliver(network)
	w.eligible(claim)
	promised := claim.ResourceVersion
	w.edit(context, func(spec *v1alpha.NetworkContextSpec) { spec.MTU = 1300 })
	w.delete(context)
	w.staysHeld(context, 2*grace)
	w.Expect(w.read(claim)).To(Succeed())
	w.Expect(claim.ResourceVersion).To(Equal(promised))
	eyes.look()
	w.refused(claim, v1alpha.ReasonNetworkNotAvailableInLocation)
	w.becomesGone(context)
	w.Expect(a.output(t)).NotTo(ContainSubstring("Reconciler error"))
}

// A promise that was written, and whose answer was lost, binds like any other.
func TestPromiseThatTheAgentDoesNotKnowOfBinds(t *testing.T) {
	w := newWorld(t)
	_, eyes := startBlinded(t, "networkinterfaceclaims")
	context := w.deliver(network)
	w.staysFree(context, 2*grace)
	claim := w.claim("c", network)
	w.becomesHeld(context)
	eyes.blind()
	eyes.deaf.Store(true)
	w.eligible(claim)
	w.delete(context)
	w.refused(claim, v1alpha.ReasonNetworkNotAvailableInLocation)
	w.staysHeld(context, grace/4)
	eyes.deaf.Store(false)
	eyes.look()
	w.becomesGone(context)
}

func TestInterfaceThatHasGoneIsNotMadeAnew(t *testing.T) {
	w := newWorld(t)
	a, eyes := startBlinded(t, "networkinterfaces")
	context := w.deliver(network)
	nic := w.attach("nic", network)
	w.becomesHeld(context)

	eyes.blind()
	w.delete(nic)
	w.edit(context, func(spec *v1alpha.NetworkContextSpec) { spec.MTU = 1300 })
	w.Eventually(func() float64 {
		return a.metric(t, "controller_runtime_reconcile_total", `controller="convergence"`)
	}, patience).Should(BeNumerically(">=", 2))
	w.Consistently(func() bool { return w.gone(nic) }, time.Second).Should(BeTrue())
	eyes.look()
	w.becomesFree(context)
	w.Expect(a.output(t)).NotTo(ContainSubstring("Reconciler error"))
}
