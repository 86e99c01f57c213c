package main

import (
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"go.datum.net/network-presence/webhook"
)

func newWebhookCommand() *cobra.Command {
	options := webhook.DefaultOptions()
	command := &cobra.Command{
		Use:   "webhook",
		Short: "Run the webhook that Karmada asks about NetworkContexts",
		Long: `Run the webhook that Karmada asks about NetworkContexts: what a copy in a cell
amounts to, whether it is well, and what all cells have together.

Karmada's controllers on the hub call it, and so does the karmada-agent of a cell
that is joined in pull mode. Where an agent cannot reach it, install the
customization in Lua, which gives the same answers, in place of it.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if _, set := os.LookupEnv("GOGC"); !set {
				debug.SetGCPercent(webhook.GCPercent)
			}
			return webhook.Run(command.Context(), options)
		},
	}
	addWebhookFlags(command.Flags(), &options)
	return command
}

func addWebhookFlags(flags *pflag.FlagSet, o *webhook.Options) {
	flags.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "IP address to serve at; unset, all")
	flags.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "port to serve HTTPS at")
	flags.StringVar(&o.CertDir, "cert-dir", o.CertDir, "directory of the serving certificate tls.crt and its key tls.key, which are read again when they change")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress, `where metrics are served; "0" for nowhere`)
	flags.StringVar(&o.ProbeAddress, "health-probe-bind-address", o.ProbeAddress, `where healthz and readyz are served; "0" for nowhere`)
}
