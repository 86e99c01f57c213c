package main

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"go.datum.net/network-presence/inspect"
)

func (p *plugin) newCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the installation on a hub and its cells, a line for each thing",
		Long: `Check the installation on a hub and its cells, a line for each thing: the CRDs on the hub
and in the cells, the propagation policy, whether the hub's controllers and the scheduler
are at work, whether the interpreter answers, cells without a location, locations without
a cell, and Works that nothing needs any more.

Each line is ok, FAULT with what to do, or unseen where you may not look.`,
		Example: `  kubectl presence check --context=hub`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			hub, _, err := p.connect()
			if err != nil {
				return err
			}
			installation, err := hub.Installation(command.Context())
			if err != nil {
				return err
			}
			findings := inspect.Check(installation)
			if err := p.printFindings(p.Out, findings); err != nil {
				return err
			}
			if slices.ContainsFunc(findings, func(f inspect.Finding) bool { return f.State == inspect.LinkBroken }) {
				return errNo
			}
			return nil
		},
	}
}

// faultWord is how a fault is shown.
const faultWord = "FAULT"

func (p *plugin) printFindings(out io.Writer, findings []inspect.Finding) error {
	if written, err := structured(out, p.output, map[string]any{"findings": findings}); written || err != nil {
		return err
	}
	var rows [][]string
	for _, finding := range findings {
		state, note := string(finding.State), finding.Note
		if finding.State == inspect.LinkBroken {
			state = faultWord
		}
		if finding.Advice != "" {
			note += ": " + finding.Advice
		}
		rows = append(rows, []string{state, finding.Subject, note})
	}
	var text bytes.Buffer
	if err := table(&text, rows); err != nil {
		return err
	}
	return paint(out, text.String(), func(line string) string {
		switch {
		case strings.HasPrefix(line, faultWord):
			return red
		case strings.HasPrefix(line, string(inspect.LinkUnseen)):
			return yellow
		}
		return ""
	})
}
