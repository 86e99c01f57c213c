package controlplane

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"go.datum.net/network-presence/interpreter"
	"go.datum.net/network-presence/lua"
)

// The forms of the rules by which Karmada interprets NetworkContexts; see
// Options.Interpreter.
const (
	InterpreterWebhook = "webhook"
	InterpreterLua     = "lua"
)

// WebhookProcess is the name of the process that serves the webhook.
const WebhookProcess = "network-presence-webhook"

// The webhook's key pair, alone in its folder of pki.
const (
	webhookFolder  = "network-presence-webhook"
	webhookKeyPair = webhookFolder + "/tls"
)

func validateInterpreter(form string) error {
	switch form {
	case "", InterpreterWebhook, InterpreterLua:
		return nil
	}
	return fmt.Errorf("interpreter %q is none: want %q or %q", form, InterpreterWebhook, InterpreterLua)
}

// installInterpreter has Karmada interpret NetworkContexts by our rules.
func (c *ControlPlane) installInterpreter(ctx context.Context) error {
	if err := apply(ctx, c.Hub(), lua.Retention); err != nil {
		return err
	}
	if c.options.Interpreter == InterpreterLua {
		return apply(ctx, c.Hub(), lua.Status)
	}
	return c.startWebhook(ctx)
}

// startWebhook starts `network-presence webhook` and has Karmada ask it.
func (c *ControlPlane) startWebhook(ctx context.Context) error {
	port, err1 := c.ports.free()
	flags, ready, err2 := c.health("/readyz")
	ca, err3 := c.ca()
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	err := c.run(ctx, WebhookProcess, "network-presence", ready, append([]string{
		"webhook", "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port),
		"--cert-dir=" + c.file("pki/"+webhookFolder), "-v=2",
	}, flags...)...)
	if err != nil {
		return err
	}
	configuration, err := lua.WebhookAt(admissionregistrationv1.WebhookClientConfig{
		URL:      ptr.To(fmt.Sprintf("https://127.0.0.1:%d%s", port, interpreter.Path)),
		CABundle: ca,
	})
	if err != nil {
		return err
	}
	return apply(ctx, c.Hub(), configuration)
}

// RotateWebhookCertificate gives the webhook a new certificate, of the same authority.
func (c *ControlPlane) RotateWebhookCertificate() error {
	return c.authority.issue(webhookKeyPair, pkix.Name{CommonName: "localhost"})
}
