// Package webhook is the HTTPS server that Karmada asks about NetworkContexts. It mounts
// package interpreter, and needs no API server to do so.
//
// Karmada's controllers on the hub call it, and so does the karmada-agent of each cell that
// is joined in pull mode. None of them presents a client certificate. They wait for at most
// the timeoutSeconds of the ResourceInterpreterWebhookConfiguration, and call again later
// where a call fails: what is served here may stop at any moment.
package webhook
