package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"go.datum.net/network-presence/inspect"
	"go.datum.net/network-presence/presence"
)

func (p *plugin) newGet() *cobra.Command {
	var everywhere, watch bool
	command := &cobra.Command{
		Use:   "get [NETWORK]",
		Short: "Show networks by locations, one word for each presence",
		Long: `Show networks by locations, one word for each presence.

  ready       the network can be used in the location
  converging  it can be used, and some cell has older rules yet
  waiting     something on the way to the cells is missing: see explain
  refused     the project is not connected, may not use the location, or has no such network
  held        nobody asks for it any more, and it stays until its addresses go
  -           nobody asks for it

With -o wide each has its cells that carry the network, out of those it is placed in,
and a line for each presence with its reason follows.`,
		Example: `  # The networks of one namespace
  kubectl presence get -n ns-acme

  # One network everywhere, and its changes
  kubectl presence get default -A --watch`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			return p.get(command.Context(), strings.TrimPrefix(strings.Join(args, ""), "network/"), everywhere, watch)
		},
	}
	command.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "show the networks of all namespaces")
	command.Flags().BoolVarP(&watch, "watch", "w", false, "show them again whenever something changes")
	return command
}

func (p *plugin) get(ctx context.Context, network string, everywhere, watch bool) error {
	namespace, err := p.namespace()
	if err != nil {
		return err
	}
	if everywhere {
		namespace = ""
	}
	hub, watcher, err := p.connect()
	if err != nil {
		return err
	}
	if watch {
		return p.again(ctx, watcher, namespace, func(ctx context.Context, out io.Writer) error {
			return p.showMatrix(ctx, out, hub, namespace, network)
		})
	}
	return p.showMatrix(ctx, p.Out, hub, namespace, network)
}

func (p *plugin) showMatrix(ctx context.Context, out io.Writer, hub *inspect.Hub, namespace, network string) error {
	pairs, err := hub.Pairs(ctx, namespace, network)
	if err != nil {
		return err
	}
	if written, err := structured(out, p.output, map[string]any{"presences": orNone(pairs.Items)}); written || err != nil {
		return err
	}
	if len(pairs.Items) == 0 {
		_, err := fmt.Fprintln(p.ErrOut, "No networks are asked for"+in(namespace)+".")
		return err
	}
	return p.printMatrix(out, pairs, namespace == "")
}

// orNone is never nil, so that it is written as an empty list.
func orNone(pairs []*inspect.Pair) []*inspect.Pair {
	if pairs == nil {
		return []*inspect.Pair{}
	}
	return pairs
}

func in(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}

func (p *plugin) printMatrix(out io.Writer, pairs *inspect.Pairs, namespaces bool) error {
	locations, rows := pairs.Matrix()
	wide := p.output == formatWide
	line := func(namespace, network string, cells []string) []string {
		start := []string{network}
		if namespaces {
			start = []string{namespace, network}
		}
		return append(start, cells...)
	}
	lines := [][]string{line("NAMESPACE", "NETWORK", locations)}
	for _, row := range rows {
		var cells []string
		for _, location := range locations {
			cells = append(cells, word(row.Cells[location], wide))
		}
		lines = append(lines, line(row.Namespace, row.Network, cells))
	}
	if err := table(out, lines); err != nil || !wide {
		return err
	}
	_, _ = fmt.Fprintln(out)
	lines = [][]string{line("NAMESPACE", "NETWORK", []string{"LOCATION", "STATE", "BINDINGS", "CONTEXT", "REASON", "MESSAGE"})}
	for _, pair := range pairs.Items {
		lines = append(lines, line(pair.Namespace, pair.Network, []string{pair.Location, string(pair.State),
			fmt.Sprint(len(pair.BindingNames)), orDash(pair.ContextName), orDash(pair.Reason), orDash(pair.Message)}))
	}
	return table(out, lines)
}

// word is what stands in the matrix for a presence; nil is none.
func word(pair *inspect.Pair, wide bool) string {
	if pair == nil {
		return "-"
	}
	if carrying, all := pair.Carrying(); wide && all > 0 && pair.State != presence.StateRefused {
		return fmt.Sprintf("%s %d/%d", pair.State, carrying, all)
	}
	return string(pair.State)
}

// again shows something now and whenever it has changed, until the user has enough.
func (p *plugin) again(ctx context.Context, hub watcher, namespace string, show func(context.Context, io.Writer) error) error {
	var before string
	return follow(ctx, hub, namespace, func(ctx context.Context) (bool, error) {
		var shown bytes.Buffer
		if err := show(ctx, &shown); err != nil {
			return false, err
		}
		if shown.String() == before {
			return false, nil
		}
		if before != "" && (p.output == formatTable || p.output == formatWide || p.output == formatYAML) {
			_, _ = fmt.Fprintln(p.Out, "---")
		}
		before = shown.String()
		_, err := io.WriteString(p.Out, before)
		return false, err
	})
}
