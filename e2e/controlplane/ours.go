package controlplane

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/multicluster-runtime/providers/kubeconfig"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/charts"
	"go.datum.net/network-presence/location"
)

// ProjectsNamespace on the hub has the Secrets that connect projects.
const ProjectsNamespace = charts.Namespace

// The names of our processes.
const (
	HubProcess       = "network-presence-hub"
	SchedulerProcess = "network-presence-scheduler"
)

// startOurs installs what is ours on the hub, as its chart says, and starts our processes,
// as the users and with the flags that their chart gives them.
func (c *ControlPlane) startOurs(ctx context.Context) error {
	values := hubValues{form: c.options.Interpreter}
	if values.form != InterpreterLua {
		var err error
		if values, err = c.startWebhook(ctx); err != nil {
			return err
		}
	}
	c.hubValues = values.values()
	release, err := c.HubRelease()
	if err != nil {
		return err
	}
	if err := release.Install(ctx); err != nil {
		return err
	}
	kubeconfig, err := c.identity(ctx, SchedulerProcess)
	if err != nil {
		return err
	}
	args, err := hostArgs(SchedulerProcess)
	if err != nil {
		return err
	}
	if err := c.startScheduler(ctx, SchedulerProcess, "network-presence-scheduler", kubeconfig, args...); err != nil {
		return err
	}
	return c.StartHub(ctx, HubProcess)
}

// StartHub starts `network-presence hub` under a process name, with more flags than usual.
// Start does so for HubProcess, unless the control plane is bare: then it works as the
// administrator, since there is no chart that gives it a user.
func (c *ControlPlane) StartHub(ctx context.Context, name string, more ...string) error {
	flags, ready, err1 := c.health("/readyz")
	args, err2 := hostArgs(HubProcess)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	kubeconfig := c.Hub().Kubeconfig
	if !c.options.Bare {
		var err error
		if kubeconfig, err = c.identity(ctx, HubProcess); err != nil {
			return err
		}
	}
	return c.run(ctx, name, "network-presence", ready, slices.Concat(args, flags, []string{
		"--kubeconfig=" + kubeconfig, "--platform-kubeconfig=" + c.Platform().Kubeconfig, "--leader-elect=false", "-v=2",
	}, more)...)
}

// Reidentify gives our processes on the hub new tokens and starts them again, as whoever
// runs them must after the hub's chart was installed anew.
func (c *ControlPlane) Reidentify(ctx context.Context) error {
	for _, process := range []string{HubProcess, SchedulerProcess} {
		if _, err := c.identity(ctx, process); err != nil {
			return err
		}
		if err := c.Restart(ctx, process); err != nil {
			return err
		}
	}
	return nil
}

// StartScheduler starts our scheduler as the administrator, under a process name and with
// flags of its own. Start does so for SchedulerProcess, as that one's user, unless the control
// plane is bare.
func (c *ControlPlane) StartScheduler(ctx context.Context, name string, flags ...string) error {
	return c.startScheduler(ctx, name, "network-presence-scheduler", c.Hub().Kubeconfig, flags...)
}

// hubValues are those of the hub's chart that depend on where our webhook is.
type hubValues struct {
	form, webhook string
	ca            []byte
}

func (v hubValues) values() map[string]any {
	interpreter := map[string]any{"form": cmp.Or(v.form, InterpreterWebhook)}
	if v.webhook != "" {
		interpreter["webhook"] = map[string]any{"url": v.webhook, "caBundle": string(v.ca)}
	}
	return map[string]any{"interpreter": interpreter, "admission": map[string]any{"defaulting": v.webhook != ""}}
}

// hostArgs are the arguments that the chart for the host of Karmada gives to a process.
func hostArgs(process string) ([]string, error) {
	manifests, err := charts.Render(charts.Host, charts.Namespace, nil)
	if err != nil {
		return nil, err
	}
	return processArgs(manifests, process)
}

// processArgs are the arguments that a chart's manifests give to a process. Of a flag that is
// given again, what comes last counts.
func processArgs(manifests []byte, process string) ([]string, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		var deployment appsv1.Deployment
		if err := decoder.Decode(&deployment); err != nil {
			return nil, fmt.Errorf("find the Deployment %q among a chart's manifests: %w", process, err)
		}
		if deployment.Kind == "Deployment" && deployment.Name == process {
			return deployment.Spec.Template.Spec.Containers[0].Args, nil
		}
	}
}

// identity writes a kubeconfig of the hub for the ServiceAccount that the hub's chart made
// for a process.
func (c *ControlPlane) identity(ctx context.Context, process string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ProjectsNamespace, Name: process}}
	token, err := accountToken(ctx, c.Hub(), account)
	if err != nil {
		return "", err
	}
	file := c.file(process + ".kubeconfig")
	return file, c.writeTokenKubeconfig(c.Hub(), process, token, file)
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
