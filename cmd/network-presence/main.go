// Command network-presence runs the processes of network presence: the hub's controllers,
// the webhook, and the agent in each cell.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/logs"
	logsv1 "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	if err := newCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "network-presence:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	logging := logsv1.NewLoggingConfiguration()
	command := &cobra.Command{
		Use:           "network-presence",
		Short:         "Make declared networks present in the locations that need them",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			logs.InitLogs()
			ctrl.SetLogger(klog.Background())
			return logsv1.ValidateAndApply(logging, nil)
		},
	}
	logsv1.AddFlags(logging, command.PersistentFlags())
	command.AddCommand(newHubCommand(), newWebhookCommand(), newCellCommand(), newInterpretCommand())
	return command
}
