package cell

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	apply "go.datum.net/network-presence/api/v1alpha/applyconfiguration/api/v1alpha"
	agent "go.datum.net/network-presence/cell"
)

// figures are the results of the benchmarks, each as its name and value. They are printed
// when all have run.
var figures []string

func figure(name string, value float64) {
	figures = append(figures, fmt.Sprintf("%s %.3g", name, value))
}

// asInstalled runs the agent as it is installed, but for the lease.
func asInstalled(s *agentSettings) {
	s.Options.AllocationGrace = agent.DefaultOptions().AllocationGrace
}

// BenchmarkClaims lets claims wait for the contexts of their networks, twenty for each, and
// takes the time from the first context's creation until all of them may be served.
func BenchmarkClaims(b *testing.B) {
	each := map[int]float64{}
	for _, claims := range []int{1000, 4000} {
		w := newWorld(b)
		floor := w.timeWrites(claims)
		a := startAgent(b, asInstalled)
		worked := a.metric(b, "process_cpu_seconds_total")
		each[claims] = w.timeClaims(claims, claims/20).Seconds() * 1000 / float64(claims)
		worked = a.metric(b, "process_cpu_seconds_total") - worked
		figure(fmt.Sprintf("claim_ms_each_%d", claims), each[claims])
		figure(fmt.Sprintf("claim_agent_cpu_ms_each_%d", claims), worked*1000/float64(claims))
		figure(fmt.Sprintf("claim_floor_ms_each_%d", claims), floor.Seconds()*1000/float64(claims))
		if claims == 1000 {
			figure("claim_ms_each", each[claims])
			figure("agent_memory_mib", a.peakMemory(b))
		}
		a.end(b, kill)
	}
	figure("claim_time_ratio_4000_to_1000", each[4000]/each[1000])
}

// timeWrites is what the API server takes to write one condition on each of so many claims,
// eight at a time as by the agent's workers, and nothing else. It leaves none of them.
func (w *world) timeWrites(claims int) time.Duration {
	w.Helper()
	made := make([]*v1alpha.NetworkInterfaceClaim, claims)
	inParallel(claims, func(i int) { made[i] = w.claim(numbered("floor", i), network) })
	began := time.Now()
	inParallelBy(agent.DefaultOptions().Workers, claims, func(i int) {
		w.Expect(cell.Status().Apply(w.ctx, apply.NetworkInterfaceClaim(made[i].Name, made[i].Namespace).
			WithStatus(apply.NetworkInterfaceClaimStatus().WithConditions(metaapply.Condition().
				WithType("Floor").WithStatus(metav1.ConditionTrue).WithReason("Floor").WithMessage("").
				WithLastTransitionTime(metav1.Now()))), client.FieldOwner("floor"))).To(Succeed())
	})
	took := time.Since(began)
	w.Expect(cell.DeleteAllOf(w.ctx, &v1alpha.NetworkInterfaceClaim{}, client.InNamespace(w.namespace))).To(Succeed())
	return took
}

func (w *world) timeClaims(claims, networks int) time.Duration {
	w.Helper()
	inParallel(claims, func(i int) {
		w.claim(numbered("claim", i), numbered("net", i%networks))
	})
	w.Eventually(func() int { return w.answered(v1alpha.ReasonNetworkNotAvailableInLocation) }, 5*time.Minute, time.Second).Should(Equal(claims))

	served := w.whenServed(claims)
	began := time.Now()
	inParallel(networks, func(i int) { w.deliver(numbered("net", i)) })
	select {
	case <-served:
	case <-time.After(5 * time.Minute):
		w.Fatalf("after five minutes %d of %d claims may be served", w.answered(v1alpha.ReasonNetworkAvailable), claims)
	}
	return time.Since(began)
}

// whenServed returns a channel that is closed once so many claims may be served.
func (w *world) whenServed(claims int) <-chan struct{} {
	w.Helper()
	watched, err := cache.New(adminAccess, cache.Options{
		Scheme:            cell.Scheme(),
		DefaultNamespaces: map[string]cache.Config{w.namespace: {}},
	})
	w.Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(w.ctx)
	w.Cleanup(stop)
	go func() { _ = watched.Start(ctx) }() // it ends with its context, without an error
	informer, err := watched.GetInformer(ctx, &v1alpha.NetworkInterfaceClaim{})
	w.Expect(err).NotTo(HaveOccurred())

	served := make(chan struct{})
	seen := map[string]bool{}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, object any) {
		claim := object.(*v1alpha.NetworkInterfaceClaim)
		if seen[claim.Name] || !meta.IsStatusConditionTrue(claim.Status.Conditions, v1alpha.NetworkInterfaceClaimNetworkAvailable) {
			return
		}
		if seen[claim.Name] = true; len(seen) == claims {
			close(served)
		}
	}})
	w.Expect(err).NotTo(HaveOccurred())
	return served
}

// answered counts the claims that read a reason.
func (w *world) answered(reason string) int {
	w.Helper()
	var claims v1alpha.NetworkInterfaceClaimList
	w.Expect(cell.List(w.ctx, &claims, client.InNamespace(w.namespace))).To(Succeed())
	count := 0
	for _, claim := range claims.Items {
		condition := meta.FindStatusCondition(claim.Status.Conditions, v1alpha.NetworkInterfaceClaimNetworkAvailable)
		if condition != nil && condition.Reason == reason {
			count++
		}
	}
	return count
}

// BenchmarkConvergence edits the MTU of a network with ten thousand interfaces.
func BenchmarkConvergence(b *testing.B) {
	const interfaces = 10000
	w := newWorld(b)
	a := startAgent(b, asInstalled)
	context := w.deliver(network)
	inParallel(interfaces, func(i int) { w.attach(numbered("nic", i), network) })
	w.Eventually(func() int64 { return w.converged(context) }, 5*time.Minute, time.Second).Should(BeEquivalentTo(interfaces))

	before := interfaceWrites(b)
	began := time.Now()
	w.edit(context, func(spec *v1alpha.NetworkContextSpec) { spec.MTU = 1300 })
	w.Eventually(func(g Gomega) {
		g.Expect(w.read(context)).To(Succeed())
		g.Expect(context.Status.ObservedGeneration).To(Equal(context.Generation))
		g.Expect(context.Status.Agent.ConvergedInterfaces).To(BeEquivalentTo(interfaces))
	}, 10*time.Minute, 100*time.Millisecond).Should(Succeed())
	took := time.Since(began)
	w.idle(a, time.Second)

	figure("mtu_writes_per_second", interfaces/took.Seconds())
	figure("mtu_writes_per_interface", (interfaceWrites(b)-before)/interfaces)
	figure("agent_memory_mib_10000_interfaces", a.peakMemory(b))
}

func (w *world) converged(context *v1alpha.NetworkContext) int64 {
	w.Helper()
	w.Expect(w.read(context)).To(Succeed())
	if context.Status.Agent == nil {
		return 0
	}
	return context.Status.Agent.ConvergedInterfaces
}

// inParallel calls work for each number below count, as fast as a small server takes it.
func inParallel(count int, work func(number int)) { inParallelBy(16, count, work) }

func inParallelBy(hands, count int, work func(number int)) {
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range hands {
		workers.Go(func() {
			for number := range numbers {
				work(number)
			}
		})
	}
	for number := range count {
		numbers <- number
	}
	close(numbers)
	workers.Wait()
}

// interfaceWrites is how many patches of interfaces the API server has answered.
func interfaceWrites(t testing.TB) float64 {
	t.Helper()
	raw, err := kubernetes.NewForConfig(adminAccess)
	if err != nil {
		t.Fatal(err)
	}
	text, err := raw.RESTClient().Get().AbsPath("/metrics").DoRaw(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	writes := 0.0
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		patch := strings.Contains(line, `verb="PATCH"`) || strings.Contains(line, `verb="APPLY"`)
		if !patch || !strings.HasPrefix(line, "apiserver_request_total{") || !strings.Contains(line, `resource="networkinterfaces"`) {
			continue
		}
		count, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
		if err != nil {
			t.Fatalf("metric %s: %v", line, err)
		}
		writes += count
	}
	return writes
}

// peakMemory is the most memory that the agent's process had resident, in MiB.
func (a *runningAgent) peakMemory(t testing.TB) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); fields[0] == "VmHWM:" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib / 1024
		}
	}
	t.Fatal("the agent's process does not tell its peak memory")
	return 0
}
