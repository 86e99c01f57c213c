package controlplane

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
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
	// Pull joins the cell in pull mode: a karmada-agent of its own asks the hub what to
	// place there. Otherwise Karmada's controllers on the hub place it.
	Pull bool
	// Agent runs our agent in the cell, which must have a Location.
	Agent bool
}

// Options say what to start. The zero value of a field is as its comment says.
type Options struct {
	// Dir keeps the state: keys, kubeconfigs, logs, etcd's data. It must be empty, not
	// there, or left over from a control plane that is gone. Required.
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
	// CellDown is how long a cell must not answer until Karmada says so, and answer again
	// until Karmada takes that back; in whole seconds, 4 by default.
	CellDown time.Duration
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
	etcd     string // URL
	// hubValues are those that the hub's chart was installed with.
	hubValues map[string]any

	authority *authority

	mu        sync.Mutex
	processes []*Process
	planes    map[string]*Plane
	cells     map[string]Cell
	started   int // planes so far
	// guards are told of each process that ends by itself.
	guards map[*context.CancelCauseFunc]struct{}
}

// Start starts a control plane and returns once it serves and every cell is Ready. Where
// it fails, everything it started is ended, and the error names what failed; the state
// folder is left, for its logs. The error is ErrUp where a control plane runs from the
// folder already.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	c := &ControlPlane{
		options: options, began: time.Now(),
		planes: map[string]*Plane{}, cells: map[string]Cell{}, guards: map[*context.CancelCauseFunc]struct{}{},
	}
	var err error
	if c.options.Dir, err = filepath.Abs(options.Dir); err != nil {
		return nil, fmt.Errorf("find the state folder: %w", err)
	}
	release, err := claim(c.options.Dir)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	c.began = time.Now()
	if err := c.guarded(ctx, c.startAll); err != nil {
		return nil, errors.Join(err, killAll(context.WithoutCancel(ctx), c.processes))
	}
	c.say("up in %s", time.Since(c.began).Round(100*time.Millisecond))
	return c, nil
}

// prepare makes the binaries and the keys.
func (c *ControlPlane) prepare(ctx context.Context) error {
	for _, folder := range []string{"pki/webhook", "pki/" + webhookFolder, "log", "bin"} {
		if err := os.MkdirAll(c.file(folder), 0o755); err != nil {
			return fmt.Errorf("make the state folder: %w", err)
		}
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

// guarded does something that needs what runs. Where a process ends by itself meanwhile,
// it gives up, and the error says which and shows the end of its log.
func (c *ControlPlane) guarded(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.mu.Lock()
	c.guards[&cancel] = struct{}{}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.guards, &cancel)
		c.mu.Unlock()
	}()
	err := do(ctx)
	var died *diedError
	if err != nil && errors.As(context.Cause(ctx), &died) {
		return died
	}
	return err
}

// startAll starts everything, what does not depend on each other at once.
func (c *ControlPlane) startAll(ctx context.Context) error {
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.startHub(groupCtx) })
	group.Go(func() error { return c.startPlatform(groupCtx) })
	for _, project := range c.options.Projects {
		group.Go(func() error { return c.startProject(groupCtx, project) })
	}
	for _, cell := range c.options.Cells {
		group.Go(func() error { return c.startCell(groupCtx, cell) })
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
	process := &Process{Name: name, Path: c.binaries[binary], Args: args, Log: c.file("log/" + name + ".log"), Ready: ready}
	if err := c.launch(process); err != nil {
		return err
	}
	return process.awaitReady(ctx, c.client)
}

// launch starts a process and writes its number down before it does anything, so that
// Down finds it even where this process is killed.
func (c *ControlPlane) launch(process *Process) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := process.start(c.options.Detached); err != nil {
		return err
	}
	c.processes = slices.DeleteFunc(c.processes, func(p *Process) bool { return p.Name == process.Name })
	c.processes = append(c.processes, process)
	if err := write(c.options.Dir, c.processes); err != nil {
		return errors.Join(err, process.strike())
	}
	go c.tellOfDeath(process)
	return process.release()
}

// tellOfDeath tells the guards when a process ends by itself.
func (c *ControlPlane) tellOfDeath(process *Process) {
	<-process.exited
	if process.struck.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for cancel := range c.guards {
		(*cancel)(process.died())
	}
}

// Stop ends every process and removes the state.
func (c *ControlPlane) Stop(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return end(ctx, c.processes, c.options.Dir)
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

// Log is what a process has written, in all its runs.
func (c *ControlPlane) Log(name string) (string, error) {
	process, err := c.process(name)
	if err != nil {
		return "", err
	}
	log, err := os.ReadFile(process.Log)
	if err != nil {
		return "", fmt.Errorf("read the log of %s: %w", name, err)
	}
	return string(log), nil
}

// Kill ends a process, as a crash would. Dead does not tell of it.
func (c *ControlPlane) Kill(ctx context.Context, name string) error {
	process, err := c.process(name)
	if err != nil {
		return err
	}
	return process.kill(ctx)
}

// Forget ends a process for good.
func (c *ControlPlane) Forget(ctx context.Context, name string) error {
	process, err := c.process(name)
	if err != nil {
		return err
	}
	if err := process.kill(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = slices.DeleteFunc(c.processes, func(p *Process) bool { return p == process })
	return write(c.options.Dir, c.processes)
}

// Restart starts a process again as it was started first, with more flags behind the
// others where some are given; it ends the process where it still runs, and returns once
// it serves.
func (c *ControlPlane) Restart(ctx context.Context, name string, more ...string) error {
	process, err := c.process(name)
	if err != nil {
		return err
	}
	if err := process.kill(ctx); err != nil {
		return err
	}
	again := &Process{
		Name: process.Name, Path: process.Path, Args: process.Args, More: more,
		Log: process.Log, Ready: process.Ready,
	}
	if err := c.launch(again); err != nil {
		return err
	}
	return again.awaitReady(ctx, c.client)
}

// Pause stops a process where it is, connections open, and Resume lets it go on. Karmada
// takes about a minute to notice that the API server of a cell is paused, since its client
// waits 32 s for an answer; one that is killed it notices after Options.CellDown.
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
// where none did.
func (c *ControlPlane) Dead() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, process := range c.processes {
		if !process.Alive() && !process.struck.Load() {
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
