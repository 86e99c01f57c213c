package controlplane

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/charts"
)

// CellAgentProcess is the name of the process of our agent in a cell that has one.
func CellAgentProcess(cell string) string { return "cell-" + cell + "-agent" }

// startAgent installs the chart for cells in a cell and runs `network-presence cell` there,
// as the user and with the flags that the chart gives it.
func (c *ControlPlane) startAgent(ctx context.Context, member *Plane, in Cell) error {
	manifests, err := charts.Render(charts.Cell, charts.Namespace, map[string]any{"location": in.Location})
	if err != nil {
		return err
	}
	if err := ensure(ctx, member, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: charts.Namespace}}); err != nil {
		return err
	}
	if err := apply(ctx, member, manifests); err != nil {
		return fmt.Errorf("install chart %s: %w", charts.Cell, err)
	}
	name := CellAgentProcess(in.Name)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: charts.Namespace, Name: charts.Cell}}
	token, err := accountToken(ctx, member, account)
	if err != nil {
		return err
	}
	kubeconfig := c.file(name + ".kubeconfig")
	if err := c.writeTokenKubeconfig(member, name, token, kubeconfig); err != nil {
		return err
	}
	args, err := processArgs(manifests, charts.Cell)
	if err != nil {
		return err
	}
	flags, ready, err := c.health("/readyz")
	if err != nil {
		return err
	}
	return c.run(ctx, name, "network-presence", ready, slices.Concat(args, flags, []string{
		"--kubeconfig=" + kubeconfig, "--leader-elect=false", "-v=2",
	})...)
}
