package grants

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/location"
	"go.datum.net/network-presence/project"
)

// patience bounds each wait for something that a watch should bring about.
const patience = 30 * time.Second

// secrets is the namespace of the Secrets that connect projects.
const secrets = metav1.NamespaceDefault

// controllers are those of the hub that copy, as one run of its process.
type controllers struct {
	t       *testing.T
	planes  *project.Planes
	context context.Context
	local   manager.Manager
}

// start runs the controllers until the test ends. Secrets are looked for in a namespace.
func start(t *testing.T, secretsNamespace string) *controllers {
	t.Helper()
	local, err := manager.New(access, manager.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true), UsePriorityQueue: ptr.To(false)},
	})
	must(t, err)
	c := &controllers{t: t, planes: project.NewPlanes(), context: t.Context(), local: local}
	options := project.Options{SecretsNamespace: secretsNamespace, Scheme: scheme, QPS: -1}
	connections := options.Connections(local.GetClient(), local.GetAPIReader())
	grants, err := location.NewGrants(local, connections)
	must(t, err)
	c.planes.Subscribe(func(change project.Change) {
		if plane, connected := c.planes.Get(change.Project); connected {
			grants.Follow(change.Project, plane)
			return
		}
		grants.Forget(c.context, change.Project)
	})
	must(t, connections.Watch(c.context, local.GetCache(), func(name string) { grants.Forget(c.context, name) }))
	ended := make(chan error)
	go func() { ended <- local.Start(c.context) }()
	t.Cleanup(func() { must(t, <-ended) })
	return c
}

// connect has a project served by the API server until the function is called.
func (c *controllers) connect(name string) (disconnect func()) {
	c.t.Helper()
	plane, err := cluster.New(access, func(o *cluster.Options) {
		o.Scheme, o.Cache.ReaderFailOnMissingInformer = scheme, true
	})
	must(c.t, err)
	ctx, cancel := context.WithCancel(c.context)
	go func() { _ = plane.Start(ctx) }()
	must(c.t, c.planes.Engage(ctx, multicluster.ClusterName(name), plane))
	return cancel
}

// secret makes what connects a project, whose kubeconfig nobody reads here.
func secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secrets, Name: name}}
	create(t, made)
	return made
}

// grantOf is a project's LocationBinding for a location.
func grantOf(name, of string) *v1alpha.LocationBinding {
	return &v1alpha.LocationBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha.LocationBindingSpec{
			LocationRef: v1alpha.LocationReference{Name: v1alpha.Name(of)}, Topology: map[string]string{"city": "DFW"},
		},
	}
}

// create makes an object that goes with the test.
func create(t *testing.T, object client.Object) {
	t.Helper()
	must(t, hub.Create(t.Context(), object))
	t.Cleanup(func() { must(t, client.IgnoreNotFound(hub.Delete(context.Background(), object))) })
}

// clear deletes every copy, once nothing copies any longer: call it before start.
func clear(t *testing.T) {
	t.Cleanup(func() {
		must(t, hub.DeleteAllOf(context.Background(), &v1alpha.LocationBinding{}))
		must(t, hub.DeleteAllOf(context.Background(), &v1alpha.Location{}))
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually fails the test unless seen does without an error before patience ends.
func eventually(t *testing.T, seen func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = seen()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("after %s: %v", patience, errors.Join(last, err))
	}
}

// copyOf waits for a grant's copy of which is is true; nil for any.
func copyOf(t *testing.T, project, of string, is func(*v1alpha.LocationBinding) bool) *v1alpha.LocationBinding {
	t.Helper()
	copied := &v1alpha.LocationBinding{}
	eventually(t, func() error {
		if err := hub.Get(t.Context(), client.ObjectKey{Name: location.CopyName(project, of)}, copied); err != nil {
			return err
		}
		if copied.Labels[v1alpha.ManagedByLabel] != v1alpha.ManagedByHub || is != nil && !is(copied) {
			return errors.New("the copy is not as it should be")
		}
		return nil
	})
	return copied
}

// gone waits until there is no object of a copy's name.
func gone(t *testing.T, project, of string) {
	t.Helper()
	eventually(t, func() error {
		err := hub.Get(t.Context(), client.ObjectKey{Name: location.CopyName(project, of)}, &v1alpha.LocationBinding{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("the copy is still there"))
	})
}

// reported waits for an event about an object, with a reason.
func reported(t *testing.T, object client.Object, reason string) {
	t.Helper()
	eventually(t, func() error {
		var events eventsv1.EventList
		if err := hub.List(t.Context(), &events); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Regarding.UID == object.GetUID() && event.Reason == reason {
				return nil
			}
		}
		return errors.New("no event " + reason + " about " + object.GetName())
	})
}

var errStill = errors.New("the project is still connected")

// ours is a copy that an earlier run made.
func ours(project, of string) *v1alpha.LocationBinding {
	copied := grantOf(location.CopyName(project, of), of)
	copied.Labels = map[string]string{
		v1alpha.ManagedByLabel: v1alpha.ManagedByHub, v1alpha.ProjectLabel: project, v1alpha.LocationLabel: of,
	}
	copied.Annotations = map[string]string{v1alpha.ConnectionAnnotation: "Secret " + secrets + "/" + project}
	return copied
}

// stays fails the test when a copy goes within a moment.
func stays(t *testing.T, copied client.Object) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Second, true, func(ctx context.Context) (bool, error) {
		return false, hub.Get(ctx, client.ObjectKeyFromObject(copied), copied)
	})
	if !wait.Interrupted(err) {
		t.Fatalf("the copy did not stay: %v", err)
	}
}
