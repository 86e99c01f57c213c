package locationauthority

import (
	"context"
	"fmt"
	"time"

	"github.com/karmada-io/karmada/cmd/scheduler/app"
	"github.com/karmada-io/karmada/pkg/scheduler"
	"github.com/karmada-io/karmada/pkg/scheduler/framework"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// Options are the plugin's flags. A scheduler hands its plugins nothing, its own flags
// neither.
type Options struct {
	// Kubeconfig and Master reach the hub: where both are empty, as the scheduler does.
	Kubeconfig string
	Master     string
	// Configuration is the path of a file of location.Configuration; empty for the defaults.
	Configuration string
	// SyncTimeout bounds the wait for the hub at start-up.
	SyncTimeout time.Duration
}

const (
	kubeconfigFlag    = "location-authority-kubeconfig"
	masterFlag        = "location-authority-master"
	configurationFlag = "location-authority-config"
	syncTimeoutFlag   = "location-authority-sync-timeout"
)

func (o *Options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, kubeconfigFlag, "", "kubeconfig of the Karmada API server for the plugin; by default that of --kubeconfig")
	flags.StringVar(&o.Master, masterFlag, "", "address of the Karmada API server for the plugin, before that in the kubeconfig; by default that of --master")
	flags.StringVar(&o.Configuration, configurationFlag, "", "file that names further kinds which name a location, and says what clusters without the location label get; the hub's controllers need the same")
	flags.DurationVar(&o.SyncTimeout, syncTimeoutFlag, time.Minute, "how long the plugin may take at start-up to learn what is on the hub; after that the scheduler ends")
}

// NewSchedulerCommand returns Karmada's own scheduler with the plugin registered and its
// flags added. The scheduler and the plugin's watches run until ctx ends.
func NewSchedulerCommand(ctx context.Context) *cobra.Command {
	options := &Options{}
	command := app.NewSchedulerCommand(ctx, app.WithPlugin(Name, func() (framework.Plugin, error) { return options.create(ctx) }))
	flags := pflag.NewFlagSet(Name, pflag.ContinueOnError)
	options.addFlags(flags)
	command.Flags().AddFlagSet(flags)
	explain(command, flags)
	command.PreRunE = func(command *cobra.Command, _ []string) error {
		options.inherit(command.Flags())
		return separateLeases(command.Flags())
	}
	return command
}

// inherit reaches the hub as the scheduler does, unless it is told otherwise.
func (o *Options) inherit(flags *pflag.FlagSet) {
	if o.Kubeconfig == "" && o.Master == "" {
		o.Kubeconfig, o.Master = flags.Lookup("kubeconfig").Value.String(), flags.Lookup("master").Value.String()
	}
}

// separateLeases gives a scheduler with a name of its own a lease of its own: two that
// elect a leader by one lease would take turns, and what names the other would wait.
func separateLeases(flags *pflag.FlagSet) error {
	const lease = "leader-elect-resource-name"
	name := flags.Lookup("scheduler-name").Value.String()
	if name == scheduler.DefaultScheduler || flags.Changed(lease) {
		return nil
	}
	if err := flags.Set(lease, name); err != nil {
		return fmt.Errorf("name the lease of scheduler %q: %w", name, err)
	}
	return nil
}

// explain adds the plugin's flags to the scheduler's help, which shows only its own.
func explain(command *cobra.Command, flags *pflag.FlagSet) {
	own := cliflag.NamedFlagSets{}
	own.FlagSet(Name).AddFlagSet(flags)
	help, usage := command.HelpFunc(), command.UsageFunc()
	command.SetHelpFunc(func(command *cobra.Command, args []string) {
		help(command, args)
		cliflag.PrintSections(command.OutOrStdout(), own, 0)
	})
	command.SetUsageFunc(func(command *cobra.Command) error {
		err := usage(command)
		cliflag.PrintSections(command.OutOrStderr(), own, 0)
		return err
	})
}
