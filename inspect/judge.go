package inspect

import (
	"fmt"
	"strings"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-io/karmada/pkg/util/names"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/location"
	"go.datum.net/network-presence/presence"
)

// Explain judges the chain of a presence.
func Explain(s *Sight) *Explanation {
	e := &Explanation{Key: s.Key, Answer: s.answer()}
	if binding := s.binding(); binding != nil {
		e.Binding = binding.Name
	}
	e.State, _ = presence.StateOf(s.Bindings, s.Context())
	e.Links = append(e.Links, projectLink(s), grantLink(s), contextLink(s), placementLink(s))
	for _, judge := range []func(*Sight, string) Link{workLink, copyLink, holdersLink} {
		for _, cell := range s.targets() {
			e.Links = append(e.Links, judge(s, cell))
		}
	}
	e.addAbsent(s.Unseen[KindPlacement])
	e.conclude(s)
	return e
}

// addAbsent adds the steps in cells where no cell is known: none is chosen, or unseen says
// why it cannot be seen which are.
func (e *Explanation) addAbsent(unseen string) {
	absent := Link{State: LinkWaiting, Note: "no cell is chosen yet"}
	if unseen != "" {
		absent = Link{State: LinkUnseen, Note: "it cannot be seen which cells were chosen"}
	}
	for _, step := range []Step{StepWork, StepCopy, StepHolders} {
		if !e.has(step) {
			absent.Step = step
			e.Links = append(e.Links, absent)
		}
	}
}

func (e *Explanation) has(step Step) bool {
	for i := range e.Links {
		if e.Links[i].Step == step {
			return true
		}
	}
	return false
}

// conclude marks the first broken link, and says what follows from it.
func (e *Explanation) conclude(s *Sight) {
	for i := range e.Links {
		if e.Links[i].State == LinkBroken {
			e.Broken, e.Cause, e.Advice = &i, e.Links[i].Note, e.Links[i].Advice
			return
		}
	}
	switch {
	case e.State == presence.StateHeld:
		e.Cause, e.Advice = declared(s.Context()), "release the NetworkInterfaces in the cells named, or wait for whoever holds them; "+
			"to give the addresses up unseen, annotate the context "+v1alpha.ForceReleaseAnnotation+"=true"
	case e.Answer == nil && s.Unseen[KindBinding] != "":
		e.Cause = s.Unseen[KindBinding]
	case e.Answer == nil:
		e.Cause, e.Advice = "no binding asks for this network in this location", "create a NetworkBinding in namespace "+s.Key.Namespace
	case e.Answer.Status != metav1.ConditionTrue:
		e.Cause, e.Advice = e.Answer.Message, unseenAdvice(e)
	}
}

// unseenAdvice is what to do where the binding is not ready and nothing that was seen is broken.
func unseenAdvice(e *Explanation) string {
	for i := range e.Links {
		if e.Links[i].State == LinkUnseen {
			return "no link that can be seen is broken: ask somebody who may see those marked unseen"
		}
	}
	return "every link is as it should be: look again in a moment, and if this stays, see that `network-presence hub` runs"
}

// broken makes a link broken, unless it is already.
func (l *Link) broken(advice, format string, args ...any) {
	if l.State == LinkBroken {
		return
	}
	l.State, l.Note, l.Advice = LinkBroken, fmt.Sprintf(format, args...), advice
}

func (l *Link) of(kind string, object metav1.Object) {
	created := object.GetCreationTimestamp()
	l.Object, l.Generation = kind+" "+object.GetName(), object.GetGeneration()
	if !created.IsZero() {
		l.Created = &created
	}
}

func projectLink(s *Sight) Link {
	l := Link{Step: StepProject, Object: "Namespace " + s.Key.Namespace, State: LinkOK}
	connect := "connect it: a Secret of the project's name in namespace network-presence-system, with its kubeconfig"
	if s.Namespace == nil {
		l.State, l.Note = LinkUnseen, s.Unseen[KindNamespace]
		if told := s.told(v1alpha.ReasonProjectUnresolved); told != "" {
			l.broken(connect, "%s", told)
		}
		return l
	}
	l.of("Namespace", s.Namespace)
	project, upstream, ok := s.index().Project(s.Namespace.Name)
	if !ok {
		l.broken("label the namespace with the project and the namespace that it mirrors",
			"namespace %q names no project: its labels %s and %s must both be set",
			s.Namespace.Name, v1alpha.UpstreamClusterNameLabel, v1alpha.UpstreamNamespaceLabel)
		return l
	}
	l.Note = fmt.Sprintf("namespace %s of project %s", upstream, project)
	if told := s.told(v1alpha.ReasonProjectUnresolved); told != "" {
		l.broken(connect, "%s", told)
	}
	return l
}

func grantLink(s *Sight) Link {
	l := Link{Step: StepGrant, State: LinkOK}
	advice := "have the project's LocationBinding for this location made or mended, or choose another location"
	told := s.told(v1alpha.ReasonLocationNotAvailable)
	index := s.index()
	project, _, ok := index.Project(s.Key.Namespace)
	if s.Unseen[KindGrant] != "" || !ok {
		l.State, l.Note = LinkUnseen, s.Unseen[KindGrant]
		if l.Note == "" {
			l.State, l.Note = LinkWaiting, "it is not known which project to ask"
		}
		if told != "" {
			l.broken(advice, "%s", told)
		}
		return l
	}
	for _, grant := range s.Grants {
		if grant.Name == location.CopyName(project, s.Key.Location) {
			l.of("LocationBinding", grant)
		}
	}
	may, why := index.May(project, s.Key.Location)
	switch {
	case !may:
		l.broken(advice, "%s", why)
	case told != "":
		l.broken(advice, "%s", told)
	default:
		l.Note = fmt.Sprintf("project %s may use location %s", project, s.Key.Location)
	}
	return l
}

func contextLink(s *Sight) Link {
	l := Link{Step: StepContext, State: LinkOK}
	network := "have the network made in the project, or delete the binding and create one for the right name"
	told := s.told(v1alpha.ReasonNetworkNotFound)
	context := s.Context()
	if context == nil {
		absentContext(s, &l, told, network)
		return l
	}
	l.of("NetworkContext", context)
	l.Note = fmt.Sprintf("network generation %d", context.Spec.NetworkGeneration)
	switch {
	case told != "":
		l.broken(network, "%s", told)
	case !context.DeletionTimestamp.IsZero():
		l.broken("wait; if addresses are held, release the NetworkInterfaces in the cells named",
			"context %q is being deleted: %s", context.Name, orElse(declared(context), "it waits for its finalizers"))
	case context.Labels[v1alpha.NetworkUIDLabel] == "":
		l.broken("delete it, so that it is made anew", "context %q was not made by the hub's controller: it has no label %s",
			context.Name, v1alpha.NetworkUIDLabel)
	}
	return l
}

// absentContext says why there is no context.
func absentContext(s *Sight, l *Link, told, network string) {
	running := "see that `network-presence hub` runs and holds its lease, and read its log"
	answer := s.answer()
	switch {
	case s.Unseen[KindContext] != "":
		l.State, l.Note = LinkUnseen, s.Unseen[KindContext]
	case told != "":
		l.broken(network, "%s", told)
	case answer == nil:
		l.State, l.Note = LinkWaiting, "nobody asks for one"
	case answer.Reason == v1alpha.ReasonPending:
		l.broken(running, "no controller has looked at binding %q yet", s.binding().Name)
	case answer.Reason == v1alpha.ReasonProjectUnresolved, answer.Reason == v1alpha.ReasonLocationNotAvailable:
		l.State, l.Note = LinkWaiting, "none is made before that"
	default:
		l.broken(running, "there is no context: %s", orElse(answer.Message, "the hub's controller has made none yet"))
	}
}

func placementLink(s *Sight) Link {
	l := Link{Step: StepPlacement, State: LinkOK}
	context := s.Context()
	switch {
	case context == nil:
		l.State, l.Note = LinkWaiting, "there is no context to place"
		return l
	case s.Unseen[KindPlacement] != "":
		l.State, l.Note = LinkUnseen, s.Unseen[KindPlacement]
		if why := s.told(v1alpha.ReasonNetworkContextNotReady); why != "" && len(context.Status.Cells) == 0 {
			l.broken("ask somebody who may see ResourceBindings", "%s", why)
		}
		return l
	}
	served := len(s.index().Cells(s.Key.Location)) > 0 || s.Unseen[KindCluster] != ""
	if s.Placement != nil {
		l.of("ResourceBinding", s.Placement)
	}
	if missing := presence.Unplaced(s.Placement, context, served); missing != "" {
		l.broken(placementAdvice(s, served), "%s", missing)
		return l
	}
	l.Note = "placed in " + strings.Join(s.targets(), ", ")
	return l
}

// placementAdvice is what to do about a context that Karmada has placed nowhere.
func placementAdvice(s *Sight, served bool) string {
	scheduler := ""
	if s.Placement != nil {
		scheduler = s.Placement.Spec.SchedulerName
	}
	switch {
	case s.Placement == nil && s.Context().Labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] == "":
		return "no policy has taken it: see that the ClusterPropagationPolicy network-presence is installed and karmada-controller-manager runs"
	case s.Placement == nil:
		return "see that karmada-controller-manager runs"
	case !served:
		return "label the Cluster of a cell that serves the location"
	case meta.FindStatusCondition(s.Placement.Status.Conditions, "Scheduled") == nil:
		return fmt.Sprintf("see that a karmada-scheduler runs with --scheduler-name=%s, and read its log", scheduler)
	}
	return "do what the message says of the clusters; `kubectl presence check` lists what is wrong with them"
}

func workLink(s *Sight, cell string) Link {
	l := Link{Step: StepWork, Cell: cell, State: LinkOK}
	context := s.Context()
	name := names.GenerateWorkName("NetworkContext", context.Name, context.Namespace)
	work := s.Works[cell]
	switch {
	case s.Unseen[KindWork] != "" || s.Placement == nil:
		l.State, l.Note = LinkUnseen, orElse(s.Unseen[KindWork], s.Unseen[KindPlacement])
		return l
	case work == nil:
		l.broken("see that karmada-controller-manager runs, and read its log", "Karmada has made no Work %q for cell %s yet", name, cell)
		return l
	}
	l.of("Work", work)
	dispatching := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkDispatching)
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
	away := unreachable(s.cluster(cell))
	switch {
	case dispatching != nil && dispatching.Status == metav1.ConditionFalse:
		l.broken("end the suspension in the policy that placed it", "Karmada may not deliver it to cell %s: %s", cell, dispatching.Message)
	case applied != nil && applied.Status == metav1.ConditionFalse:
		l.broken(appliedAdvice(applied.Message), "Karmada cannot write the copy in cell %s: %s", cell, firstLine(applied.Message))
	case applied == nil && away != "":
		l.broken("bring the cell's API server back, or unjoin the cell", "%s: Karmada has not written the copy there", away)
	case applied == nil:
		l.broken("wait; if this stays, see that karmada-controller-manager runs (in pull mode, the karmada-agent of the cell)",
			"Karmada has not written the copy in cell %s yet", cell)
	default:
		l.Note = "applied"
	}
	return l
}

// appliedAdvice is what to do about a copy that cannot be written.
func appliedAdvice(message string) string {
	if strings.Contains(message, "predecessor") {
		return "release the NetworkInterfaces that hold the copy of the deleted network in that cell"
	}
	return "mend what the cell's API server objects to"
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// declared is what the condition Declared says where it is False, and else "".
func declared(context *v1alpha.NetworkContext) string {
	if context == nil {
		return ""
	}
	condition := meta.FindStatusCondition(context.Status.Conditions, v1alpha.NetworkContextDeclared)
	if condition == nil || condition.Status != metav1.ConditionFalse {
		return ""
	}
	return condition.Message
}
