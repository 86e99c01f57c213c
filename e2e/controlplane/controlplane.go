package controlplane

import (
	"context"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Cell is a cell to start.
type Cell struct {
	// Name of the cell's Karmada Cluster.
	Name string
	// Location that its label names; empty for a cell without the label.
	Location string
	// Pull has Karmada's own agent in the cell fetch what is for it, in place of Karmada's
	// controllers writing to the cell.
	Pull bool
}

// Options say what to start. The zero value of a field is as its comment says.
type Options struct {
	// Dir keeps the state: keys, kubeconfigs, logs, etcd's data. It must not exist, or be
	// left over from a control plane that is gone. Required.
	Dir string
	// Cells to join; none by default.
	Cells []Cell
	// Projects to connect, each with a plane of its own; none by default.
	Projects []string
	// Bare leaves out Karmada's controllers and scheduler, and ours: what is left is the
	// API servers with all kinds.
	Bare bool
	// Interpreter is the form of the rules by which Karmada interprets NetworkContexts:
	// InterpreterWebhook, which it is by default, or InterpreterLua.
	Interpreter string
	// Detached processes outlive the one that starts them; see Down.
	Detached bool
	// Progress gets a line for each thing that takes long; nil for none.
	Progress io.Writer
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	options  Options
	began    time.Time
	binaries binaries
	client   *http.Client
	ports    ports
	karmada  string // folder of Karmada's module

	authority *authority

	mu        sync.Mutex
	processes []*Process
	planes    map[string]*Plane
}

// ErrUp is returned by Start where a control plane with this state is running.
var ErrUp = errors.New("a control plane is up already")

// Start starts a control plane and returns once it serves and every cell is Ready. Where
// it fails, everything it started is ended, and the error names what failed.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	if err := validateInterpreter(options.Interpreter); err != nil {
		return nil, err
	}
	c := &ControlPlane{options: options, began: time.Now(), planes: map[string]*Plane{}}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	c.began = time.Now()
	if err := c.startAll(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	c.say("up in %s", time.Since(c.began).Round(100*time.Millisecond))
	return c, nil
}

// prepare makes the state folder, the binaries and the keys.
func (c *ControlPlane) prepare(ctx context.Context) error {
	if err := c.claim(); err != nil {
		return err
	}
	var err error
	if c.binaries, err = buildAll(ctx, c.file("bin"), c.say); err != nil {
		return err
	}
	if c.karmada, err = goOutput(ctx, "", "list", "-m", "-f", "{{.Dir}}", karmadaModule); err != nil {
		return err
	}
	if err := c.makeKeys(); err != nil {
		return err
	}
	c.client, err = readyClient(c.file("pki/admin.crt"), c.file("pki/admin.key"))
	return err
}

// claim makes the state folder anew, unless a control plane runs from it.
func (c *ControlPlane) claim() error {
	running, err := read(c.options.Dir)
	if err != nil {
		return err
	}
	for _, process := range running {
		if process.Alive() {
			return fmt.Errorf("%w: %s runs as pid %d, with its state in %s; end it first (make down)",
				ErrUp, process.Name, process.PID, c.options.Dir)
		}
	}
	if err := os.RemoveAll(c.options.Dir); err != nil {
		return fmt.Errorf("clear the state folder: %w", err)
	}
	for _, folder := range []string{"pki/webhook", "pki/" + webhookFolder, "log", "bin"} {
		if err := os.MkdirAll(c.file(folder), 0o755); err != nil {
			return fmt.Errorf("make the state folder: %w", err)
		}
	}
	return nil
}

func (c *ControlPlane) makeKeys() error {
	var err error
	if c.authority, err = newAuthority(c.file("pki")); err != nil {
		return err
	}
	for name, subject := range map[string]pkix.Name{
		"server":       {CommonName: "localhost"},
		"admin":        {CommonName: "admin", Organization: []string{"system:masters"}},
		"proxy":        {CommonName: "front-proxy-client"},
		"webhook/tls":  {CommonName: "localhost"},
		webhookKeyPair: {CommonName: "localhost"},
	} {
		if err := c.authority.issue(name, subject); err != nil {
			return err
		}
	}
	return c.authority.serviceAccounts()
}

// startAll starts everything, what does not depend on each other at once.
func (c *ControlPlane) startAll(ctx context.Context) error {
	etcd, err := c.startEtcd(ctx)
	if err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.startHub(groupCtx, etcd) })
	group.Go(func() error { return c.startPlatform(groupCtx, etcd) })
	for _, project := range c.options.Projects {
		group.Go(func() error { return c.startProject(groupCtx, etcd, project) })
	}
	for _, cell := range c.options.Cells {
		group.Go(func() error { return c.startCell(groupCtx, etcd, cell) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	c.say("API servers and Karmada serve after %s", time.Since(c.began).Round(100*time.Millisecond))
	if err := c.connectAll(ctx); err != nil {
		return err
	}
	if c.options.Bare {
		return nil
	}
	return c.startOurs(ctx)
}

func (c *ControlPlane) connectAll(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for _, project := range c.options.Projects {
		group.Go(func() error { return c.ConnectProject(ctx, project) })
	}
	if !c.options.Bare {
		for _, cell := range c.options.Cells {
			group.Go(func() error { return c.join(ctx, cell) })
		}
	}
	return group.Wait()
}

func (c *ControlPlane) say(format string, args ...any) {
	if c.options.Progress != nil {
		_, _ = fmt.Fprintf(c.options.Progress, "%6.1fs  %s\n", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
	}
}

func (c *ControlPlane) file(name string) string { return filepath.Join(c.options.Dir, name) }

// run starts a process, records it, and returns once it serves at ready.
func (c *ControlPlane) run(ctx context.Context, name, binary, ready string, args ...string) error {
	return c.runWith(ctx, nil, name, binary, ready, args...)
}

// runWith is run with more environment variables.
func (c *ControlPlane) runWith(ctx context.Context, environment []string, name, binary, ready string, args ...string) error {
	process := &Process{
		Name: name, Path: c.binaries[binary], Args: args, Environment: environment,
		Log: c.file("log/" + name + ".log"), Ready: ready,
	}
	if err := c.launch(process); err != nil {
		return err
	}
	return process.awaitReady(ctx, c.client)
}

func (c *ControlPlane) launch(process *Process) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := process.start(c.options.Detached); err != nil {
		return err
	}
	c.processes = slices.DeleteFunc(c.processes, func(p *Process) bool { return p.Name == process.Name })
	c.processes = append(c.processes, process)
	return c.record()
}

// record writes down what runs after each start, so that Down finds it even where the
// starting process is killed.
func (c *ControlPlane) record() error {
	state, err := json.MarshalIndent(c.processes, "", " ")
	if err != nil {
		return fmt.Errorf("encode the state: %w", err)
	}
	if err := os.WriteFile(c.file("state.json.new"), state, 0o644); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	return os.Rename(c.file("state.json.new"), c.file("state.json"))
}

// read returns the processes that a state folder records; none where there is no state.
func read(dir string) ([]*Process, error) {
	state, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	var processes []*Process
	if err := json.Unmarshal(state, &processes); err != nil {
		return nil, fmt.Errorf("read the state in %s: %w", dir, err)
	}
	return processes, nil
}

// Stop ends every process and removes the state.
func (c *ControlPlane) Stop(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return end(ctx, c.processes, c.options.Dir)
}

// Down ends the control plane whose state is in dir, started by whomever, and removes the
// state. It does nothing where there is none.
func Down(ctx context.Context, dir string) error {
	processes, err := read(dir)
	if err != nil {
		return err
	}
	return end(ctx, processes, dir)
}

// end kills the processes, last started first, and removes dir. Nothing in it is worth an
// orderly end.
func end(ctx context.Context, processes []*Process, dir string) error {
	var errs []error
	for _, process := range slices.Backward(processes) {
		errs = append(errs, process.signal(syscall.SIGKILL))
	}
	for _, process := range processes {
		errs = append(errs, process.kill(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the state: %w", err)
	}
	return nil
}

// process finds a process by name, and fails where there is none.
func (c *ControlPlane) process(name string) (*Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, process := range c.processes {
		if process.Name == name {
			return process, nil
		}
		names = append(names, process.Name)
	}
	return nil, fmt.Errorf("no process %q: there are %q", name, names)
}

// Kill ends a process, as a crash would. Dead does not tell of it.
func (c *ControlPlane) Kill(ctx context.Context, name string) error {
	process, err := c.process(name)
	if err != nil {
		return err
	}
	c.mu.Lock()
	process.killed = true
	c.mu.Unlock()
	return process.kill(ctx)
}

// Forget ends a process for good.
func (c *ControlPlane) Forget(ctx context.Context, name string) error {
	process, err := c.process(name)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = slices.DeleteFunc(c.processes, func(p *Process) bool { return p == process })
	return errors.Join(process.kill(ctx), c.record())
}

// Restart starts a process again as it was started first, ending it where it still runs,
// and returns once it serves.
func (c *ControlPlane) Restart(ctx context.Context, name string) error {
	process, err := c.process(name)
	if err != nil {
		return err
	}
	if err := process.kill(ctx); err != nil {
		return err
	}
	again := &Process{
		Name: process.Name, Path: process.Path, Args: process.Args, Environment: process.Environment,
		Log: process.Log, Ready: process.Ready,
	}
	if err := c.launch(again); err != nil {
		return err
	}
	return again.awaitReady(ctx, c.client)
}

// Pause stops a process where it is, connections open, and Resume lets it go on.
func (c *ControlPlane) Pause(name string) error { return c.signal(name, syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (c *ControlPlane) Resume(name string) error { return c.signal(name, syscall.SIGCONT) }

func (c *ControlPlane) signal(name string, signal syscall.Signal) error {
	process, err := c.process(name)
	if err != nil {
		return err
	}
	return process.signal(signal)
}

// Dead says which processes ended by themselves, with the end of the log of each; nil
// while all run.
func (c *ControlPlane) Dead() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, process := range c.processes {
		if !process.killed && !process.Alive() {
			errs = append(errs, process.died())
		}
	}
	return errors.Join(errs...)
}

// PID is the number of a process; 0 where there is none of the name.
func (c *ControlPlane) PID(name string) int {
	process, err := c.process(name)
	if err != nil {
		return 0
	}
	return process.PID
}
