// Command karmada-scheduler is Karmada's scheduler with the plugin LocationAuthority.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register" // the log format json
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	locationauthority "go.datum.net/network-presence/scheduler-plugin"
)

func main() {
	ctrl.SetLogger(klog.Background())
	os.Exit(cli.Run(locationauthority.NewSchedulerCommand(ctrl.SetupSignalHandler())))
}
