package cell

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/api/v1alpha"
)

func TestReport(t *testing.T) {
	accepted := metav1.Condition{
		Type: "Accepted", Status: metav1.ConditionTrue, Reason: "RulesAccepted", ObservedGeneration: 3,
		Message: `claims on network "default" are served by these rules`,
	}
	free := metav1.Condition{
		Type: "Held", Status: metav1.ConditionFalse, Reason: "NoAddressesHeld", ObservedGeneration: 3,
		Message: `no network interface of network "default" is in this namespace`,
	}
	occupied := metav1.Condition{
		Type: "Held", Status: metav1.ConditionTrue, Reason: "AddressesHeld", ObservedGeneration: 3,
		Message: `network interfaces of network "default" hold addresses; the context stays until the last of them is gone`,
	}
	foreign := metav1.Condition{Type: "Programmed", Status: metav1.ConditionTrue, Reason: "Programmed"}
	agent := func(holders, converged int64) *v1alpha.AgentStatus {
		return &v1alpha.AgentStatus{NetworkGeneration: 7, NetworkUID: "network-1", Holders: holders, ConvergedInterfaces: converged}
	}
	for name, test := range map[string]struct {
		context    v1alpha.NetworkContext
		interfaces []v1alpha.NetworkInterface
		want       v1alpha.NetworkContextStatus
	}{
		"no interfaces": {
			aContext("c"), nil,
			v1alpha.NetworkContextStatus{Agent: agent(0, 0), Conditions: []metav1.Condition{accepted, free}},
		},
		"interfaces, some of them behind": {
			aContext("c", held), []v1alpha.NetworkInterface{anInterface("a", 8000), anInterface("b", 1460), anInterface("c", 8000)},
			v1alpha.NetworkContextStatus{Agent: agent(3, 2), Conditions: []metav1.Condition{accepted, occupied}},
		},
		"a context of another location": {
			aContext("c", elsewhere), nil,
			v1alpha.NetworkContextStatus{Agent: agent(0, 0), Conditions: []metav1.Condition{{
				Type: "Accepted", Status: metav1.ConditionFalse, Reason: "OtherLocation", ObservedGeneration: 3,
				Message: `the context is for location "eu-west-1", and this cell's agent serves location "us-central-1": ` +
					`label the cell's Karmada Cluster with the location that its agent was given`,
			}, free}},
		},
		"families dropped by an old CRD": {
			aContext("c", carrying()), nil,
			v1alpha.NetworkContextStatus{Agent: agent(0, 0), Conditions: []metav1.Condition{{
				Type: "Accepted", Status: metav1.ConditionFalse, Reason: "AddressFamiliesUnknown", ObservedGeneration: 3,
				Message: `the copy names no address families: the CustomResourceDefinition of NetworkContext in this cell may be too old to keep spec.ipFamilies`,
			}, free}},
		},
		"another's condition is kept": {
			aContext("c", func(c *v1alpha.NetworkContext) { c.Status.Conditions = []metav1.Condition{foreign} }), nil,
			v1alpha.NetworkContextStatus{Agent: agent(0, 0), Conditions: []metav1.Condition{foreign, accepted, free}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.ObservedGeneration = 3
			got := report(&test.context, test.interfaces, here)
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			test.context.Status = got
			if diff := cmp.Diff(got, report(&test.context, test.interfaces, here)); diff != "" {
				t.Errorf("the same facts reported again differ (-first +second):\n%s", diff)
			}
		})
	}
}

func TestUrgent(t *testing.T) {
	reported := func(holders int, changes ...func(*v1alpha.NetworkContext)) v1alpha.NetworkContext {
		context := aContext("c")
		interfaces := make([]v1alpha.NetworkInterface, holders)
		context.Status = report(&context, interfaces, here)
		for _, change := range changes {
			change(&context)
		}
		return context
	}
	for name, test := range map[string]struct {
		context  v1alpha.NetworkContext
		occupied bool
		want     bool
	}{
		"never reported":           {aContext("c"), false, true},
		"no holder, as reported":   {reported(0), false, false},
		"the first holder":         {reported(0), true, true},
		"holders, as reported":     {reported(5), true, false},
		"the last holder has gone": {reported(5), false, true},
		"new rules":                {reported(5, func(c *v1alpha.NetworkContext) { c.Generation++ }), true, true},
		"another network": {reported(5, func(c *v1alpha.NetworkContext) {
			c.Labels = map[string]string{v1alpha.NetworkUIDLabel: "network-2"}
		}), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := urgent([]v1alpha.NetworkContext{test.context}, test.occupied); got != test.want {
				t.Errorf("urgent() = %v, want %v", got, test.want)
			}
		})
	}
}
