package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	karmada "github.com/karmada-io/karmada/pkg/webhook/interpreter"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"go.datum.net/network-presence/interpreter"
)

const (
	// mostBody is how much of a request is read. Karmada's server cuts what is longer and
	// takes it for broken JSON; with a bound of one byte less, its answer says what is wrong.
	mostBody = karmada.MaxRespBodyLength - 1

	// Karmada waits for an answer for at most 30 seconds, the most that timeoutSeconds may be.
	readTimeout     = 15 * time.Second
	writeTimeout    = 30 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 30 * time.Second

	mostHeader = 64 << 10
)

// GCPercent is the percentage, as in GOGC, by which a process that serves the webhook should
// let its memory grow before it collects. All of a request is garbage, and little else is in
// memory: by default, one call in a hundred waits for a collection.
const GCPercent = 400

// Run serves until the context ends, and then until the requests that came are answered,
// for at most 30 seconds. The error is that of wrong options, of a certificate that cannot
// be read, of an address that cannot be served at, or of a server that broke; nil when the
// context ended.
func Run(ctx context.Context, options Options) error {
	if err := options.Validate(); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", options.address())
	if err != nil {
		return fmt.Errorf("serve the webhook at %s: %w", options.address(), err)
	}
	return serve(ctx, options, listener)
}

// serve serves the webhook at the listener, and closes it.
func serve(ctx context.Context, options Options, listener net.Listener) error {
	certificate, err1 := watchCertificate(options.CertDir)
	served, err2 := handlers()
	if err := errors.Join(err1, err2); err != nil {
		return errors.Join(err, listener.Close())
	}
	secure := tls.NewListener(listener, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: certificate.GetCertificate,
	})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return certificate.Start(ctx) })
	group.Go(func() error { return run(ctx, "webhook", newServer(served), secure) })
	group.Go(func() error { return serveMetrics(ctx, options.MetricsAddress) })
	group.Go(func() error { return serveProbes(ctx, options.ProbeAddress, certificate) })
	return group.Wait()
}

func watchCertificate(dir string) (*certwatcher.CertWatcher, error) {
	certificate, err := certwatcher.New(filepath.Join(dir, certificateFile), filepath.Join(dir, keyFile))
	if err != nil {
		return nil, fmt.Errorf("read the serving certificate %s and its key %s in %q: %w", certificateFile, keyFile, dir, err)
	}
	return certificate, nil
}

// handlers are what is served over HTTPS.
func handlers() (http.Handler, error) {
	defaults, err := defaulting()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST "+interpreter.Path, measured(http.MaxBytesHandler(interpreting(), mostBody)))
	mux.Handle("POST "+DefaultsPath, http.MaxBytesHandler(defaults, mostBody))
	return mux, nil
}

func interpreting() http.Handler {
	handler := telling{Handler: &interpreter.Handler{Now: time.Now}, operations: interpreter.Operations}
	return karmada.NewWebhook(handler, karmada.NewDecoder(runtime.NewScheme()))
}

func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    mostHeader,
	}
}

func run(ctx context.Context, name string, server *http.Server, listener net.Listener) error {
	runnable := manager.Server{Name: name, Server: server, Listener: listener, ShutdownTimeout: ptr.To(shutdownTimeout)}
	if err := runnable.Start(ctx); err != nil {
		return fmt.Errorf("run the %s server: %w", name, err)
	}
	return nil
}

func serveMetrics(ctx context.Context, address string) error {
	server, err := metricsserver.NewServer(metricsserver.Options{BindAddress: address}, nil, nil)
	if err == nil && server != nil { // nil where address is nowhere
		err = server.Start(ctx)
	}
	if err != nil {
		return fmt.Errorf("serve metrics at %s: %w", address, err)
	}
	return nil
}

// serveProbes serves healthz, which answers while the process does, and readyz, which does
// not while callers cannot trust the certificate for its age.
func serveProbes(ctx context.Context, address string, certificate *certwatcher.CertWatcher) error {
	if address == nowhere {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("serve probes at %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("/healthz", http.StripPrefix("/healthz", &healthz.Handler{}))
	mux.Handle("/readyz", http.StripPrefix("/readyz", &healthz.Handler{Checks: map[string]healthz.Checker{
		"certificate": func(*http.Request) error { return valid(certificate) },
	}}))
	return run(ctx, "probe", newServer(mux), listener)
}

// valid tells why the certificate that is served cannot be trusted now; nil where it can.
func valid(certificate *certwatcher.CertWatcher) error {
	pair, err := certificate.GetCertificate(nil)
	if err != nil {
		return err
	}
	now := time.Now()
	if now.Before(pair.Leaf.NotBefore) || now.After(pair.Leaf.NotAfter) {
		return fmt.Errorf("the serving certificate is valid from %s to %s only: renew it",
			pair.Leaf.NotBefore.UTC().Format(time.RFC3339), pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}
