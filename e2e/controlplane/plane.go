package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// Plane is one API server of a control plane.
type Plane struct {
	// Name of the plane: hub, platform, project-<project> or cell-<cell>. Its API server's
	// process is <name>-apiserver.
	Name string
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Config is the same, for a client; without a limit of its own on requests.
	Config *rest.Config
	// Client reads and writes the plane, past any cache.
	Client client.Client
	// Port of the API server on 127.0.0.1.
	Port int
}

// Process is the name of the plane's API server among the processes.
func (p *Plane) Process() string { return p.Name + "-apiserver" }

// controllers is the name of the plane's kube-controller-manager among the processes.
func (p *Plane) controllers() string { return p.Name + "-controller-manager" }

// Hub is the Karmada API server.
func (c *ControlPlane) Hub() *Plane { return c.plane("hub") }

// Platform is the provider's plane.
func (c *ControlPlane) Platform() *Plane { return c.plane("platform") }

// Project is the plane of a project. It panics where there is none.
func (c *ControlPlane) Project(name string) *Plane { return c.plane("project-" + name) }

// Cell is a cell's API server. It panics where there is none.
func (c *ControlPlane) Cell(name string) *Plane { return c.plane("cell-" + name) }

func (c *ControlPlane) plane(name string) *Plane {
	plane, err := c.find(name)
	if err != nil {
		panic(err) // a mistake in the test or command that asks
	}
	return plane
}

func (c *ControlPlane) find(name string) (*Plane, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	plane, found := c.planes[name]
	if !found {
		return nil, fmt.Errorf("the control plane has no %s", name)
	}
	return plane, nil
}

// Scheme has every kind that the control plane serves.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
		clusterv1alpha1.Install, configv1alpha1.Install, policyv1alpha1.Install, workv1alpha1.Install, workv1alpha2.Install, v1alpha.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // two packages claim one Go type: a mistake in this program
		}
	}
	return scheme
}

func (c *ControlPlane) startEtcd(ctx context.Context) error {
	clients, err1 := c.ports.free()
	peers, err2 := c.ports.free()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	url, peer := fmt.Sprintf("http://127.0.0.1:%d", clients), fmt.Sprintf("http://127.0.0.1:%d", peers)
	c.etcd = url
	return c.run(ctx, "etcd", "etcd", url+"/readyz",
		"--data-dir="+c.file("etcd"),
		"--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--unsafe-no-fsync", // the data is worth nothing after a power failure
		"--quota-backend-bytes=8589934592", "--log-level=warn")
}

// startPlane starts an API server and, with the named controllers, its controller manager.
func (c *ControlPlane) startPlane(ctx context.Context, name, controllers string) (*Plane, error) {
	port, err := c.ports.free()
	if err != nil {
		return nil, err
	}
	prefix, err := c.prefix(name)
	if err != nil {
		return nil, err
	}
	plane := &Plane{Name: name, Port: port, Kubeconfig: c.file(name + ".kubeconfig")}
	if err := c.writeKubeconfig(plane); err != nil {
		return nil, err
	}
	pki := c.file("pki")
	err = c.run(ctx, plane.Process(), "kube-apiserver", fmt.Sprintf("https://127.0.0.1:%d/readyz", port),
		"--etcd-servers="+c.etcd, "--etcd-prefix="+prefix,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port="+strconv.Itoa(port),
		"--authorization-mode=RBAC", "--client-ca-file="+pki+"/ca.crt",
		"--tls-cert-file="+pki+"/server.crt", "--tls-private-key-file="+pki+"/server.key",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+pki+"/sa.pub",
		"--service-account-signing-key-file="+pki+"/sa.key", "--service-cluster-ip-range=10.96.0.0/16",
		"--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection",
		"--proxy-client-cert-file="+pki+"/proxy.crt", "--proxy-client-key-file="+pki+"/proxy.key",
		"--requestheader-client-ca-file="+pki+"/ca.crt", "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--endpoint-reconciler-type=none", "--enable-priority-and-fairness=false")
	if err != nil {
		return nil, err
	}
	if plane.Client, err = client.New(plane.Config, client.Options{Scheme: Scheme()}); err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", name, err)
	}
	c.mu.Lock()
	c.planes[name] = plane
	c.mu.Unlock()
	if c.options.Bare {
		return plane, nil
	}
	return plane, c.startControllerManager(ctx, plane, controllers)
}

// prefix is where in etcd a plane has its objects: another each time, so that a cell that
// was removed does not come back with what it had.
func (c *ControlPlane) prefix(name string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.planes[name]; taken {
		return "", fmt.Errorf("the control plane has a %s already", name)
	}
	c.started++
	return fmt.Sprintf("/%d-%s", c.started, name), nil
}

func (c *ControlPlane) startControllerManager(ctx context.Context, plane *Plane, controllers string) error {
	port, err := c.ports.free()
	if err != nil {
		return err
	}
	return c.run(ctx, plane.controllers(), "kube-controller-manager", fmt.Sprintf("https://127.0.0.1:%d/healthz", port),
		"--kubeconfig="+plane.Kubeconfig, "--authentication-kubeconfig="+plane.Kubeconfig, "--authorization-kubeconfig="+plane.Kubeconfig,
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port), "--controllers="+controllers,
		"--leader-elect=false", "--root-ca-file="+c.file("pki/ca.crt"),
		"--service-account-private-key-file="+c.file("pki/sa.key"), "--use-service-account-credentials=false",
		"--kube-api-qps=200", "--kube-api-burst=400")
}

// writeKubeconfig writes the administrator's kubeconfig of a plane.
func (c *ControlPlane) writeKubeconfig(plane *Plane) error {
	if err := c.writeUserKubeconfig(plane, "admin", plane.Kubeconfig); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig of %s: %w", plane.Name, err)
	}
	config.QPS = -1
	plane.Config = config
	return nil
}

// writeUserKubeconfig writes a kubeconfig of a plane for the user whose key pair is of the
// name.
func (c *ControlPlane) writeUserKubeconfig(plane *Plane, user, file string) error {
	return c.writeKubeconfigFor(plane, user, file, &clientcmdapi.AuthInfo{
		ClientCertificate: c.file("pki/" + user + ".crt"), ClientKey: c.file("pki/" + user + ".key"),
	})
}

// writeTokenKubeconfig writes a kubeconfig of a plane for the user who has a token.
func (c *ControlPlane) writeTokenKubeconfig(plane *Plane, user, token, file string) error {
	return c.writeKubeconfigFor(plane, user, file, &clientcmdapi.AuthInfo{Token: token})
}

func (c *ControlPlane) writeKubeconfigFor(plane *Plane, user, file string, as *clientcmdapi.AuthInfo) error {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[plane.Name] = &clientcmdapi.Cluster{
		Server: fmt.Sprintf("https://127.0.0.1:%d", plane.Port), CertificateAuthority: c.file("pki/ca.crt"),
	}
	kubeconfig.AuthInfos[user] = as
	kubeconfig.Contexts[plane.Name] = &clientcmdapi.Context{Cluster: plane.Name, AuthInfo: user}
	kubeconfig.CurrentContext = plane.Name
	if err := clientcmdapi.FlattenConfig(kubeconfig); err != nil { // whole in itself: it goes into Secrets
		return fmt.Errorf("fill in the kubeconfig of %s: %w", plane.Name, err)
	}
	if err := clientcmd.WriteToFile(*kubeconfig, file); err != nil {
		return fmt.Errorf("write the kubeconfig of %s: %w", plane.Name, err)
	}
	return nil
}

const (
	memberControllers = "namespace,garbagecollector,serviceaccount-token"
	hubControllers    = memberControllers + ",clusterrole-aggregation"
)

func (c *ControlPlane) startPlatform(ctx context.Context) error {
	plane, err := c.startPlane(ctx, "platform", memberControllers)
	if err != nil {
		return err
	}
	return installCRDs(ctx, plane, "locations")
}

func (c *ControlPlane) startProject(ctx context.Context, project string) error {
	plane, err := c.startPlane(ctx, "project-"+project, memberControllers)
	if err != nil {
		return err
	}
	return installCRDs(ctx, plane, "networks", "locationbindings")
}

func (c *ControlPlane) startCell(ctx context.Context, cell Cell) error {
	plane, err := c.startPlane(ctx, "cell-"+cell.Name, memberControllers)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.cells[cell.Name] = cell
	c.mu.Unlock()
	if err := installCRDs(ctx, plane, "networkcontexts", "networkinterfaces", "networkinterfaceclaims", "locations"); err != nil {
		return err
	}
	if !cell.Agent {
		return nil
	}
	return c.startAgent(ctx, plane, cell)
}
