// Package lua holds how Karmada's interpretation of NetworkContexts is customized: the
// scripts, and the manifests that are made from them and from package interpreter.
//
// Retention and dependencies are Lua in every installation. Status, health and aggregation
// are either those that package interpreter serves as a webhook, or the same in Lua; never
// both, since Karmada asks Lua first and then does not ask the webhook.
package lua

import (
	_ "embed" // the manifests
	"fmt"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

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
// in the namespace network-presence-system, and no authority for its certificate; see
// WebhookAt.
//
//go:embed manifests/webhook.yaml
var Webhook []byte

// WebhookAt is Webhook for a server that is reached otherwise: at a URL or another Service,
// by a certificate of the authorities in the CABundle. The path must be that which the
// server serves. The error is that of a client that cannot be written as YAML.
func WebhookAt(client admissionregistrationv1.WebhookClientConfig) ([]byte, error) {
	var configuration configv1alpha1.ResourceInterpreterWebhookConfiguration
	if err := yaml.UnmarshalStrict(Webhook, &configuration); err != nil {
		return nil, fmt.Errorf("read the webhook's configuration: %w", err)
	}
	for i := range configuration.Webhooks {
		configuration.Webhooks[i].ClientConfig = client
	}
	manifest, err := yaml.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("write the webhook's configuration: %w", err)
	}
	return manifest, nil
}
