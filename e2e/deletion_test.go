package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/util/names"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// remains is what is left of the world's contexts, by plane; empty once nothing is.
func (w *world) remains(ctx context.Context) ([]string, error) {
	var left []string
	var contexts v1alpha.NetworkContextList
	var placements workv1alpha2.ResourceBindingList
	var works workv1alpha1.WorkList
	err := errors.Join(hub().List(ctx, &contexts, client.InNamespace(w.namespace)),
		hub().List(ctx, &placements, client.InNamespace(w.namespace)), hub().List(ctx, &works))
	for _, context := range contexts.Items {
		left = append(left, "context "+context.Name)
	}
	for _, placement := range placements.Items {
		if placement.Spec.Resource.Kind == "NetworkContext" {
			left = append(left, "ResourceBinding "+placement.Name)
		}
	}
	for _, work := range works.Items {
		if work.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotationKey] == w.namespace {
			left = append(left, "Work "+work.Namespace+"/"+work.Name)
		}
	}
	for _, cell := range allCells() {
		var copies v1alpha.NetworkContextList
		err = errors.Join(err, inCell(cell).List(ctx, &copies, client.InNamespace(w.namespace)))
		for _, copied := range copies.Items {
			left = append(left, "copy "+copied.Name+" in "+cell)
		}
	}
	return left, err
}

// leavesNothing waits until no context of the world is left, nor what Karmada made of it.
func (w *world) leavesNothing(ctx context.Context) {
	GinkgoHelper()
	w.eventually(ctx, func(g Gomega) {
		left, err := w.remains(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(left).To(BeEmpty())
	}, 200*time.Millisecond)
}

// inParallel calls work for each number below count, all at once, and returns when all have
// returned.
func inParallel(ctx context.Context, count int, work func(ctx context.Context, number int)) {
	var workers sync.WaitGroup
	for number := range count {
		workers.Go(func() {
			defer GinkgoRecover()
			work(ctx, number)
		})
	}
	workers.Wait()
}

// setting is a number from an environment variable, or what it is without.
func setting(name string, unset int) int {
	text := os.Getenv(name)
	if text == "" {
		return unset
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		panic(fmt.Sprintf("%s is %q: it is a number of 1 or more", name, text))
	}
	return number
}

// allocationRounds is how often an address is handed out while the hub deletes its network's
// context, so many at once.
func allocationRounds() int { return setting("ALLOCATION_ROUNDS", 200) }

const allocationsAtOnce = 50

// allocateWhileDeleting lets a claim be answered and its network be withdrawn at the same
// time, and does what an allocator does that has read True. The error says that the address
// was out without a copy that is held.
func (w *world) allocateWhileDeleting(ctx context.Context, cell, network string, delay int) error {
	key := metav1.ObjectMeta{Namespace: w.namespace, Name: network}
	claim := &v1alpha.NetworkInterfaceClaim{ObjectMeta: key}
	claim.Spec.Network.Name = v1alpha.Name(network)
	address := &v1alpha.NetworkInterface{ObjectMeta: key}
	address.Spec.Network.Name = v1alpha.Name(network)
	declared := &v1alpha.Network{ObjectMeta: metav1.ObjectMeta{Namespace: w.upstream, Name: network}, Spec: v1alpha.NetworkSpec{MTU: 8000, IPFamilies: []v1alpha.IPFamily{v1alpha.IPv6}}}
	binding := w.newBinding(network, network, near)

	err := errors.Join(upstream(w.project).Create(ctx, declared), hub().Create(ctx, binding),
		eventually(ctx, func() error { return inCell(cell).Create(ctx, claim.DeepCopy()) }),
		eventually(ctx, func() error { return available(ctx, cell, claim) }))
	if err != nil {
		return fmt.Errorf("bring network %s to its cell: %w", network, err)
	}
	if err := hub().Delete(ctx, binding); err != nil {
		return err
	}
	// The deletion takes some hundred milliseconds to reach the cell: the allocator reads at
	// all times of it.
	paused(ctx, time.Duration(delay)*10*time.Millisecond)
	if available(ctx, cell, claim) == nil {
		if err := inCell(cell).Create(ctx, address); err != nil {
			return err
		}
		for range 10 {
			if !w.heldIn(ctx, cell, network) {
				return fmt.Errorf("an address of network %s is out and no copy of its context is held", network)
			}
			paused(ctx, 200*time.Millisecond)
		}
		if err := inCell(cell).Delete(ctx, address); err != nil {
			return err
		}
	}
	return inCell(cell).Delete(ctx, claim)
}

func available(ctx context.Context, cell string, claim *v1alpha.NetworkInterfaceClaim) error {
	if err := inCell(cell).Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(claim.Status.Conditions, v1alpha.NetworkInterfaceClaimNetworkAvailable) {
		return fmt.Errorf("claim %s reads %+v", claim.Name, claim.Status.Conditions)
	}
	return nil
}

// paused lets time pass: it is not waited for anything.
func paused(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}

// eventually returns once do does without an error, and its last error when patience ends.
func eventually(ctx context.Context, do func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = do()
		return last == nil, nil
	})
	return errors.Join(err, last)
}

var _ = Describe("A hub namespace", func() {
	cell := cellOf(near)

	It("is not deleted while it has addresses out, and is drained once they are back", func(ctx SpecContext) {
		w := newWorld(ctx)
		const doomed = "ns-doomed"
		Expect(plane.CreateHubNamespace(ctx, doomed, w.project, w.upstream)).To(Succeed())
		d := &world{project: w.project, upstream: w.upstream, namespace: doomed}
		w.declareNetwork(ctx, "default")
		_, held := d.present(ctx, "default", near)
		address := d.attach(ctx, cell, "nic", "default")
		d.known(ctx, held)

		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: doomed}}
		err := hub().Delete(ctx, namespace)
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(SatisfyAll(ContainSubstring(held.Name), ContainSubstring("held in "+cell), ContainSubstring("force-release"))))

		detach(ctx, cell, address)
		w.eventually(ctx, func(g Gomega) { g.Expect(hub().Delete(ctx, namespace)).To(Succeed()) })
		w.eventually(ctx, func(g Gomega) {
			g.Expect(apierrors.IsNotFound(hub().Get(ctx, client.ObjectKeyFromObject(namespace), namespace))).To(BeTrue())
		})
		d.leavesNothing(ctx)
	})
})

var _ = Describe("A deletion", func() {
	cell := cellOf(near)

	DescribeTable("of a context leaves nothing of Karmada's", func(ctx SpecContext, policy metav1.DeletionPropagation) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		binding, old := w.present(ctx, "default", near)

		Expect(hub().Delete(ctx, old, client.PropagationPolicy(policy))).To(Succeed())
		w.eventually(ctx, func(g Gomega) {
			g.Expect(w.contexts(ctx)).To(ConsistOf(HaveField("UID", Not(Equal(old.UID)))))
		})
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)

		held := w.context(ctx, "default", near)
		address := w.attach(ctx, cell, "nic", "default")
		w.known(ctx, held)
		Expect(hub().Delete(ctx, binding)).To(Succeed())
		w.waits(ctx, held, cell)
		Expect(hub().Delete(ctx, held, client.PropagationPolicy(policy))).To(Succeed())
		w.stays(ctx, held, cell)
		detach(ctx, cell, address)
		w.leavesNothing(ctx)
	},
		Entry("in the foreground", metav1.DeletePropagationForeground),
		Entry("that orphans", metav1.DeletePropagationOrphan),
	)

	DescribeTable("of a network leaves nothing of Karmada's", func(ctx SpecContext, policy metav1.DeletionPropagation) {
		w := newWorld(ctx)
		network := w.declareNetwork(ctx, "default")
		binding, held := w.present(ctx, "default", near)
		address := w.attach(ctx, cell, "nic", "default")
		w.known(ctx, held)
		Expect(upstream(w.project).Delete(ctx, network, client.PropagationPolicy(policy))).To(Succeed())
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkNotFound)
		w.waits(ctx, held, cell)
		detach(ctx, cell, address)
		w.leavesNothing(ctx)
	},
		Entry("in the foreground", metav1.DeletePropagationForeground),
		Entry("that orphans", metav1.DeletePropagationOrphan),
	)

	It("of a hundred bindings within 50 ms of their creation leaves nothing of Karmada's", func(ctx SpecContext) {
		newWorld(ctx).burst(ctx, 5*time.Millisecond)
	})

	It("of a hundred bindings while their networks are being delivered leaves nothing of Karmada's", func(ctx SpecContext) {
		newWorld(ctx).burst(ctx, 50*time.Millisecond)
	})
})

// burst creates and deletes bindings of ten networks at once, ten times: first without any
// time between the two, and each time with that much more.
func (w *world) burst(ctx context.Context, more time.Duration) {
	GinkgoHelper()
	const networks, bursts = 10, 10
	for number := range networks {
		w.declareNetwork(ctx, fmt.Sprintf("net-%d", number))
	}
	for burst := range bursts {
		inParallel(ctx, networks, func(ctx context.Context, number int) {
			network := fmt.Sprintf("net-%d", number)
			binding := w.newBinding(fmt.Sprintf("burst-%d-%d", burst, number), network, near)
			Expect(hub().Create(ctx, binding)).To(Succeed())
			paused(ctx, time.Duration(burst)*more)
			Expect(hub().Delete(ctx, binding)).To(Succeed())
		})
		w.eventually(ctx, func(g Gomega) { g.Expect(w.contexts(ctx)).To(BeEmpty()) })
	}
	w.leavesNothing(ctx)
}

var _ = Describe("What Karmada leaves behind", func() {
	It("is swept where it is a context's that is gone, and left alone otherwise", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		_, context := w.present(ctx, "default", near)
		live := w.workOf(ctx, context)

		left := w.leaveWork(ctx, live, "left", v1alpha.SchemeGroupVersion.String())
		foreign := w.leaveWork(ctx, live, "foreign", "example.com/v1")
		DeferCleanup(func(ctx SpecContext) { Expect(hub().Delete(ctx, foreign)).To(Succeed()) })
		placement := w.leavePlacement(ctx, "cut-off")
		w.eventually(ctx, func(g Gomega) {
			g.Expect(apierrors.IsNotFound(hub().Get(ctx, client.ObjectKeyFromObject(placement), placement))).To(BeTrue())
			g.Expect(apierrors.IsNotFound(hub().Get(ctx, client.ObjectKeyFromObject(left), left))).To(BeTrue())
		})
		Expect(hub().Get(ctx, client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
		Expect(hub().Get(ctx, client.ObjectKeyFromObject(live), live)).To(Succeed())
		Expect(w.copyIn(ctx, cellOf(near), "default", near).DeletionTimestamp).To(BeNil())
	})
})

// workOf is the Work that delivers a context.
func (w *world) workOf(ctx context.Context, context *v1alpha.NetworkContext) *workv1alpha1.Work {
	GinkgoHelper()
	work := &workv1alpha1.Work{}
	key := client.ObjectKey{
		Namespace: names.GenerateExecutionSpaceName(cellOf(string(context.Spec.Location.Name))),
		Name:      names.GenerateWorkName("NetworkContext", context.Name, context.Namespace),
	}
	Expect(hub().Get(ctx, key, work)).To(Succeed())
	return work
}

// leaveWork makes a Work like another, of a NetworkContext of another name and of a group's
// version that is not there: as Karmada leaves one behind. It is not carried out.
func (w *world) leaveWork(ctx context.Context, like *workv1alpha1.Work, name, version string) *workv1alpha1.Work {
	GinkgoHelper()
	var manifest map[string]any
	Expect(json.Unmarshal(like.Spec.Workload.Manifests[0].Raw, &manifest)).To(Succeed())
	manifest["apiVersion"] = version
	manifest["metadata"].(map[string]any)["name"] = name
	raw, err := json.Marshal(manifest)
	Expect(err).NotTo(HaveOccurred())
	suspended := true
	left := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: like.Namespace, Name: strings.Join([]string{w.namespace, name}, "-"),
			Annotations: map[string]string{
				workv1alpha2.ResourceBindingNamespaceAnnotationKey: w.namespace,
				workv1alpha2.ResourceBindingNameAnnotationKey:      names.GenerateBindingName("NetworkContext", name),
			},
		},
		Spec: workv1alpha1.WorkSpec{
			SuspendDispatching: &suspended,
			Workload:           workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}},
		},
	}
	Expect(hub().Create(ctx, left)).To(Succeed())
	return left
}

// leavePlacement makes a ResourceBinding as an orphaning deletion of its context leaves it.
func (w *world) leavePlacement(ctx context.Context, name string) *workv1alpha2.ResourceBinding {
	GinkgoHelper()
	left := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: names.GenerateBindingName("NetworkContext", name)},
		Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{
			APIVersion: v1alpha.SchemeGroupVersion.String(), Kind: "NetworkContext", Namespace: w.namespace, Name: name, UID: "gone",
		}},
	}
	Expect(hub().Create(ctx, left)).To(Succeed())
	return left
}
