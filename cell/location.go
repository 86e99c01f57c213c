package cell

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// ReadLocation reads which location a cell serves from the label
// [v1alpha.TopologyLocationLabel] of its namespace kube-system, the object that Karmada
// knows the cell by as well. The error says what to do where the label is missing or
// wrong, or wraps what kept the namespace from being read.
func ReadLocation(ctx context.Context, cell client.Reader) (string, error) {
	var namespace corev1.Namespace
	if err := cell.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &namespace); err != nil {
		return "", fmt.Errorf("read the cell's location from namespace %q: %w", metav1.NamespaceSystem, err)
	}
	location, labelled := namespace.Labels[v1alpha.TopologyLocationLabel]
	if !labelled {
		return "", fmt.Errorf("the cell's location is unknown: set --location, or label the cell's namespace %q with %s=<location>",
			metav1.NamespaceSystem, v1alpha.TopologyLocationLabel)
	}
	if err := ValidateLocation(location); err != nil {
		return "", fmt.Errorf("label %s of namespace %q: %w", v1alpha.TopologyLocationLabel, metav1.NamespaceSystem, err)
	}
	return location, nil
}

// ValidateLocation says why a text cannot be the name of a location; nil where it can.
func ValidateLocation(location string) error {
	faults := validation.IsDNS1123Subdomain(location)
	if len(location) > validation.LabelValueMaxLength {
		faults = append(faults, validation.MaxLenError(validation.LabelValueMaxLength))
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("location %q is not the name of one: %s", location, strings.Join(faults, "; "))
}
