package location

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const header = "apiVersion: config.networking.datumapis.com/v1alpha1\nkind: LocationAuthorityConfiguration\n"

func TestConfigurationIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "configuration.yaml")
	text := header + `
unlabelledClusters: Allow
kinds:
  - apiVersion: apps/v1
    kind: Deployment
    location: {label: topology.datum.net/location}
  - apiVersion: compute.example.com/v1
    kind: Workload
    location: {field: spec.location.name}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadConfiguration(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Configuration{
		APIVersion: ConfigurationAPIVersion, Kind: ConfigurationKind, UnlabelledClusters: AllowUnlabelled,
		Kinds: []NamingKind{
			{APIVersion: "apps/v1", Kind: "Deployment", Location: NamedBy{Label: "topology.datum.net/location"}},
			{APIVersion: "compute.example.com/v1", Kind: "Workload", Location: NamedBy{Field: "spec.location.name"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestNoConfigurationIsTheDefault(t *testing.T) {
	got, err := ReadConfiguration("")
	if diff := cmp.Diff(Configuration{}, got); diff != "" || err != nil {
		t.Errorf("configuration (-want +got), error %v:\n%s", err, diff)
	}
}

func TestAWrongConfigurationNamesTheField(t *testing.T) {
	kind := func(rest string) string {
		return header + "kinds:\n  - {apiVersion: apps/v1, kind: Deployment, " + rest + "}\n"
	}
	for _, test := range []struct {
		name, text string
		says       []string
	}{
		{"empty", "", []string{`apiVersion: Unsupported value: ""`, `kind: Unsupported value: ""`}},
		{"no YAML", "kinds: [", []string{"yaml:"}},
		{"of another version", strings.Replace(header, "v1alpha1", "v9", 1), []string{`apiVersion: Unsupported value: "config.networking.datumapis.com/v9"`, ConfigurationAPIVersion}},
		{"of another kind", strings.Replace(header, "LocationAuthority", "Scheduler", 1), []string{"kind: Unsupported value", ConfigurationKind}},
		{"an unknown field", header + "unlabeled: Allow\n", []string{`unknown field "unlabeled"`}},
		{"an unknown field deep down", kind("location: {lable: where}"), []string{`unknown field "kinds[0].location.lable"`}},
		{"a field of another case", header + "UnlabelledClusters: Allow\n", []string{`unknown field "UnlabelledClusters"`}},
		{"a field named twice", header + "kinds: []\nkinds: []\n", []string{`"kinds" already set`}},
		{"a wrong type", header + "kinds: Deployment\n", []string{"kinds"}},
		{"an unknown choice", header + "unlabelledClusters: Maybe\n", []string{`unlabelledClusters: Unsupported value: "Maybe"`, `"Allow"`, `"Refuse"`}},
		{"a place missing", kind("location: {}"), []string{"kinds[0].location: Invalid value", "either label or field"}},
		{"two places", kind("location: {label: a, field: b}"), []string{"kinds[0].location: Invalid value"}},
		{"a wrong label", kind("location: {label: a b}"), []string{`kinds[0].location.label: Invalid value: "a b"`}},
		{"a wrong path", kind("location: {field: \"spec.items[0]\"}"), []string{`kinds[0].location.field: Invalid value: "spec.items[0]"`, "spec.location.name"}},
		{"a wrong version", header + "kinds:\n  - {apiVersion: a/b/c, kind: D, location: {label: a}}\n", []string{`kinds[0].apiVersion: Invalid value: "a/b/c"`}},
		{"no kind", header + "kinds:\n  - {apiVersion: v1, location: {label: a}}\n", []string{"kinds[0].kind: Required value"}},
		{"a kind twice", header + "kinds:\n  - {apiVersion: apps/v1, kind: D, location: {label: a}}\n  - {apiVersion: apps/v2, kind: D, location: {label: a}}\n", []string{`kinds[1].kind: Duplicate value: "D.apps"`}},
		{"a kind of ours", header + "kinds:\n  - {apiVersion: networking.datumapis.com/v1alpha, kind: NetworkContext, location: {label: a}}\n", []string{"kinds[0].kind: Forbidden"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseConfiguration([]byte(test.text))
			if err == nil {
				t.Fatal("no error")
			}
			for _, says := range test.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("error is %q, want one that says %q", err, says)
				}
			}
		})
	}
}

func TestAMissingFileIsNamed(t *testing.T) {
	_, err := ReadConfiguration(filepath.Join(t.TempDir(), "none.yaml"))
	if err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("error is %v", err)
	}
}
