// Package charts holds what is installed where, as Helm charts.
package charts

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// The charts.
const (
	// Host is the chart of the processes, for the cluster that hosts Karmada.
	Host = "network-presence"
	// Hub is the chart for the API server of Karmada.
	Hub = "network-presence-hub"
	// Cell is the chart for a cell.
	Cell = "network-presence-cell"
)

// Namespace is where the charts are installed unless somebody says otherwise.
const Namespace = "network-presence-system"

//go:embed all:network-presence all:network-presence-hub all:network-presence-cell
var files embed.FS

// Render is what Helm would install of a chart in a namespace, in the order in which it
// would, as YAML documents. Values are those that differ from the chart's own; nil for none.
// The error is that of a chart that is not there, or of values, which it names.
func Render(name, namespace string, values map[string]any) ([]byte, error) {
	loaded, err := Load(name)
	if err != nil {
		return nil, err
	}
	capabilities := *chartutil.DefaultCapabilities
	options := chartutil.ReleaseOptions{Name: name, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(loaded, values, options, &capabilities)
	if err != nil {
		return nil, fmt.Errorf("values for chart %s: %w", name, err)
	}
	rendered, err := engine.Render(loaded, all)
	if err != nil {
		return nil, fmt.Errorf("render chart %s: %w", name, err)
	}
	for file := range rendered {
		if strings.HasSuffix(file, ".txt") {
			delete(rendered, file) // what Helm tells, not what it installs
		}
	}
	_, manifests, err := releaseutil.SortManifests(rendered, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, fmt.Errorf("order what chart %s installs: %w", name, err)
	}
	var documents bytes.Buffer
	for _, manifest := range manifests {
		fmt.Fprintf(&documents, "---\n%s\n", strings.TrimSpace(manifest.Content))
	}
	return documents.Bytes(), nil
}

// Load is a chart, for Helm to install. The error is that of a chart that is not there.
func Load(name string) (*chart.Chart, error) {
	var buffered []*loader.BufferedFile
	err := fs.WalkDir(files, name, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(file)
		buffered = append(buffered, &loader.BufferedFile{Name: strings.TrimPrefix(file, name+"/"), Data: content})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read chart %s: %w", name, err)
	}
	loaded, err := loader.LoadFiles(buffered)
	if err != nil {
		return nil, fmt.Errorf("load chart %s: %w", name, err)
	}
	return loaded, nil
}
