package controlplane

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	systemNamespace   = "karmada-system"
	clustersNamespace = "karmada-cluster"
)

// unthrottled are the flags by which clients of Karmada's components do not set the pace:
// by default they send 40 requests a second.
var (
	unthrottled      = []string{"--kube-api-qps=400", "--kube-api-burst=800"}
	unthrottledCells = []string{"--cluster-api-qps=400", "--cluster-api-burst=800"}
)

// startHub starts the hub's API server and Karmada on it.
func (c *ControlPlane) startHub(ctx context.Context) error {
	hub, err := c.startPlane(ctx, "hub", hubControllers)
	if err != nil {
		return err
	}
	for _, name := range []string{systemNamespace, clustersNamespace, ProjectsNamespace} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := hub.Client.Create(ctx, namespace); err != nil {
			return fmt.Errorf("create namespace %s on the hub: %w", name, err)
		}
	}
	definitions, err := yamlFiles(filepath.Join(c.karmada, "charts/karmada/_crds/bases"))
	if err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return applyAll(groupCtx, hub, definitions) })
	group.Go(func() error { return installCRDs(groupCtx, hub) })
	group.Go(func() error { return c.startAggregatedAPI(groupCtx, hub) })
	if err := group.Wait(); err != nil {
		return err
	}
	if err := awaitCRDs(ctx, hub); err != nil {
		return err
	}
	if c.options.Bare {
		return nil
	}
	group, groupCtx = errgroup.WithContext(ctx)
	group.Go(func() error { return c.startKarmadaWebhook(groupCtx, hub) })
	group.Go(func() error { return c.startKarmadaControllers(groupCtx, hub) })
	group.Go(func() error {
		return c.startScheduler(groupCtx, "karmada-scheduler", "karmada-scheduler", hub.Kubeconfig)
	})
	return group.Wait()
}

// startAggregatedAPI starts the API server of Clusters behind the hub's own.
func (c *ControlPlane) startAggregatedAPI(ctx context.Context, hub *Plane) error {
	port, err := c.ports.free()
	if err != nil {
		return err
	}
	pki := c.file("pki")
	err = c.run(ctx, "karmada-aggregated-apiserver", "karmada-aggregated-apiserver", fmt.Sprintf("https://127.0.0.1:%d/readyz", port),
		"--kubeconfig="+hub.Kubeconfig, "--authentication-kubeconfig="+hub.Kubeconfig, "--authorization-kubeconfig="+hub.Kubeconfig,
		"--etcd-servers="+c.etcd, "--etcd-prefix=/karmada-aggregated",
		"--tls-cert-file="+pki+"/server.crt", "--tls-private-key-file="+pki+"/server.key",
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port),
		"--audit-log-path=-", "--enable-priority-and-fairness=false")
	if err != nil {
		return err
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "karmada-aggregated-apiserver"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "localhost",
			Ports: []corev1.ServicePort{{Port: int32(port), Protocol: corev1.ProtocolTCP}},
		},
	}
	ca, err := c.ca()
	if err != nil {
		return err
	}
	api := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.cluster.karmada.io"},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: clusterv1alpha1.GroupName, Version: "v1alpha1", GroupPriorityMinimum: 2000, VersionPriority: 10, CABundle: ca,
			Service: &apiregistrationv1.ServiceReference{Namespace: service.Namespace, Name: service.Name, Port: &service.Spec.Ports[0].Port},
		},
	}
	for _, object := range []client.Object{service, api} {
		if err := hub.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T on the hub: %w", object, err)
		}
	}
	return c.retry(ctx, "the API of Clusters", func(ctx context.Context) error {
		return hub.Client.List(ctx, &clusterv1alpha1.ClusterList{})
	})
}

// retry does something until it succeeds, for a while.
func (c *ControlPlane) retry(ctx context.Context, what string, do func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		last = do(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", what, errors.Join(last, c.Dead(), err))
	}
	return nil
}

func (c *ControlPlane) ca() ([]byte, error) {
	ca, err := os.ReadFile(c.file("pki/ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	return ca, nil
}

// health returns the flags of a component for its metrics and health, and the URL of the
// latter.
func (c *ControlPlane) health(path string) (flags []string, url string, err error) {
	metrics, err1 := c.ports.free()
	health, err2 := c.ports.free()
	flags = []string{
		fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", metrics),
		fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", health),
	}
	return flags, fmt.Sprintf("http://127.0.0.1:%d%s", health, path), errors.Join(err1, err2)
}

func (c *ControlPlane) startKarmadaWebhook(ctx context.Context, hub *Plane) error {
	port, err1 := c.ports.free()
	flags, _, err2 := c.health("")
	ca, err3 := c.ca()
	configuration, err4 := os.ReadFile(filepath.Join(c.karmada, "artifacts/deploy/webhook-configuration.yaml"))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	ready := fmt.Sprintf("https://127.0.0.1:%d/readyz", port)
	err := c.run(ctx, "karmada-webhook", "karmada-webhook", ready, append(flags,
		"--kubeconfig="+hub.Kubeconfig, "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port),
		"--cert-dir="+c.file("pki/webhook"), "--allow-no-execute-taint-policy=true")...)
	if err != nil {
		return err
	}
	configuration = bytes.ReplaceAll(configuration, []byte("https://karmada-webhook.karmada-system.svc:443"), fmt.Appendf(nil, "https://127.0.0.1:%d", port))
	configuration = bytes.ReplaceAll(configuration, []byte("{{caBundle}}"), []byte(base64.StdEncoding.EncodeToString(ca)))
	return apply(ctx, hub, configuration)
}

func (c *ControlPlane) startKarmadaControllers(ctx context.Context, hub *Plane) error {
	flags, ready, err := c.health("/healthz")
	if err != nil {
		return err
	}
	flags = slices.Concat(flags, unthrottled, unthrottledCells, c.watchfulness())
	return c.run(ctx, "karmada-controller-manager", "karmada-controller-manager", ready, append(flags,
		"--kubeconfig="+hub.Kubeconfig, "--leader-elect=false", "--v=2",
		"--cluster-monitor-period=1s", "--cluster-monitor-grace-period="+c.lease().String())...)
}

// watchfulness is how soon Karmada tells that a cell does not answer, and that it does
// again: flags of whatever watches the cell.
func (c *ControlPlane) watchfulness() []string {
	down := c.options.cellDown().String()
	return []string{
		"--cluster-status-update-frequency=2s",
		"--cluster-failure-threshold=" + down, "--cluster-success-threshold=" + down,
	}
}

// lease is how long Karmada hears nothing of the agent of a cell in pull mode until it
// takes the cell for gone. The agent says something four times in that.
func (c *ControlPlane) lease() time.Duration { return 3 * c.options.cellDown() }

// startScheduler starts a karmada-scheduler, the stock one or ours.
func (c *ControlPlane) startScheduler(ctx context.Context, name, binary, kubeconfig string, more ...string) error {
	flags, ready, err := c.health("/healthz")
	if err != nil {
		return err
	}
	return c.run(ctx, name, binary, ready, slices.Concat(more, flags, unthrottled, []string{
		"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--enable-scheduler-estimator=false", "--v=2",
	})...)
}
