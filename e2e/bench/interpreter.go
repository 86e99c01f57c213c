package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/declarative"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/interpreter"
	"go.datum.net/network-presence/lua"
	"go.datum.net/network-presence/webhook"
)

const (
	cellsOfContext = 20
	callsPerSecond = 500
	callsFor       = 20 * time.Second
)

// sample is what is interpreted over and over: a copy with its agent's report, and a context
// with that of 20 such copies.
type sample struct {
	copied, context       *unstructured.Unstructured
	rawCopied, rawContext []byte
	typedContext          *v1alpha.NetworkContext
	items                 []workv1alpha2.AggregatedStatusItem
}

// interpretation measures the three functions from JSON to answer, the same in Lua, and the
// webhook under a steady load.
func interpretation(ctx context.Context) error {
	s, err := newSample()
	if err != nil {
		return err
	}
	if err := errors.Join(measureFunctions(s), measureScripts(s)); err != nil {
		return err
	}
	return measureWebhook(ctx, s)
}

func newSample() (*sample, error) {
	at := metav1.NewTime(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC))
	context := &v1alpha.NetworkContext{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha.SchemeGroupVersion.String(), Kind: interpreter.Kind.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default-" + near, Generation: 7, Labels: map[string]string{v1alpha.NetworkUIDLabel: "5a7c7d4e-8a55-4b6b-9d1c-0a4a0d9b5f10"}},
		Spec: v1alpha.NetworkContextSpec{
			Network: v1alpha.LocalNetworkReference{Name: "default"}, Location: v1alpha.LocationReference{Name: near},
			IPFamilies: []v1alpha.IPFamily{v1alpha.IPv4, v1alpha.IPv6}, MTU: 8000, NetworkGeneration: 4,
		},
	}
	copied := context.DeepCopy()
	copied.Status = v1alpha.NetworkContextStatus{
		ObservedGeneration: 7,
		Agent:              &v1alpha.AgentStatus{NetworkGeneration: 4, NetworkUID: "5a7c7d4e-8a55-4b6b-9d1c-0a4a0d9b5f10", Holders: 12, ConvergedInterfaces: 12},
		Conditions: []metav1.Condition{
			{Type: v1alpha.NetworkContextAccepted, Status: metav1.ConditionTrue, Reason: v1alpha.ReasonRulesAccepted, ObservedGeneration: 7, LastTransitionTime: at,
				Message: `claims on network "default" are served by these rules`},
			{Type: v1alpha.NetworkContextHeld, Status: metav1.ConditionTrue, Reason: v1alpha.ReasonAddressesHeld, ObservedGeneration: 7, LastTransitionTime: at,
				Message: `network interfaces of network "default" hold addresses; the context stays until the last of them is gone`},
		},
	}
	report, err := json.Marshal(interpreter.Reflect(copied, nil))
	if err != nil {
		return nil, fmt.Errorf("write a report: %w", err)
	}
	s := &sample{typedContext: context}
	for i := range cellsOfContext {
		s.items = append(s.items, workv1alpha2.AggregatedStatusItem{
			ClusterName: fmt.Sprintf("cell-%d", i), Applied: true, Health: workv1alpha2.ResourceHealthy, Status: &runtime.RawExtension{Raw: report},
		})
	}
	context.Status = interpreter.Aggregate(context, s.items, at.Time)
	var err1, err2 error
	s.copied, s.rawCopied, err1 = untyped(copied)
	s.context, s.rawContext, err2 = untyped(context)
	return s, errors.Join(err1, err2)
}

func untyped(context *v1alpha.NetworkContext) (*unstructured.Unstructured, []byte, error) {
	raw, err := json.Marshal(context)
	if err != nil {
		return nil, nil, fmt.Errorf("write a context: %w", err)
	}
	object := &unstructured.Unstructured{}
	return object, raw, object.UnmarshalJSON(raw)
}

// measureFunctions measures them as they run in the webhook's process.
func measureFunctions(s *sample) error {
	defer debug.SetGCPercent(debug.SetGCPercent(webhook.GCPercent))
	report := func() interpreter.Report {
		copied, err := interpreter.ReadCopy(s.rawCopied)
		return interpreter.Reflect(copied, err)
	}
	return errors.Join(
		measure("reflect", func() error { report(); return nil }),
		measure("health", func() error {
			if !interpreter.Health(report()) {
				return errors.New("the sample is not healthy")
			}
			return nil
		}),
		measure("aggregate", func() error { interpreter.Aggregate(s.typedContext, s.items, time.Now()); return nil }),
	)
}

func measureScripts(s *sample) error {
	var customization configv1alpha1.ResourceInterpreterCustomization
	if err := yaml.UnmarshalStrict(lua.Status, &customization); err != nil {
		return fmt.Errorf("read the customization in Lua: %w", err)
	}
	machine := declarative.NewConfigurableInterpreter(nil)
	machine.LoadConfig([]*configv1alpha1.ResourceInterpreterCustomization{&customization})
	return errors.Join(
		measure("lua_reflect", func() error { _, found, err := machine.ReflectStatus(s.copied); return answered(found, err) }),
		measure("lua_health", func() error { _, found, err := machine.InterpretHealth(s.copied); return answered(found, err) }),
		measure("lua_aggregate", func() error {
			_, found, err := machine.AggregateStatus(s.context, s.items)
			return answered(found, err)
		}),
	)
}

func answered(found bool, err error) error {
	if err == nil && !found {
		return errors.New("the customization has no script for it")
	}
	return err
}

// measure prints how long something takes and how often it allocates.
func measure(name string, do func() error) error {
	var failure error
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if failure = do(); failure != nil {
				return
			}
		}
	})
	if failure != nil {
		return fmt.Errorf("measure %s: %w", name, failure)
	}
	figure(name+"_us", fmt.Sprintf("%.1f", float64(result.NsPerOp())/1e3))
	figure(name+"_allocs", result.AllocsPerOp())
	return nil
}

// measureWebhook calls the webhook at a steady pace, whether or not it has answered, and
// takes the time from when a call was made: a timer of the caller's that fires late, as it
// may by a millisecond, is none of the webhook's time.
func measureWebhook(ctx context.Context, s *sample) error {
	return withWebhook(ctx, func(c *caller) error {
		if err := c.prepare(s); err != nil {
			return err
		}
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
			return c.call(ctx, 0) == nil, nil
		})
		if err != nil {
			return fmt.Errorf("wait for the webhook: %w", errors.Join(err, c.call(ctx, 0)))
		}
		took, err := c.load(ctx)
		if err != nil {
			return err
		}
		figure("webhook_p50_ms", fmt.Sprintf("%.2f", quantile(took, 0.5).Seconds()*1e3))
		figure("webhook_p99_ms", fmt.Sprintf("%.2f", quantile(took, 0.99).Seconds()*1e3))
		return nil
	})
}

// withWebhook runs a webhook, in a process of its own, for as long as something calls it.
func withWebhook(ctx context.Context, run func(*caller) error) (err error) {
	dir, err := os.MkdirTemp("", "network-presence-bench-")
	if err != nil {
		return fmt.Errorf("make a folder for the certificate: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	roots, err1 := makeCertificate(dir)
	port, err2 := freePort()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	server, err := startWebhook(ctx, dir, port)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Process.Signal(os.Interrupt), server.Wait()) }()
	return run(&caller{
		url: fmt.Sprintf("https://127.0.0.1:%d%s", port, interpreter.Path),
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, MaxConnsPerHost: 4,
		}},
	})
}

func startWebhook(ctx context.Context, dir string, port int) (*exec.Cmd, error) {
	program := filepath.Join(dir, "network-presence")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/network-presence")
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build network-presence: %w: %s", err, output)
	}
	server := exec.Command(program, "webhook", "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir="+dir, "--metrics-bind-address=0", "--health-probe-bind-address=0")
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("start the webhook: %w", err)
	}
	return server, nil
}

func makeCertificate(dir string) (*x509.CertPool, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	return roots, errors.Join(
		os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// caller calls the webhook as Karmada does.
type caller struct {
	url    string
	client *http.Client
	bodies [][]byte
}

// prepare writes one request for each operation.
func (c *caller) prepare(s *sample) error {
	for _, operation := range interpreter.Operations {
		request := &configv1alpha1.ResourceInterpreterRequest{
			UID: "bench", Kind: interpreter.Kind, Operation: operation, Object: runtime.RawExtension{Raw: s.rawCopied}, DesiredReplicas: ptr.To[int32](0),
		}
		if operation == configv1alpha1.InterpreterOperationAggregateStatus {
			request.Object.Raw, request.AggregatedStatus = s.rawContext, s.items
		}
		body, err := json.Marshal(configv1alpha1.ResourceInterpreterContext{
			TypeMeta: metav1.TypeMeta{APIVersion: configv1alpha1.GroupVersion.String(), Kind: "ResourceInterpreterContext"}, Request: request,
		})
		if err != nil {
			return fmt.Errorf("write a request to %s: %w", operation, err)
		}
		c.bodies = append(c.bodies, body)
	}
	return nil
}

func (c *caller) load(ctx context.Context) ([]time.Duration, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the caller's collections are none of the webhook's time
	calls := int(callsFor.Seconds() * callsPerSecond)
	took := make([]time.Duration, calls)
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for i := range calls {
		due := began.Add(time.Duration(i) * time.Second / callsPerSecond)
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return nil, group.Wait()
		}
		group.Go(func() error {
			sent := time.Now()
			err := c.call(ctx, i)
			took[i] = time.Since(sent)
			return err
		})
	}
	return took, group.Wait()
}

// call makes one of the requests, in turn.
func (c *caller) call(ctx context.Context, turn int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"?timeout=10s", bytes.NewReader(c.bodies[turn%len(c.bodies)]))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		return fmt.Errorf("call the webhook: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	answer, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || !strings.Contains(string(answer), `"successful":true`)) {
		err = fmt.Errorf("the webhook answers %s: %s", response.Status, answer)
	}
	return err
}
