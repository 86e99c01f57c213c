// Command dist renders the charts as manifests for those who install without Helm.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.datum.net/network-presence/charts"
)

// placeholder stands where a manifest needs what only the operator has.
const placeholder = "-----BEGIN CERTIFICATE-----\nput the certificate authority of the webhook here\n-----END CERTIFICATE-----\n"

// manifests are the files, and what each is rendered from.
var manifests = map[string]struct {
	chart  string
	values map[string]any
}{
	"network-presence.yaml": {charts.Host, nil},
	"network-presence-hub.yaml": {charts.Hub, map[string]any{
		"interpreter": map[string]any{"webhook": map[string]any{"caBundle": placeholder}},
	}},
	"network-presence-hub-lua.yaml": {charts.Hub, map[string]any{
		"interpreter": map[string]any{"form": "lua"}, "admission": map[string]any{"defaulting": false},
	}},
	"network-presence-cell.yaml": {charts.Cell, nil},
	// For who wants nothing but NetworkContexts interpreted.
	"interpreter-lua.yaml": {charts.Hub, map[string]any{
		"interpreter": map[string]any{"form": "lua"}, "admission": map[string]any{"defaulting": false, "policies": false},
		"crds": map[string]any{"install": false}, "policy": map[string]any{"create": false},
		"identities": map[string]any{"create": false}, "roles": map[string]any{"create": false},
	}},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dist FOLDER")
		os.Exit(2)
	}
	if err := render(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make folder %s: %w", folder, err)
	}
	for name, manifest := range manifests {
		rendered, err := charts.Render(manifest.chart, charts.Namespace, manifest.values)
		if err != nil {
			return err
		}
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, rendered, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", file, err)
		}
		fmt.Println(file)
	}
	return nil
}
