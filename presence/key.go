// Package presence makes a network's presence in a location: it turns all NetworkBindings
// for one (project, network, location) into one NetworkContext, and carries what becomes
// of that back to each binding.
package presence

import (
	"crypto/sha256"
	"encoding/hex"

	"go.datum.net/network-presence/api/v1alpha"
)

// Key names one presence: a network of the project that a hub namespace belongs to, in a
// location.
type Key struct {
	// Namespace is the hub namespace.
	Namespace string `json:"namespace"`
	// Network and Location are names, as in the specs of bindings and contexts.
	Network  string `json:"network"`
	Location string `json:"location"`
}

// String is the key as a person reads it in a log.
func (k Key) String() string { return k.Namespace + "/" + k.Network + "@" + k.Location }

// KeyOfBinding is the presence that a binding asks for.
func KeyOfBinding(binding *v1alpha.NetworkBinding) Key {
	return Key{
		Namespace: binding.Namespace,
		Network:   string(binding.Spec.Network.Name),
		Location:  string(binding.Spec.Location.Name),
	}
}

// KeyOfContext is the presence that a context is.
func KeyOfContext(context *v1alpha.NetworkContext) Key {
	return Key{
		Namespace: context.Namespace,
		Network:   string(context.Spec.Network.Name),
		Location:  string(context.Spec.Location.Name),
	}
}

// plainName is the name of the presence's context, unless another pair spells it too.
func (k Key) plainName() string { return k.Network + "-" + k.Location }

// hashedName is the name of the presence's context where another pair has plainName.
// Neither name can hold a "/", so no two pairs hash the same text.
func (k Key) hashedName() string {
	sum := sha256.Sum256([]byte(k.Network + "/" + k.Location))
	return k.plainName() + "-" + hex.EncodeToString(sum[:])[:10]
}
