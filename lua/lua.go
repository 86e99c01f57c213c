// Package lua holds how Karmada's interpretation of NetworkContexts is customized: the
// scripts, and the manifests that are made from them and from package interpreter.
//
// Retention and dependencies are Lua in every installation. Status, health and aggregation
// are either those that package interpreter serves as a webhook, or the same in Lua; never
// both, since Karmada asks Lua first and then does not ask the webhook.
package lua

import _ "embed" // the manifests

//go:generate go run ./generate

// Retention is a ResourceInterpreterCustomization, as YAML, for every installation: what of
// a copy stays when it is written, and what travels with a context.
//
//go:embed manifests/retention.yaml
var Retention []byte

// Status is a ResourceInterpreterCustomization, as YAML, with the Lua form of status,
// health and aggregation. It must not be installed beside Webhook.
//
//go:embed manifests/status.yaml
var Status []byte

// Webhook is a ResourceInterpreterWebhookConfiguration, as YAML, that has Karmada ask the
// webhook for status, health and aggregation. It names the Service network-presence-webhook
// in the namespace network-presence-system, and no authority for its certificate: the hub's
// chart says where the webhook is, and whose certificate it has.
//
//go:embed manifests/webhook.yaml
var Webhook []byte
