package location

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	acmetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"go.datum.net/network-presence/api/v1alpha"
	acv1alpha "go.datum.net/network-presence/api/v1alpha/applyconfiguration/api/v1alpha"
)

// CopyName is the name of the hub's copy of a project's LocationBinding for a location. A
// "/" in the project's name is written "--". Two grants may spell the same name: the first
// has it, and the other is reported and not copied.
func CopyName(project, location string) string {
	return strings.ReplaceAll(project, "/", "--") + "." + location
}

func projectLabel(project string) string { return strings.ReplaceAll(project, "/", "_") }

func managed(object client.Object) bool {
	return object.GetLabels()[v1alpha.ManagedByLabel] == v1alpha.ManagedByHub
}

// projectOf is the project that a copy of ours was made from; false for what is none.
func projectOf(copied *v1alpha.LocationBinding) (string, bool) {
	project := copied.Labels[v1alpha.ProjectLabel]
	return strings.ReplaceAll(project, "_", "/"), managed(copied) && project != ""
}

// grantOf is the grant that a copy of ours says to be of; false for what is none.
func grantOf(copied *v1alpha.LocationBinding) (grant, bool) {
	project, ours := projectOf(copied)
	return grant{project, copied.Labels[v1alpha.LocationLabel]}, ours
}

// hasName tells whether the object that has a grant's name is the grant's copy. One of ours
// that says to be of a grant whose name would be another was edited by hand. So was one
// that we annotated and that does not say to be ours any longer.
func hasName(holder *v1alpha.LocationBinding, of grant) bool {
	if !managed(holder) {
		return isCopy(holder)
	}
	other, whose := grantOf(holder)
	return !whose || other == of || CopyName(other.Project, other.Location) != holder.Name
}

// named gets the object that has a copy's name; nil where there is none.
func (g *Grants) named(ctx context.Context, name string) (*v1alpha.LocationBinding, error) {
	var holder v1alpha.LocationBinding
	err := g.hub.Get(ctx, client.ObjectKey{Name: name}, &holder)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the copy %q: %w", name, err)
	}
	return &holder, nil
}

// copyOf gets a grant's copy; nil where there is none.
func (g *Grants) copyOf(ctx context.Context, of grant) (*v1alpha.LocationBinding, error) {
	holder, err := g.named(ctx, CopyName(of.Project, of.Location))
	if err != nil || holder == nil || !hasName(holder, of) {
		return nil, err
	}
	return holder, nil
}

// write makes a grant's copy as its LocationBinding is.
func (g *Grants) write(ctx context.Context, of grant, binding *v1alpha.LocationBinding) error {
	wished := g.wish(of, binding)
	g.claim(wished.Name, of) // before the name is looked up: a holder that goes after that is seen
	copied, err := g.named(ctx, wished.Name)
	if err != nil {
		return err
	}
	if copied != nil && !hasName(copied, of) {
		g.leave(ctx, of, copied)
		return nil
	}
	g.clash(of, false)
	if copied == nil {
		copied = &v1alpha.LocationBinding{ObjectMeta: metav1.ObjectMeta{Name: wished.Name}}
	}
	if !conforms(copied, wished) {
		if err := g.writeSpec(ctx, copied, wished); err != nil {
			return fmt.Errorf("write the copy %q: %w", wished.Name, err)
		}
		log.FromContext(ctx).Info("LocationBinding copied", "project", of.Project, "location", of.Location)
	}
	if err := g.writeConditions(ctx, copied, wished.Status.Conditions); err != nil {
		return fmt.Errorf("write the status of the copy %q: %w", wished.Name, err)
	}
	return nil
}

// wish is a grant's copy as it should be.
func (g *Grants) wish(of grant, binding *v1alpha.LocationBinding) *v1alpha.LocationBinding {
	return &v1alpha.LocationBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: CopyName(of.Project, of.Location),
			Labels: map[string]string{
				v1alpha.ManagedByLabel: v1alpha.ManagedByHub,
				v1alpha.ProjectLabel:   projectLabel(of.Project),
				v1alpha.LocationLabel:  of.Location,
			},
			Annotations: map[string]string{v1alpha.ConnectionAnnotation: g.connections.Connection(of.Project)},
		},
		Spec:   *binding.Spec.DeepCopy(), // the original is a cache's
		Status: *binding.Status.DeepCopy(),
	}
}

// conforms tells whether a copy has all that is wished, and no more in its spec.
func conforms(copied, wished *v1alpha.LocationBinding) bool {
	return covers(copied, wished) && apiequality.Semantic.DeepEqual(copied.Spec, wished.Spec)
}

// covers tells whether an object has the labels and annotations of another.
func covers(object, wished client.Object) bool {
	return contains(object.GetLabels(), wished.GetLabels()) && contains(object.GetAnnotations(), wished.GetAnnotations())
}

func contains(all, some map[string]string) bool {
	for key, value := range some {
		if have, found := all[key]; !found || have != value {
			return false
		}
	}
	return true
}

func (g *Grants) writeSpec(ctx context.Context, copied, wished *v1alpha.LocationBinding) error {
	// What somebody else wrote is theirs, and applying takes it away from nobody.
	if copied.UID != "" && strays(&copied.Spec, &wished.Spec) {
		mended := copied.DeepCopy()
		mended.Spec = wished.Spec
		if err := g.hub.Patch(ctx, mended, client.MergeFrom(copied), client.FieldOwner(FieldManager)); err != nil {
			return err
		}
	}
	spec := acv1alpha.LocationBindingSpec().
		WithLocationRef(acv1alpha.LocationReference().WithName(wished.Spec.LocationRef.Name)).
		WithTopology(wished.Spec.Topology)
	if wished.Spec.LocationClassName != "" {
		spec.WithLocationClassName(wished.Spec.LocationClassName)
	}
	if wished.Spec.DisplayName != "" {
		spec.WithDisplayName(wished.Spec.DisplayName)
	}
	return g.hub.Apply(ctx, acv1alpha.LocationBinding(wished.Name).
		WithLabels(wished.Labels).WithAnnotations(wished.Annotations).WithSpec(spec),
		client.FieldOwner(FieldManager), client.ForceOwnership)
}

// strays tells whether a copy has a field set that is not wished at all.
func strays(have, want *v1alpha.LocationBindingSpec) bool {
	return have.LocationClassName != "" && want.LocationClassName == "" ||
		have.DisplayName != "" && want.DisplayName == "" || strayKeys(have.Topology, want.Topology)
}

func strayKeys(have, want map[string]string) bool {
	for key := range have {
		if _, wished := want[key]; !wished {
			return true
		}
	}
	return false
}

func (g *Grants) writeConditions(ctx context.Context, copied *v1alpha.LocationBinding, want []metav1.Condition) error {
	have := copied.Status.Conditions
	if apiequality.Semantic.DeepEqual(have, want) {
		return nil
	}
	if slices.ContainsFunc(have, func(c metav1.Condition) bool { return meta.FindStatusCondition(want, c.Type) == nil }) {
		mended := copied.DeepCopy()
		mended.Status.Conditions = want
		return g.hub.Status().Patch(ctx, mended, client.MergeFrom(copied), client.FieldOwner(FieldManager))
	}
	status := acv1alpha.LocationBindingStatus()
	for _, condition := range want {
		status.WithConditions(acmetav1.Condition().
			WithType(condition.Type).WithStatus(condition.Status).WithReason(condition.Reason).
			WithMessage(condition.Message).WithObservedGeneration(condition.ObservedGeneration).
			WithLastTransitionTime(condition.LastTransitionTime))
	}
	return g.hub.Status().Apply(ctx, acv1alpha.LocationBinding(copied.Name).WithStatus(status),
		client.FieldOwner(FieldManager), client.ForceOwnership)
}

// prune deletes a grant's copy.
func (g *Grants) prune(ctx context.Context, of grant) error {
	g.disclaim(CopyName(of.Project, of.Location), of)
	copied, err := g.copyOf(ctx, of)
	if err != nil || copied == nil || !managed(copied) || !copied.DeletionTimestamp.IsZero() {
		return err
	}
	err = g.hub.Delete(ctx, copied, client.Preconditions{UID: &copied.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the copy %q: %w", copied.Name, err)
	}
	log.FromContext(ctx).Info("copy of a LocationBinding deleted", "project", of.Project, "location", of.Location)
	return nil
}
