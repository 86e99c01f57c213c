package controlplane

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"slices"
	"strconv"
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

// startWebhook starts `network-presence webhook`.
func (c *ControlPlane) startWebhook(ctx context.Context) (hubValues, error) {
	port, err1 := c.ports.free()
	flags, ready, err2 := c.health("/readyz")
	ca, err3 := c.ca()
	args, err4 := hostArgs(WebhookProcess)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return hubValues{}, err
	}
	err := c.run(ctx, WebhookProcess, "network-presence", ready, slices.Concat(args, flags, []string{
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port), "--cert-dir=" + c.file("pki/"+webhookFolder), "-v=2",
	})...)
	return hubValues{form: InterpreterWebhook, webhook: fmt.Sprintf("https://127.0.0.1:%d", port), ca: ca}, err
}

// RotateWebhookCertificate gives the webhook a new certificate, of the same authority.
func (c *ControlPlane) RotateWebhookCertificate() error {
	return c.authority.issue(webhookKeyPair, pkix.Name{CommonName: "localhost"})
}
