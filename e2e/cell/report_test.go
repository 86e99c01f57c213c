package cell

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"go.datum.net/network-presence/api/v1alpha"
)

// reported waits until the agent has reported on the context as wished.
func (w *world) reported(context *v1alpha.NetworkContext, want v1alpha.AgentStatus, accepted, held string) {
	w.Helper()
	w.Eventually(func(g Gomega) {
		g.Expect(w.read(context)).To(Succeed())
		g.Expect(cmp.Diff(&want, context.Status.Agent)).To(BeEmpty())
		g.Expect(context.Status.ObservedGeneration).To(Equal(context.Generation))
		for kind, reason := range map[string]string{"Accepted": accepted, "Held": held} {
			condition := meta.FindStatusCondition(context.Status.Conditions, kind)
			g.Expect(condition).NotTo(BeNil())
			g.Expect(condition.Reason).To(Equal(reason))
			g.Expect(condition.ObservedGeneration).To(Equal(context.Generation))
		}
	}, patience).Should(Succeed())
}

func TestReport(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	context := w.deliver(network)
	w.reported(context, v1alpha.AgentStatus{NetworkGeneration: 1, NetworkUID: "uid-1"}, "RulesAccepted", "NoAddressesHeld")

	first, second := w.attach("first", network), w.attach("second", network)
	w.attach("other", "another-network")
	w.reported(context, v1alpha.AgentStatus{NetworkGeneration: 1, NetworkUID: "uid-1", Holders: 2, ConvergedInterfaces: 2},
		"RulesAccepted", "AddressesHeld")

	w.edit(context, func(spec *v1alpha.NetworkContextSpec) { spec.MTU, spec.NetworkGeneration = 1400, 2 })
	w.reported(context, v1alpha.AgentStatus{NetworkGeneration: 2, NetworkUID: "uid-1", Holders: 2, ConvergedInterfaces: 2},
		"RulesAccepted", "AddressesHeld")

	w.delete(context)
	w.delete(first)
	w.reported(context, v1alpha.AgentStatus{NetworkGeneration: 2, NetworkUID: "uid-1", Holders: 1, ConvergedInterfaces: 1},
		"RulesAccepted", "AddressesHeld")
	w.delete(second)
	w.becomesGone(context)
}

func TestReportOnACopyThatCannotBeServed(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	moved := w.deliver("moved", func(context *v1alpha.NetworkContext) { context.Spec.Location.Name = "eu-west-1" })
	pruned := w.deliver("pruned", func(context *v1alpha.NetworkContext) { context.Spec.IPFamilies = nil })
	agent := v1alpha.AgentStatus{NetworkGeneration: 1, NetworkUID: "uid-1"}
	w.reported(moved, agent, "OtherLocation", "NoAddressesHeld")
	w.reported(pruned, agent, "AddressFamiliesUnknown", "NoAddressesHeld")
}

// Karmada relabels a copy without a change of its generation.
func TestReportOnACopyThatWasGivenToAnotherNetwork(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	context := w.deliver(network)
	w.reported(context, v1alpha.AgentStatus{NetworkGeneration: 1, NetworkUID: "uid-1"}, "RulesAccepted", "NoAddressesHeld")
	context.Labels[v1alpha.NetworkUIDLabel] = "uid-2"
	w.Expect(cell.Update(w.ctx, context)).To(Succeed())
	w.reported(context, v1alpha.AgentStatus{NetworkGeneration: 1, NetworkUID: "uid-2"}, "RulesAccepted", "NoAddressesHeld")
}

// Each report travels to the hub, so those that differ in numbers only are taken together.
func TestReportsOfManyInterfacesAreTakenTogether(t *testing.T) {
	w := newWorld(t)
	a := startAgent(t)
	context := w.deliver(network)
	const interfaces = 200
	for i := range interfaces {
		w.attach(numbered("nic", i), network)
	}
	w.reported(context, v1alpha.AgentStatus{NetworkGeneration: 1, NetworkUID: "uid-1", Holders: interfaces, ConvergedInterfaces: interfaces},
		"RulesAccepted", "AddressesHeld")
	w.Expect(a.metric(t, "rest_client_requests_total", `method="PATCH"`)).To(BeNumerically("<", 20))
}
