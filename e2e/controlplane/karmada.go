package controlplane

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// apiBackoff paces looking again at what an API server does not serve yet.
var apiBackoff = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.3, Steps: 30, Cap: 2 * time.Second}

const (
	systemNamespace   = "karmada-system"
	clustersNamespace = "karmada-cluster"

	// How soon Karmada tells that a cell does not answer, and that it does again: seconds,
	// where its defaults are made for networks.
	clusterStatusFrequency = "2s"
	clusterThreshold       = "4s"
)

// startHub starts the hub's API server and Karmada on it.
func (c *ControlPlane) startHub(ctx context.Context, etcd string) error {
	hub, err := c.startPlane(ctx, etcd, "hub", hubControllers)
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
	group.Go(func() error { return c.startAggregatedAPI(groupCtx, etcd, hub) })
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
	group.Go(func() error { return c.startScheduler(groupCtx, "karmada-scheduler", "karmada-scheduler") })
	return group.Wait()
}

// startAggregatedAPI starts the API server of Clusters behind the hub's own.
func (c *ControlPlane) startAggregatedAPI(ctx context.Context, etcd string, hub *Plane) error {
	port, err := c.ports.free()
	if err != nil {
		return err
	}
	pki := c.file("pki")
	err = c.run(ctx, "karmada-aggregated-apiserver", "karmada-aggregated-apiserver", fmt.Sprintf("https://127.0.0.1:%d/readyz", port),
		"--kubeconfig="+hub.Kubeconfig, "--authentication-kubeconfig="+hub.Kubeconfig, "--authorization-kubeconfig="+hub.Kubeconfig,
		"--etcd-servers="+etcd, "--etcd-prefix=/karmada-aggregated",
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
	return c.run(ctx, "karmada-controller-manager", "karmada-controller-manager", ready, append(flags,
		"--kubeconfig="+hub.Kubeconfig, "--leader-elect=false", "--v=2",
		"--cluster-status-update-frequency="+clusterStatusFrequency,
		"--cluster-failure-threshold="+clusterThreshold, "--cluster-success-threshold="+clusterThreshold)...)
}

// startScheduler starts a karmada-scheduler, the stock one or ours.
func (c *ControlPlane) startScheduler(ctx context.Context, name, binary string, more ...string) error {
	flags, ready, err := c.health("/healthz")
	if err != nil {
		return err
	}
	return c.run(ctx, name, binary, ready, append(append(flags,
		"--kubeconfig="+c.Hub().Kubeconfig, "--leader-elect=false", "--enable-scheduler-estimator=false", "--v=2"), more...)...)
}

// join makes a cell a member of Karmada and returns once it is Ready.
func (c *ControlPlane) join(ctx context.Context, cell Cell) error {
	register := c.register
	if cell.Pull {
		register = c.startAgent
	}
	if err := register(ctx, cell); err != nil {
		return fmt.Errorf("join cell %s: %w", cell.Name, err)
	}
	return c.awaitCell(ctx, cell.Name)
}

// startAgent starts Karmada's agent of a pull-mode cell, which registers the cell itself,
// and labels what it registered.
func (c *ControlPlane) startAgent(ctx context.Context, cell Cell) error {
	flags, ready, err := c.health("/healthz")
	if err != nil {
		return err
	}
	member := c.Cell(cell.Name)
	// The agent reads the kubeconfig of its own cell as any in-cluster controller does.
	environment := []string{"KUBECONFIG=" + member.Kubeconfig}
	err = c.runWith(ctx, environment, AgentProcess(cell.Name), "karmada-agent", ready, append(flags,
		"--karmada-kubeconfig="+c.Hub().Kubeconfig, "--karmada-context=hub",
		"--cluster-name="+cell.Name, "--cluster-api-endpoint="+member.Config.Host,
		"--report-secrets=None", "--leader-elect=false", "--v=2",
		"--cluster-status-update-frequency="+clusterStatusFrequency,
		"--cluster-failure-threshold="+clusterThreshold, "--cluster-success-threshold="+clusterThreshold)...)
	if err != nil || cell.Location == "" {
		return err
	}
	return c.retry(ctx, "cell "+cell.Name+" to register", func(ctx context.Context) error {
		var cluster clusterv1alpha1.Cluster
		if err := c.Hub().Client.Get(ctx, client.ObjectKey{Name: cell.Name}, &cluster); err != nil {
			return err
		}
		labelled := cluster.DeepCopy()
		metav1.SetMetaDataLabel(&labelled.ObjectMeta, v1alpha.TopologyLocationLabel, cell.Location)
		return c.Hub().Client.Patch(ctx, labelled, client.MergeFrom(&cluster))
	})
}

// AgentProcess is the name of the process of Karmada's agent in a pull-mode cell.
func AgentProcess(cell string) string { return "cell-" + cell + "-karmada-agent" }

// register joins a push-mode cell.
func (c *ControlPlane) register(ctx context.Context, cell Cell) error {
	hub, member := c.Hub(), c.Cell(cell.Name)
	token, err := c.memberToken(ctx, member, "karmada-"+cell.Name)
	if err != nil {
		return err
	}
	ca, err := c.ca()
	if err != nil {
		return err
	}
	var system corev1.Namespace
	if err := member.Client.Get(ctx, client.ObjectKey{Name: "kube-system"}, &system); err != nil {
		return fmt.Errorf("read its identity: %w", err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: clustersNamespace, Name: cell.Name},
		Data:       map[string][]byte{"token": []byte(token), "caBundle": ca},
	}
	reference := &clusterv1alpha1.LocalSecretReference{Namespace: secret.Namespace, Name: secret.Name}
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: cell.Name},
		Spec: clusterv1alpha1.ClusterSpec{
			ID: string(system.UID), SyncMode: clusterv1alpha1.Push, APIEndpoint: member.Config.Host,
			SecretRef: reference, ImpersonatorSecretRef: reference,
		},
	}
	if cell.Location != "" {
		cluster.Labels = map[string]string{v1alpha.TopologyLocationLabel: cell.Location}
	}
	for _, object := range []client.Object{secret, cluster} {
		if err := hub.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T: %w", object, err)
		}
	}
	return nil
}

// memberToken makes the account by which Karmada acts in a cell.
func (c *ControlPlane) memberToken(ctx context.Context, member *Plane, name string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: clustersNamespace, Name: name}}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clustersNamespace}},
		account,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: clustersNamespace, Name: name}},
		},
	} {
		if err := member.Client.Create(ctx, object); err != nil {
			return "", fmt.Errorf("make Karmada's account in %s: create %T: %w", member.Name, object, err)
		}
	}
	seconds := int64(lifetime.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := member.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("make a token for Karmada in %s: %w", member.Name, err)
	}
	return request.Status.Token, nil
}

func (c *ControlPlane) awaitCell(ctx context.Context, name string) error {
	return c.retry(ctx, "cell "+name+" to be Ready", func(ctx context.Context) error {
		var cluster clusterv1alpha1.Cluster
		if err := c.Hub().Client.Get(ctx, client.ObjectKey{Name: name}, &cluster); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
			return fmt.Errorf("its conditions are %v", cluster.Status.Conditions)
		}
		return nil
	})
}
