package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// stateFile, in a state folder, records what runs. A folder without it is not ours, and
// nothing in such a folder is touched.
const stateFile = "state.json"

// ErrUp is returned by Start where a control plane with this state is running or about to,
// and by Down where one is about to.
var ErrUp = errors.New("a control plane is up already")

// claim makes the state folder anew, unless a control plane runs from it, another start
// has claimed it, or it has files that are not a control plane's. Nobody else can claim it
// until release.
func claim(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the state folder: %w", err)
	}
	release, err = hold(dir)
	if err != nil {
		return nil, err
	}
	if err := empty(dir); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// hold locks a state folder. The lock goes with the process that has it, killed or not.
func hold(dir string) (release func(), err error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open the state folder: %w", err)
	}
	release = func() { _ = folder.Close() }
	err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		release()
		return nil, fmt.Errorf("%w: it is being started or ended, with its state in %s; wait for that, or interrupt it", ErrUp, dir)
	}
	if err != nil {
		release()
		return nil, fmt.Errorf("lock the state folder %s: %w", dir, err)
	}
	return release, nil
}

// empty takes out of a state folder what a control plane that is gone has left.
func empty(dir string) error {
	running, err := read(dir)
	if err != nil {
		return err
	}
	for _, process := range running {
		if process.Alive() {
			return fmt.Errorf("%w: %s runs as pid %d, with its state in %s; end it first (make down)",
				ErrUp, process.Name, process.PID, dir)
		}
	}
	if err := clearFolder(dir); err != nil {
		return err
	}
	return write(dir, nil)
}

// clearFolder removes all that is in a state folder. The record goes last: until then the
// rest is known to be a control plane's.
func clearFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list the state folder: %w", err)
	}
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int { return rank(a) - rank(b) })
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return fmt.Errorf("clear the state folder: %w", err)
		}
	}
	return nil
}

func rank(entry fs.DirEntry) int {
	if entry.Name() == stateFile {
		return 1
	}
	return 0
}

// write records the processes of a control plane.
func write(dir string, processes []*Process) error {
	state, err := json.MarshalIndent(processes, "", " ")
	if err != nil {
		return fmt.Errorf("encode the state: %w", err)
	}
	file := filepath.Join(dir, stateFile)
	if err := os.WriteFile(file+".new", state, 0o644); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	return nil
}

// read returns the processes that a state folder records; none for a folder that is empty
// or is not there. The error may be that the folder is no control plane's.
func read(dir string) ([]*Process, error) {
	state, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, recognise(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	var processes []*Process
	if err := json.Unmarshal(state, &processes); err != nil {
		return nil, fmt.Errorf("read the state %s: %w", filepath.Join(dir, stateFile), err)
	}
	return processes, nil
}

// recognise refuses a folder without a record that has anything in it: it would be removed.
func recognise(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list the state folder: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() != stateFile+".new" { // of a start that was killed
			return fmt.Errorf("folder %s has no %s but %q: it is no control plane's; name another folder, or one that is not there",
				dir, stateFile, entry.Name())
		}
	}
	return nil
}

// Down ends the control plane whose state is in dir, started by whomever, and removes the
// state. It does nothing where there is none. The error is ErrUp while one is being
// started there, and otherwise says which process could not be ended or that the folder is
// no control plane's.
func Down(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	release, err := hold(dir)
	if err != nil {
		return err
	}
	defer release()
	processes, err := read(dir)
	if err != nil {
		return err
	}
	return end(ctx, processes, dir)
}

// end kills the processes and removes dir. Nothing in it is worth an orderly end.
func end(ctx context.Context, processes []*Process, dir string) error {
	if err := killAll(ctx, processes); err != nil {
		return err
	}
	if err := clearFolder(dir); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the state folder: %w", err)
	}
	return nil
}

// killAll kills the processes, last started first, and returns when they are gone.
func killAll(ctx context.Context, processes []*Process) error {
	var errs []error
	for _, process := range slices.Backward(processes) {
		errs = append(errs, process.strike())
	}
	for _, process := range processes {
		errs = append(errs, process.kill(ctx))
	}
	return errors.Join(errs...)
}
