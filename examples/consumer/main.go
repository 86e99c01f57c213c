// Command consumer asks for a network in a location, and waits until it is there.
package main

import (
	"context"
	"fmt"
	"log"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

func main() {
	scheme := runtime.NewScheme()
	v1alpha.Install(scheme)
	hub, err := client.NewWithWatch(ctrl.GetConfigOrDie(), client.Options{Scheme: scheme})
	if err != nil {
		log.Fatal(err)
	}
	if err := bind(ctrl.SetupSignalHandler(), hub, "ns-acme", "default", "us-central-1"); err != nil {
		log.Fatal(err)
	}
}

// bind creates a binding and returns once it is Ready.
func bind(ctx context.Context, hub client.WithWatch, namespace string, network, location v1alpha.Name) error {
	binding := &v1alpha.NetworkBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "example"}}
	binding.Spec.Network.Name, binding.Spec.Location.Name = network, location
	binding.Spec.Consumer = &v1alpha.ConsumerReference{Kind: "Example", Name: "example"}
	if err := hub.Create(ctx, binding); err != nil {
		return fmt.Errorf("ask for network %s in %s: %w", network, location, err)
	}
	changes, err := hub.Watch(ctx, &v1alpha.NetworkBindingList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": binding.Name})
	if err != nil {
		return fmt.Errorf("watch binding %s: %w", binding.Name, err)
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		if seen, ok := change.Object.(*v1alpha.NetworkBinding); ok {
			ready := meta.FindStatusCondition(seen.Status.Conditions, v1alpha.NetworkBindingReady)
			if ready != nil && ready.Status == metav1.ConditionTrue {
				fmt.Println(ready.Message)
				return nil
			}
		}
	}
	return fmt.Errorf("binding %s was not ready before the watch ended", binding.Name)
}
