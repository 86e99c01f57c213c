package presence

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	acmetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"go.datum.net/network-presence/api/v1alpha"
	acv1alpha "go.datum.net/network-presence/api/v1alpha/applyconfiguration/api/v1alpha"
)

// writeContext makes a context or brings it up to date. Where another pair took the name
// a moment ago, the API server refuses, since a context's network and location cannot be
// changed; the next look finds the name taken.
func (r *Reconciler) writeContext(ctx context.Context, wished *v1alpha.NetworkContext) error {
	families := wished.Spec.IPFamilies
	spec := acv1alpha.NetworkContextSpec().
		WithNetwork(acv1alpha.LocalNetworkReference().WithName(wished.Spec.Network.Name)).
		WithLocation(acv1alpha.LocationReference().WithName(wished.Spec.Location.Name)).
		WithIPFamilies(families...).
		WithMTU(wished.Spec.MTU).
		WithNetworkGeneration(wished.Spec.NetworkGeneration)
	configuration := acv1alpha.NetworkContext(wished.Name, wished.Namespace).
		WithLabels(wished.Labels).
		WithAnnotations(wished.Annotations).
		WithFinalizers(wished.Finalizers...).
		WithSpec(spec)
	if wished.UID != "" {
		configuration.WithUID(wished.UID) // never make anew what was just deleted
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
	if err != nil {
		return fmt.Errorf("write context %s/%s: %w", wished.Namespace, wished.Name, err)
	}
	// Unlike a typed configuration, this one has the API server's answer afterwards.
	made := &unstructured.Unstructured{Object: fields}
	err = r.hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(made), client.FieldOwner(FieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write context %s/%s: %w", wished.Namespace, wished.Name, err)
	}
	if wished.UID == "" {
		tell(r.recorder, made, corev1.EventTypeNormal, EventContextCreated, "Create", fmt.Sprintf(
			"network %q is needed in location %q", wished.Spec.Network.Name, wished.Spec.Location.Name))
	}
	log.FromContext(ctx).Info("context written", "context", wished.Name,
		"networkGeneration", wished.Spec.NetworkGeneration, "created", wished.UID == "")
	return nil
}

func (r *Reconciler) withdraw(ctx context.Context, context *v1alpha.NetworkContext) error {
	err := r.hub.Delete(ctx, &v1alpha.NetworkContext{ObjectMeta: metav1.ObjectMeta{Namespace: context.Namespace, Name: context.Name}},
		client.Preconditions{UID: &context.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete context %s/%s: %w", context.Namespace, context.Name, err)
	}
	tell(r.recorder, context, corev1.EventTypeNormal, EventContextWithdrawn, "Delete",
		"no binding needs this network here, or the network is gone or another one")
	log.FromContext(ctx).Info("context deleted", "context", context.Name)
	return nil
}

// release takes our finalizer off a context that is being deleted.
func (r *Reconciler) release(ctx context.Context, context *v1alpha.NetworkContext) error {
	released := context.DeepCopy()
	controllerutil.RemoveFinalizer(released, v1alpha.PresenceFinalizer)
	patch := client.MergeFromWithOptions(context, client.MergeFromWithOptimisticLock{})
	if err := r.hub.Patch(ctx, released, patch); err != nil && !gone(err) {
		return fmt.Errorf("take the finalizer off context %s/%s: %w", context.Namespace, context.Name, err)
	}
	log.FromContext(ctx).Info("context released", "context", context.Name)
	return nil
}

func (r *Reconciler) declare(ctx context.Context, declared *declaration) error {
	context := declared.context
	configuration := acv1alpha.NetworkContext(context.Name, context.Namespace).
		WithUID(context.UID).
		WithStatus(acv1alpha.NetworkContextStatus().WithConditions(applyCondition(declared.condition)))
	err := r.hub.Status().Apply(ctx, configuration, client.FieldOwner(FieldManager), client.ForceOwnership)
	if err != nil && !gone(err) {
		return fmt.Errorf("write the status of context %s/%s: %w", context.Namespace, context.Name, err)
	}
	before := meta.FindStatusCondition(context.Status.Conditions, v1alpha.NetworkContextDeclared)
	if err == nil && (before == nil || before.Reason != declared.condition.Reason) {
		tell(r.recorder, context, corev1.EventTypeNormal, declared.condition.Reason, "Declare", declared.condition.Message)
	}
	log.FromContext(ctx).Info("context declared", "context", context.Name,
		"status", declared.condition.Status, "reason", declared.condition.Reason, "message", declared.condition.Message)
	return nil
}

func (r *Reconciler) answer(ctx context.Context, answer answer) error {
	binding := answer.binding
	status := acv1alpha.NetworkBindingStatus()
	if ref := answer.status.NetworkContextRef; ref != nil {
		status.WithNetworkContextRef(acv1alpha.NetworkContextReference().WithNamespace(ref.Namespace).WithName(ref.Name))
	}
	ready := slices.IndexFunc(answer.status.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha.NetworkBindingReady })
	condition := answer.status.Conditions[ready]
	status.WithConditions(applyCondition(condition))
	configuration := acv1alpha.NetworkBinding(binding.Name, binding.Namespace).WithUID(binding.UID).WithStatus(status)
	err := r.hub.Status().Apply(ctx, configuration, client.FieldOwner(FieldManager), client.ForceOwnership)
	if gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("answer binding %s/%s: %w", binding.Namespace, binding.Name, err)
	}
	r.announce(ctx, binding, condition)
	return nil
}

// announce tells of a binding's new answer. Those that differ in their message alone are
// many while cells come and go, and are told to those who ask for more.
func (r *Reconciler) announce(ctx context.Context, binding *v1alpha.NetworkBinding, condition metav1.Condition) {
	level := 1
	before := meta.FindStatusCondition(binding.Status.Conditions, v1alpha.NetworkBindingReady)
	if kind, yes := announced(before, condition); yes {
		level = 0
		tell(r.recorder, binding, kind, condition.Reason, "Answer", condition.Message)
	}
	if took, became := waited(binding, time.Now()); became && condition.Status == metav1.ConditionTrue {
		readyAfter.Observe(took.Seconds())
	}
	log.FromContext(ctx).V(level).Info("binding answered", "binding", binding.Name,
		"status", condition.Status, "reason", condition.Reason, "message", condition.Message)
}

// gone tells that an object, or the one of that UID, is not there any more.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

func applyCondition(condition metav1.Condition) *acmetav1.ConditionApplyConfiguration {
	return acmetav1.Condition().
		WithType(condition.Type).
		WithStatus(condition.Status).
		WithReason(condition.Reason).
		WithMessage(condition.Message).
		WithObservedGeneration(condition.ObservedGeneration).
		WithLastTransitionTime(condition.LastTransitionTime)
}
