package main

import (
	"os"
	"path/filepath"
	"testing"

	"go.datum.net/network-presence/interpreter"
)

func TestRevisionIsThatOfTheRules(t *testing.T) {
	got, err := revision("../../interpreter", "../scripts")
	if err != nil {
		t.Fatal(err)
	}
	if got != interpreter.Revision {
		t.Errorf("the rules are of revision %s, and interpreter.Revision says %s: run make generate", got, interpreter.Revision)
	}
}

func TestRevisionChangesWithStatementsAlone(t *testing.T) {
	const function, script = "package rules\n\nfunc f() int { return 1 }\n", "local function f()\n  return 1\nend\n"
	before := revisionOf(t, map[string]string{"rules.go": function, "rules.lua": script})
	for name, test := range map[string]struct {
		files   map[string]string
		changes bool
	}{
		"a comment in Go":          {map[string]string{"rules.go": "// Package rules is new.\n" + function, "rules.lua": script}, false},
		"layout in Go":             {map[string]string{"rules.go": "package rules\nfunc f() int {\n\treturn 1\n}\n", "rules.lua": script}, false},
		"a comment in Lua":         {map[string]string{"rules.go": function, "rules.lua": "-- f is new.\n\n" + script}, false},
		"layout in Lua":            {map[string]string{"rules.go": function, "rules.lua": "local function f()\n    return 1\nend\n"}, false},
		"a test":                   {map[string]string{"rules.go": function, "rules.lua": script, "rules_test.go": "package rules\n"}, false},
		"the handler":              {map[string]string{"rules.go": function, "rules.lua": script, "handler.go": "package rules\n"}, false},
		"a statement in Go":        {map[string]string{"rules.go": "package rules\n\nfunc f() int { return 2 }\n", "rules.lua": script}, true},
		"a statement in Lua":       {map[string]string{"rules.go": function, "rules.lua": "local function f()\n  return 2\nend\n"}, true},
		"another file with a rule": {map[string]string{"rules.go": function, "rules.lua": script, "more.go": "package rules\n\nvar x = 1\n"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if after := revisionOf(t, test.files); (after != before) != test.changes {
				t.Errorf("the revision was %s and is %s", before, after)
			}
		})
	}
}

func revisionOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := revision(dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
