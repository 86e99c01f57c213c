package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.datum.net/network-presence/inspect"
)

// The kinds of a subject.
const (
	kindBinding = "networkbinding"
	kindContext = "networkcontext"
	kindNetwork = "network"
)

var kindNames = map[string]string{
	"networkbinding": kindBinding, "networkbindings": kindBinding, "binding": kindBinding, "bindings": kindBinding,
	"networkcontext": kindContext, "networkcontexts": kindContext, "context": kindContext, "contexts": kindContext,
	"network": kindNetwork, "networks": kindNetwork,
}

// subject is what a command was asked about.
type subject struct {
	kind string // empty where only a name was given
	name string
}

// parseSubject reads NAME, KIND/NAME or KIND NAME.
func parseSubject(args []string) (subject, error) {
	written := strings.Join(args, "/")
	kind, name, both := strings.Cut(written, "/")
	if !both {
		return subject{name: written}, nil
	}
	known, ok := kindNames[strings.ToLower(strings.SplitN(kind, ".", 2)[0])]
	switch {
	case !ok:
		return subject{}, fmt.Errorf("kind %q is unknown: it must be binding, context or network", kind)
	case name == "" || strings.Contains(name, "/"):
		return subject{}, fmt.Errorf("%q names nothing: write %s/NAME", written, kind)
	}
	return subject{known, name}, nil
}

// asked is a presence that a subject is about.
type asked struct {
	pair    *inspect.Pair
	binding string // empty where a context or network was asked about
}

// find looks for the presences that a subject is about: one, but for a network, which has
// one in each location. A name alone is that of a binding before a context before a network.
func find(ctx context.Context, hub *inspect.Hub, namespace string, s subject) ([]asked, error) {
	pairs, err := hub.Pairs(ctx, namespace, "")
	if err != nil {
		return nil, err
	}
	for _, kind := range []string{kindBinding, kindContext, kindNetwork} {
		if s.kind != "" && s.kind != kind {
			continue
		}
		if found := matching(pairs, kind, s.name); len(found) > 0 {
			return found, nil
		}
	}
	if s.kind == "" {
		return nil, fmt.Errorf("namespace %q has no binding, context or network %q", namespace, s.name)
	}
	return nil, fmt.Errorf("namespace %q has no %s %q", namespace, s.kind, s.name)
}

func matching(pairs *inspect.Pairs, kind, name string) []asked {
	var found []asked
	for _, pair := range pairs.Items {
		switch {
		case kind == kindBinding && slices.Contains(pair.BindingNames, name):
			found = append(found, asked{pair, name})
		case kind == kindContext && pair.ContextName == name, kind == kindNetwork && pair.Network == name:
			found = append(found, asked{pair: pair})
		}
	}
	return found
}
