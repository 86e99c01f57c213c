package controlplane

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsAreChecked(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options)
		want   []string
	}{
		"right": {func(o *Options) {
			o.Cells = []Cell{{Name: "us-1", Location: "us-central-1", Pull: true, Agent: true}, {Name: "spare"}}
			o.Projects, o.Interpreter, o.CellDown = []string{"acme", "globex"}, InterpreterLua, 7*time.Second
		}, nil},
		"no folder":               {func(o *Options) { o.Dir = "" }, []string{"the state has no folder: name one (Dir)"}},
		"an unknown form":         {func(o *Options) { o.Interpreter = "python" }, []string{`interpreter "python" is none: want "webhook" or "lua"`}},
		"a fraction of a second":  {func(o *Options) { o.CellDown = 1500 * time.Millisecond }, []string{"cell down 1.5s is not a number of whole seconds"}},
		"a cell twice":            {func(o *Options) { o.Cells = []Cell{{Name: "us-1"}, {Name: "us-1"}} }, []string{`cell "us-1" is named twice: give each a name of its own`}},
		"a cell without a name":   {func(o *Options) { o.Cells = []Cell{{}} }, []string{`cell "" cannot be the name of a Karmada Cluster: must be not empty`}},
		"a long name":             {func(o *Options) { o.Cells = []Cell{{Name: strings.Repeat("c", 49)}} }, []string{`cell "` + strings.Repeat("c", 49) + `" cannot be the name of a Karmada Cluster: must be no more than 48 characters`}},
		"an agent and no place":   {func(o *Options) { o.Cells = []Cell{{Name: "us-1", Agent: true}} }, []string{"cell us-1 has an agent and no location: give it one, or no agent"}},
		"a project twice":         {func(o *Options) { o.Projects = []string{"acme", "acme"} }, []string{`project "acme" is named twice: give each a name of its own`}},
		"two faults are two told": {func(o *Options) { o.Dir, o.Projects = "", []string{"acme", "acme"} }, []string{"the state has no folder: name one (Dir)", `project "acme" is named twice: give each a name of its own`}},
	} {
		t.Run(name, func(t *testing.T) {
			options := Options{Dir: "state"}
			test.change(&options)
			var got []string
			if err := options.validate(); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamesThatKubernetesRefusesAreTold(t *testing.T) {
	for _, options := range []Options{
		{Dir: "state", Cells: []Cell{{Name: "US_1"}}},
		{Dir: "state", Cells: []Cell{{Name: "us-1", Location: "US Central"}}},
		{Dir: "state", Projects: []string{"acme/web"}},
	} {
		if err := options.validate(); err == nil {
			t.Errorf("%+v is taken for right", options)
		}
	}
}
