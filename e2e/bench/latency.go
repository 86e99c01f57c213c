package main

import (
	"context"
	"fmt"
	"time"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/e2e/controlplane"
)

const (
	project   = "acme"
	namespace = "ns-acme"
	near      = "us-central-1"
	rounds    = 30
)

// latency compares, in turn, (A) a NetworkContext created on the hub until its
// ResourceBinding reports it applied, which is Karmada's own pace, with (B) a
// NetworkBinding created until it is Ready.
func latency(ctx context.Context) error {
	options := controlplane.Options{Cells: []controlplane.Cell{{Name: "us-1", Location: near}, {Name: "eu-1", Location: "eu-west-1"}}, Projects: []string{project}}
	return withControlPlane(ctx, options, func(plane *controlplane.ControlPlane) error {
		if err := prepareLatency(ctx, plane); err != nil {
			return err
		}
		hub, err := client.NewWithWatch(plane.Hub().Config, client.Options{Scheme: controlplane.Scheme()})
		if err != nil {
			return fmt.Errorf("make a client of the hub: %w", err)
		}
		var contexts, bindings []time.Duration
		for round := range rounds + 1 {
			a, err := timeContext(ctx, hub, fmt.Sprintf("direct-%d", round))
			if err != nil {
				return err
			}
			b, err := timeBinding(ctx, hub, fmt.Sprintf("network-%d", round))
			if err != nil {
				return err
			}
			if round > 0 { // the first of each warms caches
				contexts, bindings = append(contexts, a), append(bindings, b)
			}
		}
		report("context_applied", contexts)
		report("binding_ready", bindings)
		figure("latency_overhead_ratio", fmt.Sprintf("%.2f", float64(quantile(bindings, 0.5))/float64(quantile(contexts, 0.5))))
		return nil
	})
}

func report(name string, durations []time.Duration) {
	figure(name+"_median_ms", quantile(durations, 0.5).Milliseconds())
	figure(name+"_p95_ms", quantile(durations, 0.95).Milliseconds())
}

func prepareLatency(ctx context.Context, plane *controlplane.ControlPlane) error {
	objects := []client.Object{&v1alpha.LocationBinding{
		ObjectMeta: metav1.ObjectMeta{Name: near},
		Spec:       v1alpha.LocationBindingSpec{LocationRef: v1alpha.LocationReference{Name: near}},
	}}
	for round := range rounds + 1 {
		objects = append(objects, &v1alpha.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("network-%d", round)}})
	}
	for _, object := range objects {
		if err := plane.Project(project).Client.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	return plane.CreateHubNamespace(ctx, namespace, project, "default")
}

func timeContext(ctx context.Context, hub client.WithWatch, name string) (time.Duration, error) {
	context := &v1alpha.NetworkContext{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha.NetworkContextSpec{
			Network: v1alpha.LocalNetworkReference{Name: v1alpha.Name(name)}, Location: v1alpha.LocationReference{Name: near},
			IPFamilies: []v1alpha.IPFamily{v1alpha.IPv4}, MTU: 1460,
		},
	}
	return until(ctx, hub, context, &workv1alpha2.ResourceBindingList{}, func(object *workv1alpha2.ResourceBinding) bool {
		return object.Spec.Resource.Name == name && meta.IsStatusConditionTrue(object.Status.Conditions, workv1alpha2.FullyApplied)
	})
}

func timeBinding(ctx context.Context, hub client.WithWatch, name string) (time.Duration, error) {
	binding := &v1alpha.NetworkBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha.NetworkBindingSpec{
			Network: v1alpha.NetworkReference{Name: v1alpha.Name(name)}, Location: v1alpha.BindingLocationReference{Name: near},
		},
	}
	return until(ctx, hub, binding, &v1alpha.NetworkBindingList{}, func(object *v1alpha.NetworkBinding) bool {
		return object.Name == name && meta.IsStatusConditionTrue(object.Status.Conditions, v1alpha.NetworkBindingReady)
	})
}

// until creates an object and returns how long it took until a watch of the kind in list
// showed one that is done.
func until[T client.Object](ctx context.Context, hub client.WithWatch, object client.Object, list client.ObjectList, done func(T) bool) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	events, err := hub.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		return 0, fmt.Errorf("watch %T: %w", list, err)
	}
	defer events.Stop()
	began := time.Now()
	if err := hub.Create(ctx, object); err != nil {
		return 0, fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
	}
	for event := range events.ResultChan() {
		if seen, ok := event.Object.(T); ok && event.Type != watch.Deleted && done(seen) {
			return time.Since(began), nil
		}
	}
	return 0, fmt.Errorf("%T %s was not done: %w", object, object.GetName(), ctx.Err())
}
