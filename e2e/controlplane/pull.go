package controlplane

import (
	"context"
	"fmt"
	"slices"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KarmadaAgentProcess is the name of the process of Karmada's agent in a cell that is
// joined in pull mode.
func KarmadaAgentProcess(cell string) string { return "cell-" + cell + "-karmada-agent" }

// pull starts Karmada's agent in the cell, which makes the cell's Cluster itself. It is the
// hub's administrator, as Karmada's own deploy-karmada-agent.sh has it: the roles that
// karmadactl makes for an agent lie in the namespace of its Works, and when the cell is
// unjoined they may go before the last Work, which then nobody can finish.
func (c *ControlPlane) pull(ctx context.Context, cell Cell) error {
	flags, ready, err := c.health("/healthz")
	if err != nil {
		return err
	}
	member := c.Cell(cell.Name)
	err = c.run(ctx, KarmadaAgentProcess(cell.Name), "karmada-agent", ready, slices.Concat(flags, unthrottled, unthrottledCells, c.watchfulness(), []string{
		"--karmada-kubeconfig=" + c.Hub().Kubeconfig, "--kubeconfig=" + member.Kubeconfig,
		"--cluster-name=" + cell.Name, "--cluster-api-endpoint=" + member.Config.Host, "--cluster-namespace=" + clustersNamespace,
		"--cluster-lease-duration=" + c.lease().String(), "--report-secrets=None", "--leader-elect=false", "--v=2",
	})...)
	if err != nil {
		return err
	}
	return c.retry(ctx, "the agent to make its Cluster", func(ctx context.Context) error {
		cluster := &clusterv1alpha1.Cluster{}
		if err := c.Hub().Client.Get(ctx, client.ObjectKey{Name: cell.Name}, cluster); err != nil {
			return err
		}
		labelled := cluster.DeepCopy()
		labelled.Labels = labels.Merge(cluster.Labels, cell.labels())
		if err := c.Hub().Client.Patch(ctx, labelled, client.MergeFrom(cluster)); err != nil {
			return fmt.Errorf("label it: %w", err)
		}
		return nil
	})
}
