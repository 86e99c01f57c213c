package cell

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/api/v1alpha"
)

func TestJudge(t *testing.T) {
	context := func(changes ...func(*v1alpha.NetworkContext)) *v1alpha.NetworkContext {
		made := aContext("default-us-central-1", changes...)
		return &made
	}
	yes := func(message string) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: "NetworkAvailable", Message: message}
	}
	no := func(reason, message string) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	for name, test := range map[string]struct {
		claim   v1alpha.NetworkInterfaceClaim
		serving *v1alpha.NetworkContext
		want    metav1.Condition
	}{
		"no context": {
			aClaim("c"), nil,
			no("NetworkNotAvailableInLocation", `network "default" is not in location "us-central-1": no NetworkContext of it has arrived `+
				`in this namespace; it arrives once a NetworkBinding asks for it there`),
		},
		"context being deleted": {
			aClaim("c"), context(deleted, held),
			no("NetworkNotAvailableInLocation", `network "default" is leaving location "us-central-1": `+
				`its NetworkContext "default-us-central-1" is being deleted`),
		},
		"families unset means what the network carries": {
			aClaim("c"), context(),
			yes(`network "default" is in location "us-central-1" and carries IPv4 and IPv6`),
		},
		"families unset on a single-stack network": {
			aClaim("c"), context(carrying(v1alpha.IPv6)),
			yes(`network "default" is in location "us-central-1" and carries IPv6`),
		},
		"both families": {
			aClaim("c", asking(v1alpha.IPv4, v1alpha.IPv6)), context(),
			yes(`network "default" is in location "us-central-1" and carries IPv4 and IPv6`),
		},
		"a list narrows": {
			aClaim("c", asking(v1alpha.IPv4)), context(),
			yes(`network "default" is in location "us-central-1" and carries IPv4`),
		},
		"one family named twice": {
			aClaim("c", asking(v1alpha.IPv4, v1alpha.IPv4)), context(),
			yes(`network "default" is in location "us-central-1" and carries IPv4`),
		},
		"a family not carried": {
			aClaim("c", asking(v1alpha.IPv4)), context(carrying(v1alpha.IPv6)),
			no("AddressFamilyNotCarried", `spec.ipFamilies asks for IPv4, and network "default" carries IPv6 only: `+
				`ask for that, or leave spec.ipFamilies unset`),
		},
		"one of two families not carried": {
			aClaim("c", asking(v1alpha.IPv6, v1alpha.IPv4)), context(carrying(v1alpha.IPv6)),
			no("AddressFamilyNotCarried", `spec.ipFamilies asks for IPv4, and network "default" carries IPv6 only: `+
				`ask for that, or leave spec.ipFamilies unset`),
		},
		"families dropped by an old CRD": {
			aClaim("c"), context(carrying()),
			no("AddressFamiliesUnknown", `NetworkContext "default-us-central-1" does not say which address families network "default" carries: `+
				`the CustomResourceDefinition of NetworkContext in this cell may be too old to keep spec.ipFamilies`),
		},
		"families dropped by an old CRD and a list": {
			aClaim("c", asking(v1alpha.IPv4)), context(carrying()),
			no("AddressFamiliesUnknown", `NetworkContext "default-us-central-1" does not say which address families network "default" carries: `+
				`the CustomResourceDefinition of NetworkContext in this cell may be too old to keep spec.ipFamilies`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.Type, test.want.ObservedGeneration = "NetworkAvailable", test.claim.Generation
			got := judge(&test.claim, test.serving, here)
			if diff := cmp.Diff(test.want, got.condition, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			if got.promises() != (test.want.Status == metav1.ConditionTrue) {
				t.Errorf("promises() = %v for status %s", got.promises(), test.want.Status)
			}
		})
	}
}

func TestVerdictDiffersOnlyWhereItSaysSomethingNew(t *testing.T) {
	context := aContext("default-us-central-1", held)
	other := metav1.Condition{Type: "Allocated", Status: metav1.ConditionTrue, Reason: "Allocated"}
	for name, test := range map[string]struct {
		change func(*v1alpha.NetworkInterfaceClaim)
		want   bool
	}{
		"same answer": {func(*v1alpha.NetworkInterfaceClaim) {}, false},
		"another's condition": {func(claim *v1alpha.NetworkInterfaceClaim) {
			claim.Status.Conditions = append([]metav1.Condition{other}, claim.Status.Conditions...)
		}, false},
		"never answered":  {func(claim *v1alpha.NetworkInterfaceClaim) { claim.Status.Conditions = nil }, true},
		"spec changed":    {func(claim *v1alpha.NetworkInterfaceClaim) { claim.Generation++ }, true},
		"asks for less":   {asking(v1alpha.IPv4), true},
		"message changed": {func(claim *v1alpha.NetworkInterfaceClaim) { claim.Status.Conditions[0].Message = "old" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := aClaim("c", told(&context), test.change)
			if got := judge(&claim, &context, here).differs(); got != test.want {
				t.Errorf("differs() = %v, want %v", got, test.want)
			}
		})
	}
}

func TestVerdictKeepsTheTimeOfItsLastTransition(t *testing.T) {
	context := aContext("default-us-central-1", held)
	claim := aClaim("c", told(&context), asking(v1alpha.IPv4))
	want := time.Unix(500, 0)
	if got := judge(&claim, &context, here).condition.LastTransitionTime; !got.Time.Equal(want) {
		t.Errorf("last transition %v, want %v: the status is the same", got, want)
	}
	if got := judge(&claim, nil, here).condition.LastTransitionTime; got.Time.Equal(want) {
		t.Errorf("last transition %v although the status changed", got)
	}
}
