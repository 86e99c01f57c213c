package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/e2e/controlplane"
	"go.datum.net/network-presence/inspect"
)

// pluginPath builds the plugin once, and returns where it is.
var pluginPath = sync.OnceValues(func() (string, error) {
	path := filepath.Join(state, "kubectl-presence")
	said, err := exec.Command("go", "build", "-o", path, "go.datum.net/network-presence/cmd/kubectl-presence").CombinedOutput()
	if err != nil {
		return "", errors.Join(err, errors.New(string(said)))
	}
	return path, nil
})

// plugin is a call of kubectl presence in the world's namespace that has not begun.
func (w *world) plugin(ctx context.Context, args ...string) *exec.Cmd {
	GinkgoHelper()
	path, err := pluginPath()
	Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(ctx, path, slices.Insert(args, 1, "--namespace="+w.namespace)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+plane.Hub().Kubeconfig)
	return command
}

// run runs kubectl presence, and returns what it wrote and its exit code.
func (w *world) run(ctx context.Context, args ...string) (output, problem string, code int) {
	GinkgoHelper()
	var out, failed bytes.Buffer
	command := w.plugin(ctx, args...)
	command.Stdout, command.Stderr = &out, &failed
	err := command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out.String(), failed.String(), exit.ExitCode()
	}
	Expect(err).NotTo(HaveOccurred())
	return out.String(), failed.String(), 0
}

// explained is the one explanation that kubectl presence gives.
func (w *world) explained(ctx context.Context, g Gomega, args ...string) (explanation inspect.Explanation, code int) {
	GinkgoHelper()
	output, problem, code := w.run(ctx, append([]string{"explain", "-o", "json"}, args...)...)
	var all struct {
		Explanations []inspect.Explanation `json:"explanations"`
	}
	g.Expect(json.Unmarshal([]byte(output), &all)).To(Succeed(), "%s%s", output, problem)
	g.Expect(all.Explanations).To(HaveLen(1), output)
	return all.Explanations[0], code
}

// marks waits until the explanation of a binding marks a step, in a cell where one is named,
// with a cause that has this part.
func (w *world) marks(ctx context.Context, binding *v1alpha.NetworkBinding, step inspect.Step, cell, cause string) {
	GinkgoHelper()
	w.eventually(ctx, func(g Gomega) {
		explanation, code := w.explained(ctx, g, binding.Name)
		g.Expect(code).To(Equal(2))
		first := explanation.First()
		g.Expect(first).NotTo(BeNil(), "%+v", explanation)
		g.Expect(first.Step).To(Equal(step), "%+v", explanation)
		g.Expect(first.Cell).To(Equal(cell))
		g.Expect(explanation.Cause).To(ContainSubstring(cause))
		g.Expect(explanation.Advice).NotTo(BeEmpty())
	}, 200*time.Millisecond)
}

// whole waits until nothing is marked, and every link that there is, is ok.
func (w *world) whole(ctx context.Context, binding *v1alpha.NetworkBinding) {
	GinkgoHelper()
	w.eventually(ctx, func(g Gomega) {
		explanation, code := w.explained(ctx, g, binding.Name)
		g.Expect(code).To(BeZero(), "%+v", explanation)
		g.Expect(explanation.First()).To(BeNil())
		for _, link := range explanation.Links {
			g.Expect(link.State).To(Equal(inspect.LinkOK), "%+v", link)
		}
	}, 200*time.Millisecond)
}

// Each link of the chain is broken in turn, by what breaks it in earnest.
var _ = Describe("kubectl presence explain", func() {
	var w *world

	BeforeEach(func(ctx SpecContext) { w = newWorld(ctx) })

	It("marks the project", func(ctx SpecContext) {
		w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "web", "default", near)
		w.whole(ctx, binding)

		Expect(plane.DisconnectProject(ctx, w.project)).To(Succeed())
		w.marks(ctx, binding, inspect.StepProject, "", "is not connected")

		Expect(plane.ConnectProject(ctx, w.project)).To(Succeed())
		w.whole(ctx, binding)

		By("taking the namespace's labels")
		w.label(ctx, v1alpha.UpstreamNamespaceLabel, nil)
		w.marks(ctx, binding, inspect.StepProject, "", "names no project")
		w.label(ctx, v1alpha.UpstreamNamespaceLabel, w.upstream)
		w.whole(ctx, binding)
	})

	It("marks the grant", func(ctx SpecContext) {
		w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "web", "default", near)
		w.whole(ctx, binding)
		w.revoke(ctx, near)
		w.marks(ctx, binding, inspect.StepGrant, "", "it has no LocationBinding for it")
		w.grant(ctx, near)
		w.whole(ctx, binding)
	})

	It("marks the context where the network is missing, and where nobody looks", func(ctx SpecContext) {
		binding := w.bind(ctx, "web", "default", near)
		w.marks(ctx, binding, inspect.StepContext, "", `has no network "default"`)

		pause(controlplane.HubProcess)
		DeferCleanup(func() { resume(controlplane.HubProcess) })
		unseen := w.bind(ctx, "other", "other", near)
		w.marks(ctx, unseen, inspect.StepContext, "", `no controller has looked at binding "other" yet`)
	})

	It("marks the ResourceBinding where no cell serves, and where no scheduler runs", func(ctx SpecContext) {
		w.declareNetwork(ctx, "default")
		w.grant(ctx, "us-west-9")
		nowhere := w.bind(ctx, "nowhere", "default", "us-west-9")
		w.marks(ctx, nowhere, inspect.StepPlacement, "", `no cell serves location "us-west-9"`)

		stop(ctx, controlplane.SchedulerProcess)
		DeferCleanup(func(ctx SpecContext) { restart(ctx, controlplane.SchedulerProcess) })
		binding := w.bind(ctx, "web", "default", near)
		w.marks(ctx, binding, inspect.StepPlacement, "", `scheduler "network-presence-scheduler" has not placed`)
	})

	It("marks the Work that a cell refuses", func(ctx SpecContext) {
		network := w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "web", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		lift := refuseUpdates(ctx, cellOf(near), w.copyIn(ctx, cellOf(near), "default", near))
		w.setMTU(ctx, network, 1400)
		w.marks(ctx, binding, inspect.StepWork, cellOf(near), "frozen for the spec")
		lift(ctx)
		w.whole(ctx, binding)
	})

	It("marks a copy that is being deleted, which nothing else shows", func(ctx SpecContext) {
		w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "web", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		doomed := w.copyIn(ctx, cellOf(near), "default", near)
		hold(ctx, cellOf(near), doomed)
		Expect(inCell(cellOf(near)).Delete(ctx, doomed)).To(Succeed())
		w.marks(ctx, binding, inspect.StepCopy, cellOf(near), "is being deleted")
		letGo(ctx, cellOf(near), doomed)
		w.whole(ctx, binding)
	})

	It("marks a copy in a cell that cannot be reached", func(ctx SpecContext) {
		w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "web", "default", far)
		w.whole(ctx, binding)
		stop(ctx, plane.Cell(cellOf(far)).Process())
		DeferCleanup(func(ctx SpecContext) {
			restart(ctx, plane.Cell(cellOf(far)).Process())
			w.expectReason(ctx, binding, v1alpha.ReasonNetworkContextReady)
		})
		w.marks(ctx, binding, inspect.StepCopy, cellOf(far), "cell "+cellOf(far)+" unreachable since")
	})

	It("says which cells hold addresses of a network that nobody asks for", func(ctx SpecContext) {
		w.declareNetwork(ctx, "default")
		binding, held := w.present(ctx, "default", near)
		address := w.attach(ctx, cellOf(near), "address", "default")
		w.known(ctx, held)
		Expect(hub().Delete(ctx, binding)).To(Succeed())
		w.waits(ctx, held, cellOf(near))

		explanation, code := w.explained(ctx, Default, "context/"+held.Name)
		Expect(code).To(Equal(2))
		Expect(explanation.State).To(BeEquivalentTo("held"))
		Expect(explanation.First()).To(BeNil())
		Expect(explanation.Cause).To(ContainSubstring("addresses are still held in " + cellOf(near)))
		holders := explanation.Links[len(explanation.Links)-1]
		Expect(holders).To(SatisfyAll(HaveField("Step", inspect.StepHolders), HaveField("Note", "1 NetworkInterface")))
		detach(ctx, cellOf(near), address)
	})

	It("calls unseen what its user may not see, and not broken", func(ctx SpecContext) {
		w.declareNetwork(ctx, "default")
		binding := w.bind(ctx, "web", "default", near)
		w.whole(ctx, binding)
		viewer := "viewer-of-" + w.namespace
		w.viewer(ctx, viewer)

		explanation, code := w.explained(ctx, Default, binding.Name, "--as="+viewer)
		Expect(code).To(BeZero())
		states := map[inspect.Step]inspect.LinkState{}
		for _, link := range explanation.Links {
			states[link.Step] = link.State
		}
		Expect(states).To(Equal(map[inspect.Step]inspect.LinkState{
			inspect.StepProject: inspect.LinkUnseen, inspect.StepGrant: inspect.LinkUnseen, inspect.StepContext: inspect.LinkOK,
			inspect.StepPlacement: inspect.LinkUnseen, inspect.StepWork: inspect.LinkUnseen, inspect.StepCopy: inspect.LinkOK, inspect.StepHolders: inspect.LinkOK,
		}))

		By("a user who may see nothing at all")
		_, problem, code := w.run(ctx, "explain", binding.Name, "--as=nobody")
		Expect(code).To(Equal(1))
		Expect(problem).To(HavePrefix("error: list NetworkBindings: "))
	})
})

var _ = Describe("kubectl presence", func() {
	It("waits for a binding, telling what for, and explains what it waited for in vain", func(ctx SpecContext) {
		w := newWorld(ctx)
		binding := w.bind(ctx, "web", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkNotFound)
		output, problem, code := w.run(ctx, "wait", "web", "--timeout=1s")
		Expect(code).To(Equal(2))
		Expect(problem).To(ContainSubstring("networkbinding/web is not ready after 1s"))
		Expect(output).To(SatisfyAll(ContainSubstring("networkbinding/web NetworkNotFound: "), ContainSubstring("Broken at: context")))

		var said bytes.Buffer
		waiting := w.plugin(ctx, "wait", "web", "--for=ready", "--timeout=1m")
		waiting.Stdout = &said
		Expect(waiting.Start()).To(Succeed())
		w.declareNetwork(ctx, "default")
		Expect(waiting.Wait()).To(Succeed(), said.String())
		Expect(said.String()).To(ContainSubstring("networkbinding/web ready: network \"default\" is present"))

		Expect(hub().Delete(ctx, binding)).To(Succeed())
		output, _, code = w.run(ctx, "wait", "web", "--for=delete")
		Expect(code).To(BeZero())
		Expect(output).To(Equal("networkbinding/web deleted\n"))
	})

	It("shows the matrix and the tree of networks, and completes their names", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		w.expectReason(ctx, w.bind(ctx, "web", "default", near), v1alpha.ReasonNetworkContextReady)
		w.expectReason(ctx, w.bind(ctx, "closed", "default", "atlantis-1"), v1alpha.ReasonLocationNotAvailable)
		w.expectReason(ctx, w.bind(ctx, "absent", "absent", near), v1alpha.ReasonNetworkNotFound)
		w.eventually(ctx, func(g Gomega) {
			output, _, _ := w.run(ctx, "get")
			var lines [][]string
			for line := range strings.Lines(output) {
				lines = append(lines, strings.Fields(line))
			}
			g.Expect(lines).To(Equal([][]string{{"NETWORK", "atlantis-1", near}, {"absent", "-", "refused"}, {"default", "refused", "ready"}}))
		})
		output, _, _ := w.run(ctx, "tree", "default")
		Expect(output).To(SatisfyAll(ContainSubstring("binding web: Ready=True"), ContainSubstring("copy in cell "+cellOf(near)+": generation 1, Healthy")))
		output, _, _ = w.run(ctx, "__complete", "explain", "")
		Expect(output).To(SatisfyAll(ContainSubstring("web\n"), ContainSubstring("network/default\n")))
	})

	It("shows again what has changed, when it is told to watch", func(ctx SpecContext) {
		w := newWorld(ctx)
		binding := w.bind(ctx, "web", "default", near)
		w.expectReason(ctx, binding, v1alpha.ReasonNetworkNotFound)
		watching, cancel := context.WithCancel(ctx)
		defer cancel()
		var said lockedBuffer
		command := w.plugin(watching, "get", "--watch")
		command.Stdout = &said
		Expect(command.Start()).To(Succeed())
		defer func() { cancel(); _ = command.Wait() }() // it is killed, which is no success
		Eventually(said.String, patience, "50ms").Should(ContainSubstring("refused"))
		w.declareNetwork(ctx, "default")
		Eventually(said.String, patience, "50ms").Should(MatchRegexp(`refused\n---\n(.*\n)*default +ready\n$`))
	})

	It("checks an installation, a line for each thing", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.declareNetwork(ctx, "default")
		w.expectReason(ctx, w.bind(ctx, "web", "default", near), v1alpha.ReasonNetworkContextReady)
		output, problem, code := w.run(ctx, "check")
		Expect(code).To(Equal(2), "%s%s", output, problem)
		for line := range strings.Lines(output) {
			if strings.Contains(line, "cell "+spareCell+" ") {
				Expect(line).To(SatisfyAll(HavePrefix("FAULT"), ContainSubstring("it serves no location")))
				continue
			}
			Expect(line).To(HavePrefix("ok "), output)
		}
		if interpreterForm == controlplane.InterpreterLua {
			return
		}
		By("a webhook that does not answer")
		pause(controlplane.WebhookProcess)
		DeferCleanup(func() { resume(controlplane.WebhookProcess) })
		output, _, code = w.run(ctx, "check")
		Expect(code).To(Equal(2))
		Expect(output).To(MatchRegexp(`FAULT +interpreter +the webhook does not answer`))
	})
})

// lockedBuffer is written by a process while it is read.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write adds to it.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

// String is all that was written.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// label sets a label of the hub namespace; nil takes it away.
func (w *world) label(ctx context.Context, label string, value any) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{label: value}}})
	Expect(err).NotTo(HaveOccurred())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	Expect(hub().Patch(ctx, namespace, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

// viewer lets a user see what is ours in the world's namespace, and nothing else.
func (w *world) viewer(ctx context.Context, user string) {
	GinkgoHelper()
	Expect(hub().Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "network-presence-view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
}
