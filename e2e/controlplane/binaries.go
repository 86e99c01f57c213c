package controlplane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// CacheVariable names the environment variable that says where built binaries are kept,
// in place of the user's cache folder.
const CacheVariable = "NETWORK_PRESENCE_CACHE"

const (
	mainModule       = "go.datum.net/network-presence"
	kubernetesModule = "e2e/controlplane/components/kubernetes"
	karmadaModule    = "github.com/karmada-io/karmada"
)

// upstream are the binaries that are not ours: the package that each is built from, and
// the folder of the module that pins its version.
var upstream = []struct{ name, module, pkg string }{
	{"etcd", kubernetesModule, "go.etcd.io/etcd/server/v3"},
	{"kube-apiserver", kubernetesModule, "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kube-controller-manager", kubernetesModule, "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"karmada-agent", ".", karmadaModule + "/cmd/agent"},
	{"karmada-aggregated-apiserver", ".", karmadaModule + "/cmd/aggregated-apiserver"},
	{"karmada-webhook", ".", karmadaModule + "/cmd/webhook"},
	{"karmada-controller-manager", ".", karmadaModule + "/cmd/controller-manager"},
	{"karmada-scheduler", ".", karmadaModule + "/cmd/scheduler"},
}

// ours are our own binaries and the package that each is built from.
var ours = map[string]string{
	"network-presence":           mainModule + "/cmd/network-presence",
	"network-presence-scheduler": mainModule + "/cmd/karmada-scheduler",
}

// binaries knows where each binary is.
type binaries map[string]string

// buildAll returns all binaries, building what is not there yet. Ours go into folder.
func buildAll(ctx context.Context, folder string, say func(format string, args ...any)) (binaries, error) {
	root, err := goOutput(ctx, "", "list", "-m", "-f", "{{.Dir}}", mainModule)
	if err != nil {
		return nil, err
	}
	built, err := buildUpstream(ctx, root, say)
	if err != nil {
		return nil, err
	}
	for name, pkg := range ours {
		built[name] = filepath.Join(folder, name)
		if err := current(ctx, root, pkg, built[name], say); err != nil {
			return nil, err
		}
	}
	return built, nil
}

// current builds a binary of the work tree at root as it now is, and puts it at file. What
// was built last is kept too: Go does not link anew what would come out the same.
func current(ctx context.Context, root, pkg, file string, say func(string, ...any)) error {
	base, err := cacheBase()
	if err != nil {
		return err
	}
	tree := sha256.Sum256([]byte(root))
	folder := filepath.Join(base, "bin", "tree-"+hex.EncodeToString(tree[:8]))
	unlock, err := lock(folder, filepath.Base(file))
	if err != nil {
		return err
	}
	defer unlock()
	kept := filepath.Join(folder, filepath.Base(file))
	if err := build(ctx, root, pkg, kept, say); err != nil {
		return err
	}
	return copyFile(kept, file)
}

// copyFile copies a binary: the next build may write where it was built.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("read what was built: %w", err)
	}
	defer source.Close() //nolint:errcheck // it was only read
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return fmt.Errorf("write what was built: %w", err)
	}
	_, err = io.Copy(target, source)
	if err := errors.Join(err, target.Close()); err != nil {
		return fmt.Errorf("write what was built: %w", err)
	}
	return nil
}

// Assets builds the binaries that are not ours, where they are not there yet, and returns
// the folder of etcd and kube-apiserver: what controller-runtime's envtest looks for in
// KUBEBUILDER_ASSETS. Progress gets a line now and then for what takes long.
func Assets(ctx context.Context, progress io.Writer) (string, error) {
	root, err := goOutput(ctx, "", "list", "-m", "-f", "{{.Dir}}", mainModule)
	if err != nil {
		return "", err
	}
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(progress, format+"\n", args...) }
	built, err := buildUpstream(ctx, root, say)
	return filepath.Dir(built["kube-apiserver"]), err
}

func buildUpstream(ctx context.Context, root string, say func(string, ...any)) (binaries, error) {
	built := binaries{}
	for _, binary := range upstream {
		file, err := cached(ctx, filepath.Join(root, binary.module), binary.pkg, binary.name, say)
		if err != nil {
			return nil, err
		}
		built[binary.name] = file
	}
	return built, nil
}

// cached builds a package of a module once for its versions and this Go.
func cached(ctx context.Context, module, pkg, name string, say func(string, ...any)) (string, error) {
	stamp, err := versionStamp(ctx, module)
	if err != nil {
		return "", err
	}
	folder, err := cacheFolder(ctx, module, stamp)
	if err != nil {
		return "", err
	}
	unlock, err := lock(folder, name)
	if err != nil {
		return "", err
	}
	defer unlock()
	file := filepath.Join(folder, name)
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	if err := build(ctx, module, pkg, file+".new", say, stamp); err != nil {
		return "", err
	}
	return file, os.Rename(file+".new", file)
}

// versionStamp is the linker's flag that tells the components of Kubernetes which version
// they are, as their own build does; "" for other modules than theirs. Who asks for it, as
// Helm does, is told otherwise that it is v0.0.0.
func versionStamp(ctx context.Context, module string) (string, error) {
	if !strings.HasSuffix(filepath.ToSlash(module), kubernetesModule) {
		return "", nil
	}
	version, err := goOutput(ctx, module, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	return "-X k8s.io/component-base/version.gitVersion=" + version, nil
}

// cacheFolder is keyed by what decides about a binary: the versions that its module pins,
// the flags for its linker, and the Go that builds it.
func cacheFolder(ctx context.Context, module, flags string) (string, error) {
	base, err := cacheBase()
	if err != nil {
		return "", err
	}
	version, err := goOutput(ctx, module, "version")
	if err != nil {
		return "", err
	}
	key := sha256.New()
	for _, file := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(module, file))
		if err != nil {
			return "", fmt.Errorf("read the versions to build: %w", err)
		}
		key.Write(content)
	}
	key.Write([]byte(version + flags))
	return filepath.Join(base, "bin", hex.EncodeToString(key.Sum(nil))[:16]), nil
}

func cacheBase() (string, error) {
	if base := os.Getenv(CacheVariable); base != "" {
		return filepath.Abs(base)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the folder for built binaries (or set %s): %w", CacheVariable, err)
	}
	return filepath.Join(cache, "network-presence"), nil
}

// build runs go build, with more flags for the linker, and says so while it takes long.
func build(ctx context.Context, module, pkg, file string, say func(string, ...any), flags ...string) error {
	linker := strings.Join(append([]string{"-s", "-w"}, flags...), " ")
	command := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", linker, "-o", file, pkg)
	command.Dir = module
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	began := time.Now()
	if err := command.Start(); err != nil {
		return fmt.Errorf("run go build: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	ticker := time.NewTicker(15 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("build %s: %w\n%s", pkg, err, tail(output.Bytes(), 30))
			}
			if took := time.Since(began); took > 15*time.Second {
				say("built %s in %s", path.Base(pkg), took.Round(time.Second))
			}
			return nil
		case <-ticker.C:
			say("building %s, %s so far", pkg, time.Since(began).Round(time.Second))
		}
	}
}

// goOutput is what a go command prints, trimmed.
func goOutput(ctx context.Context, folder string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = folder
	output, err := command.Output()
	var exit *exec.ExitError
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("the command go is not on the PATH: install the Go that go.mod asks for, or a later one")
	}
	if errors.As(err, &exit) {
		return "", fmt.Errorf("go %s: %s", strings.Join(args, " "), strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(output)), nil
}

// lock holds the lock of a binary in a folder, which it makes, until unlock: two control
// planes do not build the same at once.
func lock(folder, binary string) (unlock func(), err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder for built binaries (set %s for another): %w", CacheVariable, err)
	}
	file := filepath.Join(folder, binary+".lock")
	handle, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(handle.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file, err), handle.Close())
	}
	return func() { _ = handle.Close() }, nil
}

// tail is the end of a text, at most so many lines.
func tail(text []byte, lines int) string {
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
