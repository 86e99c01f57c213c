// Command karmada-scheduler is Karmada's scheduler with the plugin LocationAuthority.
package main

import (
	"os"

	"github.com/karmada-io/karmada/cmd/scheduler/app"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register" // the log format json
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	locationauthority "go.datum.net/network-presence/scheduler-plugin"
)

func main() {
	ctx := ctrl.SetupSignalHandler()
	ctrl.SetLogger(klog.Background())
	var command *cobra.Command
	// The plugin reaches the hub by the scheduler's own flags, which are parsed by the time
	// it is made.
	config := func() (*rest.Config, error) {
		flags := command.Flags()
		return clientcmd.BuildConfigFromFlags(flags.Lookup("master").Value.String(), flags.Lookup("kubeconfig").Value.String())
	}
	command = app.NewSchedulerCommand(ctx, app.WithPlugin(locationauthority.Name, locationauthority.NewFactory(ctx, config)))
	code := cli.Run(command)
	logs.FlushLogs()
	os.Exit(code)
}
