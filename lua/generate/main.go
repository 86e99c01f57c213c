// Command generate makes what is made from the scripts of package lua and the rules of
// package interpreter: the manifests, and the revision of the rules. It runs in the folder
// of package lua.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"go.datum.net/network-presence/interpreter"
)

const header = "# Made by go generate ./lua from lua/scripts and interpreter. Do not edit.\n"

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate() error {
	retention, err1 := retention()
	status, err2 := status()
	revision, err3 := revision("../interpreter", "scripts")
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	return errors.Join(
		writeManifest("common", "retention.yaml", retention),
		writeManifest("lua", "status.yaml", status),
		writeManifest("webhook", "webhook.yaml", webhook()),
		writeRevision("../interpreter/zz_generated.revision.go", revision),
	)
}

// retention is the customization of every installation.
func retention() (*configv1alpha1.ResourceInterpreterCustomization, error) {
	retain, err1 := script("retain")
	dependencies, err2 := script("dependencies")
	return customization("network-presence-retention", configv1alpha1.CustomizationRules{
		Retention:                &configv1alpha1.LocalValueRetention{LuaScript: retain},
		DependencyInterpretation: &configv1alpha1.DependencyInterpretation{LuaScript: dependencies},
	}), errors.Join(err1, err2)
}

// status is the customization that says in Lua what package interpreter says.
func status() (*configv1alpha1.ResourceInterpreterCustomization, error) {
	reflection, err1 := script("read", "report", "reflect")
	health, err2 := script("read", "report", "health")
	aggregation, err3 := script("read", "report", "aggregate")
	return customization("network-presence-status", configv1alpha1.CustomizationRules{
		StatusReflection:     &configv1alpha1.StatusReflection{LuaScript: reflection},
		HealthInterpretation: &configv1alpha1.HealthInterpretation{LuaScript: health},
		StatusAggregation:    &configv1alpha1.StatusAggregation{LuaScript: aggregation},
	}), errors.Join(err1, err2, err3)
}

// script is one script of several files. Karmada runs each script alone: what they share
// must be in each.
func script(names ...string) (string, error) {
	var parts []string
	for _, name := range names {
		part, err := os.ReadFile(filepath.Join("scripts", name+".lua"))
		if err != nil {
			return "", fmt.Errorf("read script %s: %w", name, err)
		}
		parts = append(parts, string(part))
	}
	return strings.Join(parts, "\n"), nil
}

func customization(name string, rules configv1alpha1.CustomizationRules) *configv1alpha1.ResourceInterpreterCustomization {
	return &configv1alpha1.ResourceInterpreterCustomization{
		TypeMeta: metav1.TypeMeta{
			APIVersion: configv1alpha1.GroupVersion.String(),
			Kind:       "ResourceInterpreterCustomization",
		},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: configv1alpha1.ResourceInterpreterCustomizationSpec{
			Target: configv1alpha1.CustomizationTarget{
				APIVersion: metav1.GroupVersion{Group: interpreter.Kind.Group, Version: interpreter.Kind.Version}.String(),
				Kind:       interpreter.Kind.Kind,
			},
			Customizations: rules,
		},
	}
}

// webhook has Karmada ask for what package interpreter serves.
func webhook() *configv1alpha1.ResourceInterpreterWebhookConfiguration {
	return &configv1alpha1.ResourceInterpreterWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: configv1alpha1.GroupVersion.String(),
			Kind:       "ResourceInterpreterWebhookConfiguration",
		},
		ObjectMeta: metav1.ObjectMeta{Name: "network-presence"},
		Webhooks: []configv1alpha1.ResourceInterpreterWebhook{{
			Name: "interpreter.networking.datumapis.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{
					Namespace: "network-presence-system",
					Name:      "network-presence-webhook",
					Path:      ptr.To(interpreter.Path),
					Port:      ptr.To[int32](443),
				},
			},
			Rules: []configv1alpha1.RuleWithOperations{{
				Operations: interpreter.Operations,
				Rule: configv1alpha1.Rule{
					APIGroups:   []string{interpreter.Kind.Group},
					APIVersions: []string{interpreter.Kind.Version},
					Kinds:       []string{interpreter.Kind.Kind},
				},
			}},
			// Unset, a webhook that accepts connections and never answers would hold up
			// Karmada's workers, which serve other kinds as well, for ever. An answer
			// takes a few milliseconds.
			TimeoutSeconds:             ptr.To[int32](2),
			InterpreterContextVersions: []string{configv1alpha1.GroupVersion.Version},
		}},
	}
}

// writeManifest writes what package lua embeds, and the same into the folder of the hub's
// chart with what is installed in every case, by the Lua form, or by the webhook.
func writeManifest(installed, name string, object any) error {
	manifest, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	content := append([]byte(header), manifest...)
	return errors.Join(
		write(filepath.Join("manifests", name), content),
		write(filepath.Join("../charts/network-presence-hub/files/interpreter", installed, name), content))
}

func writeRevision(path, revision string) error {
	var source bytes.Buffer
	fmt.Fprintf(&source, `// Code generated by lua/generate. DO NOT EDIT.

package interpreter

// Revision identifies the rules: the Go form's statements and the Lua form's, without
// comments and layout. Karmada interprets nothing again because the rules have changed, so
// the presence controller stamps the revision on contexts; that it changes is what has them
// interpreted by new rules.
const Revision = %q
`, revision)
	return write(path, source.Bytes())
}

func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
