package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/inspect"
	"go.datum.net/network-presence/presence"
)

// The values of --for.
const (
	forReady  = "ready"
	forDelete = "delete"
)

func (p *plugin) newWait() *cobra.Command {
	var until string
	var patience time.Duration
	command := &cobra.Command{
		Use:   "wait BINDING",
		Short: "Wait until a binding is ready, and tell what it waits for meanwhile",
		Long: `Wait until a binding is ready, and tell what it waits for meanwhile.

A line is written each time that the reason or the message changes. When the time is up,
the binding is explained, and the command exits with 2.`,
		Example: `  kubectl presence wait web -n ns-acme --for=ready --timeout=2m`,
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: p.complete,
		RunE: func(command *cobra.Command, args []string) error {
			about, err := parseSubject(args)
			switch {
			case err != nil:
				return err
			case about.kind != "" && about.kind != kindBinding:
				return fmt.Errorf("%s %q cannot be waited for: name a binding", about.kind, about.name)
			case until != forReady && until != forDelete:
				return fmt.Errorf("--for is %q: it must be ready or delete", until)
			case patience <= 0:
				return fmt.Errorf("--timeout is %s: it must be more than 0", patience)
			}
			return p.wait(command.Context(), about.name, until, patience)
		},
	}
	command.Flags().StringVar(&until, "for", forReady, "what to wait for: ready or delete")
	command.Flags().DurationVar(&patience, "timeout", 30*time.Second, "how long to wait, such as 90s or 5m")
	return command
}

func (p *plugin) wait(ctx context.Context, name, until string, patience time.Duration) error {
	namespace, err := p.namespace()
	if err != nil {
		return err
	}
	hub, watcher, err := p.connect()
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last *v1alpha.NetworkBinding
	var told string
	met := false
	err = follow(limited, watcher, namespace, func(ctx context.Context) (bool, error) {
		var binding v1alpha.NetworkBinding
		err := watcher.Get(ctx, key, &binding)
		switch {
		case apierrors.IsNotFound(err) && until == forDelete:
			met = true
			return true, p.say("networkbinding/%s deleted\n", name)
		case err != nil:
			return false, fmt.Errorf("get NetworkBinding %s: %w", key, err)
		}
		last = &binding
		answer := presence.Answer([]*v1alpha.NetworkBinding{&binding})
		if line := progress(answer); line != told {
			told = line
			if err := p.say("networkbinding/%s %s\n", name, line); err != nil {
				return false, err
			}
		}
		met = until == forReady && answer != nil && answer.Status == metav1.ConditionTrue && answer.ObservedGeneration == binding.Generation
		return met, nil
	})
	if err != nil || met {
		return err
	}
	return p.giveUp(ctx, hub, last, until, patience)
}

func (p *plugin) say(format string, args ...any) error {
	_, err := fmt.Fprintf(p.Out, format, args...)
	return err
}

func progress(answer *metav1.Condition) string {
	switch {
	case answer == nil:
		return "is being deleted"
	case answer.Status == metav1.ConditionTrue:
		return "ready: " + answer.Message
	}
	return answer.Reason + ": " + answer.Message
}

// giveUp explains what was waited for in vain.
func (p *plugin) giveUp(ctx context.Context, hub *inspect.Hub, last *v1alpha.NetworkBinding, until string, patience time.Duration) error {
	if ctx.Err() != nil || last == nil {
		return fmt.Errorf("interrupted before the binding was %s", until)
	}
	_, _ = fmt.Fprintf(p.ErrOut, "networkbinding/%s is not %s after %s\n\n", last.Name, until, patience)
	pair := &inspect.Pair{Key: presence.KeyOfBinding(last)}
	explanation, err := explainOne(ctx, hub, asked{pair, last.Name})
	if err != nil {
		return err
	}
	if err := p.printExplanations(p.Out, []*inspect.Explanation{explanation}, time.Now()); err != nil {
		return err
	}
	return errNo
}
