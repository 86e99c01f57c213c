package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const copyFile = `
apiVersion: networking.datumapis.com/v1alpha
kind: NetworkContext
metadata:
  name: default-us-central-1
  namespace: ns-acme
  labels: {networking.datumapis.com/network-uid: net-1}
spec:
  network: {name: default}
  location: {name: us-central-1}
  ipFamilies: [IPv6]
  mtu: 8000
  networkGeneration: 4
`

const bindingFile = `---
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {name: default-us-central-1-networkcontext, namespace: ns-acme}
status:
  aggregatedStatus:
    - {clusterName: us-1, applied: true, health: Healthy, status: {networkGeneration: 3, networkUID: net-1, ipFamilies: [IPv6], mtu: 8000, holders: 2}}
    - {clusterName: us-2, applied: false}
`

const copyAnswer = `healthy: true
report:
  ipFamilies:
  - IPv6
  mtu: 8000
  networkGeneration: 4
  networkUID: net-1
`

func interpret(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	command := newInterpretCommand()
	command.SilenceUsage, command.SilenceErrors = true, true
	command.SetArgs(args)
	command.SetIn(strings.NewReader(in))
	command.SetOut(&out)
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

func TestInterpretShowsACopy(t *testing.T) {
	for _, rules := range []string{rulesOfWebhook, rulesInLua} {
		t.Run(rules, func(t *testing.T) {
			got, err := interpret(t, copyFile, "-f", "-", "--rules="+rules)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(copyAnswer, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInterpretShowsAContextOnTheHub(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hub.yaml")
	if err := os.WriteFile(file, []byte(copyFile+bindingFile), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, rules := range []string{rulesOfWebhook, rulesInLua} {
		t.Run(rules, func(t *testing.T) {
			got, err := interpret(t, "", "--filename", file, "--rules="+rules)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"- applied: true\n", "message: not yet applied in cell us-2\n", "reason: CellsBehind\n", "reason: AddressesHeld\n"} {
				if !strings.Contains(got, want) {
					t.Errorf("got %s\nwant in it %q", got, want)
				}
			}
		})
	}
}

func TestInterpretSaysWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		in   string
		args []string
		want string
	}{
		"nothing to interpret": {"", nil, "give either --filename or the name of a NetworkContext"},
		"two things":           {copyFile, []string{"-f", "-", "default"}, "give either --filename or the name of a NetworkContext"},
		"a name of nowhere": {"", []string{"default"},
			`NetworkContext "default" is to be read from the hub of --kubeconfig or from the cell of --cell-kubeconfig: give one`},
		"a file and a cell":     {copyFile, []string{"-f", "-", "--cell-kubeconfig=x"}, "--filename and --cell-kubeconfig do not go together: give one"},
		"installed nowhere":     {copyFile, []string{"-f", "-", "--rules=installed"}, "--rules=installed needs the --kubeconfig of the hub that they are installed on"},
		"unknown rules":         {copyFile, []string{"-f", "-", "--rules=go"}, `--rules "go" is unknown: want "installed", "webhook" or "lua"`},
		"no such file":          {"", []string{"-f", "nowhere.yaml"}, "read --filename: open nowhere.yaml: no such file or directory"},
		"an empty file":         {"", []string{"-f", "-"}, "read standard input: it has no NetworkContext of networking.datumapis.com/v1alpha"},
		"a binding alone":       {bindingFile, []string{"-f", "-"}, "read standard input: it has no NetworkContext of networking.datumapis.com/v1alpha"},
		"two contexts":          {copyFile + "---" + copyFile, []string{"-f", "-"}, `read standard input: NetworkContext "default-us-central-1" is the second: want one`},
		"two bindings":          {copyFile + bindingFile + bindingFile, []string{"-f", "-"}, `read standard input: ResourceBinding "default-us-central-1-networkcontext" is the second: want one`},
		"no kubeconfig":         {"", []string{"default", "--kubeconfig=nowhere"}, `read --kubeconfig "nowhere": stat nowhere: no such file or directory`},
		"no kubeconfig of cell": {"", []string{"default", "--cell-kubeconfig=nowhere"}, `read --cell-kubeconfig "nowhere": stat nowhere: no such file or directory`},
		"another kind": {"{apiVersion: v1, kind: Secret, metadata: {name: s}}", []string{"-f", "-"},
			`read standard input: /v1, Kind=Secret "s" is neither a NetworkContext of networking.datumapis.com/v1alpha nor a ResourceBinding of work.karmada.io/v1alpha2`},
		"garbage in the spec": {strings.Replace(copyFile, "mtu: 8000", "mtu: many", 1) + bindingFile, []string{"-f", "-"},
			`aggregate the status of NetworkContext "default-us-central-1": `},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := interpret(t, test.in, test.args...)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %q and %v, want %s", got, err, test.want)
			}
		})
	}
}
