package controlplane

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// newModule writes a Go module with one command that prints a word.
func newModule(t *testing.T, word string) string {
	t.Helper()
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "go.mod"), "module example.test/one\n\ngo 1.25\n")
	writeFile(t, filepath.Join(folder, "go.sum"), "")
	writeFile(t, filepath.Join(folder, "main.go"), "package main\n\nfunc main() { println(\""+word+"\") }\n")
	return folder
}

func writeFile(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func says(t *testing.T, file string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), file).CombinedOutput()
	if err != nil {
		t.Fatalf("run %s: %v", file, err)
	}
	return strings.TrimSpace(string(output))
}

func silent(string, ...any) {}

func TestBinariesAreBuiltOnceForTheirVersions(t *testing.T) {
	t.Setenv(CacheVariable, t.TempDir())
	module := newModule(t, "first")
	files := make([]string, 3)
	var group sync.WaitGroup
	for i := range files {
		group.Go(func() {
			file, err := cached(t.Context(), module, "example.test/one", "one", silent)
			if err != nil {
				t.Error(err)
			}
			files[i] = file
		})
	}
	group.Wait()
	if files[0] != files[1] || files[0] != files[2] {
		t.Fatalf("built at once into %q", files)
	}
	// What is built is told by the versions alone: the source is another module's.
	writeFile(t, filepath.Join(module, "main.go"), "package main\n\nfunc main() { println(\"second\") }\n")
	again, err := cached(t.Context(), module, "example.test/one", "one", silent)
	if err != nil {
		t.Fatal(err)
	}
	if got := says(t, again); got != "first" {
		t.Errorf("the second time it says %q: it was built again", got)
	}
	writeFile(t, filepath.Join(module, "go.sum"), "\n")
	other, err := cached(t.Context(), module, "example.test/one", "one", silent)
	if err != nil {
		t.Fatal(err)
	}
	if other == again || says(t, other) != "second" {
		t.Errorf("with other versions it is %s, which says %q", other, says(t, other))
	}
	if !strings.HasPrefix(other, os.Getenv(CacheVariable)) {
		t.Errorf("%s is not in the folder that %s names", other, CacheVariable)
	}
}

func TestOurBinariesFollowTheWorkTree(t *testing.T) {
	t.Setenv(CacheVariable, t.TempDir())
	module, file := newModule(t, "first"), filepath.Join(t.TempDir(), "one")
	for _, word := range []string{"first", "second"} {
		writeFile(t, filepath.Join(module, "main.go"), "package main\n\nfunc main() { println(\""+word+"\") }\n")
		if err := current(t.Context(), module, "example.test/one", file, silent); err != nil {
			t.Fatal(err)
		}
		if got := says(t, file); got != word {
			t.Errorf("it says %q, where the work tree has %q", got, word)
		}
	}
}

func TestAFailedBuildSaysWhatIsWrongAndLeavesNoBinary(t *testing.T) {
	t.Setenv(CacheVariable, t.TempDir())
	module := newModule(t, "first")
	writeFile(t, filepath.Join(module, "main.go"), "package main\n\nfunc main() { undefined() }\n")
	file, err := cached(t.Context(), module, "example.test/one", "one", silent)
	if err == nil || !strings.Contains(err.Error(), "undefined") {
		t.Errorf("built %q, error %v", file, err)
	}
}

func TestMissingGoIsOneLine(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := goOutput(t.Context(), "", "version")
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "install") {
		t.Errorf("without go the error is %v", err)
	}
}
