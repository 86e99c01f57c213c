package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"go.datum.net/network-presence/cell"
)

// cellOptions are the flags of the agent in a cell.
type cellOptions struct {
	agent      cell.Options
	kubeconfig string
	qps        float32
	burst      int
}

func newCellCommand() *cobra.Command {
	options := cellOptions{agent: cell.DefaultOptions()}
	command := &cobra.Command{
		Use:   "cell",
		Short: "Run the agent of a cell, a cluster that is a member of Karmada",
		Long: `Run the agent of a cell, a cluster that is a member of Karmada.

The agent keeps the contexts of networks whose addresses are out, answers
NetworkInterfaceClaims, makes the MTU of interfaces follow their network's, and
reports. It must know which location its cell serves: by --location, or by the
label topology.datum.net/location of the cell's namespace kube-system, which is
read once, at the start.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", options.kubeconfig)
			if err != nil {
				return fmt.Errorf("read --kubeconfig %q: %w", options.kubeconfig, err)
			}
			config.QPS, config.Burst = options.qps, options.burst
			return cell.Run(command.Context(), config, options.agent)
		},
	}
	options.addFlags(command.Flags())
	return command
}

func (o *cellOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the cell; unset, the pod's own service account")
	flags.StringVar(&o.agent.Location, "location", "", "location that the cell serves; unset, read from the label of its namespace kube-system")
	flags.DurationVar(&o.agent.AllocationGrace, "allocation-grace", o.agent.AllocationGrace, "how long whatever allocates addresses may take from reading that a claim is eligible to creating its interface")
	flags.IntVar(&o.agent.Workers, "workers", o.agent.Workers, "how many networks, and how many interfaces, are worked on at once")
	flags.StringVar(&o.agent.MetricsAddress, "metrics-bind-address", o.agent.MetricsAddress, `where metrics are served; "0" for nowhere`)
	flags.StringVar(&o.agent.ProbeAddress, "health-probe-bind-address", o.agent.ProbeAddress, `where healthz and readyz are served; "0" for nowhere`)
	flags.BoolVar(&o.agent.LeaderElection, "leader-elect", o.agent.LeaderElection, "act only while holding the lease "+cell.LeaseName+"; without it, run no more than one agent")
	flags.StringVar(&o.agent.LeaderElectionNamespace, "leader-elect-resource-namespace", o.agent.LeaderElectionNamespace, "namespace of the lease, in the cell")
	flags.Float32Var(&o.qps, "kube-api-qps", -1, "requests a second to the cell's API server; negative leaves it to the server's own fairness")
	flags.IntVar(&o.burst, "kube-api-burst", 0, "requests at once to the cell's API server, where --kube-api-qps is positive")
}
