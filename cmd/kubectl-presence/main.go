// Command kubectl-presence is a kubectl plugin that tells why a network can or cannot be
// used in a location.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// The exit codes besides 0.
const (
	exitFailed = 1 // the command could not do what it was asked
	exitNo     = 2 // it could, and the answer is no: not usable, not ready in time, a fault
)

// errNo is returned by a command whose answer is no. It is already told.
var errNo = errors.New("the answer is no")

func main() {
	log.SetLogger(klog.Background())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	err := newCommand(streams).ExecuteContext(ctx)
	stop()
	os.Exit(exitCode(streams, err))
}

func exitCode(streams genericiooptions.IOStreams, err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errNo):
		return exitNo
	}
	_, _ = fmt.Fprintln(streams.ErrOut, "error:", err)
	return exitFailed
}
