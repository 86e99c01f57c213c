package webhook

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"go.datum.net/network-presence/interpreter"
)

// authority issues certificates for servers on the loopback interface.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      atomic.Int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{certificate: certificate, key: key}
	a.serial.Store(1)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue puts a new certificate and its key into a folder, and returns the serial number.
func (a *authority) issue(t *testing.T, dir string, until time.Time) int64 {
	t.Helper()
	serial, key := a.serial.Add(1), newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "webhook"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, certificateFile), "CERTIFICATE", der)
	write(t, filepath.Join(dir, keyFile), "PRIVATE KEY", private)
	return serial
}

func write(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// client trusts the authority, and opens a connection for each request.
func (a *authority) client(change func(*tls.Config)) *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if change != nil {
		change(config)
	}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: config, DisableKeepAlives: true, ExpectContinueTimeout: 10 * time.Second,
	}}
}

// world is a webhook that runs.
type world struct {
	authority *authority
	dir       string
	url       string
	probes    string
	end       context.CancelFunc
	ended     chan error
}

func start(t *testing.T) *world {
	t.Helper()
	w := &world{authority: newAuthority(t), dir: t.TempDir(), ended: make(chan error, 1)}
	w.authority.issue(t, w.dir, time.Now().Add(time.Hour))
	listener := listen(t)
	probes := listen(t)
	w.url, w.probes = "https://"+listener.Addr().String()+interpreter.Path, "http://"+probes.Addr().String()
	if err := probes.Close(); err != nil { // the port is ours for as long as nobody is quicker
		t.Fatal(err)
	}
	options := Options{SecurePort: 1, CertDir: w.dir, MetricsAddress: nowhere, ProbeAddress: probes.Addr().String()}
	ctx, cancel := context.WithCancel(t.Context())
	w.end = cancel
	go func() { w.ended <- serve(ctx, options, listener) }()
	eventually(t, func() error { return w.probe(t, "/healthz") })
	t.Cleanup(func() {
		cancel()
		if err := <-w.ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func (w *world) probe(t *testing.T, path string) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.probes+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s (%w)", path, response.Status, body, err)
	}
	return nil
}

func eventually(t *testing.T, holds func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		last = holds()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%v: %v", err, last)
	}
}

// post sends a body and returns the status code and what came back.
func post(ctx context.Context, client *http.Client, url string, body io.Reader) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if httptrace.ContextClientTrace(ctx) != nil {
		request.Header.Set("Expect", "100-continue")
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, content, err
}

// healthRequest asks whether a copy is well; the rest of the object is filler.
func healthRequest(t *testing.T, filler int) []byte {
	t.Helper()
	body, err := json.Marshal(configv1alpha1.ResourceInterpreterContext{Request: &configv1alpha1.ResourceInterpreterRequest{
		UID: "1", Kind: interpreter.Kind, Operation: configv1alpha1.InterpreterOperationInterpretHealth,
		Object: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"spec":{"filler":%q}}`, strings.Repeat("x", filler))},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func answerOf(t *testing.T, content []byte) *configv1alpha1.ResourceInterpreterResponse {
	t.Helper()
	var answer configv1alpha1.ResourceInterpreterContext
	if err := json.Unmarshal(content, &answer); err != nil || answer.Response == nil {
		t.Fatalf("%q is no answer (%v)", content, err)
	}
	return answer.Response
}

func TestAnswersOverHTTPS(t *testing.T) {
	w := start(t)
	status, content, err := post(t.Context(), w.authority.client(nil), w.url+"?timeout=10s", bytes.NewReader(healthRequest(t, 0)))
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d, %v", status, err)
	}
	if answer := answerOf(t, content); !answer.Successful || answer.UID != "1" || answer.Healthy == nil || *answer.Healthy {
		t.Errorf("answer %+v, want not healthy", answer)
	}
}

func TestRefusesOldTLS(t *testing.T) {
	w := start(t)
	client := w.authority.client(func(config *tls.Config) { config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 })
	if _, _, err := post(t.Context(), client, w.url, bytes.NewReader(healthRequest(t, 0))); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("got %v, want a refused protocol version", err)
	}
}

func TestRefusesWhatIsNotARequest(t *testing.T) {
	w := start(t)
	client := w.authority.client(nil)
	for name, test := range map[string]struct {
		body []byte
		want string
	}{
		"nothing":              {nil, "is not interpreted here"},
		"no JSON":              {[]byte("{"), "couldn't get version/kind"},
		"another kind of JSON": {[]byte("[1]"), "couldn't get version/kind"},
		"no object":            {[]byte(`{"apiVersion":"config.karmada.io/v1alpha1","kind":"ResourceInterpreterContext"}`), "kind"},
		"too long":             {healthRequest(t, mostBody), "request body too large"},
	} {
		t.Run(name, func(t *testing.T) {
			status, content, err := post(t.Context(), client, w.url, bytes.NewReader(test.body))
			if err != nil || status != http.StatusOK {
				t.Fatalf("%d, %v", status, err)
			}
			if answer := answerOf(t, content); answer.Successful || !strings.Contains(answer.Status.Message, test.want) {
				t.Errorf("got %+v, want %s", answer.Status, test.want)
			}
		})
	}
	if status, _, err := post(t.Context(), client, strings.TrimSuffix(w.url, interpreter.Path)+"/other", nil); err != nil || status != http.StatusNotFound {
		t.Errorf("another path answers %d, %v", status, err)
	}
}

func TestCounts(t *testing.T) {
	w := start(t)
	client := w.authority.client(nil)
	health := string(configv1alpha1.InterpreterOperationInterpretHealth)
	count := func() [4]float64 {
		return [4]float64{
			testutil.ToFloat64(requests.WithLabelValues(health)), testutil.ToFloat64(failures.WithLabelValues(health)),
			testutil.ToFloat64(requests.WithLabelValues(unreadable)), testutil.ToFloat64(failures.WithLabelValues(unreadable)),
		}
	}
	before := count()
	other := bytes.ReplaceAll(healthRequest(t, 0), []byte(health), []byte("Nonsense"))
	otherKind := bytes.ReplaceAll(healthRequest(t, 0), []byte(interpreter.Kind.Kind), []byte("Service"))
	for _, body := range [][]byte{healthRequest(t, 0), otherKind, []byte("{"), other} {
		if _, _, err := post(t.Context(), client, w.url, bytes.NewReader(body)); err != nil {
			t.Fatal(err)
		}
	}
	after := count()
	for i, want := range []float64{2, 1, 2, 2} {
		if after[i]-before[i] != want {
			t.Errorf("counted %v before and %v after, want 2, 1, 2, 2 more", before, after)
		}
	}
}

// While requests come in without end, the certificate is replaced: none fails, and before
// long each gets the new one.
func TestRotatesItsCertificateUnderLoad(t *testing.T) {
	w := start(t)
	var served atomic.Int64
	client := w.authority.client(func(config *tls.Config) {
		config.VerifyConnection = func(state tls.ConnectionState) error {
			served.Store(state.PeerCertificates[0].SerialNumber.Int64())
			return nil
		}
	})
	for range 3 {
		serial := w.authority.issue(t, w.dir, time.Now().Add(time.Hour))
		eventually(t, func() error {
			for range 10 {
				if status, _, err := post(t.Context(), client, w.url, bytes.NewReader(healthRequest(t, 0))); err != nil || status != http.StatusOK {
					t.Fatalf("a request failed: %d, %v", status, err)
				}
			}
			if got := served.Load(); got != serial {
				return fmt.Errorf("certificate %d is served, not %d", got, serial)
			}
			return nil
		})
	}
}

func TestIsNotReadyWithACertificateThatExpired(t *testing.T) {
	w := start(t)
	if err := w.probe(t, "/readyz"); err != nil {
		t.Fatal(err)
	}
	w.authority.issue(t, w.dir, time.Now().Add(-time.Minute))
	eventually(t, func() error {
		if err := w.probe(t, "/readyz"); err == nil {
			return fmt.Errorf("ready with a certificate that expired")
		}
		return nil
	})
	if err := w.probe(t, "/healthz"); err != nil {
		t.Error(err)
	}
	w.authority.issue(t, w.dir, time.Now().Add(time.Hour))
	eventually(t, func() error { return w.probe(t, "/readyz") })
}

// A request that is under way when the process is told to end is answered.
func TestAnswersWhatCameBeforeTheEnd(t *testing.T) {
	w := start(t)
	reading := make(chan struct{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(reading) }})
	body, content := io.Pipe()
	answered := make(chan error, 1)
	go func() {
		status, answer, err := post(ctx, w.authority.client(nil), w.url, body)
		if err == nil && (status != http.StatusOK || !strings.Contains(string(answer), `"successful":true`)) {
			err = fmt.Errorf("%d: %s", status, answer)
		}
		answered <- err
	}()
	<-reading
	w.end()
	eventually(t, func() error {
		if connection, err := net.Dial("tcp", strings.TrimPrefix(strings.TrimSuffix(w.url, interpreter.Path), "https://")); err == nil {
			return fmt.Errorf("it still listens (%w)", connection.Close())
		}
		return nil
	})
	select {
	case err := <-w.ended:
		w.ended <- err
		t.Error("it ended while a request was under way")
	case <-time.After(200 * time.Millisecond):
	}
	if _, err := content.Write(healthRequest(t, 0)); err != nil {
		t.Fatal(err)
	}
	if err := content.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestSaysWhatCannotBeServed(t *testing.T) {
	taken := listen(t)
	t.Cleanup(func() { _ = taken.Close() })
	valid := t.TempDir()
	newAuthority(t).issue(t, valid, time.Now().Add(time.Hour))
	port := taken.Addr().(*net.TCPAddr).Port
	empty := t.TempDir()
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"no certificate": {Options{BindAddress: "127.0.0.1", SecurePort: freePort(t), CertDir: empty, MetricsAddress: nowhere, ProbeAddress: nowhere},
			fmt.Sprintf("read the serving certificate tls.crt and its key tls.key in %q: ", empty)},
		"a port that is taken": {Options{BindAddress: "127.0.0.1", SecurePort: port, CertDir: valid, MetricsAddress: nowhere, ProbeAddress: nowhere},
			fmt.Sprintf("serve the webhook at 127.0.0.1:%d: ", port)},
		"probes at a port that is taken": {Options{BindAddress: "127.0.0.1", SecurePort: freePort(t), CertDir: valid, MetricsAddress: nowhere, ProbeAddress: taken.Addr().String()},
			fmt.Sprintf("serve probes at 127.0.0.1:%d: ", port)},
		"metrics at a port that is taken": {Options{BindAddress: "127.0.0.1", SecurePort: freePort(t), CertDir: valid, MetricsAddress: taken.Addr().String(), ProbeAddress: nowhere},
			fmt.Sprintf("serve metrics at 127.0.0.1:%d: ", port)},
		"wrong options": {Options{}, "secure port 0 is no port"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Run(t.Context(), test.options); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %s...", err, test.want)
			}
		})
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener := listen(t)
	defer listener.Close() //nolint:errcheck // it is in nobody's use
	return listener.Addr().(*net.TCPAddr).Port
}
