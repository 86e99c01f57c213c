package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/inspect"
)

// connect returns the hub to read, and a client that can watch it.
func (p *plugin) connect() (*inspect.Hub, client.WithWatch, error) {
	config, err := p.config.ToRESTConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS = -1 // the server's own fairness is enough
	scheme := inspect.Scheme()
	hub, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	seen := &inspect.Hub{Reader: hub}
	if p.cells {
		seen.Cell = func(cluster string) client.Reader { return cellReader(config, scheme, cluster) }
	}
	return seen, hub, nil
}

// cellReader reads NetworkContexts in a cell through Karmada's proxy, as the user.
func cellReader(config *rest.Config, scheme *runtime.Scheme, cluster string) client.Reader {
	through := rest.CopyConfig(config)
	through.Host = strings.TrimSuffix(through.Host, "/") + "/apis/cluster.karmada.io/v1alpha1/clusters/" + cluster + "/proxy"
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha.SchemeGroupVersion})
	mapper.Add(v1alpha.SchemeGroupVersion.WithKind("NetworkContext"), meta.RESTScopeNamespace)
	cell, err := client.New(through, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return unreadable{err}
	}
	return cell
}

// unreadable is a cell that there is no way to.
type unreadable struct{ err error }

// Get fails.
func (u unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return u.err
}

// List fails.
func (u unreadable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return u.err
}

// settle is how long changes are gathered before they are looked at together.
const settle = 200 * time.Millisecond

// follow calls look now, and again whenever something of a namespace changes that a presence
// depends on, until look is done, fails, or the context ends, which is no error.
func follow(ctx context.Context, hub client.WithWatch, namespace string, look func(context.Context) (done bool, err error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{}, 1)
	for _, kind := range []func() client.ObjectList{
		func() client.ObjectList { return &v1alpha.NetworkBindingList{} },
		func() client.ObjectList { return &v1alpha.NetworkContextList{} },
		func() client.ObjectList { return &workv1alpha2.ResourceBindingList{} },
	} {
		go tell(ctx, hub, kind, namespace, changed)
	}
	for {
		done, err := look(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(settle):
		}
	}
}

// tell notes each change of a kind, and watches anew when the server ends a watch.
func tell(ctx context.Context, hub client.WithWatch, kind func() client.ObjectList, namespace string, changed chan<- struct{}) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		watched, err := hub.Watch(ctx, kind(), client.InNamespace(namespace))
		if err != nil {
			return // forbidden, or gone for a moment: the other kinds tell
		}
		defer watched.Stop()
		for range watched.ResultChan() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}, time.Second)
}
