// Command bench measures network presence on the embedded control plane. Each benchmark
// ends with its figures, one a line: name and value.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"go.datum.net/network-presence/e2e/controlplane"
)

func main() {
	ctrl.SetLogger(klog.NewKlogr())
	root := &cobra.Command{Use: "bench", SilenceUsage: true, SilenceErrors: true}
	for _, benchmark := range []struct {
		name, short string
		run         func(context.Context) error
	}{
		{"latency", "A binding's way to Ready beside Karmada's own way to applied", latency},
		{"scale", "The presence controller alone with 200, 2,000 and 10,000 bindings", scale},
		{"interpreter", "The rules of interpretation as functions and in Lua, and the webhook under load", interpretation},
		{"filter", "The scheduler's plugin beside Karmada's own, and schedulers with and without it", filter},
	} {
		root.AddCommand(&cobra.Command{
			Use: benchmark.name, Short: benchmark.short, Args: cobra.NoArgs,
			RunE: func(command *cobra.Command, _ []string) error { return benchmark.run(command.Context()) },
		})
	}
	if err := root.ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// withControlPlane runs a benchmark on a control plane of its own.
func withControlPlane(ctx context.Context, options controlplane.Options, run func(*controlplane.ControlPlane) error) (err error) {
	dir, err := os.MkdirTemp("", "network-presence-bench-")
	if err != nil {
		return fmt.Errorf("make a folder for the control plane: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	options.Dir, options.Progress = filepath.Join(dir, "state"), os.Stderr
	plane, err := controlplane.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop(context.WithoutCancel(ctx))) }()
	if err := run(plane); err != nil {
		return errors.Join(err, plane.Dead())
	}
	return nil
}

func figure(name string, value any) { fmt.Println(name, value) }

// quantile is that of durations, which it sorts.
func quantile(durations []time.Duration, q float64) time.Duration {
	slices.Sort(durations)
	return durations[min(len(durations)-1, int(q*float64(len(durations))))]
}
