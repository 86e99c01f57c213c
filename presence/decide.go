package presence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/interpreter"
	"go.datum.net/network-presence/location"
)

// decision is what is to be done about a presence. Its zero value is: nothing.
type decision struct {
	// context to write, whole as wished; nil where the one on the hub is right.
	context *v1alpha.NetworkContext
	// withdrawn contexts are to be deleted.
	withdrawn []*v1alpha.NetworkContext
	// released contexts lose our finalizer, so that their deletion ends.
	released []*v1alpha.NetworkContext
	// declared is the condition to write on a context; nil where it is right.
	declared *declaration
	// answers to write; bindings whose status is right are left out.
	answers []answer
	// finalizer tells that the network's finalizer should be looked at.
	finalizer bool
	// overdue is a context whose cells should have reported by now; nil where none is.
	overdue *v1alpha.NetworkContext
	// again is when to look again where nothing happens until then; 0 for never.
	again time.Duration
}

// declaration is a context with the condition Declared that it should have.
type declaration struct {
	context   *v1alpha.NetworkContext
	condition metav1.Condition
}

// answer is the status that a binding should have.
type answer struct {
	binding *v1alpha.NetworkBinding
	status  v1alpha.NetworkBindingStatus
}

// decide is the whole of what the presence controller knows how to do. It reads only the
// snapshot.
func decide(s *snapshot) decision {
	var d decision
	d.contexts(s)
	d.answer(s)
	d.finalizer = wantsFinalizer(s) != hasFinalizer(s)
	if current := s.current(); current != nil && overdue(s, current) {
		d.overdue = current
	}
	return d
}

// wantsFinalizer tells whether this presence needs the network to wait with its deletion.
func wantsFinalizer(s *snapshot) bool {
	return s.network != nil && (len(s.contexts) > 0 || s.networkLive() && s.granted && s.needed())
}

func hasFinalizer(s *snapshot) bool {
	return s.network != nil && slices.Contains(s.network.Finalizers, v1alpha.PresenceFinalizer)
}

// contexts decides which contexts are written, deleted and let go.
func (d *decision) contexts(s *snapshot) {
	for _, context := range s.contexts {
		if !context.DeletionTimestamp.IsZero() {
			d.release(s, context)
		}
	}
	if s.network != nil {
		d.withdraw(s.predecessors()...)
	}
	current := s.current()
	switch {
	case current == nil:
		d.create(s)
	case s.networkGone():
		d.withdraw(current)
	case s.needed():
		d.update(s, current)
		d.declare(current, nil)
	case len(holders(s, current)) > 0:
		d.update(s, current)
		d.declare(current, holders(s, current))
	default:
		d.withdraw(current)
	}
}

// withdraw deletes contexts, but for those that somebody else made: ours say which network
// they are of.
func (d *decision) withdraw(contexts ...*v1alpha.NetworkContext) {
	for _, context := range contexts {
		if context.DeletionTimestamp.IsZero() && context.Labels[v1alpha.NetworkUIDLabel] != "" {
			d.withdrawn = append(d.withdrawn, context)
		}
	}
}

func (d *decision) release(s *snapshot, context *v1alpha.NetworkContext) {
	held := holders(s, context)
	if len(held) > 0 {
		d.declare(context, held)
		return
	}
	if !slices.Contains(context.Finalizers, v1alpha.PresenceFinalizer) {
		return
	}
	if wait := delivering(s, context); wait > 0 {
		d.again = wait
		return
	}
	d.released = append(d.released, context)
}

// create makes the context of a network that is live, granted and needed, once its
// finalizer keeps it from going unseen and no predecessor is in the way.
func (d *decision) create(s *snapshot) {
	if !s.networkLive() || !s.granted || !s.needed() || !hasFinalizer(s) || len(s.contexts) > 0 {
		return
	}
	name := s.key.plainName()
	if s.nameTaken {
		name = s.key.hashedName()
	}
	d.context = wish(s, name)
}

// update brings the current context up to the network, where that is known. A context
// that lost its finalizer while being deleted is past writing.
func (d *decision) update(s *snapshot, current *v1alpha.NetworkContext) {
	if !s.networkLive() || !current.DeletionTimestamp.IsZero() {
		return
	}
	wished := wish(s, current.Name)
	wished.UID = current.UID
	if !conforms(current, wished) {
		d.context = wished
	}
}

// wish is the context as the network is now.
func wish(s *snapshot, name string) *v1alpha.NetworkContext {
	return &v1alpha.NetworkContext{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.key.Namespace,
			Name:      name,
			Labels: map[string]string{
				v1alpha.UpstreamClusterNameLabel: location.ProjectToLabel(s.project),
				v1alpha.UpstreamNamespaceLabel:   s.upstreamNamespace,
				v1alpha.NetworkLabel:             s.key.Network,
				v1alpha.LocationLabel:            s.key.Location,
				v1alpha.NetworkUIDLabel:          string(s.network.UID),
			},
			Annotations: map[string]string{v1alpha.RulesRevisionAnnotation: interpreter.Revision},
			Finalizers:  []string{v1alpha.PresenceFinalizer},
		},
		Spec: v1alpha.NetworkContextSpec{
			Network:           v1alpha.LocalNetworkReference{Name: v1alpha.Name(s.key.Network)},
			Location:          v1alpha.LocationReference{Name: v1alpha.Name(s.key.Location)},
			IPFamilies:        s.network.Spec.IPFamilies,
			MTU:               s.network.Spec.MTU,
			NetworkGeneration: s.network.Generation,
		},
	}
}

// conforms tells whether a context has all that is wished of it. What others added stays.
func conforms(context, wished *v1alpha.NetworkContext) bool {
	for key, value := range wished.Labels {
		if context.Labels[key] != value {
			return false
		}
	}
	for key, value := range wished.Annotations {
		if context.Annotations[key] != value {
			return false
		}
	}
	return slices.Contains(context.Finalizers, v1alpha.PresenceFinalizer) &&
		apiequality.Semantic.DeepEqual(context.Spec, wished.Spec)
}

// declare writes the condition Declared where it says something: that a context only
// waits for addresses, and that it no longer does. A context without it is declared.
func (d *decision) declare(context *v1alpha.NetworkContext, held []string) {
	condition := metav1.Condition{
		Type:               v1alpha.NetworkContextDeclared,
		Status:             metav1.ConditionTrue,
		Reason:             v1alpha.ReasonDeclared,
		Message:            "bindings need this network here",
		ObservedGeneration: context.Generation,
	}
	if len(held) > 0 {
		condition.Status = metav1.ConditionFalse
		condition.Reason = v1alpha.ReasonAddressesHeld
		condition.Message = heldMessage(held)
	}
	before := meta.FindStatusCondition(context.Status.Conditions, v1alpha.NetworkContextDeclared)
	if before == nil && len(held) == 0 {
		return
	}
	if before != nil && before.Status == condition.Status && before.Message == condition.Message {
		return
	}
	conditions := slices.Clone(context.Status.Conditions)
	meta.SetStatusCondition(&conditions, condition)
	d.declared = &declaration{
		context:   context,
		condition: *meta.FindStatusCondition(conditions, v1alpha.NetworkContextDeclared),
	}
}

func heldMessage(cells []string) string {
	return fmt.Sprintf("no binding needs this network here, but addresses are still held in %s; "+
		"it is deleted when the last of them goes", strings.Join(cells, ", "))
}

// holders are the joined cells that report held addresses of a context, sorted. None where
// its annotation ends the wait.
func holders(s *snapshot, context *v1alpha.NetworkContext) []string {
	if context.Annotations[v1alpha.ForceReleaseAnnotation] == "true" {
		return nil
	}
	var held []string
	for _, report := range context.Status.Cells {
		_, joined := s.cells[report.Name]
		if joined && report.Holders != nil && *report.Holders > 0 {
			held = append(held, report.Name)
		}
	}
	slices.Sort(held)
	return held
}
