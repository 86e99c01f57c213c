package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/e2e/controlplane"
)

const (
	projectCount = 10
	// Each network is bound twice in each of its locations.
	locationsEach, consumersEach = 5, 2
	// scaleTimeout bounds each wait.
	scaleTimeout = 10 * time.Minute
)

// scale runs the presence controller alone, without Karmada behind it, against real API
// servers: a hub and ten projects. For each size all bindings are there at once, and the
// time is taken until each is answered with its context.
func scale(ctx context.Context) error {
	options := controlplane.Options{Bare: true}
	for i := range projectCount {
		options.Projects = append(options.Projects, fmt.Sprintf("project-%d", i))
	}
	return withControlPlane(ctx, options, func(plane *controlplane.ControlPlane) error {
		s := &scaleRun{plane: plane, options: options}
		if err := s.prepare(ctx); err != nil {
			return err
		}
		each := map[int]time.Duration{}
		for _, size := range []int{200, 2000, 10000} {
			took, err := s.measure(ctx, size)
			if err != nil {
				return fmt.Errorf("with %d bindings: %w", size, err)
			}
			each[size] = took / time.Duration(size)
			figure(fmt.Sprintf("scale_ms_each_%d", size), fmt.Sprintf("%.2f", float64(each[size].Microseconds())/1000))
		}
		memory, err := peakMemory(plane.PID(controlplane.HubProcess))
		if err != nil {
			return err
		}
		if err := s.edit(ctx); err != nil {
			return err
		}
		figure("scale_time_ratio_10000_to_200", fmt.Sprintf("%.2f", float64(each[10000])/float64(each[200])))
		figure("scale_memory_mib_10000", memory)
		return nil
	})
}

type scaleRun struct {
	plane   *controlplane.ControlPlane
	options controlplane.Options

	answered atomic.Int64 // bindings that have a context
	contexts atomic.Int64
	mtu      atomic.Int32 // of the context that was written last
}

func (s *scaleRun) prepare(ctx context.Context) error {
	for _, project := range s.options.Projects {
		if err := s.plane.CreateHubNamespace(ctx, "ns-"+project, project, "default"); err != nil {
			return err
		}
		for location := range locationsEach {
			name := fmt.Sprintf("location-%d", location)
			grant := &v1alpha.LocationBinding{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       v1alpha.LocationBindingSpec{LocationRef: v1alpha.LocationReference{Name: v1alpha.Name(name)}},
			}
			if err := s.plane.Project(project).Client.Create(ctx, grant); err != nil {
				return fmt.Errorf("grant %s to %s: %w", name, project, err)
			}
		}
	}
	if err := s.plane.StartHub(ctx, controlplane.HubProcess); err != nil {
		return err
	}
	return s.watch(ctx)
}

// watch counts what the hub has, without asking it.
func (s *scaleRun) watch(ctx context.Context) error {
	hub, err := cache.New(s.plane.Hub().Config, cache.Options{Scheme: controlplane.Scheme(), DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return fmt.Errorf("watch the hub: %w", err)
	}
	bindings, err := hub.GetInformer(ctx, &v1alpha.NetworkBinding{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch bindings: %w", err)
	}
	has := func(object any) int64 {
		binding, ok := object.(*v1alpha.NetworkBinding)
		if !ok || binding.Status.NetworkContextRef == nil {
			return 0
		}
		return 1
	}
	if _, err := bindings.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { s.answered.Add(has(object)) },
		UpdateFunc: func(before, after any) { s.answered.Add(has(after) - has(before)) },
		DeleteFunc: func(object any) { s.answered.Add(-has(object)) },
	}); err != nil {
		return fmt.Errorf("watch bindings: %w", err)
	}
	contexts, err := hub.GetInformer(ctx, &v1alpha.NetworkContext{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch contexts: %w", err)
	}
	if _, err := contexts.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { s.contexts.Add(1) },
		UpdateFunc: func(_, after any) { s.mtu.Store(after.(*v1alpha.NetworkContext).Spec.MTU) },
		DeleteFunc: func(any) { s.contexts.Add(-1) },
	}); err != nil {
		return fmt.Errorf("watch contexts: %w", err)
	}
	go func() { _ = hub.Start(ctx) }()
	if !hub.WaitForCacheSync(ctx) {
		return fmt.Errorf("watch the hub: %w", ctx.Err())
	}
	return nil
}

// measure has so many bindings answered, and takes them away again.
func (s *scaleRun) measure(ctx context.Context, size int) (time.Duration, error) {
	networks := size / projectCount / locationsEach / consumersEach
	if err := s.eachProject(ctx, func(ctx context.Context, project string) error { return s.declare(ctx, project, networks) }); err != nil {
		return 0, err
	}
	if err := s.plane.Pause(controlplane.HubProcess); err != nil {
		return 0, err
	}
	if err := s.eachProject(ctx, func(ctx context.Context, project string) error { return s.bind(ctx, project, networks) }); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := s.plane.Resume(controlplane.HubProcess); err != nil {
		return 0, err
	}
	if err := s.await(ctx, "bindings with a context", &s.answered, int64(size)); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, s.clear(ctx)
}

func (s *scaleRun) eachProject(ctx context.Context, do func(context.Context, string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, project := range s.options.Projects {
		group.Go(func() error { return do(ctx, project) })
	}
	return group.Wait()
}

func (s *scaleRun) declare(ctx context.Context, project string, networks int) error {
	for i := range networks {
		network := &v1alpha.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("network-%d", i)}}
		if err := client.IgnoreAlreadyExists(s.plane.Project(project).Client.Create(ctx, network)); err != nil {
			return fmt.Errorf("declare a network in %s: %w", project, err)
		}
	}
	return nil
}

func (s *scaleRun) bind(ctx context.Context, project string, networks int) error {
	for i := range networks * locationsEach * consumersEach {
		network, location := i/consumersEach/locationsEach, i/consumersEach%locationsEach
		binding := newBinding(project, fmt.Sprintf("binding-%d", i), fmt.Sprintf("network-%d", network), fmt.Sprintf("location-%d", location))
		if err := s.plane.Hub().Client.Create(ctx, binding); err != nil {
			return fmt.Errorf("bind in %s: %w", project, err)
		}
	}
	return nil
}

func newBinding(project, name, network, location string) *v1alpha.NetworkBinding {
	return &v1alpha.NetworkBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns-" + project, Name: name},
		Spec: v1alpha.NetworkBindingSpec{
			Network: v1alpha.NetworkReference{Name: v1alpha.Name(network)}, Location: v1alpha.BindingLocationReference{Name: v1alpha.Name(location)},
		},
	}
}

func (s *scaleRun) clear(ctx context.Context) error {
	for _, project := range s.options.Projects {
		if err := s.plane.Hub().Client.DeleteAllOf(ctx, &v1alpha.NetworkBinding{}, client.InNamespace("ns-"+project)); err != nil {
			return fmt.Errorf("delete the bindings of %s: %w", project, err)
		}
	}
	return s.await(ctx, "contexts", &s.contexts, 0)
}

func (s *scaleRun) await(ctx context.Context, what string, count *atomic.Int64, want int64) error {
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, scaleTimeout, true, func(context.Context) (bool, error) {
		return count.Load() == want, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %d %s, have %d: %w", want, what, count.Load(), err)
	}
	return nil
}

// edit counts what one edit of a network with 100 bindings asks of the hub's and the
// project's API server.
func (s *scaleRun) edit(ctx context.Context) error {
	const count = 100
	project := s.options.Projects[0]
	for i := range count {
		if err := s.plane.Hub().Client.Create(ctx, newBinding(project, fmt.Sprintf("edit-%d", i), "network-0", "location-0")); err != nil {
			return fmt.Errorf("bind in %s: %w", project, err)
		}
	}
	if err := s.await(ctx, "bindings with a context", &s.answered, count); err != nil {
		return err
	}
	upstream := s.plane.Project(project)
	network := &v1alpha.Network{}
	if err := upstream.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "network-0"}, network); err != nil {
		return fmt.Errorf("read the network: %w", err)
	}
	before, err := s.requests(ctx, upstream)
	if err != nil {
		return err
	}
	edited := network.DeepCopy()
	edited.Spec.MTU = 1500
	if err := upstream.Client.Patch(ctx, edited, client.MergeFrom(network)); err != nil {
		return fmt.Errorf("edit the network: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, scaleTimeout, true, func(context.Context) (bool, error) {
		return s.mtu.Load() == 1500, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the edit to arrive: %w", err)
	}
	after, err := s.settled(ctx, upstream)
	if err != nil {
		return err
	}
	figure("edit_context_writes", after.contextWrites-before.contextWrites)
	figure("edit_binding_writes", after.bindingWrites-before.bindingWrites)
	figure("edit_reads", after.reads-before.reads)
	return nil
}

// requests are those that API servers answered so far.
type requests struct{ reads, contextWrites, bindingWrites float64 }

// settled returns the requests once no more come for a second.
func (s *scaleRun) settled(ctx context.Context, upstream *controlplane.Plane) (requests, error) {
	var last requests
	err := wait.PollUntilContextTimeout(ctx, time.Second, scaleTimeout, true, func(ctx context.Context) (bool, error) {
		now, err := s.requests(ctx, upstream)
		same := now == last
		last = now
		return same, err
	})
	return last, err
}

func (s *scaleRun) requests(ctx context.Context, upstream *controlplane.Plane) (requests, error) {
	var sum requests
	for _, plane := range []*controlplane.Plane{s.plane.Hub(), upstream} {
		if err := sum.add(ctx, plane); err != nil {
			return requests{}, fmt.Errorf("read the metrics of %s: %w", plane.Name, err)
		}
	}
	return sum, nil
}

func (r *requests) add(ctx context.Context, plane *controlplane.Plane) error {
	set, err := kubernetes.NewForConfig(plane.Config)
	if err != nil {
		return err
	}
	body, err := set.RESTClient().Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was only read
	families, err := parse(body)
	if err != nil {
		return err
	}
	for _, metric := range families {
		r.count(metric)
	}
	return nil
}

// counted is one series of apiserver_request_total.
type counted struct {
	labels map[string]string
	value  float64
}

func parse(body io.Reader) ([]counted, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(body)
	if err != nil {
		return nil, err
	}
	var all []counted
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		all = append(all, counted{labels, metric.GetCounter().GetValue()})
	}
	return all, nil
}

func (r *requests) count(series counted) {
	if !strings.HasSuffix(series.labels["group"], "datumapis.com") && !strings.HasSuffix(series.labels["group"], "karmada.io") {
		return
	}
	switch verb := series.labels["verb"]; {
	case verb == "GET" || verb == "LIST":
		r.reads += series.value
	case verb == "WATCH":
	case series.labels["resource"] == "networkcontexts":
		r.contextWrites += series.value
	case series.labels["resource"] == "networkbindings":
		r.bindingWrites += series.value
	}
}

// peakMemory is the most that a process ever had in memory, in MiB.
func peakMemory(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of the hub's controllers: %w", err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return 0, fmt.Errorf("read the memory of the hub's controllers: %w", err)
	}
	return kib / 1024, nil
}
