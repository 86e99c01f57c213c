package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Process is one process of a control plane, as the state file records it.
type Process struct {
	// Name is what the process is called here, such as "hub-apiserver".
	Name string
	// Path and Args are what was started, and More are the flags of its last restart.
	Path string
	Args []string
	More []string
	// Log is the file that has what it printed.
	Log string
	// Ready is the URL that answers 200 once it serves.
	Ready string
	// PID and Birth tell the process from another that got its number later: Birth is
	// field 22 of /proc/PID/stat, in clock ticks since the machine started.
	PID   int
	Birth string

	exited chan struct{} // closed when the process ended; nil for one that others started
	gate   *os.File      // what release opens
	struck atomic.Bool   // whether it was ended from here
}

// spawner starts processes from one operating system thread that lives as long as this
// process: a child that is to die with its parent dies with the thread that started it.
var spawner = newSpawner()

func newSpawner() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for do := range work {
			do()
		}
	}()
	return work
}

// held is a shell script that waits for a line on descriptor 3 and then becomes what its
// arguments say, under the same number. Where this process is killed before it recorded
// that number, the line never comes, and the script ends.
const held = `read -r go <&3 && exec "$0" "$@" 3<&-`

// start makes the process, which does nothing before release. Unless it is detached, it
// dies with this one.
func (p *Process) start(detached bool) error {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", p.Name, err)
	}
	defer log.Close() //nolint:errcheck // the child has its own handle
	waits, gate, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	defer waits.Close() //nolint:errcheck // the child has its own handle
	command := exec.Command("/bin/sh", slices.Concat([]string{"-c", held, p.Path}, p.Args, p.More)...)
	command.Stdout, command.Stderr = log, log
	command.ExtraFiles = []*os.File{waits}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if !detached {
		command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	started := make(chan error)
	spawner <- func() { started <- command.Start() }
	if err := <-started; err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", p.Name, err), gate.Close())
	}
	p.PID, p.gate = command.Process.Pid, gate
	p.Birth, _ = birth(p.PID)
	p.exited = make(chan struct{})
	go func() {
		_ = command.Wait()
		close(p.exited)
	}()
	return nil
}

// release lets a process that was started go on, once.
func (p *Process) release() error {
	_, err := p.gate.WriteString("go\n")
	if err := errors.Join(err, p.gate.Close()); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	return nil
}

// readyTimeout bounds the wait for a process to serve, on a machine that is busy.
const readyTimeout = 2 * time.Minute

// awaitReady returns once the process serves. The error says that it died, with the end
// of its log, or that it took too long.
func (p *Process) awaitReady(ctx context.Context, client *http.Client) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if !p.Alive() {
			return false, p.died()
		}
		last = answers(ctx, client, p.Ready)
		return last == nil, nil
	})
	var died *diedError
	switch {
	case errors.As(err, &died):
		return died
	case err != nil:
		return fmt.Errorf("wait for %s, whose log is %s: %w", p.Name, p.Log, errors.Join(err, last))
	}
	return nil
}

func answers(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// readyClient asks processes whether they serve, as the control plane's administrator.
func readyClient(certificate, key string) (*http.Client, error) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("read the administrator's certificate: %w", err)
	}
	return &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			// Whether it serves is all that is asked, on the loopback interface.
			TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
		},
	}, nil
}

// diedError says that a process ended by itself.
type diedError struct{ name, log, end string }

func (e *diedError) Error() string {
	return fmt.Sprintf("%s ended; the end of its log (%s):\n%s", e.name, e.log, e.end)
}

func (p *Process) died() error {
	log, err := os.ReadFile(p.Log)
	if err != nil {
		log = fmt.Appendf(nil, "it cannot be read: %v", err)
	}
	return &diedError{name: p.Name, log: p.Log, end: tail(log, 20)}
}

// Alive tells whether the very process that was started runs.
func (p *Process) Alive() bool {
	if p.exited != nil {
		select {
		case <-p.exited:
			return false
		default:
			return true
		}
	}
	now, running := birth(p.PID)
	return running && now == p.Birth
}

// signal sends to the process, unless it is gone.
func (p *Process) signal(signal syscall.Signal) error {
	if !p.Alive() {
		return nil
	}
	if err := syscall.Kill(p.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s (pid %d): %w", p.Name, p.PID, err)
	}
	return nil
}

// strike ends the process without waiting until it is gone.
func (p *Process) strike() error {
	p.struck.Store(true)
	return p.signal(syscall.SIGKILL)
}

// kill ends the process and returns when it is gone.
func (p *Process) kill(ctx context.Context) error {
	if err := p.strike(); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return !p.Alive(), nil
	})
	if err != nil {
		return fmt.Errorf("end %s (pid %d): %w", p.Name, p.PID, err)
	}
	return nil
}

// birth is when a process started, and false where no process has the number or it has
// ended and is only not yet collected.
func birth(pid int) (string, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		return "", false
	}
	// The second field is the command in brackets and may hold anything.
	_, rest, found := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 20 || fields[0] == "Z" {
		return "", false
	}
	return fields[19], true
}

// ports gives out ports of the loopback interface that nobody has, each once. They lie
// below those that the system gives to outgoing connections.
type ports struct {
	mu   sync.Mutex
	next int
}

const firstPort, lastPort = 20000, 32000

func (p *ports) free() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == 0 {
		p.next = firstPort + rand.IntN(lastPort-firstPort)
	}
	for range lastPort - firstPort {
		port := p.next
		if p.next++; p.next >= lastPort {
			p.next = firstPort
		}
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("no port between %d and %d is free on 127.0.0.1", firstPort, lastPort)
}
