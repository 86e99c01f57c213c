package main

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/scheduler/framework"
	"github.com/karmada-io/karmada/pkg/scheduler/framework/plugins/apienablement"
	"github.com/karmada-io/karmada/pkg/scheduler/framework/plugins/tainttoleration"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/e2e/controlplane"
	"go.datum.net/network-presence/location"
	locationauthority "go.datum.net/network-presence/scheduler-plugin"
)

// The hub that the filter is measured on. Each project may use grantsEach locations, of
// which there are as many as cells for each cellsEach.
const (
	filterProjects, grantsEach = 1000, 5
	filterClusters, cellsEach  = 500, 5
)

// filter measures the plugin beside two of Karmada's own in this process, then whole
// schedulers with and without it.
func filter(ctx context.Context) error {
	if err := filterAlone(ctx); err != nil {
		return err
	}
	return withControlPlane(ctx, controlplane.Options{Bare: true}, func(plane *controlplane.ControlPlane) error {
		return schedulers(ctx, plane)
	})
}

func locationName(n int) string {
	return fmt.Sprintf("location-%d", n%(filterClusters/cellsEach))
}

func projectName(n int) string { return fmt.Sprintf("project-%d", n) }

// hubObjects are those of a large hub that decide placement, but for its clusters: one
// context and grantsEach grants for each project.
func hubObjects() []client.Object {
	var objects []client.Object
	for n := range filterProjects {
		project := projectName(n)
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns-" + project, Labels: map[string]string{
			v1alpha.UpstreamClusterNameLabel: location.ProjectToLabel(project), v1alpha.UpstreamNamespaceLabel: "default",
		}}}, &v1alpha.NetworkContext{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns-" + project, Name: "default"},
			Spec: v1alpha.NetworkContextSpec{
				Network: v1alpha.LocalNetworkReference{Name: "default"}, Location: v1alpha.LocationReference{Name: v1alpha.Name(locationName(n))},
				IPFamilies: []v1alpha.IPFamily{v1alpha.IPv6}, MTU: 1460,
			},
		})
		for k := range grantsEach {
			of := locationName(n + k)
			objects = append(objects, &v1alpha.LocationBinding{
				ObjectMeta: metav1.ObjectMeta{Name: location.CopyName(project, of), Labels: map[string]string{
					v1alpha.ManagedByLabel: v1alpha.ManagedByHub, v1alpha.ProjectLabel: project, v1alpha.LocationLabel: of,
				}},
				Spec: v1alpha.LocationBindingSpec{LocationRef: v1alpha.LocationReference{Name: v1alpha.Name(of)}},
			})
		}
	}
	return objects
}

// cellCluster is a Cluster with as many API groups as a real one has.
func cellCluster(n int) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cell-%d", n), Labels: map[string]string{v1alpha.TopologyLocationLabel: locationName(n)}},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull},
	}
	for k := range 25 {
		cluster.Status.APIEnablements = append(cluster.Status.APIEnablements, clusterv1alpha1.APIEnablement{
			GroupVersion: fmt.Sprintf("group-%d.example.com/v1", k), Resources: []clusterv1alpha1.APIResource{{Name: "things", Kind: "Thing"}},
		})
	}
	cluster.Status.APIEnablements = append(cluster.Status.APIEnablements,
		clusterv1alpha1.APIEnablement{GroupVersion: v1alpha.SchemeGroupVersion.String(), Resources: []clusterv1alpha1.APIResource{{Name: "networkcontexts", Kind: "NetworkContext"}}},
		clusterv1alpha1.APIEnablement{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}})
	cluster.Status.Conditions = []metav1.Condition{{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "Bench", LastTransitionTime: metav1.Now(),
	}, {
		Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionTrue, Reason: "Bench", LastTransitionTime: metav1.Now(),
	}}
	return cluster
}

// filterAlone prints what one Filter that lets a cluster pass takes and allocates, of our
// plugin and of two others, and the memory of what ours knows.
func filterAlone(ctx context.Context) error {
	clusters := make([]*clusterv1alpha1.Cluster, filterClusters)
	for n := range clusters {
		clusters[n] = cellCluster(n)
	}
	objects := hubObjects()
	for _, cluster := range clusters {
		objects = append(objects, cluster)
	}
	before := heap()
	authority := location.NewAuthorityOf(location.Configuration{}, objects...)
	figure("filter_index_mib", fmt.Sprintf("%.1f", float64(heap()-before)/(1<<20)))
	runtime.KeepAlive(objects)

	spec := &workv1alpha2.ResourceBindingSpec{
		Resource:  workv1alpha2.ObjectReference{APIVersion: v1alpha.SchemeGroupVersion.String(), Kind: "NetworkContext", Name: "default"},
		Placement: &policyv1alpha1.Placement{},
	}
	enablement, err1 := apienablement.New()
	toleration, err2 := tainttoleration.New()
	if err1 != nil || err2 != nil {
		return fmt.Errorf("make Karmada's filters: %w, %w", err1, err2)
	}
	for _, measured := range []struct {
		name   string
		plugin framework.Plugin
	}{{"filter", locationauthority.New(authority)}, {"filter_api_enablement", enablement}, {"filter_taint_toleration", toleration}} {
		if err := measureFilter(ctx, measured.name, measured.plugin.(framework.FilterPlugin), spec, clusters); err != nil {
			return err
		}
	}
	return nil
}

// measureFilter measures a filter with another project and cluster each time.
func measureFilter(ctx context.Context, name string, plugin framework.FilterPlugin, spec *workv1alpha2.ResourceBindingSpec, clusters []*clusterv1alpha1.Cluster) error {
	namespaces := make([]string, filterProjects)
	for n := range namespaces {
		namespaces[n] = "ns-" + projectName(n)
	}
	var refusal *framework.Result
	status := &workv1alpha2.ResourceBindingStatus{}
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			n = (n + 1) % filterProjects
			spec.Resource.Namespace = namespaces[n]
			if result := plugin.Filter(ctx, spec, status, clusters[n%filterClusters]); !result.IsSuccess() {
				refusal = result
				return
			}
		}
	})
	if refusal != nil {
		return fmt.Errorf("%s refused what it should let pass: %q", plugin.Name(), refusal.Reasons())
	}
	figure(name+"_ns", result.NsPerOp())
	figure(name+"_allocs", result.AllocsPerOp())
	return nil
}

// heap is what is in use, in bytes.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

const (
	// Rounds of each scheduler, in turns, and bindings in each.
	filterRounds, filterBindings = 3, 700
	throughputClusters           = 50
)

// schedulers compares our scheduler with itself without the plugin: bindings a second, each
// of which both place in the same clusters.
func schedulers(ctx context.Context, plane *controlplane.ControlPlane) error {
	if err := fill(ctx, plane); err != nil {
		return err
	}
	rates := map[string]float64{}
	for round := range filterRounds {
		for _, name := range []string{"with", "without"} {
			took, err := throughput(ctx, plane, name, round)
			if err != nil {
				return fmt.Errorf("schedule %s the plugin: %w", name, err)
			}
			rates[name] += filterBindings / took.Seconds() / filterRounds
		}
	}
	figure("scheduler_bindings_per_second", fmt.Sprintf("%.0f", rates["with"]))
	figure("scheduler_bindings_per_second_without", fmt.Sprintf("%.0f", rates["without"]))
	figure("scheduler_throughput_ratio", fmt.Sprintf("%.2f", rates["with"]/rates["without"]))
	return nil
}

// fill makes the hub's objects and some clusters.
func fill(ctx context.Context, plane *controlplane.ControlPlane) error {
	hub := plane.Hub().Client
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for n := range throughputClusters {
		group.Go(func() error {
			cluster := cellCluster(n)
			cluster.Labels[v1alpha.TopologyLocationLabel] = locationName(n / cellsEach)
			status := cluster.Status
			if err := hub.Create(ctx, cluster); err != nil {
				return fmt.Errorf("create a Cluster: %w", err)
			}
			cluster.Status = status
			if err := hub.Status().Update(ctx, cluster); err != nil {
				return fmt.Errorf("write the status of a Cluster: %w", err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var namespaces, others []client.Object
	for _, object := range hubObjects() {
		if _, ok := object.(*corev1.Namespace); ok {
			namespaces = append(namespaces, object)
		} else {
			others = append(others, object)
		}
	}
	for _, objects := range [][]client.Object{namespaces, others} {
		if err := createAll(context.WithoutCancel(ctx), hub, objects); err != nil {
			return err
		}
	}
	return nil
}

func createAll(ctx context.Context, hub client.Client, objects []client.Object) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for _, object := range objects {
		group.Go(func() error {
			if err := hub.Create(ctx, object); err != nil {
				return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// throughput has a scheduler place bindings that are all there when it starts, and returns
// the time from the first that it placed to the last.
func throughput(ctx context.Context, plane *controlplane.ControlPlane, name string, round int) (time.Duration, error) {
	scheduler := fmt.Sprintf("%s-%d", name, round)
	bindings := make([]client.Object, filterBindings)
	for n := range bindings {
		bindings[n] = placeable(scheduler, n)
	}
	hub := plane.Hub().Client
	if err := createAll(ctx, hub, bindings); err != nil {
		return 0, err
	}
	flags := []string{"--scheduler-name=" + scheduler}
	if name == "without" {
		flags = append(flags, "--plugins=*,-"+locationauthority.Name)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	took := make(chan time.Duration, 1)
	if err := awaitPlaced(watching, plane, scheduler, took); err != nil {
		return 0, err
	}
	if err := plane.StartScheduler(ctx, scheduler, flags...); err != nil {
		return 0, err
	}
	select {
	case elapsed := <-took:
		if name == "with" && round == 0 {
			if err := reportStart(plane, scheduler); err != nil {
				return 0, err
			}
		}
		return elapsed, plane.Forget(ctx, scheduler)
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(scaleTimeout):
		return 0, fmt.Errorf("not all of %d bindings were placed within %s", filterBindings, scaleTimeout)
	}
}

// placeable is a binding whose policy names the cells of one location that its project may
// use, so that the plugin takes nothing away.
func placeable(scheduler string, n int) *workv1alpha2.ResourceBinding {
	project := n % (throughputClusters / cellsEach)
	var cells []string
	for k := range cellsEach {
		cells = append(cells, fmt.Sprintf("cell-%d", project*cellsEach+k))
	}
	name := fmt.Sprintf("%s-%d", scheduler, n)
	return &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns-" + projectName(project), Name: name},
		Spec: workv1alpha2.ResourceBindingSpec{
			SchedulerName: scheduler,
			Resource:      workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns-" + projectName(project), Name: name, UID: types.UID(name)},
			Placement:     &policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: cells}},
		},
	}
}

var tookToSync = regexp.MustCompile(`location authority knows the hub.* took="?([0-9.a-zµ]+)`)

// reportStart prints how long the plugin took to know the hub, as it says itself.
func reportStart(plane *controlplane.ControlPlane, scheduler string) error {
	log, err := plane.Log(scheduler)
	if err != nil {
		return err
	}
	found := tookToSync.FindStringSubmatch(log)
	if found == nil {
		return fmt.Errorf("scheduler %s does not say how long it took to know the hub", scheduler)
	}
	took, err := time.ParseDuration(strings.Trim(found[1], `"`))
	if err != nil {
		return fmt.Errorf("read how long it took: %w", err)
	}
	figure("filter_sync_ms", took.Milliseconds())
	return nil
}

// awaitPlaced begins to watch the bindings of a scheduler, and sends the time from the first
// that was placed to the last.
func awaitPlaced(ctx context.Context, plane *controlplane.ControlPlane, scheduler string, took chan<- time.Duration) error {
	hub, err := cache.New(plane.Hub().Config, cache.Options{Scheme: controlplane.Scheme(), DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return fmt.Errorf("watch the hub: %w", err)
	}
	informer, err := hub.GetInformer(ctx, &workv1alpha2.ResourceBinding{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch ResourceBindings: %w", err)
	}
	placed := map[string]bool{}
	var began time.Time
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, object any) {
		binding := object.(*workv1alpha2.ResourceBinding)
		if binding.Spec.SchedulerName != scheduler || placed[binding.Name] || !meta.IsStatusConditionTrue(binding.Status.Conditions, workv1alpha2.Scheduled) {
			return
		}
		if len(placed) == 0 {
			began = time.Now()
		}
		if placed[binding.Name] = true; len(placed) == filterBindings {
			took <- time.Since(began)
		}
	}})
	if err != nil {
		return fmt.Errorf("watch ResourceBindings: %w", err)
	}
	go func() { _ = hub.Start(ctx) }()
	if !hub.WaitForCacheSync(ctx) {
		return fmt.Errorf("watch the hub: %w", ctx.Err())
	}
	return nil
}
