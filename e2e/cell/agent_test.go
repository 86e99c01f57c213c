package cell

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	agent "go.datum.net/network-presence/cell"
)

// grace is the allocation grace that the tests' agents give.
const grace = time.Second

// agentSettings are all that an agent is started with.
type agentSettings struct {
	Options                   agent.Options
	Host                      string
	CAData, CertData, KeyData []byte
}

// access is how the agent reaches its cell.
func (s agentSettings) access() *rest.Config {
	return &rest.Config{
		Host:            s.Host,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.CAData, CertData: s.CertData, KeyData: s.KeyData},
		QPS:             -1,
	}
}

// runningAgent is an agent as a process of its own.
type runningAgent struct {
	process *exec.Cmd
	exited  chan struct{}
	log     string
	options agent.Options
}

// settings are those of an agent that serves here.
func settings(changes ...func(*agentSettings)) agentSettings {
	s := agentSettings{
		Options:  agent.DefaultOptions(),
		Host:     agentAccess.Host,
		CAData:   agentAccess.CAData,
		CertData: agentAccess.CertData,
		KeyData:  agentAccess.KeyData,
	}
	s.Options.Location = here
	s.Options.AllocationGrace = grace
	s.Options.LeaderElection = false
	for _, change := range changes {
		change(&s)
	}
	return s
}

// launch starts an agent and ends it after the test.
func launch(t testing.TB, s agentSettings) *runningAgent {
	t.Helper()
	s.Options.MetricsAddress, s.Options.ProbeAddress = freeAddress(t), freeAddress(t)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	a := &runningAgent{
		process: exec.Command(os.Args[0]),
		exited:  make(chan struct{}),
		log:     filepath.Join(t.TempDir(), "agent.log"),
		options: s.Options,
	}
	log, err := os.Create(a.log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the agent has it open
	a.process.Env = append(os.Environ(), asAgent+"="+string(text))
	a.process.Stdout, a.process.Stderr = log, log
	if err := a.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(a.exited)
		_ = a.process.Wait() // its exit code is in ProcessState
	}()
	t.Cleanup(func() {
		a.end(t, syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the agent's log:\n%s", a.output(t))
		}
	})
	return a
}

// startAgent starts an agent and waits until it works.
func startAgent(t testing.TB, changes ...func(*agentSettings)) *runningAgent {
	t.Helper()
	a := launch(t, settings(changes...))
	NewWithT(t).Eventually(func() error { return a.ready() }, 30*time.Second, 20*time.Millisecond).Should(Succeed())
	return a
}

func (a *runningAgent) ready() error {
	select {
	case <-a.exited:
		return fmt.Errorf("the agent ended: %s", a.process.ProcessState)
	default:
	}
	response, err := http.Get("http://" + a.options.ProbeAddress + "/readyz")
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("readyz answers %s", response.Status)
	}
	return nil
}

// end sends a signal to the agent, where it still runs, and waits for its end.
func (a *runningAgent) end(t testing.TB, signal syscall.Signal) {
	t.Helper()
	select {
	case <-a.exited:
		return
	default:
	}
	if err := a.process.Process.Signal(signal); err != nil {
		t.Errorf("end the agent: %v", err)
	}
	select {
	case <-a.exited:
	case <-time.After(30 * time.Second):
		_ = a.process.Process.Kill()
		t.Errorf("the agent did not end within 30 s of %s", signal)
	}
}

func (a *runningAgent) output(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(a.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// metric is the sum of the agent's metric over those of its series that have all the
// labels, each written name="value".
func (a *runningAgent) metric(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	response, err := http.Get("http://" + a.options.MetricsAddress + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	sum := 0.0
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		series, value := lines.Text(), ""
		if space := strings.LastIndex(series, " "); space > 0 {
			series, value = series[:space], series[space+1:]
		}
		if of, _, _ := strings.Cut(series, "{"); of != name || !containsAll(series, labels) {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("metric %s: %v", series, err)
		}
		sum += number
	}
	return sum
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
