package controlplane

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/multicluster-runtime/providers/kubeconfig"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/charts"
	"go.datum.net/network-presence/location"
)

// ProjectsNamespace on the hub has the Secrets that connect projects.
const ProjectsNamespace = "network-presence-system"

// The names of our processes.
const (
	HubProcess       = "network-presence-hub"
	SchedulerProcess = "network-presence-scheduler"
)

// startOurs installs what is ours on the hub and starts our processes.
func (c *ControlPlane) startOurs(ctx context.Context) error {
	if err := c.installCharts(ctx); err != nil {
		return err
	}
	if err := c.installInterpreter(ctx); err != nil {
		return err
	}
	err := c.startScheduler(ctx, SchedulerProcess, "network-presence-scheduler", "--scheduler-name=network-presence-scheduler")
	if err != nil {
		return err
	}
	return c.StartHub(ctx, HubProcess)
}

// StartHub starts `network-presence hub` under a process name, with more flags than usual.
// Start does so for HubProcess, unless the control plane is bare.
func (c *ControlPlane) StartHub(ctx context.Context, name string, more ...string) error {
	flags, ready, err := c.health("/readyz")
	if err != nil {
		return err
	}
	args := append([]string{
		"hub", "--kubeconfig=" + c.Hub().Kubeconfig, "--platform-kubeconfig=" + c.Platform().Kubeconfig,
		"--leader-elect=false", "-v=2",
	}, flags...)
	return c.run(ctx, name, "network-presence", ready, append(args, more...)...)
}

func (c *ControlPlane) installCharts(ctx context.Context) error {
	files, err := fs.Glob(charts.Hub, "network-presence-hub/templates/*.yaml")
	if err != nil {
		return fmt.Errorf("list the hub's chart: %w", err)
	}
	for _, file := range files {
		manifest, err := charts.Hub.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the hub's chart: %w", err)
		}
		if err := apply(ctx, c.Hub(), manifest); err != nil {
			return err
		}
	}
	return nil
}

// AddProject starts a plane for a project and connects it, as Start does for those of
// Options. What it started before it failed runs until Stop.
func (c *ControlPlane) AddProject(ctx context.Context, name string) error {
	if err := validateProject(name); err != nil {
		return err
	}
	return c.guarded(ctx, func(ctx context.Context) error {
		if err := c.startProject(ctx, name); err != nil {
			return err
		}
		return c.ConnectProject(ctx, name)
	})
}

// ConnectProject makes the Secret that connects a project, of Options or added, to the hub.
func (c *ControlPlane) ConnectProject(ctx context.Context, project string) error {
	plane, err := c.find("project-" + project)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(plane.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig of project %s: %w", project, err)
	}
	secret := projectSecret(project)
	secret.Labels = map[string]string{kubeconfig.DefaultKubeconfigSecretLabel: "true"}
	secret.Data = map[string][]byte{kubeconfig.DefaultKubeconfigSecretKey: content}
	if err := c.Hub().Client.Create(ctx, secret); err != nil {
		return fmt.Errorf("connect project %s: %w", project, err)
	}
	return nil
}

// DisconnectProject deletes that Secret.
func (c *ControlPlane) DisconnectProject(ctx context.Context, project string) error {
	if err := c.Hub().Client.Delete(ctx, projectSecret(project)); err != nil {
		return fmt.Errorf("disconnect project %s: %w", project, err)
	}
	return nil
}

func projectSecret(project string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ProjectsNamespace, Name: project}}
}

// CreateHubNamespace makes the namespace of the hub that mirrors a namespace of a project.
func (c *ControlPlane) CreateHubNamespace(ctx context.Context, name, project, upstream string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		v1alpha.UpstreamClusterNameLabel: location.ProjectToLabel(project),
		v1alpha.UpstreamNamespaceLabel:   upstream,
	}}}
	if err := c.Hub().Client.Create(ctx, namespace); err != nil {
		return fmt.Errorf("create hub namespace %s: %w", name, err)
	}
	return nil
}
