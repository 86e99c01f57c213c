package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"go.datum.net/network-presence/inspect"
)

// plugin is what all commands share.
type plugin struct {
	genericiooptions.IOStreams
	config *genericclioptions.ConfigFlags
	output string
	// cells tells to look into the cells through Karmada's proxy.
	cells bool
}

func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	p := &plugin{IOStreams: streams, config: genericclioptions.NewConfigFlags(true)}
	command := &cobra.Command{
		Use:   "kubectl-presence",
		Short: "Tell why a network can or cannot be used in a location",
		Long: `Tell why a network can or cannot be used in a location.

It reads a hub, the Karmada API server, with what you may read there; give it the
kubeconfig and context of the hub as you would kubectl. What you may not see is said
to be unseen, and is never taken for broken.

It exits with 0 when the answer is yes, 2 when it is no (a network that cannot be
used, one that is not ready in time, a fault of the installation), and 1 when it could
not find out.`,
		Example: `  # The state of every network in every location
  kubectl presence get -A

  # Why is binding web not ready?
  kubectl presence explain web -n ns-acme

  # Is the installation well?
  kubectl presence check`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl presence"},
		PersistentPreRunE: func(*cobra.Command, []string) error { return p.validate() },
	}
	p.config.AddFlags(command.PersistentFlags())
	command.PersistentFlags().StringVarP(&p.output, "output", "o", "table", "output format: table, wide, json or yaml")
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{formatTable, formatWide, formatJSON, formatYAML}, cobra.ShellCompDirectiveNoFileComp))
	command.AddCommand(p.newGet(), p.newExplain(), p.newTree(), p.newWait(), p.newCheck())
	command.SetIn(streams.In)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	return command
}

// The values of --output.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

func (p *plugin) validate() error {
	switch p.output {
	case formatTable, formatWide, formatJSON, formatYAML:
		return nil
	}
	return fmt.Errorf("--output is %q: it must be table, wide, json or yaml", p.output)
}

// namespace is the one that the user is in.
func (p *plugin) namespace() (string, error) {
	namespace, _, err := p.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("read the namespace of the kubeconfig: %w", err)
	}
	return namespace, nil
}

// complete offers the names of bindings and networks.
func (p *plugin) complete(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	none := cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 {
		return nil, none
	}
	namespace, err := p.namespace()
	if err != nil {
		return nil, none
	}
	hub, _, err := p.connect()
	if err != nil {
		return nil, none
	}
	pairs, err := hub.Pairs(command.Context(), namespace, "")
	if err != nil {
		return nil, none
	}
	return completions(pairs), none
}

func completions(pairs *inspect.Pairs) []string {
	var names []string
	seen := map[string]bool{}
	offer := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, pair := range pairs.Items {
		for _, binding := range pair.BindingNames {
			offer(binding)
		}
	}
	for _, pair := range pairs.Items {
		offer("network/" + pair.Network)
	}
	return names
}
