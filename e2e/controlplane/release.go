package controlplane

import (
	"context"
	"fmt"

	"helm.sh/helm/v3/pkg/action"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"

	"go.datum.net/network-presence/charts"
)

// Release is the hub's chart as Helm has it installed on the hub. Its actions are those of
// the commands helm upgrade, rollback, uninstall and install.
type Release struct {
	helm   *action.Configuration
	values map[string]any
}

// HubRelease is the release that Start installed, unless the control plane is bare.
func (c *ControlPlane) HubRelease() (*Release, error) {
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = ptr.To(c.Hub().Kubeconfig), ptr.To(ProjectsNamespace)
	flags = flags.WithDiscoveryQPS(-1)
	release := &Release{helm: &action.Configuration{}, values: c.hubValues}
	if err := release.helm.Init(flags, ProjectsNamespace, "secret", func(string, ...any) {}); err != nil {
		return nil, fmt.Errorf("prepare Helm for the hub: %w", err)
	}
	return release, nil
}

// Install installs the chart, and takes over what is there of it, such as CRDs that were kept.
func (r *Release) Install(ctx context.Context) error {
	chart, err := charts.Load(charts.Hub)
	if err != nil {
		return err
	}
	install := action.NewInstall(r.helm)
	install.ReleaseName, install.Namespace, install.TakeOwnership = charts.Hub, ProjectsNamespace, true
	if _, err := install.RunWithContext(ctx, chart, r.values); err != nil {
		return fmt.Errorf("install chart %s: %w", charts.Hub, err)
	}
	return nil
}

// Upgrade upgrades to the chart as it is now, with some values other than before.
func (r *Release) Upgrade(ctx context.Context, values map[string]any) error {
	chart, err := charts.Load(charts.Hub)
	if err != nil {
		return err
	}
	upgrade := action.NewUpgrade(r.helm)
	upgrade.Namespace, upgrade.ReuseValues = ProjectsNamespace, true
	if _, err := upgrade.RunWithContext(ctx, charts.Hub, chart, values); err != nil {
		return fmt.Errorf("upgrade chart %s: %w", charts.Hub, err)
	}
	return nil
}

// Rollback goes back to how it was before the last upgrade.
func (r *Release) Rollback() error {
	if err := action.NewRollback(r.helm).Run(charts.Hub); err != nil {
		return fmt.Errorf("roll back chart %s: %w", charts.Hub, err)
	}
	return nil
}

// Uninstall removes the chart.
func (r *Release) Uninstall() error {
	if _, err := action.NewUninstall(r.helm).Run(charts.Hub); err != nil {
		return fmt.Errorf("uninstall chart %s: %w", charts.Hub, err)
	}
	return nil
}
