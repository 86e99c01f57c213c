// Package story tells what network presence is for, with real objects on a real control
// plane: the demo prints it, and the e2e suite checks it.
package story

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// Stage is where the story plays.
type Stage struct {
	// Project is the name of the consumer's project, Upstream reaches its plane, and
	// UpstreamNamespace is the namespace there that the network is declared in.
	Project           string
	Upstream          client.Client
	UpstreamNamespace string
	// Hub reaches the Karmada API server, and Namespace is the namespace there that
	// mirrors UpstreamNamespace.
	Hub       client.Client
	Namespace string
	// Cells reach the cells, by the location that each serves. There must be one for Near
	// and one for Far, and may be more.
	Cells map[string]client.Client
	// Near and Far are locations that the project may use; Closed is one that it may not.
	Near, Far, Closed string
	// Agents tells that our agent runs in the cell of Near. Without it, nothing is known of
	// addresses there, and the part about them is left out.
	Agents bool
	// Patience bounds each wait; 0 means a minute.
	Patience time.Duration
}

// Step is one thing that happens and what is seen of it.
type Step struct {
	// Does says what is done, and Shows what is then seen.
	Does, Shows string
	run         func(context.Context, *Stage) error
}

// Run does the step and returns once what it shows is seen. The error says what was seen
// instead.
func (s Step) Run(ctx context.Context, stage *Stage) error { return s.run(ctx, stage) }

// Steps are the story, from an empty project back to one.
func Steps(s *Stage) []Step {
	steps := []Step{
		{
			Does:  fmt.Sprintf("project %s declares Network/default (IPv6 and IPv4, MTU 8000) and may use %s and %s", s.Project, s.Near, s.Far),
			Shows: "nothing travels: nobody needs the network anywhere yet",
			run:   declare,
		}, {
			Does:  fmt.Sprintf("a workload needs the network in %s and %s, a load balancer in %s: three NetworkBindings", s.Near, s.Far, s.Near),
			Shows: "three bindings Ready, two contexts, each copy in its own cell and in no other",
			run:   need,
		}, {
			Does:  fmt.Sprintf("a binding asks for %s, which the project may not use", s.Closed),
			Shows: v1alpha.ReasonLocationNotAvailable + ", and nothing is delivered",
			run:   askForClosed,
		}, {
			Does:  "the network's MTU is edited to 1400 in the project",
			Shows: "both cells have it",
			run:   edit,
		}, {
			Does:  "the workload is deleted",
			Shows: fmt.Sprintf("its two bindings are collected, the context of %s and its copy go, %s stays for the load balancer", s.Far, s.Near),
			run:   deleteWorkload,
		},
	}
	leaves := "the load balancer deletes its binding"
	if s.Agents {
		steps = append(steps, retainedSteps(s)...)
		leaves += ", and its address is given back"
	}
	return append(steps, Step{Does: leaves, Shows: "the last context and copy are gone", run: deleteLast})
}

const (
	workload     = "web"
	loadBalancer = "edge-lb"
)

func declare(ctx context.Context, s *Stage) error {
	objects := []client.Object{&v1alpha.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.UpstreamNamespace, Name: "default"},
		Spec:       v1alpha.NetworkSpec{IPFamilies: []v1alpha.IPFamily{v1alpha.IPv6, v1alpha.IPv4}, MTU: 8000},
	}}
	for _, location := range []string{s.Near, s.Far} {
		objects = append(objects, &v1alpha.LocationBinding{
			ObjectMeta: metav1.ObjectMeta{Name: location},
			Spec:       v1alpha.LocationBindingSpec{LocationRef: v1alpha.LocationReference{Name: v1alpha.Name(location)}},
		})
	}
	return create(ctx, s.Upstream, objects...)
}

func need(ctx context.Context, s *Stage) error {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: workload}}
	if err := create(ctx, s.Hub, owner); err != nil {
		return err
	}
	near, far := s.binding(workload+"-near", s.Near), s.binding(workload+"-far", s.Far)
	for _, binding := range []*v1alpha.NetworkBinding{near, far} {
		binding.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	}
	lb := s.binding(loadBalancer, s.Near)
	lb.Spec.Consumer = &v1alpha.ConsumerReference{APIGroup: "networking.datumapis.com", Kind: "LoadBalancer", Name: loadBalancer}
	if err := create(ctx, s.Hub, near, far, lb); err != nil {
		return err
	}
	return s.eventually(ctx, func(ctx context.Context) error {
		for _, binding := range []*v1alpha.NetworkBinding{near, far, lb} {
			if err := s.answered(ctx, binding.Name, v1alpha.ReasonNetworkContextReady); err != nil {
				return err
			}
		}
		return errors.Join(s.contextsAre(ctx, s.Near, s.Far), s.copiesAre(ctx, 8000, s.Near, s.Far))
	})
}

func askForClosed(ctx context.Context, s *Stage) error {
	if err := create(ctx, s.Hub, s.binding("closed", s.Closed)); err != nil {
		return err
	}
	return s.eventually(ctx, func(ctx context.Context) error {
		return errors.Join(s.answered(ctx, "closed", v1alpha.ReasonLocationNotAvailable),
			s.contextsAre(ctx, s.Near, s.Far), s.copiesAre(ctx, 8000, s.Near, s.Far))
	})
}

func edit(ctx context.Context, s *Stage) error {
	var network v1alpha.Network
	if err := s.Upstream.Get(ctx, client.ObjectKey{Namespace: s.UpstreamNamespace, Name: "default"}, &network); err != nil {
		return fmt.Errorf("read the network: %w", err)
	}
	edited := network.DeepCopy()
	edited.Spec.MTU = 1400
	if err := s.Upstream.Patch(ctx, edited, client.MergeFrom(&network)); err != nil {
		return fmt.Errorf("edit the network: %w", err)
	}
	return s.eventually(ctx, func(ctx context.Context) error { return s.copiesAre(ctx, 1400, s.Near, s.Far) })
}

func deleteWorkload(ctx context.Context, s *Stage) error {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: workload}}
	if err := s.Hub.Delete(ctx, owner, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return fmt.Errorf("delete the workload: %w", err)
	}
	return s.eventually(ctx, func(ctx context.Context) error {
		return errors.Join(s.bindingsAre(ctx, "closed", loadBalancer), s.contextsAre(ctx, s.Near), s.copiesAre(ctx, 1400, s.Near),
			s.answered(ctx, loadBalancer, v1alpha.ReasonNetworkContextReady))
	})
}

func deleteLast(ctx context.Context, s *Stage) error {
	for _, name := range []string{loadBalancer, "closed"} {
		if err := s.Hub.Delete(ctx, s.binding(name, s.Near)); err != nil {
			return fmt.Errorf("delete binding %s: %w", name, err)
		}
	}
	if s.Agents {
		if err := s.Cells[s.Near].Delete(ctx, s.address()); err != nil {
			return fmt.Errorf("give the address back: %w", err)
		}
	}
	return s.eventually(ctx, func(ctx context.Context) error {
		return errors.Join(s.bindingsAre(ctx), s.contextsAre(ctx), s.copiesAre(ctx, 1400))
	})
}

func (s *Stage) binding(name, location string) *v1alpha.NetworkBinding {
	return &v1alpha.NetworkBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec: v1alpha.NetworkBindingSpec{
			Network:  v1alpha.NetworkReference{Name: "default"},
			Location: v1alpha.BindingLocationReference{Name: v1alpha.Name(location)},
		},
	}
}

// answered is nil once a binding's Ready has the reason.
func (s *Stage) answered(ctx context.Context, name, reason string) error {
	var binding v1alpha.NetworkBinding
	if err := s.Hub.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, &binding); err != nil {
		return fmt.Errorf("read binding %s: %w", name, err)
	}
	ready := meta.FindStatusCondition(binding.Status.Conditions, v1alpha.NetworkBindingReady)
	if ready == nil || ready.Reason != reason || ready.ObservedGeneration != binding.Generation {
		return fmt.Errorf("binding %s is not %s: %+v", name, reason, ready)
	}
	return nil
}

func (s *Stage) bindingsAre(ctx context.Context, names ...string) error {
	var bindings v1alpha.NetworkBindingList
	if err := s.Hub.List(ctx, &bindings, client.InNamespace(s.Namespace)); err != nil {
		return fmt.Errorf("list the bindings: %w", err)
	}
	var got []string
	for _, binding := range bindings.Items {
		got = append(got, binding.Name)
	}
	return same("bindings", got, names)
}

func (s *Stage) contextsAre(ctx context.Context, locations ...string) error {
	var contexts v1alpha.NetworkContextList
	if err := s.Hub.List(ctx, &contexts, client.InNamespace(s.Namespace)); err != nil {
		return fmt.Errorf("list the contexts: %w", err)
	}
	var got []string
	for _, context := range contexts.Items {
		got = append(got, string(context.Spec.Location.Name))
	}
	return same("contexts of the hub, by location", got, locations)
}

// copiesAre is nil once just the cells of the locations have a copy, each the one of its
// location, with the MTU.
func (s *Stage) copiesAre(ctx context.Context, mtu int32, locations ...string) error {
	var got, want []string
	for location, cell := range s.Cells {
		var copies v1alpha.NetworkContextList
		if err := cell.List(ctx, &copies, client.InNamespace(s.Namespace)); err != nil {
			return fmt.Errorf("list the copies in the cell of %s: %w", location, err)
		}
		for _, context := range copies.Items {
			got = append(got, copyOf(location, string(context.Spec.Location.Name), context.Spec.MTU))
		}
	}
	for _, location := range locations {
		want = append(want, copyOf(location, location, mtu))
	}
	return same("copies in cells", got, want)
}

func copyOf(cell, location string, mtu int32) string {
	return fmt.Sprintf("cell of %s: copy for %s, MTU %d", cell, location, mtu)
}

func same(what string, got, want []string) error {
	slices.Sort(got)
	slices.Sort(want)
	if slices.Equal(got, want) {
		return nil
	}
	return fmt.Errorf("%s are [%s], not [%s]", what, strings.Join(got, ", "), strings.Join(want, ", "))
}

// eventually returns once seen does without an error, and its last error when the stage's
// patience ends.
func (s *Stage) eventually(ctx context.Context, seen func(context.Context) error) error {
	patience := s.Patience
	if patience == 0 {
		patience = time.Minute
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = seen(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("after %s: %w", patience, errors.Join(last, ctx.Err()))
	}
	return nil
}

func create(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, object := range objects {
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}
