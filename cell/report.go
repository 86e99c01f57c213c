package cell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"go.datum.net/network-presence/api/v1alpha"
	apply "go.datum.net/network-presence/api/v1alpha/applyconfiguration/api/v1alpha"
)

// reportPause is the least time between two reports on a copy that differ in how many
// interfaces there are only. Each report travels to the hub, and ten thousand interfaces
// may come, go or change their MTU at once. That the first holder came, or the last one
// went, and all else is reported at once.
const reportPause = time.Second

// reportReconciler reports on a network's copies in their status. Karmada carries it up.
type reportReconciler struct {
	client.Client
	location string
	now      func() time.Time
	pauses   pauses
}

func (r *reportReconciler) setup(agent manager.Manager, workers int) error {
	network := handler.TypedEnqueueRequestsFromMapFunc(networksOf)
	return builder.TypedControllerManagedBy[networkKey](agent).
		Named("report").
		WithOptions(controller.TypedOptions[networkKey]{MaxConcurrentReconciles: workers}).
		Watches(&v1alpha.NetworkContext{}, network).
		Watches(&v1alpha.NetworkInterface{}, handler.TypedFuncs[client.Object, networkKey]{
			CreateFunc: network.Create,
			DeleteFunc: network.Delete,
			UpdateFunc: afterInterfaceUpdate,
		}).
		Complete(r)
}

// afterInterfaceUpdate lets the changes to a network's interfaces add up, but for one that
// moves to another network.
func afterInterfaceUpdate(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[networkKey]) {
	before, after := networkOf(e.ObjectOld), networkOf(e.ObjectNew)
	if before != after {
		queue.Add(before)
		queue.Add(after)
		return
	}
	if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
		queue.AddAfter(after, reportPause)
	}
}

// Reconcile brings the status of a network's copies to what the agent has seen.
func (r *reportReconciler) Reconcile(ctx context.Context, network networkKey) (reconcile.Result, error) {
	contexts, err := contextsOf(ctx, r, network)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(contexts) == 0 {
		r.pauses.forget(network)
		return reconcile.Result{}, nil
	}
	var anyInterface v1alpha.NetworkInterfaceList
	if err := r.List(ctx, &anyInterface, of(network), client.Limit(1)); err != nil {
		return reconcile.Result{}, fmt.Errorf("list interfaces of network %s: %w", network, err)
	}
	if left := r.pauses.left(network, r.now()); left > 0 && !urgent(contexts, len(anyInterface.Items) > 0) {
		// What is left unreported now was an event already.
		return reconcile.Result{RequeueAfter: left}, nil
	}
	return reconcile.Result{}, r.report(ctx, network, contexts)
}

func (r *reportReconciler) report(ctx context.Context, network networkKey, contexts []v1alpha.NetworkContext) error {
	var interfaces v1alpha.NetworkInterfaceList
	if err := r.List(ctx, &interfaces, of(network)); err != nil {
		return fmt.Errorf("list interfaces of network %s: %w", network, err)
	}
	var failed []error
	for i := range contexts {
		status := report(&contexts[i], interfaces.Items, r.location)
		if apiequality.Semantic.DeepEqual(contexts[i].Status, status) {
			continue
		}
		failed = append(failed, r.write(ctx, &contexts[i], status))
		r.pauses.begin(network, r.now())
	}
	return errors.Join(failed...)
}

// urgent tells whether a copy's status is wrong in more than how many holders there are.
func urgent(contexts []v1alpha.NetworkContext, occupied bool) bool {
	return slices.ContainsFunc(contexts, func(context v1alpha.NetworkContext) bool {
		told := context.Status.Agent
		return told == nil || told.Holders > 0 != occupied ||
			told.NetworkUID != networkUID(&context) || context.Status.ObservedGeneration != context.Generation
	})
}

func networkUID(context *v1alpha.NetworkContext) types.UID {
	return types.UID(context.Labels[v1alpha.NetworkUIDLabel])
}

// report is the status that a copy should have.
func report(context *v1alpha.NetworkContext, interfaces []v1alpha.NetworkInterface, location string) v1alpha.NetworkContextStatus {
	status := *context.Status.DeepCopy()
	status.ObservedGeneration = context.Generation
	status.Agent = &v1alpha.AgentStatus{
		NetworkGeneration: context.Spec.NetworkGeneration,
		NetworkUID:        networkUID(context),
		Holders:           int64(len(interfaces)),
	}
	for i := range interfaces {
		if interfaces[i].Spec.MTU == context.Spec.MTU {
			status.Agent.ConvergedInterfaces++
		}
	}
	for _, condition := range []metav1.Condition{
		accepted(context, location),
		heldBy(status.Agent.Holders, context),
	} {
		condition.ObservedGeneration = context.Generation
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

// accepted says whether the agent serves claims by the copy's rules.
func accepted(context *v1alpha.NetworkContext, location string) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha.NetworkContextAccepted, Status: metav1.ConditionFalse}
	switch {
	case string(context.Spec.Location.Name) != location:
		condition.Reason = v1alpha.ReasonOtherLocation
		condition.Message = fmt.Sprintf("the context is for location %q, and this cell's agent serves location %q: "+
			"label the cell's Karmada Cluster with the location that its agent was given", context.Spec.Location.Name, location)
	case len(context.Spec.IPFamilies) == 0:
		condition.Reason = v1alpha.ReasonAddressFamiliesUnknown
		condition.Message = "the copy names no address families: " +
			"the CustomResourceDefinition of NetworkContext in this cell may be too old to keep spec.ipFamilies"
	default:
		condition.Status = metav1.ConditionTrue
		condition.Reason = v1alpha.ReasonRulesAccepted
		condition.Message = fmt.Sprintf("claims on network %q are served by these rules", context.Spec.Network.Name)
	}
	return condition
}

// heldBy says whether addresses of the copy's network are out.
func heldBy(holders int64, context *v1alpha.NetworkContext) metav1.Condition {
	condition := metav1.Condition{
		Type:    v1alpha.NetworkContextHeld,
		Status:  metav1.ConditionFalse,
		Reason:  v1alpha.ReasonNoAddressesHeld,
		Message: fmt.Sprintf("no network interface of network %q is in this namespace", context.Spec.Network.Name),
	}
	if holders > 0 {
		condition.Status = metav1.ConditionTrue
		condition.Reason = v1alpha.ReasonAddressesHeld
		condition.Message = fmt.Sprintf("network interfaces of network %q hold addresses; "+
			"the context stays until the last of them is gone", context.Spec.Network.Name)
	}
	return condition
}

// write applies the agent's part of a copy's status.
func (r *reportReconciler) write(ctx context.Context, context *v1alpha.NetworkContext, status v1alpha.NetworkContextStatus) error {
	configuration := apply.NetworkContext(context.Name, context.Namespace).
		WithUID(context.UID).
		WithStatus(apply.NetworkContextStatus().
			WithObservedGeneration(status.ObservedGeneration).
			WithConditions(
				applied(*meta.FindStatusCondition(status.Conditions, v1alpha.NetworkContextAccepted)),
				applied(*meta.FindStatusCondition(status.Conditions, v1alpha.NetworkContextHeld))).
			WithAgent(apply.AgentStatus().
				WithNetworkGeneration(status.Agent.NetworkGeneration).
				WithNetworkUID(status.Agent.NetworkUID).
				WithHolders(status.Agent.Holders).
				WithConvergedInterfaces(status.Agent.ConvergedInterfaces)))
	err := r.Status().Apply(ctx, configuration, FieldOwner, client.ForceOwnership)
	if err != nil && !superseded(err) {
		return fmt.Errorf("report in the status of context %s: %w", client.ObjectKeyFromObject(context), err)
	}
	return nil
}

// pauses are the networks that were reported on less than reportPause ago.
type pauses struct {
	mutex sync.Mutex
	since map[networkKey]time.Time
}

func (p *pauses) begin(network networkKey, now time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.since == nil {
		p.since = map[networkKey]time.Time{}
	}
	p.since[network] = now
}

// left is how much of a network's pause is to come; zero or less where it is over.
func (p *pauses) left(network networkKey, now time.Time) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.since[network].Add(reportPause).Sub(now)
}

func (p *pauses) forget(network networkKey) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.since, network)
}
