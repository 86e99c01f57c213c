package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/crds"
)

// fieldManager owns what is installed here.
const fieldManager = "network-presence-e2e"

// apply makes the objects of a YAML file so.
func apply(ctx context.Context, plane *Plane, manifest []byte) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a manifest for %s: %w", plane.Name, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := applyObject(ctx, plane, object); err != nil {
			return err
		}
	}
}

// applyObject makes one object so. It tries again while the object's kind, whose definition
// may have been made a moment ago, or a webhook is not served yet.
func applyObject(ctx context.Context, plane *Plane, object *unstructured.Unstructured) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		last = plane.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager), client.ForceOwnership)
		if apierrors.IsInvalid(last) || apierrors.IsBadRequest(last) || apierrors.IsForbidden(last) {
			return false, last
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("install %s %q on %s: %w", object.GetKind(), object.GetName(), plane.Name, errors.Join(last, err))
	}
	return nil
}

// applyAll makes the objects of several files so, at once.
func applyAll(ctx context.Context, plane *Plane, manifests [][]byte) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, manifest := range manifests {
		group.Go(func() error { return apply(ctx, plane, manifest) })
	}
	return group.Wait()
}

// installCRDs installs those of our kinds whose plural names are given, or all, and
// returns once they are served.
func installCRDs(ctx context.Context, plane *Plane, plurals ...string) error {
	files, err := fs.Glob(crds.Files, "*.yaml")
	if err != nil {
		return fmt.Errorf("list our CRDs: %w", err)
	}
	var manifests [][]byte
	for _, file := range files {
		manifest, err := crds.Files.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read our CRD %s: %w", file, err)
		}
		_, plural, _ := strings.Cut(strings.TrimSuffix(file, ".yaml"), "_")
		if len(plurals) == 0 || slices.Contains(plurals, plural) {
			manifests = append(manifests, manifest)
		}
	}
	if err := applyAll(ctx, plane, manifests); err != nil {
		return err
	}
	return awaitCRDs(ctx, plane)
}

// awaitCRDs returns once every CRD of a plane is served.
func awaitCRDs(ctx context.Context, plane *Plane) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		var definitions apiextensionsv1.CustomResourceDefinitionList
		if err := plane.Client.List(ctx, &definitions); err != nil {
			return false, err
		}
		waits := slices.ContainsFunc(definitions.Items, func(d apiextensionsv1.CustomResourceDefinition) bool { return !established(&d) })
		return !waits, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the CRDs of %s: %w", plane.Name, err)
	}
	return nil
}

func established(definition *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range definition.Status.Conditions {
		if condition.Type == apiextensionsv1.Established {
			return condition.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// yamlFiles reads the YAML files under a folder.
func yamlFiles(folder string) ([][]byte, error) {
	var manifests [][]byte
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".yaml" {
			return err
		}
		manifest, err := os.ReadFile(file)
		manifests = append(manifests, manifest)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the manifests in %s: %w", folder, err)
	}
	return manifests, nil
}
