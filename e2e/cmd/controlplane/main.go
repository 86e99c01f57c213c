// Command controlplane starts and ends the embedded control plane, and plays the demo on it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"go.datum.net/network-presence/e2e/controlplane"
	"go.datum.net/network-presence/e2e/story"
)

func main() {
	log.SetLogger(klog.Background())
	if err := newCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// flags of all sub-commands.
type flags struct {
	state       string
	cells       []string
	pull        []string
	agents      bool
	projects    []string
	interpreter string
}

func newCommand() *cobra.Command {
	var f flags
	root := &cobra.Command{
		Use:           "controlplane",
		Short:         "A whole Karmada as processes on the loopback interface",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&f.state, "state", "", "folder of the state; unset, one in the user's cache folder")
	up := &cobra.Command{
		Use: "up", Short: "Start it, and leave it up", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return up(command.Context(), &f) },
	}
	demo := &cobra.Command{
		Use: "demo", Short: "Start it, walk through the story, and leave it up", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return demo(command.Context(), &f) },
	}
	down := &cobra.Command{
		Use: "down", Short: "End it, and leave nothing", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return down(command.Context(), &f) },
	}
	for _, command := range []*cobra.Command{up, demo} {
		command.Flags().StringSliceVar(&f.cells, "cells", []string{"us-1=us-central-1", "eu-1=eu-west-1", "ap-1=ap-south-1"},
			"cells to join, each as name=location, or as name alone for one without a location")
		command.Flags().StringSliceVar(&f.pull, "pull", nil, "names of those cells that are joined in pull mode, with a karmada-agent of their own")
		command.Flags().BoolVar(&f.agents, "agents", true, "run the agent of network presence in each cell that has a location")
		command.Flags().StringSliceVar(&f.projects, "projects", []string{"acme"}, "projects to connect")
		command.Flags().StringVar(&f.interpreter, "interpreter", controlplane.InterpreterWebhook,
			`form of the rules by which Karmada interprets NetworkContexts: "webhook" or "lua"`)
	}
	binaries := &cobra.Command{
		Use: "binaries", Short: "Build what it needs, and print the folder of etcd and kube-apiserver", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			folder, err := controlplane.Assets(command.Context(), os.Stderr)
			if err == nil {
				fmt.Println(folder)
			}
			return err
		},
	}
	root.AddCommand(up, demo, down, binaries)
	return root
}

func (f *flags) dir() (string, error) {
	if f.state != "" {
		return filepath.Abs(f.state)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for the state (or set --state): %w", err)
	}
	return filepath.Join(cache, "network-presence", "up"), nil
}

func start(ctx context.Context, f *flags) (*controlplane.ControlPlane, error) {
	dir, err := f.dir()
	if err != nil {
		return nil, err
	}
	cells, err := f.parseCells()
	if err != nil {
		return nil, err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{
		Dir: dir, Cells: cells, Projects: f.projects, Interpreter: f.interpreter, Detached: true, Progress: os.Stdout,
	})
	if err != nil && ctx.Err() != nil && !errors.Is(err, controlplane.ErrUp) {
		return nil, errors.Join(errors.New("interrupted: what was started is ended"), controlplane.Down(context.WithoutCancel(ctx), dir))
	}
	return plane, err
}

// parseCells reads --cells, --pull and --agents.
func (f *flags) parseCells() ([]controlplane.Cell, error) {
	cells := make([]controlplane.Cell, 0, len(f.cells))
	pull := slices.Clone(f.pull)
	for _, text := range f.cells {
		name, location, hasLocation := strings.Cut(text, "=")
		if hasLocation && location == "" {
			return nil, fmt.Errorf("--cells %q names no location: want name=location, or the name alone for a cell without one", text)
		}
		cells = append(cells, controlplane.Cell{
			Name: name, Location: location, Pull: slices.Contains(pull, name), Agent: f.agents && location != "",
		})
		pull = slices.DeleteFunc(pull, func(cell string) bool { return cell == name })
	}
	if len(pull) > 0 {
		return nil, fmt.Errorf("--pull %s: --cells has no cell of the name", strings.Join(pull, ","))
	}
	return cells, nil
}

func up(ctx context.Context, f *flags) error {
	plane, err := start(ctx, f)
	if err != nil {
		return err
	}
	howToLook(plane, f)
	return nil
}

func down(ctx context.Context, f *flags) error {
	dir, err := f.dir()
	if err != nil {
		return err
	}
	return controlplane.Down(ctx, dir)
}

// demo plays the story in the first project, with the cells of three locations.
func demo(ctx context.Context, f *flags) error {
	if len(f.projects) == 0 || len(f.cells) < 3 {
		return errors.New("the story needs a project (--projects) and cells of three locations (--cells)")
	}
	plane, err := start(ctx, f)
	if err != nil {
		return err
	}
	stage, err := setStage(ctx, plane, f)
	if err != nil {
		return err
	}
	fmt.Println()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	var rows []string
	for number, step := range story.Steps(stage) {
		fmt.Printf("%d. %s\n", number+1, step.Does)
		began := time.Now()
		if err := step.Run(ctx, stage); err != nil {
			return errors.Join(fmt.Errorf("step %d, %q, did not show %q: %w", number+1, step.Does, step.Shows, err), plane.Dead())
		}
		took := time.Since(began).Round(10 * time.Millisecond)
		fmt.Printf("   -> %s (%s)\n", step.Shows, took)
		rows = append(rows, fmt.Sprintf("%d\t%s\t%s", number+1, took, step.Shows))
	}
	fmt.Println()
	_, _ = fmt.Fprintln(table, "STEP\tTOOK\tSEEN")
	for _, row := range rows {
		_, _ = fmt.Fprintln(table, row)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	howToLook(plane, f)
	return nil
}

func setStage(ctx context.Context, plane *controlplane.ControlPlane, f *flags) (*story.Stage, error) {
	stage := &story.Stage{
		Project:           f.projects[0],
		Upstream:          plane.Project(f.projects[0]).Client,
		UpstreamNamespace: "default",
		Hub:               plane.Hub().Client,
		Namespace:         "ns-" + f.projects[0],
		Cells:             map[string]client.Client{},
		Agents:            f.agents,
	}
	var locations []string
	for _, cell := range f.cells {
		name, location, _ := strings.Cut(cell, "=")
		stage.Cells[location] = plane.Cell(name).Client
		locations = append(locations, location)
	}
	stage.Near, stage.Far, stage.Closed = locations[0], locations[1], locations[2]
	return stage, plane.CreateHubNamespace(ctx, stage.Namespace, stage.Project, stage.UpstreamNamespace)
}

func howToLook(plane *controlplane.ControlPlane, f *flags) {
	fmt.Println("\nIt is up. Kubeconfigs:")
	names := []*controlplane.Plane{plane.Hub(), plane.Platform()}
	for _, project := range f.projects {
		names = append(names, plane.Project(project))
	}
	for _, cell := range f.cells {
		name, _, _ := strings.Cut(cell, "=")
		names = append(names, plane.Cell(name))
	}
	for _, p := range names {
		fmt.Printf("  %-16s %s\n", p.Name, p.Kubeconfig)
	}
	fmt.Printf("\nLook around, for example:\n")
	fmt.Printf("  kubectl --kubeconfig %s get clusters -L topology.datum.net/location\n", plane.Hub().Kubeconfig)
	fmt.Printf("  kubectl --kubeconfig %s get networkbindings,networkcontexts,resourcebindings -A\n", plane.Hub().Kubeconfig)
	fmt.Println("\nmake down ends it.")
}
