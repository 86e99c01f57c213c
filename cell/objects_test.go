package cell

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"go.datum.net/network-presence/api/v1alpha"
)

const here = "us-central-1"

var dual = []v1alpha.IPFamily{v1alpha.IPv6, v1alpha.IPv4}

// aContext is a context of network "default", here, that carries both families.
func aContext(name string, changes ...func(*v1alpha.NetworkContext)) v1alpha.NetworkContext {
	context := v1alpha.NetworkContext{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), Generation: 3,
			Labels: map[string]string{v1alpha.NetworkUIDLabel: "network-1"},
		},
		Spec: v1alpha.NetworkContextSpec{
			Network:           v1alpha.LocalNetworkReference{Name: "default"},
			Location:          v1alpha.LocationReference{Name: here},
			IPFamilies:        dual,
			MTU:               8000,
			NetworkGeneration: 7,
		},
	}
	for _, change := range changes {
		change(&context)
	}
	return context
}

func held(context *v1alpha.NetworkContext) {
	context.Finalizers = []string{v1alpha.InUseFinalizer}
}

func deleted(context *v1alpha.NetworkContext) {
	context.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
}

func elsewhere(context *v1alpha.NetworkContext) { context.Spec.Location.Name = "eu-west-1" }

func carrying(families ...v1alpha.IPFamily) func(*v1alpha.NetworkContext) {
	return func(context *v1alpha.NetworkContext) { context.Spec.IPFamilies = families }
}

// aClaim is a claim on network "default" that was never answered.
func aClaim(name string, changes ...func(*v1alpha.NetworkInterfaceClaim)) v1alpha.NetworkInterfaceClaim {
	claim := v1alpha.NetworkInterfaceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Generation: 2},
		Spec:       v1alpha.NetworkInterfaceClaimSpec{Network: v1alpha.LocalNetworkReference{Name: "default"}},
	}
	for _, change := range changes {
		change(&claim)
	}
	return claim
}

func asking(families ...v1alpha.IPFamily) func(*v1alpha.NetworkInterfaceClaim) {
	return func(claim *v1alpha.NetworkInterfaceClaim) { claim.Spec.IPFamilies = families }
}

// told is a claim that reads what it would be told of a context.
func told(serving *v1alpha.NetworkContext) func(*v1alpha.NetworkInterfaceClaim) {
	return func(claim *v1alpha.NetworkInterfaceClaim) {
		verdict := judge(claim, serving, here)
		verdict.condition.LastTransitionTime = metav1.Unix(500, 0)
		claim.Status.Conditions = []metav1.Condition{verdict.condition}
	}
}

func anInterface(name string, mtu int32) v1alpha.NetworkInterface {
	return v1alpha.NetworkInterface{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       v1alpha.NetworkInterfaceSpec{Network: v1alpha.LocalNetworkReference{Name: "default"}, MTU: mtu},
	}
}
