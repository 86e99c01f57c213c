package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// patience bounds each wait for something that a watch should bring about.
const patience = time.Minute

// world is one spec's own part of the control plane: a namespace of a project and the hub
// namespace that mirrors it. Everything in it is deleted after the spec.
type world struct {
	project   string
	upstream  string // namespace in the project
	namespace string // on the hub
}

// newWorld makes a world in the first project, which may use near and far.
func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	return newWorldIn(ctx, firstProject)
}

func newWorldIn(ctx context.Context, project string) *world {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(upstream(project).Create(ctx, namespace)).To(Succeed())
	w := &world{project: project, upstream: namespace.Name, namespace: "ns-" + project + "-" + namespace.Name}
	Expect(plane.CreateHubNamespace(ctx, w.namespace, project, w.upstream)).To(Succeed())
	w.grant(ctx, near)
	w.grant(ctx, far)
	DeferCleanup(w.end)
	return w
}

// end deletes what the spec made, and waits until nothing of it is left.
func (w *world) end(ctx SpecContext) {
	Expect(hub().DeleteAllOf(ctx, &v1alpha.NetworkBinding{}, client.InNamespace(w.namespace))).To(Succeed())
	Expect(upstream(w.project).DeleteAllOf(ctx, &v1alpha.Network{}, client.InNamespace(w.upstream))).To(Succeed())
	w.eventually(ctx, func(g Gomega) {
		g.Expect(w.contexts(ctx)).To(BeEmpty())
		for _, cell := range allCells() {
			g.Expect(w.copies(ctx, cell)).To(BeEmpty())
		}
	})
	Expect(hub().Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})).To(Succeed())
	Expect(upstream(w.project).Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.upstream}})).To(Succeed())
	Expect(upstream(w.project).DeleteAllOf(ctx, &v1alpha.LocationBinding{})).To(Succeed())
}

func (w *world) declareNetwork(ctx context.Context, name string) *v1alpha.Network {
	GinkgoHelper()
	network := &v1alpha.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.upstream, Name: name},
		Spec:       v1alpha.NetworkSpec{IPFamilies: []v1alpha.IPFamily{v1alpha.IPv6, v1alpha.IPv4}, MTU: 8000},
	}
	Expect(upstream(w.project).Create(ctx, network)).To(Succeed())
	return network
}

// grant lets the project use a location.
func (w *world) grant(ctx context.Context, location string) {
	GinkgoHelper()
	grant := &v1alpha.LocationBinding{
		ObjectMeta: metav1.ObjectMeta{Name: location},
		Spec:       v1alpha.LocationBindingSpec{LocationRef: v1alpha.LocationReference{Name: v1alpha.Name(location)}},
	}
	Expect(client.IgnoreAlreadyExists(upstream(w.project).Create(ctx, grant))).To(Succeed())
}

func (w *world) revoke(ctx context.Context, location string) {
	GinkgoHelper()
	grant := &v1alpha.LocationBinding{ObjectMeta: metav1.ObjectMeta{Name: location}}
	Expect(upstream(w.project).Delete(ctx, grant)).To(Succeed())
}

func (w *world) setAvailable(ctx context.Context, location string, status metav1.ConditionStatus) {
	GinkgoHelper()
	grant := &v1alpha.LocationBinding{}
	Expect(upstream(w.project).Get(ctx, client.ObjectKey{Name: location}, grant)).To(Succeed())
	meta.SetStatusCondition(&grant.Status.Conditions, metav1.Condition{
		Type: v1alpha.LocationBindingAvailable, Status: status, Reason: "Spec", Message: "set by the spec",
	})
	Expect(upstream(w.project).Status().Update(ctx, grant)).To(Succeed())
}

func (w *world) newBinding(name, network, location string) *v1alpha.NetworkBinding {
	return &v1alpha.NetworkBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: v1alpha.NetworkBindingSpec{
			Network:  v1alpha.NetworkReference{Name: v1alpha.Name(network)},
			Location: v1alpha.BindingLocationReference{Name: v1alpha.Name(location)},
		},
	}
}

func (w *world) bind(ctx context.Context, name, network, location string) *v1alpha.NetworkBinding {
	GinkgoHelper()
	binding := w.newBinding(name, network, location)
	Expect(hub().Create(ctx, binding)).To(Succeed())
	return binding
}

// ready is a binding's one condition. It is never nil: the CRD's default is there at least.
func ready(binding *v1alpha.NetworkBinding) *metav1.Condition {
	condition := meta.FindStatusCondition(binding.Status.Conditions, v1alpha.NetworkBindingReady)
	if condition == nil {
		return &metav1.Condition{}
	}
	return condition
}

func (w *world) refresh(ctx context.Context, g Gomega, binding *v1alpha.NetworkBinding) {
	g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(binding), binding)).To(Succeed())
}

// expectReason waits until a binding is answered with the reason, in its own generation,
// and leaves it as it was then read.
func (w *world) expectReason(ctx context.Context, binding *v1alpha.NetworkBinding, reason string) {
	GinkgoHelper()
	status := metav1.ConditionFalse
	if reason == v1alpha.ReasonNetworkContextReady {
		status = metav1.ConditionTrue
	}
	w.eventually(ctx, func(g Gomega) {
		w.refresh(ctx, g, binding)
		g.Expect(ready(binding)).To(SatisfyAll(
			HaveField("Reason", reason),
			HaveField("Status", status),
			HaveField("ObservedGeneration", binding.Generation),
		))
	})
}

// staysReason fails when a binding's reason changes within some seconds.
func (w *world) staysReason(ctx context.Context, binding *v1alpha.NetworkBinding, reason string) {
	GinkgoHelper()
	Consistently(func(g Gomega) {
		w.refresh(ctx, g, binding)
		g.Expect(ready(binding).Reason).To(Equal(reason))
	}, 3*time.Second, 200*time.Millisecond).WithContext(ctx).Should(Succeed())
}

func (w *world) eventually(ctx context.Context, seen func(Gomega), interval ...time.Duration) {
	GinkgoHelper()
	pace := 50 * time.Millisecond
	if len(interval) > 0 {
		pace = interval[0]
	}
	Eventually(seen, patience, pace).WithContext(ctx).Should(Succeed())
}

func (w *world) contexts(ctx context.Context) []v1alpha.NetworkContext {
	return contextsIn(ctx, hub(), w.namespace)
}

// copies are the contexts of the world that a cell has.
func (w *world) copies(ctx context.Context, cell string) []v1alpha.NetworkContext {
	return contextsIn(ctx, inCell(cell), w.namespace)
}

func contextsIn(ctx context.Context, reader client.Reader, namespace string) []v1alpha.NetworkContext {
	GinkgoHelper()
	var contexts v1alpha.NetworkContextList
	Expect(reader.List(ctx, &contexts, client.InNamespace(namespace))).To(Succeed())
	return contexts.Items
}

// context waits for the one context of a pair on the hub.
func (w *world) context(ctx context.Context, network, location string) *v1alpha.NetworkContext {
	GinkgoHelper()
	return w.only(ctx, func() []v1alpha.NetworkContext { return w.contexts(ctx) }, network, location)
}

// copyIn waits for the one copy of a pair's context in a cell.
func (w *world) copyIn(ctx context.Context, cell, network, location string) *v1alpha.NetworkContext {
	GinkgoHelper()
	return w.only(ctx, func() []v1alpha.NetworkContext { return w.copies(ctx, cell) }, network, location)
}

func (w *world) only(ctx context.Context, list func() []v1alpha.NetworkContext, network, location string) *v1alpha.NetworkContext {
	GinkgoHelper()
	var found []v1alpha.NetworkContext
	w.eventually(ctx, func(g Gomega) {
		found = nil
		for _, context := range list() {
			if string(context.Spec.Network.Name) == network && string(context.Spec.Location.Name) == location {
				found = append(found, context)
			}
		}
		g.Expect(found).To(HaveLen(1), "contexts of %s in %s", network, location)
	})
	return &found[0]
}

// versions are the resourceVersions of all that is ours in the world, on every plane.
func (w *world) versions(ctx context.Context) map[string]string {
	GinkgoHelper()
	versions := map[string]string{}
	note := func(where string, object client.Object) {
		versions[fmt.Sprintf("%s %T %s", where, object, object.GetName())] = object.GetResourceVersion()
	}
	var bindings v1alpha.NetworkBindingList
	Expect(hub().List(ctx, &bindings, client.InNamespace(w.namespace))).To(Succeed())
	for i := range bindings.Items {
		note("hub", &bindings.Items[i])
	}
	for _, context := range w.contexts(ctx) {
		note("hub", &context)
	}
	var grants v1alpha.LocationBindingList
	Expect(hub().List(ctx, &grants)).To(Succeed())
	for i := range grants.Items {
		note("hub", &grants.Items[i])
	}
	var networks v1alpha.NetworkList
	Expect(upstream(w.project).List(ctx, &networks)).To(Succeed())
	for i := range networks.Items {
		note("project", &networks.Items[i])
	}
	for _, cell := range allCells() {
		for _, context := range w.copies(ctx, cell) {
			note(cell, &context)
		}
	}
	return versions
}
