package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/inspect"
	"go.datum.net/network-presence/presence"
)

// watcher is a hub that can be watched.
type watcher = client.WithWatch

func (p *plugin) newExplain() *cobra.Command {
	var location string
	var watch bool
	command := &cobra.Command{
		Use:   "explain BINDING | context/CONTEXT | network/NETWORK",
		Short: "Show the whole chain of a presence, and where it is broken",
		Long: `Show the whole chain of a presence, in order:

  project -> grant -> context -> ResourceBinding -> Work -> copy -> holders

and mark the first link that is broken, with its cause and what to do next. A name alone
is that of a binding before that of a context before that of a network. A network is
explained in each of its locations.

A link is ok, broken, waiting (it is not there yet, since one before it is broken) or
unseen (you may not see it, or its cell cannot be reached). Of the copies one sees what
the cells have reported to Karmada; with --cells they are looked up in the cells as well,
through Karmada's proxy, where you may.`,
		Example: `  # Why is binding web not ready?
  kubectl presence explain web -n ns-acme

  # A network in one location, with what there is to say of each link
  kubectl presence explain network/default --location=eu-west-1 -o wide

  # For a script
  kubectl presence explain web -o json | jq -r '.explanations[0].cause'`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: p.complete,
		RunE: func(command *cobra.Command, args []string) error {
			return p.explain(command.Context(), args, location, watch)
		},
	}
	command.Flags().StringVar(&location, "location", "", "of a network, explain this location alone")
	command.Flags().BoolVarP(&watch, "watch", "w", false, "explain again whenever something changes")
	command.Flags().BoolVar(&p.cells, "cells", false, "look up the copies in the cells, through Karmada's proxy")
	return command
}

func (p *plugin) explain(ctx context.Context, args []string, location string, watch bool) error {
	about, err := parseSubject(args)
	if err != nil {
		return err
	}
	namespace, err := p.namespace()
	if err != nil {
		return err
	}
	hub, watcher, err := p.connect()
	if err != nil {
		return err
	}
	show := func(ctx context.Context, out io.Writer) ([]*inspect.Explanation, error) {
		found, err := explanations(ctx, hub, namespace, location, about)
		if err != nil {
			return nil, err
		}
		return found, p.printExplanations(out, found, time.Now())
	}
	if watch {
		return p.again(ctx, watcher, namespace, func(ctx context.Context, out io.Writer) error {
			_, err := show(ctx, out)
			return err
		})
	}
	found, err := show(ctx, p.Out)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(found, func(e *inspect.Explanation) bool { return !e.Usable() }) {
		return errNo
	}
	return nil
}

func explanations(ctx context.Context, hub *inspect.Hub, namespace, location string, about subject) ([]*inspect.Explanation, error) {
	found, err := find(ctx, hub, namespace, about)
	if err != nil {
		return nil, err
	}
	var explained []*inspect.Explanation
	for _, one := range found {
		if location != "" && one.pair.Location != location {
			continue
		}
		explanation, err := explainOne(ctx, hub, one)
		if err != nil {
			return nil, err
		}
		explained = append(explained, explanation)
	}
	if len(explained) == 0 {
		return nil, fmt.Errorf("nobody asks for %s %q in location %q", found[0].pair.Namespace, about.name, location)
	}
	return explained, nil
}

func explainOne(ctx context.Context, hub *inspect.Hub, one asked) (*inspect.Explanation, error) {
	sight, err := hub.Presence(ctx, one.pair.Key)
	if err != nil {
		return nil, err
	}
	sight.Asked = one.binding
	return inspect.Explain(sight), nil
}

func (p *plugin) printExplanations(out io.Writer, found []*inspect.Explanation, now time.Time) error {
	if written, err := structured(out, p.output, map[string]any{"explanations": found}); written || err != nil {
		return err
	}
	var text bytes.Buffer
	for n, explanation := range found {
		if n > 0 {
			text.WriteByte('\n')
		}
		if err := writeExplanation(&text, explanation, now, p.output == formatWide); err != nil {
			return err
		}
	}
	return paint(out, text.String(), func(line string) string {
		if strings.HasPrefix(line, mark) {
			return red
		}
		return ""
	})
}

// mark starts the line of the first broken link.
const mark = ">>"

func writeExplanation(out io.Writer, e *inspect.Explanation, now time.Time, wide bool) error {
	_, _ = fmt.Fprintf(out, "Network %s in location %s, for namespace %s: %s\n", e.Key.Network, e.Key.Location, e.Key.Namespace, e.State)
	if e.Binding != "" && e.Answer != nil {
		_, _ = fmt.Fprintf(out, "Binding %s: Ready=%s, %s, for %s\n", e.Binding, e.Answer.Status, e.Answer.Reason, age(&e.Answer.LastTransitionTime, now))
	}
	_, _ = fmt.Fprintln(out)
	rows := [][]string{{"  ", "LINK", "CELL", "OBJECT", "STATE", "AGE", "GENERATION", "NOTE"}}
	for i := range e.Links {
		link, marked := &e.Links[i], e.Broken != nil && *e.Broken == i
		rows = append(rows, row(link, marked, wide, now))
	}
	if err := table(out, rows); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out)
	return writeConclusion(out, e)
}

func row(link *inspect.Link, marked, wide bool, now time.Time) []string {
	start, state, note, generation := "  ", string(link.State), link.Note, "-"
	if link.State == inspect.LinkBroken {
		state = strings.ToUpper(state)
		if !wide && marked {
			note = "see below"
		}
	}
	if marked {
		start = mark
	}
	if link.Generation != 0 {
		generation = fmt.Sprint(link.Generation)
	}
	return []string{start, string(link.Step), orDash(link.Cell), orDash(link.Object), state, age(link.Created, now), generation, orDash(note)}
}

func writeConclusion(out io.Writer, e *inspect.Explanation) error {
	if first := e.First(); first != nil {
		where := string(first.Step)
		if first.Cell != "" {
			where += " in cell " + first.Cell
		}
		_, _ = fmt.Fprintf(out, "Broken at: %s\n", where)
	}
	var err error
	switch {
	case e.Cause == "" && e.State == presence.StateConverging:
		_, err = fmt.Fprintln(out, "Nothing is broken: the network can be used there, and its newest rules are on their way.")
	case e.Cause == "":
		_, err = fmt.Fprintln(out, "Nothing is broken: the network can be used there.")
	default:
		_, err = fmt.Fprintf(out, "Cause:     %s\n", e.Cause)
	}
	if e.Advice != "" {
		_, err = fmt.Fprintf(out, "Do:        %s\n", e.Advice)
	}
	return err
}
