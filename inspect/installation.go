package inspect

import (
	"context"
	"fmt"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// Installation is what was seen of an installation, at one time.
type Installation struct {
	Definitions    apiextensionsv1.CustomResourceDefinitionList
	Policies       policyv1alpha1.ClusterPropagationPolicyList
	Clusters       clusterv1alpha1.ClusterList
	Locations      v1alpha.LocationList
	Bindings       v1alpha.NetworkBindingList
	Contexts       v1alpha.NetworkContextList
	Placements     workv1alpha2.ResourceBindingList
	Works          workv1alpha1.WorkList
	Webhooks       configv1alpha1.ResourceInterpreterWebhookConfigurationList
	Customizations configv1alpha1.ResourceInterpreterCustomizationList
	Leases         coordinationv1.LeaseList
	// Unseen says of the lists that could not be read why not. The key is the kind's name.
	Unseen map[string]string
	// Answer is what the interpreter webhook said when it was asked. Nil where it answered,
	// or where there is none; see NotAsked.
	Answer error
	// NotAsked tells that the webhook cannot be reached from here, which says nothing of
	// whether Karmada reaches it.
	NotAsked bool
	// Now is when all that was read.
	Now time.Time
}

// Scheme knows all kinds that this package reads.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha.AddToScheme, workv1alpha1.Install,
		workv1alpha2.Install, clusterv1alpha1.Install, policyv1alpha1.Install, configv1alpha1.Install,
	} {
		if err := add(scheme); err != nil {
			panic(err) // two packages claim one Go type: a mistake in this program
		}
	}
	return scheme
}

// Installation reads what an installation consists of. The error is the first that says
// something else than that the user may not, or that the hub has no such kind.
func (h *Hub) Installation(ctx context.Context) (*Installation, error) {
	i := &Installation{Unseen: map[string]string{}, Now: time.Now()}
	for kind, list := range map[string]client.ObjectList{
		"CustomResourceDefinition": &i.Definitions, "ClusterPropagationPolicy": &i.Policies, KindCluster: &i.Clusters,
		"Location": &i.Locations, KindBinding: &i.Bindings, KindContext: &i.Contexts, KindPlacement: &i.Placements,
		KindWork: &i.Works, "ResourceInterpreterWebhookConfiguration": &i.Webhooks,
		"ResourceInterpreterCustomization": &i.Customizations, "Lease": &i.Leases,
	} {
		err := h.Reader.List(ctx, list)
		switch {
		case err == nil:
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			i.Unseen[kind] = "you may not list these"
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			i.Unseen[kind] = "the API server does not serve this kind"
		default:
			return nil, fmt.Errorf("list kind %s: %w", kind, err)
		}
	}
	i.askWebhook(ctx)
	return i, nil
}

// Finding is one line about an installation.
type Finding struct {
	// Subject is what was looked at.
	Subject string `json:"subject"`
	// State is LinkOK, LinkBroken or LinkUnseen.
	State LinkState `json:"state"`
	// Note is what was found.
	Note string `json:"note"`
	// Advice is what to do. Empty where there is nothing to do.
	Advice string `json:"advice,omitempty"`
}

func fine(subject, format string, args ...any) Finding {
	return Finding{Subject: subject, State: LinkOK, Note: fmt.Sprintf(format, args...)}
}

func fault(subject, advice, format string, args ...any) Finding {
	return Finding{Subject: subject, State: LinkBroken, Note: fmt.Sprintf(format, args...), Advice: advice}
}

func (i *Installation) unseen(subject, kind string) []Finding {
	return []Finding{{Subject: subject, State: LinkUnseen, Note: kind + ": " + i.Unseen[kind]}}
}

// Check judges an installation, a line for each thing that was looked at.
func Check(i *Installation) []Finding {
	var findings []Finding
	for _, check := range []func(*Installation) []Finding{
		checkDefinitions, checkPolicy, checkHub, checkScheduler, checkInterpreter, checkCells, checkLocations, checkWorks,
	} {
		findings = append(findings, check(i)...)
	}
	return findings
}
