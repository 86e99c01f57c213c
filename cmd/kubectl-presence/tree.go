package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/inspect"
	"go.datum.net/network-presence/presence"
)

func (p *plugin) newTree() *cobra.Command {
	var watch bool
	command := &cobra.Command{
		Use:   "tree NETWORK",
		Short: "Show a network's bindings, contexts, copies and holders",
		Example: `  # All that there is of network default
  kubectl presence tree default -n ns-acme`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: p.complete,
		RunE: func(command *cobra.Command, args []string) error {
			return p.tree(command.Context(), strings.TrimPrefix(args[0], "network/"), watch)
		},
	}
	command.Flags().BoolVarP(&watch, "watch", "w", false, "show it again whenever something changes")
	return command
}

// node is one line of a tree, and what hangs on it.
type node struct {
	Text string  `json:"text"`
	Sub  []*node `json:"items,omitempty"`
}

func (n *node) add(format string, args ...any) *node {
	sub := &node{Text: fmt.Sprintf(format, args...)}
	n.Sub = append(n.Sub, sub)
	return sub
}

func (p *plugin) tree(ctx context.Context, network string, watch bool) error {
	namespace, err := p.namespace()
	if err != nil {
		return err
	}
	hub, watcher, err := p.connect()
	if err != nil {
		return err
	}
	show := func(ctx context.Context, out io.Writer) error {
		pairs, err := hub.Pairs(ctx, namespace, network)
		if err != nil {
			return err
		}
		if len(pairs.Items) == 0 {
			return fmt.Errorf("nobody asks for network %q in namespace %q", network, namespace)
		}
		return p.printTree(out, treeOf(network, namespace, pairs))
	}
	if watch {
		return p.again(ctx, watcher, namespace, show)
	}
	return show(ctx, p.Out)
}

func treeOf(network, namespace string, pairs *inspect.Pairs) *node {
	root := &node{Text: fmt.Sprintf("network %s, for namespace %s", network, namespace)}
	for _, pair := range pairs.Items {
		location := root.add("location %s: %s", pair.Location, pair.State)
		names := slices.Sorted(slices.Values(pair.BindingNames))
		for _, name := range names {
			location.add("binding %s: %s", name, answerOf(pair, name))
		}
		addContext(location, pair.Context)
	}
	return root
}

func answerOf(pair *inspect.Pair, name string) string {
	for _, binding := range pair.Bindings {
		if binding.Name != name {
			continue
		}
		if !binding.DeletionTimestamp.IsZero() {
			return "being deleted"
		}
		answer := presence.Answer([]*v1alpha.NetworkBinding{binding})
		return fmt.Sprintf("Ready=%s, %s", answer.Status, answer.Reason)
	}
	return ""
}

func addContext(location *node, current *v1alpha.NetworkContext) {
	if current == nil {
		return
	}
	about := fmt.Sprintf("generation %d", current.Spec.NetworkGeneration)
	if !current.DeletionTimestamp.IsZero() {
		about = "being deleted"
	}
	if meta.IsStatusConditionFalse(current.Status.Conditions, v1alpha.NetworkContextDeclared) {
		about += ", held"
	}
	context := location.add("context %s: %s", current.Name, about)
	for i := range current.Status.Cells {
		cell := &current.Status.Cells[i]
		said := fmt.Sprintf("generation %d, %s", cell.NetworkGeneration, orDash(cell.Health))
		if cell.Message != "" {
			said = cell.Message
		}
		copied := context.add("copy in cell %s: %s", cell.Name, said)
		if cell.Holders == nil {
			copied.add("holders: nobody reports them")
			continue
		}
		copied.add("holders: %d", *cell.Holders)
	}
}

func (p *plugin) printTree(out io.Writer, root *node) error {
	if written, err := structured(out, p.output, root); written || err != nil {
		return err
	}
	var text strings.Builder
	text.WriteString(root.Text + "\n")
	draw(&text, root.Sub, "")
	_, err := io.WriteString(out, text.String())
	return err
}

func draw(text *strings.Builder, nodes []*node, indent string) {
	for n, one := range nodes {
		branch, further := "├─ ", "│  "
		if n == len(nodes)-1 {
			branch, further = "└─ ", "   "
		}
		text.WriteString(indent + branch + one.Text + "\n")
		draw(text, one.Sub, indent+further)
	}
}
