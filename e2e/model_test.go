package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/e2e/controlplane"
)

// step is one thing that somebody does in the model.
type step struct {
	Does     string
	Consumer string
	Network  string
	Location string
}

func (s step) String() string {
	return fmt.Sprintf("%s (consumer %s, network %s, location %s)", s.Does, s.Consumer, s.Network, s.Location)
}

// The model is small, so that its objects meet.
var (
	modelConsumers = []string{"web", "lb"}
	modelNetworks  = []string{"red", "blue"}
	modelLocations = []string{near, far}
)

// modelSteps are what may happen. What is named twice happens twice as often.
var modelSteps = map[string]func(*model, SpecContext, step){
	"bind":           (*model).bind,
	"bind again":     (*model).bind,
	"unbind":         (*model).unbind,
	"declare":        (*model).declare,
	"delete network": (*model).deleteNetwork,
	"edit network":   (*model).editNetwork,
	"grant":          (*model).grant,
	"revoke":         (*model).revoke,
	"allocate":       (*model).allocate,
	"allocate again": (*model).allocate,
	"give back":      (*model).giveBack,
	"delete context": (*model).deleteContext,
	"restart hub":    (*model).restartHub,
	"restart agent":  (*model).restartAgent,
	"pause hub":      (*model).pauseHub,
	"pause agent":    (*model).pauseAgent,
	"cut cell off":   (*model).cutOff,
}

// stepsBetweenQuiet is how many things happen until all is left alone and looked at.
const stepsBetweenQuiet = 6

func anyStep() *rapid.Generator[step] {
	var names []string
	for name := range modelSteps {
		names = append(names, name)
	}
	slices.Sort(names)
	return rapid.Custom(func(t *rapid.T) step {
		return step{
			Does:     rapid.SampledFrom(names).Draw(t, "does"),
			Consumer: rapid.SampledFrom(modelConsumers).Draw(t, "consumer"),
			Network:  rapid.SampledFrom(modelNetworks).Draw(t, "network"),
			Location: rapid.SampledFrom(modelLocations).Draw(t, "location"),
		}
	})
}

var _ = Describe("Whatever happens in whatever order", func() {
	It("leaves, once all is quiet, what bindings and addresses ask for, and nothing else", func(ctx SpecContext) {
		seed := setting("MODEL_SEED", int(GinkgoRandomSeed()))
		count := setting("MODEL_STEPS", 240)
		steps := rapid.SliceOfN(anyStep(), count, count).Example(seed)
		m := &model{world: newWorld(ctx), paused: map[string]bool{}}
		DeferCleanup(m.resumeAll)
		for number, step := range steps {
			m.history = append(m.history, fmt.Sprintf("%3d %s", number, step))
			modelSteps[step.Does](m, ctx, step)
			if (number+1)%stepsBetweenQuiet == 0 || number+1 == len(steps) {
				m.quiet(ctx, seed)
			}
		}
		m.endAll(ctx, seed)
		_, _ = fmt.Fprintf(GinkgoWriter, "%d steps with seed %d: %d of %d claims got an address\n", len(steps), seed, m.out, m.made)
	})
})

// model does the steps, and holds what is there against what should be. It keeps no state
// of its own but for what it paused: what should be follows from what the planes have.
type model struct {
	*world
	paused  map[string]bool
	history []string
	made    int // claims
	out     int // addresses handed out
}

func (m *model) bind(ctx SpecContext, s step) {
	Expect(client.IgnoreAlreadyExists(hub().Create(ctx, m.binding(s)))).To(Succeed())
}

func (m *model) unbind(ctx SpecContext, s step) {
	Expect(client.IgnoreNotFound(hub().Delete(ctx, m.binding(s)))).To(Succeed())
}

func (m *model) binding(s step) *v1alpha.NetworkBinding {
	return m.newBinding(fmt.Sprintf("%s-%s-%s", s.Consumer, s.Network, s.Location), s.Network, s.Location)
}

func (m *model) network(s step) *v1alpha.Network {
	return &v1alpha.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.upstream, Name: s.Network},
		Spec:       v1alpha.NetworkSpec{IPFamilies: []v1alpha.IPFamily{v1alpha.IPv6}, MTU: 8000},
	}
}

func (m *model) declare(ctx SpecContext, s step) {
	Expect(client.IgnoreAlreadyExists(upstream(m.project).Create(ctx, m.network(s)))).To(Succeed())
}

func (m *model) deleteNetwork(ctx SpecContext, s step) {
	Expect(client.IgnoreNotFound(upstream(m.project).Delete(ctx, m.network(s)))).To(Succeed())
}

func (m *model) editNetwork(ctx SpecContext, s step) {
	network := m.network(s)
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"mtu":%d}}`, 1300+len(m.history)))
	Expect(client.IgnoreNotFound(upstream(m.project).Patch(ctx, network, patch))).To(Succeed())
}

func (m *model) grant(ctx SpecContext, s step) { m.world.grant(ctx, s.Location) }

func (m *model) revoke(ctx SpecContext, s step) {
	grant := &v1alpha.LocationBinding{ObjectMeta: metav1.ObjectMeta{Name: s.Location}}
	Expect(client.IgnoreNotFound(upstream(m.project).Delete(ctx, grant))).To(Succeed())
}

// allocate claims an interface, and hands out an address where the claim may be served.
// One that waits is not waited for.
func (m *model) allocate(ctx SpecContext, s step) {
	cell := cellOf(s.Location)
	if m.paused[plane.Cell(cell).Process()] {
		return
	}
	m.made++
	key := metav1.ObjectMeta{Namespace: m.namespace, Name: fmt.Sprintf("%s-%d", s.Network, m.made)}
	claim := &v1alpha.NetworkInterfaceClaim{ObjectMeta: key}
	claim.Spec.Network.Name = v1alpha.Name(s.Network)
	if inCell(cell).Create(ctx, claim) != nil {
		return // the namespace has not come yet
	}
	for range 20 {
		if available(ctx, cell, claim) == nil {
			m.attach(ctx, cell, key.Name, s.Network)
			m.out++
			break
		}
		paused(ctx, 50*time.Millisecond)
	}
	Expect(inCell(cell).Delete(ctx, claim)).To(Succeed())
}

// giveBack gives back one address of a network in a location, where one is out.
func (m *model) giveBack(ctx SpecContext, s step) {
	cell := cellOf(s.Location)
	if m.paused[plane.Cell(cell).Process()] {
		return
	}
	for _, address := range m.addresses(ctx, cell) {
		if string(address.Spec.Network.Name) == s.Network {
			detach(ctx, cell, &address)
			return
		}
	}
}

func (m *model) addresses(ctx context.Context, cell string) []v1alpha.NetworkInterface {
	GinkgoHelper()
	var out v1alpha.NetworkInterfaceList
	Expect(inCell(cell).List(ctx, &out, client.InNamespace(m.namespace))).To(Succeed())
	return out.Items
}

func (m *model) deleteContext(ctx SpecContext, s step) {
	for _, context := range m.contexts(ctx) {
		if string(context.Spec.Network.Name) == s.Network && string(context.Spec.Location.Name) == s.Location {
			Expect(client.IgnoreNotFound(hub().Delete(ctx, &context))).To(Succeed())
		}
	}
}

func (m *model) restartHub(ctx SpecContext, _ step) {
	delete(m.paused, controlplane.HubProcess)
	restart(ctx, controlplane.HubProcess)
}

func (m *model) restartAgent(ctx SpecContext, s step) {
	cell := cellOf(s.Location)
	if m.paused[plane.Cell(cell).Process()] {
		return // it would not come up
	}
	delete(m.paused, controlplane.CellAgentProcess(cell))
	restart(ctx, controlplane.CellAgentProcess(cell))
}

func (m *model) pauseHub(SpecContext, step) { m.pause(controlplane.HubProcess) }

func (m *model) pauseAgent(_ SpecContext, s step) {
	m.pause(controlplane.CellAgentProcess(cellOf(s.Location)))
}

// cutOff keeps a cell's API server from answering, until all is left alone.
func (m *model) cutOff(_ SpecContext, s step) { m.pause(plane.Cell(cellOf(s.Location)).Process()) }

func (m *model) pause(process string) {
	GinkgoHelper()
	m.paused[process] = true
	pause(process)
}

func (m *model) resumeAll(SpecContext) {
	for process := range m.paused {
		resume(process)
	}
	clear(m.paused)
}

// quiet lets everything run, and returns once all is as it should be.
func (m *model) quiet(ctx SpecContext, seed int) {
	GinkgoHelper()
	m.resumeAll(ctx)
	Eventually(func(g Gomega) {
		g.Expect(m.wrong(ctx)).To(BeEmpty())
	}, 2*patience, 200*time.Millisecond).WithContext(ctx).Should(Succeed(), func() string { return m.told(seed) })
}

func (m *model) told(seed int) string {
	text := fmt.Sprintf("again with MODEL_SEED=%d MODEL_STEPS=%d; what happened:\n", seed, len(m.history))
	for _, line := range m.history {
		text += line + "\n"
	}
	return text
}

// endAll takes away all that asks for anything.
func (m *model) endAll(ctx SpecContext, seed int) {
	GinkgoHelper()
	Expect(hub().DeleteAllOf(ctx, &v1alpha.NetworkBinding{}, client.InNamespace(m.namespace))).To(Succeed())
	Expect(upstream(m.project).DeleteAllOf(ctx, &v1alpha.Network{}, client.InNamespace(m.upstream))).To(Succeed())
	for _, location := range modelLocations {
		Expect(inCell(cellOf(location)).DeleteAllOf(ctx, &v1alpha.NetworkInterface{}, client.InNamespace(m.namespace))).To(Succeed())
	}
	Eventually(m.remains).WithArguments(ctx).WithTimeout(2*patience).WithPolling(200*time.Millisecond).Should(BeEmpty(), func() string { return m.told(seed) })
	m.eventually(ctx, func(g Gomega) {
		var networks v1alpha.NetworkList
		g.Expect(upstream(m.project).List(ctx, &networks, client.InNamespace(m.upstream))).To(Succeed())
		g.Expect(networks.Items).To(BeEmpty(), "a network without a presence has no finalizer of ours")
	})
}

// wrong is what is not as it should be, in sentences; empty where nothing is.
func (m *model) wrong(ctx context.Context) []string {
	var wrong []string
	granted := map[string]bool{}
	var grants v1alpha.LocationBindingList
	Expect(upstream(m.project).List(ctx, &grants)).To(Succeed())
	for _, grant := range grants.Items {
		granted[string(grant.Spec.LocationRef.Name)] = true
	}
	contexts := m.contexts(ctx)
	for _, network := range modelNetworks {
		for _, location := range modelLocations {
			p := &modelPair{network: network, location: location, granted: granted[location]}
			p.read(ctx, m, contexts)
			wrong = append(wrong, p.wrong()...)
		}
	}
	return wrong
}

// modelPair is all that is there of one presence.
type modelPair struct {
	network, location string
	granted           bool
	declared          *v1alpha.Network // nil where there is none
	bindings          []v1alpha.NetworkBinding
	contexts          []v1alpha.NetworkContext
	copies            []v1alpha.NetworkContext
	addresses         int
}

func (p *modelPair) read(ctx context.Context, m *model, contexts []v1alpha.NetworkContext) {
	network := &v1alpha.Network{}
	err := upstream(m.project).Get(ctx, client.ObjectKey{Namespace: m.upstream, Name: p.network}, network)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	if err == nil {
		p.declared = network
	}
	var bindings v1alpha.NetworkBindingList
	Expect(hub().List(ctx, &bindings, client.InNamespace(m.namespace))).To(Succeed())
	for _, binding := range bindings.Items {
		if string(binding.Spec.Network.Name) == p.network && string(binding.Spec.Location.Name) == p.location {
			p.bindings = append(p.bindings, binding)
		}
	}
	mine := func(context v1alpha.NetworkContext) bool {
		return string(context.Spec.Network.Name) != p.network || string(context.Spec.Location.Name) != p.location
	}
	cell := cellOf(p.location)
	p.contexts = slices.DeleteFunc(slices.Clone(contexts), mine)
	p.copies = slices.DeleteFunc(m.copies(ctx, cell), mine)
	for _, address := range m.addresses(ctx, cell) {
		if string(address.Spec.Network.Name) == p.network {
			p.addresses++
		}
	}
}

// live tells whether the network exists and stays.
func (p *modelPair) live() bool { return p.declared != nil && p.declared.DeletionTimestamp.IsZero() }

func (p *modelPair) wrong() []string {
	var wrong []string
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("%s in %s: ", p.network, p.location)+fmt.Sprintf(format, args...))
	}
	asked := p.live() && len(p.bindings) > 0
	held := p.addresses > 0
	if len(p.contexts) > 1 || len(p.copies) > 1 {
		say("%d contexts and %d copies", len(p.contexts), len(p.copies))
		return wrong
	}
	if asked && p.granted && len(p.contexts) == 0 {
		say("it is asked for and has no context")
	}
	if !asked && !held && len(p.contexts) > 0 {
		say("nobody asks for it and no address is out, and it has a context")
	}
	if len(p.copies) > 0 && len(p.contexts) == 0 && !held {
		say("a copy is left")
	}
	if held && (len(p.copies) == 0 || !controllerutil.ContainsFinalizer(&p.copies[0], v1alpha.InUseFinalizer)) {
		say("%d addresses are out without a copy that is held", p.addresses)
	}
	if asked && p.granted && len(p.contexts) > 0 {
		p.delivered(say)
	}
	p.answered(say)
	return wrong
}

// delivered says what the context that is asked for lacks.
func (p *modelPair) delivered(say func(string, ...any)) {
	context := &p.contexts[0]
	uid := context.Labels[v1alpha.NetworkUIDLabel]
	switch {
	case !context.DeletionTimestamp.IsZero() && p.addresses > 0:
		// It was deleted by hand and waits for the addresses.
	case !context.DeletionTimestamp.IsZero():
		say("its context is being deleted")
	case uid != string(p.declared.UID) || context.Spec.MTU != p.declared.Spec.MTU:
		say("its context is not that of the network as it is")
	case len(p.copies) == 0:
		say("its cell has no copy")
	case p.copies[0].Labels[v1alpha.NetworkUIDLabel] != uid && p.addresses > 0,
		!p.copies[0].DeletionTimestamp.IsZero() && p.addresses > 0:
		// The predecessor's addresses are still out.
	case p.copies[0].Labels[v1alpha.NetworkUIDLabel] != uid || p.copies[0].Spec.MTU != context.Spec.MTU || !p.copies[0].DeletionTimestamp.IsZero():
		say("its copy is not that of the network as it is")
	}
}

// answered says which bindings read something else than what is so.
func (p *modelPair) answered(say func(string, ...any)) {
	want := v1alpha.ReasonNetworkContextReady
	switch {
	case !p.granted:
		want = v1alpha.ReasonLocationNotAvailable
	case !p.live():
		want = v1alpha.ReasonNetworkNotFound
	case len(p.contexts) == 0 || !p.contexts[0].DeletionTimestamp.IsZero(),
		len(p.copies) == 0 || !p.copies[0].DeletionTimestamp.IsZero() || p.copies[0].Labels[v1alpha.NetworkUIDLabel] != string(p.declared.UID):
		want = v1alpha.ReasonNetworkContextNotReady
	}
	for _, binding := range p.bindings {
		ready := meta.FindStatusCondition(binding.Status.Conditions, v1alpha.NetworkBindingReady)
		if ready == nil || ready.Reason != want {
			say("binding %s reads %+v, not %s", binding.Name, ready, want)
		}
	}
}
