package inspect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/presence"
)

// idle is how long what should happen at once may take before it is called a fault.
const idle = time.Minute

func checkDefinitions(i *Installation) []Finding {
	const subject = "CRDs on the hub"
	if i.Unseen["CustomResourceDefinition"] != "" {
		return i.unseen(subject, "CustomResourceDefinition")
	}
	var amiss []string
	plurals := []string{"locationbindings", "locations", "networkbindings", "networkcontexts"}
	for _, plural := range plurals {
		if lack := lacksDefinition(i, plural+"."+v1alpha.SchemeGroupVersion.Group); lack != "" {
			amiss = append(amiss, lack)
		}
	}
	if len(amiss) > 0 {
		return []Finding{fault(subject, "install or upgrade the chart network-presence-hub", "%s", strings.Join(amiss, "; "))}
	}
	return []Finding{fine(subject, "%s serve %s", strings.Join(plurals, ", "), v1alpha.SchemeGroupVersion.Version)}
}

func lacksDefinition(i *Installation, name string) string {
	at := slices.IndexFunc(i.Definitions.Items, func(d apiextensionsv1.CustomResourceDefinition) bool { return d.Name == name })
	if at < 0 {
		return name + " is missing"
	}
	definition := &i.Definitions.Items[at]
	for _, version := range definition.Spec.Versions {
		if version.Name == v1alpha.SchemeGroupVersion.Version && version.Served {
			return ""
		}
	}
	return fmt.Sprintf("%s does not serve %s", name, v1alpha.SchemeGroupVersion.Version)
}

// selecting are the policies that carry every NetworkContext.
func (i *Installation) selecting() []*policyv1alpha1.ClusterPropagationPolicy {
	var policies []*policyv1alpha1.ClusterPropagationPolicy
	for n := range i.Policies.Items {
		for _, selector := range i.Policies.Items[n].Spec.ResourceSelectors {
			if selector.Kind == "NetworkContext" && selector.Name == "" && selector.LabelSelector == nil &&
				selector.APIVersion == v1alpha.SchemeGroupVersion.String() {
				policies = append(policies, &i.Policies.Items[n])
			}
		}
	}
	return policies
}

func checkPolicy(i *Installation) []Finding {
	const subject = "propagation policy"
	if i.Unseen["ClusterPropagationPolicy"] != "" {
		return i.unseen(subject, "ClusterPropagationPolicy")
	}
	policies := i.selecting()
	switch len(policies) {
	case 0:
		return []Finding{fault(subject, "install the chart network-presence-hub with policy.create",
			"no ClusterPropagationPolicy selects NetworkContexts: none is delivered anywhere")}
	case 1:
		return []Finding{fine(subject, "%s, placed by %s", policies[0].Name, policies[0].Spec.SchedulerName)}
	}
	var names []string
	for _, policy := range policies {
		names = append(names, policy.Name)
	}
	return []Finding{fault(subject, "delete all but network-presence", "several select NetworkContexts: %s", strings.Join(names, ", "))}
}

func (i *Installation) lease(name string) *coordinationv1.Lease {
	for n := range i.Leases.Items {
		if i.Leases.Items[n].Name == name {
			return &i.Leases.Items[n]
		}
	}
	return nil
}

// lapsed tells that nobody renews a lease any more, and since when.
func lapsed(lease *coordinationv1.Lease, now time.Time) (since time.Time, yes bool) {
	if lease == nil || lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
		return time.Time{}, false
	}
	since = lease.Spec.RenewTime.Time
	return since, now.Sub(since) > 2*time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second
}

func checkHub(i *Installation) []Finding {
	const subject = "hub controllers"
	advice := "see that `network-presence hub` runs, and read its log"
	lease := i.lease("network-presence-hub")
	if since, yes := lapsed(lease, i.Now); yes {
		return []Finding{fault(subject, advice, "nobody renews the lease network-presence-hub since %s", since.UTC().Format(time.RFC3339))}
	}
	waiting := 0
	for n := range i.Bindings.Items {
		binding := &i.Bindings.Items[n]
		answer := presence.Answer([]*v1alpha.NetworkBinding{binding})
		if answer != nil && answer.Reason == v1alpha.ReasonPending && i.Now.Sub(binding.CreationTimestamp.Time) > idle {
			waiting++
		}
	}
	if waiting > 0 {
		return []Finding{fault(subject, advice, "%d bindings wait to be looked at for more than %s", waiting, idle)}
	}
	if lease == nil && len(i.Bindings.Items) == 0 {
		return []Finding{{Subject: subject, State: LinkUnseen, Note: "no lease network-presence-hub and no binding is to be seen"}}
	}
	return []Finding{fine(subject, "every binding has been looked at")}
}

func checkScheduler(i *Installation) []Finding {
	const subject = "scheduler"
	policies := i.selecting()
	if len(policies) != 1 || i.Unseen[KindPlacement] != "" {
		return []Finding{{Subject: subject, State: LinkUnseen, Note: orElse(i.Unseen[KindPlacement], "it is not known which is to place contexts")}}
	}
	name := policies[0].Spec.SchedulerName
	advice := fmt.Sprintf("see that a karmada-scheduler of ours runs with --scheduler-name=%s, and read its log", name)
	if since, yes := lapsed(i.lease(name), i.Now); yes {
		return []Finding{fault(subject, advice, "nobody renews the lease %s since %s", name, since.UTC().Format(time.RFC3339))}
	}
	placed, waiting, others := 0, 0, 0
	for n := range i.Placements.Items {
		placement := &i.Placements.Items[n]
		if placement.Spec.Resource.Kind != "NetworkContext" {
			continue
		}
		switch scheduled := meta.FindStatusCondition(placement.Status.Conditions, workv1alpha2.Scheduled); {
		case placement.Spec.SchedulerName != name:
			others++
		case scheduled != nil:
			placed++
		case i.Now.Sub(placement.CreationTimestamp.Time) > idle:
			waiting++
		}
	}
	switch {
	case waiting > 0:
		return []Finding{fault(subject, advice, "%s has not looked at %d ResourceBindings for more than %s", name, waiting, idle)}
	case others > 0:
		return []Finding{fault(subject, "see which policy claims these contexts: `kubectl get resourcebindings -A`",
			"%d contexts are placed by another scheduler than %s", others, name)}
	}
	return []Finding{fine(subject, "%s has looked at %d contexts", name, placed)}
}

func checkCells(i *Installation) []Finding {
	if i.Unseen[KindCluster] != "" {
		return i.unseen("cells", KindCluster)
	}
	if len(i.Clusters.Items) == 0 {
		return []Finding{fault("cells", "join one: karmadactl join", "no cluster is joined")}
	}
	var findings []Finding
	clusters := slices.Clone(i.Clusters.Items)
	slices.SortFunc(clusters, func(a, b clusterv1alpha1.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	for n := range clusters {
		findings = append(findings, checkCell(&clusters[n]))
	}
	return findings
}

func checkCell(cluster *clusterv1alpha1.Cluster) Finding {
	subject := "cell " + cluster.Name
	served := cluster.Labels[v1alpha.TopologyLocationLabel]
	if away := unreachable(cluster); away != "" {
		return fault(subject, "bring the cell's API server back, or unjoin the cell", "%s", away)
	}
	if served == "" {
		return fault(subject, fmt.Sprintf("label it, or leave it if it is to serve none: kubectl label cluster %s %s=<location>", cluster.Name, v1alpha.TopologyLocationLabel),
			"it serves no location")
	}
	for _, kind := range []string{"NetworkContext", "NetworkInterface", "NetworkInterfaceClaim"} {
		if !serves(cluster, kind) {
			return fault(subject, "install or upgrade the chart network-presence-cell there",
				"its API server does not serve %s of %s", kind, v1alpha.SchemeGroupVersion)
		}
	}
	return fine(subject, "ready, serves %s, has the CRDs", served)
}

func serves(cluster *clusterv1alpha1.Cluster, kind string) bool {
	for _, enabled := range cluster.Status.APIEnablements {
		if enabled.GroupVersion != v1alpha.SchemeGroupVersion.String() {
			continue
		}
		if slices.ContainsFunc(enabled.Resources, func(r clusterv1alpha1.APIResource) bool { return r.Kind == kind }) {
			return true
		}
	}
	return false
}

// checkLocations looks for locations that are named, by a Location on the hub or by a
// context, and that no cell serves.
func checkLocations(i *Installation) []Finding {
	if i.Unseen[KindCluster] != "" {
		return i.unseen("locations", KindCluster)
	}
	served := map[string]bool{}
	for n := range i.Clusters.Items {
		served[i.Clusters.Items[n].Labels[v1alpha.TopologyLocationLabel]] = true
	}
	named := map[string]bool{}
	for n := range i.Locations.Items {
		named[i.Locations.Items[n].Name] = true
	}
	for n := range i.Contexts.Items {
		named[string(i.Contexts.Items[n].Spec.Location.Name)] = true
	}
	var findings []Finding
	for name := range named {
		if !served[name] {
			findings = append(findings, fault("location "+name,
				fmt.Sprintf("label the Cluster of a cell there: %s=%s", v1alpha.TopologyLocationLabel, name), "no cell serves it"))
		}
	}
	slices.SortFunc(findings, func(a, b Finding) int { return cmp.Compare(a.Subject, b.Subject) })
	if len(findings) == 0 {
		return []Finding{fine("locations", "each of %d has a cell", len(named))}
	}
	return findings
}

// checkWorks looks for Works of contexts that are gone: they keep copies in cells.
func checkWorks(i *Installation) []Finding {
	const subject = "leftover Works"
	if i.Unseen[KindWork] != "" || i.Unseen[KindContext] != "" {
		return []Finding{{Subject: subject, State: LinkUnseen, Note: orElse(i.Unseen[KindWork], i.Unseen[KindContext])}}
	}
	contexts := map[string]bool{}
	for n := range i.Contexts.Items {
		contexts[i.Contexts.Items[n].Namespace+"/"+i.Contexts.Items[n].Name] = true
	}
	var left []string
	for n := range i.Works.Items {
		work := &i.Works.Items[n]
		if carried := carries(work); carried != "" && !contexts[carried] {
			left = append(left, work.Namespace+"/"+work.Name)
		}
	}
	if len(left) > 0 {
		slices.Sort(left)
		return []Finding{fault(subject, "delete them, once the copies in their cells hold no addresses",
			"%d carry contexts that are gone: %s", len(left), strings.Join(left[:min(len(left), 5)], ", "))}
	}
	return []Finding{fine(subject, "none")}
}

// carries is the namespace and name of the NetworkContext that a Work carries, and "" where
// it carries something else.
func carries(work *workv1alpha1.Work) string {
	for _, manifest := range work.Spec.Workload.Manifests {
		var object metav1.PartialObjectMetadata
		if json.Unmarshal(manifest.Raw, &object) == nil && object.Kind == "NetworkContext" && object.APIVersion == v1alpha.SchemeGroupVersion.String() {
			return object.Namespace + "/" + object.Name
		}
	}
	return ""
}
