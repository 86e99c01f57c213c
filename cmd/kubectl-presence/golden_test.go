package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/inspect"
	"go.datum.net/network-presence/inspect/cases"
	"go.datum.net/network-presence/presence"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares an output with the file of its name in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("read the golden file: %v; go test -update writes it", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("output differs from %s; go test -update writes it anew (-want +got):\n%s", file, diff)
	}
}

func show(t *testing.T, format string, print func(*plugin, io.Writer) error) []byte {
	t.Helper()
	var out bytes.Buffer
	p := &plugin{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: io.Discard}, output: format}
	if err := print(p, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestExplanations(t *testing.T) {
	for _, test := range cases.All() {
		explained := []*inspect.Explanation{inspect.Explain(test.Sight)}
		print := func(p *plugin, out io.Writer) error { return p.printExplanations(out, explained, cases.Now) }
		t.Run(test.Name, func(t *testing.T) {
			golden(t, "explain-"+test.Name+".txt", show(t, formatTable, print))
		})
		if test.Name != "cell-refuses" {
			continue
		}
		for _, format := range []string{formatWide, formatJSON, formatYAML} {
			golden(t, "explain-"+test.Name+"."+format, show(t, format, print))
		}
	}
}

// some are presences of every state.
func some() *inspect.Pairs {
	var bindings []*v1alpha.NetworkBinding
	var contexts []*v1alpha.NetworkContext
	for _, test := range cases.All() {
		network, known := map[string]string{
			"ready": "default", "converging": "edited", "no-grant": "refused", "cell-refuses": "stuck", "held": "left",
		}[test.Name]
		if !known {
			continue
		}
		for _, binding := range test.Sight.Bindings {
			binding.Spec.Network.Name = v1alpha.Name(network)
			bindings = append(bindings, binding)
			elsewhere := binding.DeepCopy()
			elsewhere.Name, elsewhere.Spec.Location.Name = binding.Name+"-eu", "eu-west-1"
			elsewhere.Status = cases.Binding("", metav1.ConditionUnknown, v1alpha.ReasonPending, "no controller has looked at this binding yet").Status
			bindings = append(bindings, elsewhere)
		}
		for _, context := range test.Sight.Contexts {
			context.Spec.Network.Name, context.Name = v1alpha.LocalNetworkReference{Name: v1alpha.Name(network)}.Name, network+"-us-central-1"
			contexts = append(contexts, context)
		}
	}
	return inspect.NewPairs("", bindings, contexts)
}

func TestGet(t *testing.T) {
	pairs := some()
	states := map[presence.State]bool{}
	for _, pair := range pairs.Items {
		states[pair.State] = true
	}
	if len(states) != 5 {
		t.Errorf("the states are %v, want each of them once", states)
	}
	golden(t, "get.txt", show(t, formatTable, func(p *plugin, out io.Writer) error { return p.printMatrix(out, pairs, false) }))
	golden(t, "get.wide", show(t, formatWide, func(p *plugin, out io.Writer) error { return p.printMatrix(out, pairs, true) }))
	golden(t, "get.json", show(t, formatJSON, func(p *plugin, out io.Writer) error {
		_, err := structured(out, p.output, map[string]any{"presences": pairs.Items})
		return err
	}))
}

func TestTree(t *testing.T) {
	for _, name := range []string{"ready", "converging", "held", "cell-refuses"} {
		for _, test := range cases.All() {
			if test.Name != name {
				continue
			}
			pairs := inspect.NewPairs("default", test.Sight.Bindings, test.Sight.Contexts)
			root := treeOf("default", "ns-acme", pairs)
			golden(t, "tree-"+name+".txt", show(t, formatTable, func(p *plugin, out io.Writer) error { return p.printTree(out, root) }))
			if name == "ready" {
				golden(t, "tree-"+name+".yaml", show(t, formatYAML, func(p *plugin, out io.Writer) error { return p.printTree(out, root) }))
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for name, installation := range cases.Installations() {
		findings := inspect.Check(installation)
		golden(t, "check-"+name+".txt", show(t, formatTable, func(p *plugin, out io.Writer) error { return p.printFindings(out, findings) }))
		if name == "faults" {
			golden(t, "check-"+name+".yaml", show(t, formatYAML, func(p *plugin, out io.Writer) error { return p.printFindings(out, findings) }))
		}
	}
}

func TestProgress(t *testing.T) {
	answer := func(binding *v1alpha.NetworkBinding) string {
		return progress(presence.Answer([]*v1alpha.NetworkBinding{binding}))
	}
	gone := cases.Binding("web", metav1.ConditionTrue, v1alpha.ReasonNetworkContextReady, "")
	gone.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	got := strings.Join([]string{
		answer(cases.Binding("web", metav1.ConditionTrue, v1alpha.ReasonNetworkContextReady, "it is there")),
		answer(cases.Binding("web", metav1.ConditionFalse, v1alpha.ReasonNetworkNotFound, "it is not")),
		answer(gone),
	}, "\n")
	if diff := cmp.Diff("ready: it is there\nNetworkNotFound: it is not\nis being deleted", got); diff != "" {
		t.Error(diff)
	}
}

// The help of each command is looked at as it is printed.
func TestHelp(t *testing.T) {
	t.Setenv("HOME", "/home/operator") // kubectl's flags show it
	for _, name := range []string{"", "get", "explain", "tree", "wait", "check"} {
		var out bytes.Buffer
		command := newCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
		command.SetArgs(append(strings.Fields(name), "--help"))
		if err := command.Execute(); err != nil {
			t.Fatal(err)
		}
		text, _, _ := strings.Cut(out.String(), "\nGlobal Flags:")
		if name == "" {
			text, _, _ = strings.Cut(text, "\nFlags:")
		}
		golden(t, strings.TrimSuffix("help-"+name, "-")+".txt", []byte(text))
	}
}

func TestBadInput(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"an unknown format":     {[]string{"get", "-o", "xml"}, `--output is "xml": it must be table, wide, json or yaml`},
		"an unknown kind":       {[]string{"explain", "pod/web"}, `kind "pod" is unknown: it must be binding, context or network`},
		"no name":               {[]string{"explain", "binding/"}, `"binding/" names nothing: write binding/NAME`},
		"a network to wait for": {[]string{"wait", "network/default"}, `network "default" cannot be waited for: name a binding`},
		"an unknown end":        {[]string{"wait", "web", "--for=happiness"}, `--for is "happiness": it must be ready or delete`},
		"no time":               {[]string{"wait", "web", "--timeout=0s"}, `--timeout is 0s: it must be more than 0`},
		"no kubeconfig":         {[]string{"check", "--kubeconfig=nowhere"}, `read the kubeconfig: stat nowhere: no such file or directory`},
	} {
		t.Run(name, func(t *testing.T) {
			var out, problem bytes.Buffer
			streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &problem}
			command := newCommand(streams)
			command.SetArgs(test.args)
			if code := exitCode(streams, command.Execute()); code != exitFailed {
				t.Errorf("exit code is %d, want %d", code, exitFailed)
			}
			if got := strings.TrimSpace(problem.String()); got != "error: "+test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
