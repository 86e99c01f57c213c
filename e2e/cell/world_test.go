package cell

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"go.datum.net/network-presence/api/v1alpha"
)

const (
	// patience bounds each wait for what a watch should bring about.
	patience = 10 * time.Second
	// network is the network that tests with one network use.
	network = "default"
)

var dual = []v1alpha.IPFamily{v1alpha.IPv6, v1alpha.IPv4}

// world is one test's namespace in the cell.
type world struct {
	testing.TB
	Gomega
	ctx       context.Context
	namespace string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{TB: t, Gomega: NewWithT(t), ctx: context.Background()}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	w.Expect(cell.Create(w.ctx, namespace)).To(Succeed())
	w.namespace = namespace.Name
	return w
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

// deliver creates a copy of a network's context, as Karmada would.
func (w *world) deliver(network string, changes ...func(*v1alpha.NetworkContext)) *v1alpha.NetworkContext {
	w.Helper()
	context := &v1alpha.NetworkContext{
		ObjectMeta: w.meta(network + "-" + here),
		Spec: v1alpha.NetworkContextSpec{
			Network:           v1alpha.LocalNetworkReference{Name: v1alpha.Name(network)},
			Location:          v1alpha.LocationReference{Name: here},
			IPFamilies:        dual,
			MTU:               8000,
			NetworkGeneration: 1,
		},
	}
	context.Labels = map[string]string{v1alpha.NetworkUIDLabel: "uid-1"}
	for _, change := range changes {
		change(context)
	}
	w.Expect(cell.Create(w.ctx, context)).To(Succeed())
	return context
}

// edit changes the spec of a copy, as Karmada would after an edit of the network.
func (w *world) edit(context *v1alpha.NetworkContext, change func(*v1alpha.NetworkContextSpec)) {
	w.Helper()
	w.Eventually(func() error {
		if err := w.read(context); err != nil {
			return err
		}
		change(&context.Spec)
		return cell.Update(w.ctx, context)
	}, patience).Should(Succeed())
}

func (w *world) claim(name, network string, families ...v1alpha.IPFamily) *v1alpha.NetworkInterfaceClaim {
	w.Helper()
	claim := &v1alpha.NetworkInterfaceClaim{
		ObjectMeta: w.meta(name),
		Spec: v1alpha.NetworkInterfaceClaimSpec{
			Network:    v1alpha.LocalNetworkReference{Name: v1alpha.Name(network)},
			IPFamilies: families,
		},
	}
	w.Expect(cell.Create(w.ctx, claim)).To(Succeed())
	return claim
}

func (w *world) attach(name, network string, changes ...func(*v1alpha.NetworkInterface)) *v1alpha.NetworkInterface {
	w.Helper()
	made := &v1alpha.NetworkInterface{
		ObjectMeta: w.meta(name),
		Spec:       v1alpha.NetworkInterfaceSpec{Network: v1alpha.LocalNetworkReference{Name: v1alpha.Name(network)}, MTU: 8000},
	}
	for _, change := range changes {
		change(made)
	}
	w.Expect(cell.Create(w.ctx, made)).To(Succeed())
	return made
}

func (w *world) delete(object client.Object) {
	w.Helper()
	w.Expect(cell.Delete(w.ctx, object)).To(Succeed())
}

// read brings an object up to what the cell has.
func (w *world) read(object client.Object) error {
	return cell.Get(w.ctx, client.ObjectKeyFromObject(object), object)
}

// gone tells whether the cell has the object no more. One that was created anew under its
// name is another.
func (w *world) gone(object client.Object) bool {
	w.Helper()
	now := object.DeepCopyObject().(client.Object)
	err := w.read(now)
	w.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err != nil || now.GetUID() != object.GetUID()
}

// held tells whether the copy is there, with the agent's finalizer.
func (w *world) held(context *v1alpha.NetworkContext) bool {
	w.Helper()
	if w.gone(context) {
		return false
	}
	now := context.DeepCopy()
	w.Expect(w.read(now)).To(Succeed())
	return controllerutil.ContainsFinalizer(now, v1alpha.InUseFinalizer)
}

// reads waits until a claim reads a status and reason, and returns the message.
func (w *world) reads(claim *v1alpha.NetworkInterfaceClaim, status metav1.ConditionStatus, reason string) string {
	w.Helper()
	var message string
	w.Eventually(func(g Gomega) {
		g.Expect(w.read(claim)).To(Succeed())
		condition := meta.FindStatusCondition(claim.Status.Conditions, v1alpha.NetworkInterfaceClaimNetworkAvailable)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Reason).To(Equal(reason))
		g.Expect(condition.Status).To(Equal(status))
		g.Expect(condition.ObservedGeneration).To(Equal(claim.Generation))
		message = condition.Message
	}, patience).Should(Succeed())
	return message
}

func (w *world) eligible(claim *v1alpha.NetworkInterfaceClaim) string {
	w.Helper()
	return w.reads(claim, metav1.ConditionTrue, v1alpha.ReasonNetworkAvailable)
}

func (w *world) refused(claim *v1alpha.NetworkInterfaceClaim, reason string) string {
	w.Helper()
	return w.reads(claim, metav1.ConditionFalse, reason)
}

func (w *world) becomesHeld(context *v1alpha.NetworkContext) {
	w.Helper()
	w.Eventually(func() bool { return w.held(context) }, patience).Should(BeTrue())
}

func (w *world) becomesFree(context *v1alpha.NetworkContext) {
	w.Helper()
	w.Eventually(func() bool { return w.held(context) }, patience).Should(BeFalse())
}

func (w *world) becomesGone(object client.Object) {
	w.Helper()
	w.Eventually(func() bool { return w.gone(object) }, patience).Should(BeTrue())
}

func (w *world) staysHeld(context *v1alpha.NetworkContext, duration time.Duration) {
	w.Helper()
	w.Consistently(func() bool { return w.held(context) }, duration).Should(BeTrue())
}

func (w *world) staysFree(context *v1alpha.NetworkContext, duration time.Duration) {
	w.Helper()
	w.Consistently(func() bool { return w.held(context) }, duration).Should(BeFalse())
	w.Expect(w.gone(context)).To(BeFalse())
}
