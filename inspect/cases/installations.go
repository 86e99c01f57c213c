package cases

import (
	"context"
	"fmt"
	"time"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/inspect"
)

// Installations are installations by name: one that is well, one where all is wrong, one
// where nothing may be seen.
func Installations() map[string]*inspect.Installation {
	unseen := &inspect.Installation{Now: Now, Unseen: map[string]string{}}
	for _, kind := range []string{"CustomResourceDefinition", "ClusterPropagationPolicy", inspect.KindCluster, "Location",
		inspect.KindBinding, inspect.KindContext, inspect.KindPlacement, inspect.KindWork,
		"ResourceInterpreterWebhookConfiguration", "ResourceInterpreterCustomization", "Lease"} {
		unseen.Unseen[kind] = "you may not list these"
	}
	return map[string]*inspect.Installation{"well": well(), "faults": faults(), "unseen": unseen}
}

func well() *inspect.Installation {
	sight := Whole()
	i := &inspect.Installation{Now: Now, Unseen: map[string]string{}}
	for _, plural := range []string{"locationbindings", "locations", "networkbindings", "networkcontexts"} {
		i.Definitions.Items = append(i.Definitions.Items, definition(plural, "v1alpha"))
	}
	i.Policies.Items = []policyv1alpha1.ClusterPropagationPolicy{policy("network-presence")}
	for _, cluster := range sight.Clusters {
		i.Clusters.Items = append(i.Clusters.Items, *cluster)
	}
	i.Locations.Items = []v1alpha.Location{{ObjectMeta: metav1.ObjectMeta{Name: "us-central-1"}}}
	i.Bindings.Items = []v1alpha.NetworkBinding{*sight.Bindings[0]}
	i.Contexts.Items = []v1alpha.NetworkContext{*sight.Contexts[0]}
	i.Placements.Items = []workv1alpha2.ResourceBinding{*sight.Placement}
	i.Works.Items = []workv1alpha1.Work{carrying("default-us-central-1")}
	i.Webhooks.Items = []configv1alpha1.ResourceInterpreterWebhookConfiguration{webhook()}
	i.Leases.Items = []coordinationv1.Lease{lease("network-presence-hub", 5*time.Second)}
	return i
}

func faults() *inspect.Installation {
	i := well()
	i.Definitions.Items = append(i.Definitions.Items[:2], definition("networkbindings", "v1beta1"))
	i.Policies.Items = append(i.Policies.Items, policy("other"))
	i.Clusters.Items[0].Labels = nil
	i.Clusters.Items[1].Status.APIEnablements = nil
	i.Clusters.Items[2].Status.Conditions[0].Status = metav1.ConditionFalse
	i.Locations.Items = append(i.Locations.Items, v1alpha.Location{ObjectMeta: metav1.ObjectMeta{Name: "sa-east-1"}})
	i.Works.Items = append(i.Works.Items, carrying("gone-us-central-1"))
	i.Leases.Items[0] = lease("network-presence-hub", time.Hour)
	i.Answer = context.DeadlineExceeded
	return i
}

func definition(plural, version string) apiextensionsv1.CustomResourceDefinition {
	return apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + v1alpha.SchemeGroupVersion.Group},
		Spec:       apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: version, Served: true}}},
	}
}

func policy(name string) policyv1alpha1.ClusterPropagationPolicy {
	return policyv1alpha1.ClusterPropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1alpha1.PropagationSpec{
			SchedulerName:     "network-presence-scheduler",
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: v1alpha.SchemeGroupVersion.String(), Kind: "NetworkContext"}},
		},
	}
}

func carrying(context string) workv1alpha1.Work {
	raw := fmt.Appendf(nil, `{"apiVersion":%q,"kind":"NetworkContext","metadata":{"namespace":"ns-acme","name":%q}}`, v1alpha.SchemeGroupVersion.String(), context)
	return workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-us-1", Name: context},
		Spec:       workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}}},
	}
}

func webhook() configv1alpha1.ResourceInterpreterWebhookConfiguration {
	return configv1alpha1.ResourceInterpreterWebhookConfiguration{Webhooks: []configv1alpha1.ResourceInterpreterWebhook{{
		Rules: []configv1alpha1.RuleWithOperations{{
			Operations: []configv1alpha1.InterpreterOperation{configv1alpha1.InterpreterOperationInterpretStatus},
			Rule: configv1alpha1.Rule{
				APIGroups: []string{v1alpha.SchemeGroupVersion.Group}, APIVersions: []string{"v1alpha"}, Kinds: []string{"NetworkContext"},
			},
		}},
	}}}
}

func lease(name string, old time.Duration) coordinationv1.Lease {
	return coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{
		LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: Now.Add(-old)},
	}}
}
