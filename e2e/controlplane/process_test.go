package controlplane

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// asStarter, in the environment, makes this binary start a process of its own, print its
// state folder's record, and wait to be killed.
const asStarter = "CONTROLPLANE_TEST_STARTER"

func TestMain(m *testing.M) {
	if settings := os.Getenv(asStarter); settings != "" {
		runStarter(settings)
	}
	os.Exit(m.Run())
}

type starterSettings struct {
	Dir      string
	Detached bool
	// Held leaves the process before its release.
	Held bool
}

func runStarter(text string) {
	var settings starterSettings
	err := json.Unmarshal([]byte(text), &settings)
	process := sleeper(settings.Dir)
	if err == nil && settings.Held {
		err = process.start(settings.Detached)
	} else if err == nil {
		c := newPlanes(settings.Dir, settings.Detached)
		err = c.launch(process)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(process.PID)
	select {}
}

// starter runs this binary with the settings and returns what it started, once that is
// known, and how to kill the starter as a crash would.
func starter(t *testing.T, settings starterSettings) (started *Process, kill func()) {
	t.Helper()
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), asStarter+"="+string(text))
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		kill()
		t.Fatalf("the starter started nothing: %v", err)
	}
	started = &Process{Name: "sleeper"}
	if _, err := fmt.Sscan(line, &started.PID); err != nil {
		t.Fatal(err)
	}
	started.Birth, _ = birth(started.PID)
	t.Cleanup(func() { _ = started.signal(syscall.SIGKILL) })
	return started, kill
}

// sleeper is a process that does nothing for long.
func sleeper(dir string) *Process {
	return &Process{Name: "sleeper", Path: "/bin/sleep", Args: []string{"1000"}, Log: filepath.Join(dir, "sleeper.log")}
}

func newPlanes(dir string, detached bool) *ControlPlane {
	return &ControlPlane{options: Options{Dir: dir, Detached: detached}, guards: map[*context.CancelCauseFunc]struct{}{}}
}

// eventually waits until something is seen.
func eventually(t *testing.T, what string, seen func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		return seen(), nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestProcessesDieWithWhoeverStartedThem(t *testing.T) {
	started, kill := starter(t, starterSettings{Dir: t.TempDir()})
	if !started.Alive() {
		t.Fatal("the process does not run")
	}
	kill()
	eventually(t, "the process to die", func() bool { return !started.Alive() })
}

func TestDownEndsDetachedProcessesWhoseStarterWasKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	started, kill := starter(t, starterSettings{Dir: dir, Detached: true})
	kill()
	if !started.Alive() {
		t.Fatal("a detached process died with its starter")
	}
	if _, err := claim(dir); !errors.Is(err, ErrUp) {
		t.Errorf("claimed while a process runs: %v", err)
	}
	for range 2 { // the second time there is nothing to end
		if err := Down(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	if started.Alive() {
		t.Error("the process runs on")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state folder is left: %v", err)
	}
}

func TestAProcessWhoseNumberWasNeverRecordedDoesNotGoOn(t *testing.T) {
	started, kill := starter(t, starterSettings{Dir: t.TempDir(), Detached: true, Held: true})
	eventually(t, "the process to wait for its release", func() bool {
		return strings.HasPrefix(commandLine(t, started.PID), "/bin/sh")
	})
	kill()
	eventually(t, "the process to end", func() bool { return !started.Alive() })
}

func TestARecordedNumberIsThatOfWhatWasAskedFor(t *testing.T) {
	dir := t.TempDir()
	c, process := newPlanes(dir, false), sleeper(dir)
	if err := c.launch(process); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.kill(context.Background()) })
	eventually(t, "the process to become what was asked for", func() bool {
		return commandLine(t, process.PID) == "/bin/sleep 1000"
	})
	recorded, err := read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(recorded) != 1 || recorded[0].PID != process.PID || !recorded[0].Alive() {
		t.Errorf("recorded %+v, started %+v", recorded, process)
	}
}

func commandLine(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
}

func TestAnotherProcessWithTheNumberIsLeftAlone(t *testing.T) {
	command := exec.Command("/bin/sleep", "1000")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
	})
	right, _ := birth(command.Process.Pid)
	other := &Process{Name: "other", PID: command.Process.Pid, Birth: right + "1"}
	if other.Alive() {
		t.Error("a process that was born at another time is taken for the recorded one")
	}
	if err := other.kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if same := (&Process{Name: "same", PID: command.Process.Pid, Birth: right}); !same.Alive() {
		t.Error("the other process was killed")
	}
}

func TestADeathIsToldWithTheEndOfTheLog(t *testing.T) {
	dir := t.TempDir()
	c := newPlanes(dir, false)
	crashing := &Process{Name: "crashing", Path: "/bin/sh", Args: []string{"-c", "echo out of cheese; exit 3"}, Log: filepath.Join(dir, "crashing.log")}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := c.guarded(ctx, func(ctx context.Context) error {
		if err := c.launch(crashing); err != nil {
			return err
		}
		<-ctx.Done()
		return fmt.Errorf("wait for something else: %w", ctx.Err())
	})
	if err == nil || !strings.Contains(err.Error(), "crashing ended") || !strings.Contains(err.Error(), "out of cheese") {
		t.Errorf("what needs the process says %v", err)
	}
	if err := c.Dead(); err == nil || !strings.Contains(err.Error(), "out of cheese") {
		t.Errorf("afterwards, Dead says %v", err)
	}
}

func TestADeathOnPurposeIsNotTold(t *testing.T) {
	dir := t.TempDir()
	c := newPlanes(dir, false)
	if err := c.launch(sleeper(dir)); err != nil {
		t.Fatal(err)
	}
	err := c.guarded(t.Context(), func(ctx context.Context) error {
		if err := c.Kill(ctx, "sleeper"); err != nil {
			return err
		}
		return context.Cause(ctx)
	})
	if err := errors.Join(err, c.Dead()); err != nil {
		t.Error(err)
	}
}
