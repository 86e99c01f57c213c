package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/util/names"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"go.datum.net/network-presence/interpreter"
)

// contextKind is the kind that is interpreted.
var contextKind = schema.GroupVersionKind(interpreter.Kind)

// interpretOptions are the flags of interpret.
type interpretOptions struct {
	file           string
	kubeconfig     string
	cellKubeconfig string
	namespace      string
	rules          string
}

func newInterpretCommand() *cobra.Command {
	var o interpretOptions
	command := &cobra.Command{
		Use:   "interpret {-f FILE | NAME}",
		Short: "Show what the rules of interpretation make of a NetworkContext",
		Long: `Show what the rules of interpretation make of a NetworkContext.

Of a copy in a cell it shows the report and the health; of a context on the hub,
the status that follows from what Karmada has of its cells. Nothing is written.

The context comes from a file, or by its name from the hub of --kubeconfig or
from the cell of --cell-kubeconfig. In a file, a context together with its
ResourceBinding is one on the hub, and a context alone is a copy.

With --kubeconfig the rules are those installed on that hub, asked for in
Karmada's own order; a webhook among them must be reachable from here. Without
it they are those of this program.`,
		Example: `  network-presence interpret -n ns-acme default-us-central-1 --kubeconfig hub.yaml
  network-presence interpret -n ns-acme default-us-central-1 --kubeconfig hub.yaml --cell-kubeconfig cell.yaml
  network-presence interpret -f copy.yaml --rules=lua`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			var name string
			if len(args) > 0 {
				name = args[0]
			}
			return o.run(command.Context(), name, command.InOrStdin(), command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", `YAML or JSON file with a NetworkContext, and its ResourceBinding where it is one on the hub; "-" for standard input`)
	flags.StringVarP(&o.namespace, "namespace", "n", "default", "namespace of the NetworkContext that is named")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the Karmada API server")
	flags.StringVar(&o.cellKubeconfig, "cell-kubeconfig", "", "kubeconfig of the cell whose copy is to be read")
	flags.StringVar(&o.rules, "rules", "", `"installed", those on the hub of --kubeconfig, the default with it; "webhook", those that this program's webhook has, the default otherwise; "lua", this program's scripts`)
	return command
}

func (o *interpretOptions) run(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	if err := o.complete(name); err != nil {
		return err
	}
	s, err := o.read(ctx, name, in)
	if err != nil {
		return err
	}
	rules, err := o.loadRules(ctx)
	if err != nil {
		return err
	}
	a, err := s.interpret(rules)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(a)
	if err != nil {
		return fmt.Errorf("write the answers: %w", err)
	}
	_, err = out.Write(text)
	return err
}

// complete fills in what follows from other flags, and says which do not go together.
func (o *interpretOptions) complete(name string) error {
	if o.rules == "" {
		o.rules = rulesOfWebhook
		if o.kubeconfig != "" {
			o.rules = rulesInstalled
		}
	}
	switch {
	case (name == "") == (o.file == ""):
		return errors.New("give either --filename or the name of a NetworkContext")
	case name != "" && o.kubeconfig == "" && o.cellKubeconfig == "":
		return fmt.Errorf("NetworkContext %q is to be read from the hub of --kubeconfig or from the cell of --cell-kubeconfig: give one", name)
	case o.file != "" && o.cellKubeconfig != "":
		return errors.New("--filename and --cell-kubeconfig do not go together: give one")
	case o.rules == rulesInstalled && o.kubeconfig == "":
		return errors.New("--rules=installed needs the --kubeconfig of the hub that they are installed on")
	}
	return nil
}

// subject is what is interpreted.
type subject struct {
	context *unstructured.Unstructured
	// binding of a context on the hub; nil for a copy.
	binding *workv1alpha2.ResourceBinding
}

func (o *interpretOptions) read(ctx context.Context, name string, in io.Reader) (*subject, error) {
	switch {
	case o.file == "-":
		return decodeSubject("standard input", in)
	case o.file != "":
		file, err := os.Open(o.file)
		if err != nil {
			return nil, fmt.Errorf("read --filename: %w", err)
		}
		defer file.Close() //nolint:errcheck // nothing was written
		return decodeSubject(o.file, file)
	case o.cellKubeconfig != "":
		cell, err := connect("--cell-kubeconfig", o.cellKubeconfig)
		if err != nil {
			return nil, err
		}
		context, err := o.readContext(ctx, cell, name)
		return &subject{context: context}, err
	}
	return o.readHub(ctx, name)
}

func (o *interpretOptions) readHub(ctx context.Context, name string) (*subject, error) {
	hub, err := connect("--kubeconfig", o.kubeconfig)
	if err != nil {
		return nil, err
	}
	context, err := o.readContext(ctx, hub, name)
	if err != nil {
		return nil, err
	}
	var binding workv1alpha2.ResourceBinding
	key := client.ObjectKey{Namespace: o.namespace, Name: names.GenerateBindingName(contextKind.Kind, name)}
	if err := hub.Get(ctx, key, &binding); err != nil {
		return nil, fmt.Errorf("read what Karmada has of the cells of NetworkContext %s/%s: %w", o.namespace, name, err)
	}
	return &subject{context, &binding}, nil
}

func (o *interpretOptions) readContext(ctx context.Context, plane client.Client, name string) (*unstructured.Unstructured, error) {
	context := &unstructured.Unstructured{}
	context.SetGroupVersionKind(contextKind)
	if err := plane.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: name}, context); err != nil {
		return nil, fmt.Errorf("read NetworkContext %s/%s: %w", o.namespace, name, err)
	}
	return context, nil
}

func connect(flag, kubeconfig string) (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read %s %q: %w", flag, kubeconfig, err)
	}
	plane, err := client.New(config, client.Options{Scheme: hubScheme()})
	if err != nil {
		return nil, fmt.Errorf("connect by %s %q: %w", flag, kubeconfig, err)
	}
	return plane, nil
}

// decodeSubject reads a context, and its ResourceBinding where that is beside it.
func decodeSubject(name string, in io.Reader) (*subject, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(in, 4096)
	var s subject
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = s.add(object)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	if s.context == nil {
		return nil, fmt.Errorf("read %s: it has no NetworkContext of %s", name, contextKind.GroupVersion())
	}
	return &s, nil
}

func (s *subject) add(object *unstructured.Unstructured) error {
	switch object.GroupVersionKind() {
	case schema.GroupVersionKind{}:
		return nil // nothing between two separators
	case contextKind:
		if s.context != nil {
			return fmt.Errorf("NetworkContext %q is the second: want one", object.GetName())
		}
		s.context = object
	case workv1alpha2.SchemeGroupVersion.WithKind(workv1alpha2.ResourceKindResourceBinding): //nolint:staticcheck // what replaces it has no WithKind
		if s.binding != nil {
			return fmt.Errorf("ResourceBinding %q is the second: want one", object.GetName())
		}
		s.binding = &workv1alpha2.ResourceBinding{}
		return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, s.binding)
	default:
		return fmt.Errorf("%s %q is neither a NetworkContext of %s nor a ResourceBinding of %s",
			object.GroupVersionKind(), object.GetName(), contextKind.GroupVersion(), workv1alpha2.GroupVersion)
	}
	return nil
}

// answers are printed. A copy has a report and a health, a context on the hub a status.
type answers struct {
	Report  json.RawMessage `json:"report,omitempty"`
	Healthy *bool           `json:"healthy,omitempty"`
	Status  any             `json:"status,omitempty"`
}

func (s *subject) interpret(rules rules) (*answers, error) {
	if s.binding != nil {
		aggregated, err := rules.AggregateStatus(s.context, s.binding.Status.AggregatedStatus)
		if err != nil {
			return nil, fmt.Errorf("aggregate the status of NetworkContext %q: %w", s.context.GetName(), err)
		}
		return &answers{Status: aggregated.Object["status"]}, nil
	}
	report, err := rules.ReflectStatus(s.context)
	if err != nil {
		return nil, fmt.Errorf("reflect the status of NetworkContext %q: %w", s.context.GetName(), err)
	}
	healthy, err := rules.InterpretHealth(s.context)
	if err != nil {
		return nil, fmt.Errorf("interpret the health of NetworkContext %q: %w", s.context.GetName(), err)
	}
	a := &answers{Healthy: &healthy}
	if report != nil {
		a.Report = report.Raw
	}
	return a, nil
}
