// Package docs tests that the documentation speaks of what there is.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// reasons are the values of the constants of the API whose name begins with Reason.
func reasons(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../api/v1alpha/*_types.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("the API has the files %v, %v", files, err)
	}
	var found []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			if spec, ok := node.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Reason") {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, value)
			}
			return true
		})
	}
	return found
}

// alert is what is read of an alert here.
type alert struct {
	Alert       string            `json:"alert"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func alerts(t *testing.T) []alert {
	t.Helper()
	raw, err := os.ReadFile("../charts/network-presence/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []alert `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal(raw, &rules); err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, group := range rules.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// sections are the titles of the runbook's second order, with what is below them.
func sections(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, part := range regexp.MustCompile(`(?m)^##? `).Split(string(raw), -1) {
		title, text, _ := strings.Cut(part, "\n")
		if title != "" && !strings.Contains(title, " ") && title != "Alerts" && title != "Runbook" {
			found[title] = text
		}
	}
	return found
}

// The runbook has a section for each reason and each alert, and for nothing else; each says
// what it means, what to look at and what to do.
func TestRunbookHasASectionForEachReasonAndAlert(t *testing.T) {
	wanted := map[string]bool{}
	for _, reason := range reasons(t) {
		wanted[reason] = true
	}
	for _, alert := range alerts(t) {
		wanted[alert.Alert] = true
	}
	if len(wanted) < 25 {
		t.Fatalf("only %v are known", slices.Sorted(maps.Keys(wanted)))
	}
	found := sections(t)
	for name := range wanted {
		text, there := found[name]
		if !there {
			t.Errorf("runbook.md has no section %q", name)
			continue
		}
		for _, part := range []string{"**Meaning.** ", "**Look at.** ", "**Do.** "} {
			if !strings.Contains(text, part) {
				t.Errorf("section %q of runbook.md has no %s", name, part)
			}
		}
	}
	for name := range found {
		if !wanted[name] {
			t.Errorf("section %q of runbook.md is about no reason and no alert", name)
		}
	}
}

// Each alert says how bad it is and what it means, and links to its section of the runbook.
func TestAlertsLinkToTheRunbook(t *testing.T) {
	for _, alert := range alerts(t) {
		want := "/docs/runbook.md#" + strings.ToLower(alert.Alert)
		if url := alert.Annotations["runbook_url"]; !strings.HasSuffix(url, want) {
			t.Errorf("alert %s links to %q, which should end in %s", alert.Alert, url, want)
		}
		if alert.Labels["severity"] == "" || alert.Annotations["summary"] == "" || alert.Annotations["description"] == "" {
			t.Errorf("alert %s lacks a severity, a summary or a description", alert.Alert)
		}
	}
}

// Links from one page of the documentation lead to a page, and to a section of it.
func TestLinksLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../README.md") {
		if page == "api.md" {
			continue // it is generated, and its patterns look like links
		}
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(raw), -1) {
			target, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			text, err := os.ReadFile(file)
			if stat, statErr := os.Stat(file); statErr == nil && stat.IsDir() {
				continue
			}
			if err != nil {
				t.Errorf("%s links to %s, which is not there", page, link[1])
				continue
			}
			if anchor != "" && !hasAnchor(string(text), anchor) {
				t.Errorf("%s links to %s, which has no such section", page, link[1])
			}
		}
	}
}

// punctuation is what an anchor leaves out of its title.
var punctuation = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

func hasAnchor(text, anchor string) bool {
	for line := range strings.Lines(text) {
		title := strings.TrimLeft(line, "#")
		if title == line {
			continue
		}
		title = strings.ToLower(strings.TrimSpace(title))
		title = punctuation.ReplaceAllString(title, "")
		if strings.ReplaceAll(title, " ", "-") == anchor {
			return true
		}
	}
	return false
}
