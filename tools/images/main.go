// Command images makes the images of the processes as OCI archives, without a container
// engine: one static binary on nothing, run as nobody, the same bytes from the same sources.
// Beside each it writes a software bill of materials.
//
// It runs in the root of the repository:
//
//	images VERSION FOLDER
package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// images are the name of each, and the package of its one binary.
var images = map[string]string{
	"network-presence":           "./cmd/network-presence",
	"network-presence-scheduler": "./cmd/karmada-scheduler",
}

var architectures = []string{"amd64", "arm64"}

// nobody is the user and group that the charts run the processes as.
const nobody = "65532:65532"

// made is when everything was made: never, so that the bytes do not depend on it.
var made = time.Unix(0, 0).UTC()

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: images VERSION FOLDER")
		os.Exit(2)
	}
	for name, program := range images {
		if err := archive(name, program, os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintf(os.Stderr, "make image %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

// archive writes the image of a program, for all architectures, as one OCI archive.
func archive(name, program, version, folder string) error {
	work, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // a temporary folder
	var index v1.ImageIndex = empty.Index
	for _, architecture := range architectures {
		binary := filepath.Join(work, architecture)
		if err := build(program, architecture, binary); err != nil {
			return err
		}
		image, err := imageOf(name, version, architecture, binary)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: architecture},
		}})
		if err := writeBill(binary, name, version, filepath.Join(folder, name+"-"+architecture+".spdx.json")); err != nil {
			return err
		}
	}
	laid := filepath.Join(work, "layout")
	path, err := layout.Write(laid, empty.Index)
	if err != nil {
		return fmt.Errorf("lay out: %w", err)
	}
	// The name that tools like podman load it by.
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": name + ":" + version})
	if err := path.AppendIndex(index, named); err != nil {
		return fmt.Errorf("lay out: %w", err)
	}
	file := filepath.Join(folder, name+".tar")
	if err := pack(laid, file); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Println(file, digest)
	return nil
}

func build(program, architecture, file string) error {
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", file, program)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for %s: %w: %s", program, architecture, err, output)
	}
	return nil
}

// imageOf is the image of one binary, which it starts.
func imageOf(name, version, architecture, binary string) (v1.Image, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	writer := tar.NewWriter(&files)
	if err := add(writer, name, 0o555, content); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil })
	if err != nil {
		return nil, fmt.Errorf("make the layer: %w", err)
	}
	image, err := mutate.Append(empty.Image, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "images", Created: v1.Time{Time: made}}})
	if err != nil {
		return nil, fmt.Errorf("append the layer: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created, config.OS, config.Architecture = v1.Time{Time: made}, "linux", architecture
	config.Config = v1.Config{
		User: nobody, Entrypoint: []string{"/" + name}, WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title": name, "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

// pack writes a folder as a tar archive, in order.
func pack(folder, file string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	writer := tar.NewWriter(out)
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return add(writer, name, 0o444, content)
	})
	for _, closes := range []func() error{writer.Close, out.Close} {
		if closed := closes(); err == nil {
			err = closed
		}
	}
	return err
}

func add(writer *tar.Writer, name string, mode int64, content []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: made, Format: tar.FormatPAX}
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err := writer.Write(content)
	return err
}
