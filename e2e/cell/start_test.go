package cell

import (
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

const kill = syscall.SIGKILL

// labelCell puts the location on the cell for one test; nil takes the label off.
func labelCell(t *testing.T, w *world, location *string) {
	t.Helper()
	label := func(location *string) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
		w.Expect(w.read(namespace)).To(Succeed())
		before := namespace.DeepCopy()
		if namespace.Labels == nil {
			namespace.Labels = map[string]string{}
		}
		delete(namespace.Labels, v1alpha.TopologyLocationLabel)
		if location != nil {
			namespace.Labels[v1alpha.TopologyLocationLabel] = *location
		}
		w.Expect(cell.Patch(w.ctx, namespace, client.MergeFrom(before))).To(Succeed())
	}
	label(location)
	t.Cleanup(func() { label(nil) })
}

func TestLocationIsReadFromTheCell(t *testing.T) {
	w := newWorld(t)
	location := "eu-west-1"
	labelCell(t, w, &location)
	startAgent(t, func(s *agentSettings) { s.Options.Location = "" })
	w.deliver(network, func(context *v1alpha.NetworkContext) { context.Spec.Location.Name = "eu-west-1" })
	w.eligible(w.claim("c", network))
}

func TestAgentDoesNotStart(t *testing.T) {
	wrong := "Not_A_Location"
	for name, test := range map[string]struct {
		label  *string
		change func(*agentSettings)
		want   string
	}{
		"location unknown": {nil, func(s *agentSettings) { s.Options.Location = "" },
			`the cell's location is unknown: set --location, or label the cell's namespace "kube-system" with topology.datum.net/location=<location>`},
		"location label wrong": {&wrong, func(s *agentSettings) { s.Options.Location = "" },
			`label topology.datum.net/location of namespace "kube-system": location "Not_A_Location" is not the name of one: `},
		"location cannot be read": {nil, func(s *agentSettings) { s.Options.Location, s.CertData, s.KeyData = "", nil, nil },
			`read the cell's location from namespace "kube-system": `},
		"location given is wrong": {nil, func(s *agentSettings) { s.Options.Location = "US" },
			`location "US" is not the name of one: `},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			labelCell(t, w, test.label)
			a := launch(t, settings(test.change))
			w.Eventually(a.exited, patience).Should(BeClosed())
			w.Expect(a.process.ProcessState.ExitCode()).To(Equal(1))
			w.Expect(a.output(t)).To(ContainSubstring(test.want))
		})
	}
}

func TestOneOfTwoReplicasWorks(t *testing.T) {
	w := newWorld(t)
	elect := func(s *agentSettings) { s.Options.LeaderElection = true }
	leader := startAgent(t, elect)
	context := w.deliver(network)
	claim := w.claim("c", network)
	w.eligible(claim)
	second := startAgent(t, elect)
	w.idle(second, grace)
	w.Expect(second.metric(t, "controller_runtime_reconcile_total")).To(BeZero())

	leader.end(t, syscall.SIGTERM)
	w.delete(context)
	w.Eventually(func() bool { return w.gone(context) }, 3*patience).Should(BeTrue())
	w.refused(claim, v1alpha.ReasonNetworkNotAvailableInLocation)
}

func TestAgentEndsAtOnceInTheMiddleOfItsWork(t *testing.T) {
	w := newWorld(t)
	a := startAgent(t)
	context := w.deliver(network)
	const interfaces = 1000
	inParallel(interfaces, func(i int) { w.attach(numbered("nic", i), network) })
	w.Eventually(func() int64 { return w.converged(context) }, 10*patience).Should(BeEquivalentTo(interfaces))
	w.edit(context, func(spec *v1alpha.NetworkContextSpec) { spec.MTU = 1300 })
	w.mtuBecomes(&v1alpha.NetworkInterface{ObjectMeta: w.meta("nic-0")}, 1300)
	asked := time.Now()
	a.end(t, syscall.SIGTERM)
	w.Expect(time.Since(asked)).To(BeNumerically("<", 10*time.Second))
	w.Expect(a.process.ProcessState.ExitCode()).To(BeZero())

	startAgent(t)
	w.Eventually(func(g Gomega) {
		g.Expect(w.read(context)).To(Succeed())
		g.Expect(context.Status.ObservedGeneration).To(Equal(context.Generation))
		g.Expect(context.Status.Agent.ConvergedInterfaces).To(BeEquivalentTo(interfaces))
	}, 10*patience).Should(Succeed())
}

// The agent works as a user that may do what cell/rbac says. What it may not do it has
// not tried.
func TestAgentAsksForAllThatItNeeds(t *testing.T) {
	w := newWorld(t)
	location := here
	labelCell(t, w, &location)
	a := startAgent(t, func(s *agentSettings) { s.Options.Location, s.Options.LeaderElection = "", true })
	context := w.deliver(network)
	nic := w.attach("nic", network, func(made *v1alpha.NetworkInterface) { made.Spec.MTU = 1300 })
	w.eligible(w.claim("c", network))
	w.mtuBecomes(nic, 8000)
	w.becomesHeld(context)
	w.delete(context)
	w.delete(nic)
	w.becomesGone(context)
	w.Expect(a.metric(t, "rest_client_requests_total", `code="403"`)).To(BeZero())
	w.Expect(a.output(t)).NotTo(ContainSubstring("orbidden"))
}
