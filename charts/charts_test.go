package charts_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"

	"go.datum.net/network-presence/charts"
	"go.datum.net/network-presence/lua"
)

var update = flag.Bool("update", false, "write the golden files anew")

const authority = "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n"

// installations are ways to install each chart.
var installations = map[string]struct {
	chart  string
	values map[string]any
}{
	"hub":             {charts.Hub, map[string]any{"interpreter": map[string]any{"webhook": map[string]any{"caBundle": authority}}, "crds": map[string]any{"install": false}}},
	"hub-instead":     {charts.Hub, map[string]any{"interpreter": map[string]any{"form": "none"}, "admission": map[string]any{"defaulting": false, "contextWriters": []any{"backup"}}, "crds": map[string]any{"install": false}, "policy": map[string]any{"schedulerName": "default-scheduler", "confineNamespaces": true}, "identities": map[string]any{"tokens": true}}},
	"host":            {charts.Host, nil},
	"host-everything": {charts.Host, everything},
	"cell":            {charts.Cell, map[string]any{"location": "us-central-1", "crds": map[string]any{"install": false}}},
	"cell-alone":      {charts.Cell, map[string]any{"crds": map[string]any{"install": false}, "image": map[string]any{"digest": "sha256:0"}, "podDisruptionBudget": map[string]any{"create": false}}},
}

var everything = map[string]any{
	"platform":         map[string]any{"kubeconfig": map[string]any{"secret": "platform"}},
	"imagePullSecrets": []any{map[string]any{"name": "pull"}},
	"labels":           map[string]any{"team": "network"},
	"networkPolicy":    map[string]any{"create": true, "metricsFrom": []any{"monitoring"}},
	"serviceMonitor":   map[string]any{"create": true, "labels": map[string]any{"release": "prometheus"}},
	"webhook":          map[string]any{"certificate": map[string]any{"certManager": map[string]any{"create": true, "dnsNames": []any{"presence.example.com"}}}},
	"hub":              map[string]any{"confineNamespaces": true, "extraArgs": []any{"--v=4"}, "podLabels": map[string]any{"tier": "control"}, "podAnnotations": map[string]any{"note": "x"}, "extraEnv": []any{map[string]any{"name": "GOGC", "value": "200"}}},
	"scheduler":        map[string]any{"name": "default-scheduler", "nodeSelector": map[string]any{"disk": "fast"}, "tolerations": []any{map[string]any{"operator": "Exists"}}},
}

// What a chart renders is what it rendered when somebody last looked: run with -update to
// write it anew.
func TestRender(t *testing.T) {
	for name, installation := range installations {
		t.Run(name, func(t *testing.T) {
			rendered, err := charts.Render(installation.chart, charts.Namespace, installation.values)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, rendered, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(rendered)); diff != "" {
				t.Errorf("chart %s (-golden +rendered):\n%s", installation.chart, diff)
			}
		})
	}
}

// Values that cannot be right are refused by a sentence that names them.
func TestWrongValues(t *testing.T) {
	for name, test := range map[string]struct {
		chart  string
		values map[string]any
		want   string
	}{
		"a form that is none":     {charts.Hub, map[string]any{"interpreter": map[string]any{"form": "wasm"}}, "interpreter/form"},
		"no authority":            {charts.Hub, nil, "interpreter.webhook.caBundle is empty"},
		"an authority in base64":  {charts.Hub, map[string]any{"interpreter": map[string]any{"webhook": map[string]any{"caBundle": "YQ=="}}}, "interpreter/webhook/caBundle"},
		"a misspelt value":        {charts.Host, map[string]any{"replica": 3}, "replica"},
		"replicas that are text":  {charts.Host, map[string]any{"hub": map[string]any{"replicas": "two"}}, "hub/replicas"},
		"a location that is none": {charts.Cell, map[string]any{"location": "US Central"}, "location"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := charts.Render(test.chart, charts.Namespace, test.values)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
}

// The chart has Karmada ask for what the rules serve, where its values say that they are
// served.
func TestInterpreterWebhook(t *testing.T) {
	rendered, err := charts.Render(charts.Hub, charts.Namespace, map[string]any{
		"interpreter": map[string]any{"webhook": map[string]any{"url": "https://127.0.0.1:9443", "caBundle": authority}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got, want configv1alpha1.ResourceInterpreterWebhookConfiguration
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(rendered), 4096)
	for got.Kind != "ResourceInterpreterWebhookConfiguration" {
		got = configv1alpha1.ResourceInterpreterWebhookConfiguration{}
		if err := decoder.Decode(&got); err != nil {
			t.Fatal(err)
		}
	}
	if err := yaml.Unmarshal(lua.Webhook, &want); err != nil {
		t.Fatal(err)
	}
	want.Labels = got.Labels
	want.Webhooks[0].ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:9443/interpret"), CABundle: []byte(authority)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestLint(t *testing.T) {
	for _, installation := range installations {
		for _, message := range lint.All(installation.chart, installation.values, charts.Namespace, true).Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("chart %s: %s", installation.chart, message)
			}
		}
	}
}

// Nobody is allowed more than what is spelled out.
func TestNoWildcards(t *testing.T) {
	for name, installation := range installations {
		rendered, err := charts.Render(installation.chart, charts.Namespace, installation.values)
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(rendered), 4096)
		for {
			var role rbacv1.ClusterRole // a Role reads as one
			if decoder.Decode(&role) != nil {
				break
			}
			for _, rule := range role.Rules {
				if slices.Contains(slices.Concat(rule.Verbs, rule.Resources, rule.APIGroups), "*") {
					t.Errorf("%s: %s %s allows *", name, role.Kind, role.Name)
				}
			}
		}
	}
}
