package controlplane

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAFolderThatIsNoControlPlanesIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	treasure := filepath.Join(dir, "treasure")
	writeFile(t, treasure, "gold")
	if _, err := claim(dir); err == nil {
		t.Error("claimed")
	}
	if err := Down(t.Context(), dir); err == nil {
		t.Error("taken down")
	}
	if _, err := os.Stat(treasure); err != nil {
		t.Error(err)
	}
}

func TestAFolderThatAControlPlaneLeftIsClearedAndClaimed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state")
	release, err := claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	release()
	left := filepath.Join(dir, "log")
	writeFile(t, left, "")
	release, err = claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the other left is there: %v", err)
	}
}

func TestAFolderIsClaimedByOneAtATime(t *testing.T) {
	dir := t.TempDir()
	release, err := claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claim(dir); !errors.Is(err, ErrUp) {
		t.Errorf("claimed twice: %v", err)
	}
	if err := Down(t.Context(), dir); !errors.Is(err, ErrUp) {
		t.Errorf("taken down while it is started: %v", err)
	}
	release()
	if err := Down(t.Context(), dir); err != nil {
		t.Error(err)
	}
}

func TestDownDoesNothingWhereNothingIs(t *testing.T) {
	if err := Down(t.Context(), filepath.Join(t.TempDir(), "none")); err != nil {
		t.Error(err)
	}
}

func TestAStartThatWasKilledAtOnceCanBeTakenDown(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, stateFile+".new"), "[")
	if err := Down(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}
