package cell

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	apply "go.datum.net/network-presence/api/v1alpha/applyconfiguration/api/v1alpha"
)

// verdict is the condition NetworkAvailable that a claim should have.
type verdict struct {
	claim     *v1alpha.NetworkInterfaceClaim
	condition metav1.Condition
}

// promises tells whether whoever reads the verdict may create an interface.
func (v verdict) promises() bool { return v.condition.Status == metav1.ConditionTrue }

// promised tells whether a claim reads that it may be served.
func promised(claim *v1alpha.NetworkInterfaceClaim) bool {
	return meta.IsStatusConditionTrue(claim.Status.Conditions, v1alpha.NetworkInterfaceClaimNetworkAvailable)
}

// judge is the verdict on a claim, given the context that serves its network in the
// location; nil where there is none.
func judge(claim *v1alpha.NetworkInterfaceClaim, serving *v1alpha.NetworkContext, location string) verdict {
	status, reason, message := answer(claim, serving, location)
	conditions := slices.Clone(claim.Status.Conditions)
	meta.SetStatusCondition(&conditions, metav1.Condition{
		Type:               v1alpha.NetworkInterfaceClaimNetworkAvailable,
		Status:             status,
		Reason:             reason,
		Message:            message,
		ObservedGeneration: claim.Generation,
	})
	return verdict{claim, *meta.FindStatusCondition(conditions, v1alpha.NetworkInterfaceClaimNetworkAvailable)}
}

func answer(claim *v1alpha.NetworkInterfaceClaim, serving *v1alpha.NetworkContext, location string) (metav1.ConditionStatus, string, string) {
	network := claim.Spec.Network.Name
	if serving == nil {
		return metav1.ConditionFalse, v1alpha.ReasonNetworkNotAvailableInLocation, fmt.Sprintf(
			"network %q is not in location %q: no NetworkContext of it has arrived in this namespace; "+
				"it arrives once a NetworkBinding asks for it there", network, location)
	}
	if leaving(serving) {
		return metav1.ConditionFalse, v1alpha.ReasonNetworkNotAvailableInLocation, fmt.Sprintf(
			"network %q is leaving location %q: its NetworkContext %q is being deleted", network, location, serving.Name)
	}
	carried := serving.Spec.IPFamilies
	if len(carried) == 0 {
		return metav1.ConditionFalse, v1alpha.ReasonAddressFamiliesUnknown, fmt.Sprintf(
			"NetworkContext %q does not say which address families network %q carries: "+
				"the CustomResourceDefinition of NetworkContext in this cell may be too old to keep spec.ipFamilies", serving.Name, network)
	}
	if missing := without(claim.Spec.IPFamilies, carried); len(missing) > 0 {
		return metav1.ConditionFalse, v1alpha.ReasonAddressFamilyNotCarried, fmt.Sprintf(
			"spec.ipFamilies asks for %s, and network %q carries %s only: ask for that, or leave spec.ipFamilies unset",
			enumerate(missing), network, enumerate(carried))
	}
	granted := claim.Spec.IPFamilies
	if len(granted) == 0 {
		granted = carried
	}
	return metav1.ConditionTrue, v1alpha.ReasonNetworkAvailable, fmt.Sprintf(
		"network %q is in location %q and carries %s", network, location, enumerate(granted))
}

// without are the families that are asked for and not carried.
func without(asked, carried []v1alpha.IPFamily) []v1alpha.IPFamily {
	return slices.DeleteFunc(slices.Clone(asked), func(family v1alpha.IPFamily) bool {
		return slices.Contains(carried, family)
	})
}

// enumerate writes families for a person, in one order whoever listed them.
func enumerate(families []v1alpha.IPFamily) string {
	names := make([]string, 0, len(families))
	for _, family := range families {
		names = append(names, string(family))
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " and ")
}

// differs tells whether the claim does not read the verdict yet.
func (v verdict) differs() bool {
	now := meta.FindStatusCondition(v.claim.Status.Conditions, v.condition.Type)
	return now == nil || !apiequality.Semantic.DeepEqual(*now, v.condition)
}

// write puts the verdict on its claim, beside the conditions of others, and returns the
// resourceVersion that the claim has now. A claim that is gone, or was created anew, is no
// error and returns "".
func (v verdict) write(ctx context.Context, cell client.Client) (string, error) {
	configuration, err := json.Marshal(apply.NetworkInterfaceClaim(v.claim.Name, v.claim.Namespace).
		WithUID(v.claim.UID).
		WithStatus(apply.NetworkInterfaceClaimStatus().WithConditions(applied(v.condition))))
	if err != nil {
		return "", fmt.Errorf("encode condition %s: %w", v.condition.Type, err)
	}
	// Not Status().Apply, which does not tell the resourceVersion.
	written := v.claim.DeepCopy()
	err = cell.Status().Patch(ctx, written, client.RawPatch(types.ApplyPatchType, configuration), FieldOwner, client.ForceOwnership)
	if superseded(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("write condition %s of claim %s: %w",
			v.condition.Type, client.ObjectKeyFromObject(v.claim), err)
	}
	return written.ResourceVersion, nil
}
