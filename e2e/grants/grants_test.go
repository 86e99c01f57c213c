package grants

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/location"
)

func TestACopyIsMadeMendedAndDeleted(t *testing.T) {
	clear(t)
	c := start(t, secrets)
	c.connect("acme")
	binding := grantOf("binding", "us")
	create(t, binding)
	copied := copyOf(t, "acme", "us", nil)

	t.Run("after it was edited", func(t *testing.T) {
		edited := copied.DeepCopy()
		edited.Spec.Topology = map[string]string{"city": "AMS", "added": "by hand"}
		edited.Spec.DisplayName = "by hand"
		delete(edited.Labels, v1alpha.LocationLabel)
		edited.Labels[v1alpha.ProjectLabel] = "globex"
		edited.Labels["team"] = "edge"
		must(t, hub.Update(t.Context(), edited))
		copyOf(t, "acme", "us", func(b *v1alpha.LocationBinding) bool {
			return len(b.Spec.Topology) == 1 && b.Spec.Topology["city"] == "DFW" && b.Spec.DisplayName == "" &&
				b.Labels[v1alpha.ProjectLabel] == "acme" && b.Labels[v1alpha.LocationLabel] == "us" && b.Labels["team"] == "edge"
		})
	})
	t.Run("after its status was edited", func(t *testing.T) {
		edited := copyOf(t, "acme", "us", nil)
		edited.Status.Conditions = []metav1.Condition{{
			Type: v1alpha.LocationBindingAvailable, Status: metav1.ConditionFalse, Reason: "ByHand", LastTransitionTime: metav1.Now(),
		}}
		must(t, hub.Status().Update(t.Context(), edited))
		copyOf(t, "acme", "us", func(b *v1alpha.LocationBinding) bool { return len(b.Status.Conditions) == 0 })
	})
	t.Run("after it ceased to say that it is ours", func(t *testing.T) {
		edited := copyOf(t, "acme", "us", nil)
		delete(edited.Labels, v1alpha.ManagedByLabel)
		must(t, hub.Update(t.Context(), edited))
		copyOf(t, "acme", "us", nil)
	})
	t.Run("after it was deleted", func(t *testing.T) {
		before := copyOf(t, "acme", "us", nil)
		must(t, hub.Delete(t.Context(), before))
		copyOf(t, "acme", "us", func(b *v1alpha.LocationBinding) bool { return b.UID != before.UID })
	})
	must(t, hub.Delete(t.Context(), binding))
	gone(t, "acme", "us")
}

func TestAForeignObjectOfACopysNameIsLeftAloneUntilItGoes(t *testing.T) {
	clear(t)
	foreign := grantOf(location.CopyName("acme", "us"), "elsewhere")
	create(t, foreign)
	c := start(t, secrets)
	c.connect("acme")
	create(t, grantOf("binding", "us"))
	reported(t, foreign, "NameTaken")
	var same v1alpha.LocationBinding
	must(t, hub.Get(t.Context(), client.ObjectKeyFromObject(foreign), &same))
	if same.Generation != foreign.Generation || len(same.Labels) > 0 {
		t.Errorf("it was written to: %+v", same)
	}
	must(t, hub.Delete(t.Context(), foreign))
	copyOf(t, "acme", "us", nil)
}

func TestOfTwoGrantsThatSpellOneNameTheFirstHasIt(t *testing.T) {
	clear(t)
	c := start(t, secrets)
	c.connect("a.b")
	first, second := grantOf("first", "c"), grantOf("second", "b.c")
	create(t, first)
	copied := copyOf(t, "a.b", "c", nil)
	c.connect("a")
	create(t, second)
	reported(t, copied, "NameTaken")
	copyOf(t, "a.b", "c", func(b *v1alpha.LocationBinding) bool {
		return b.UID == copied.UID && b.Labels[v1alpha.ProjectLabel] == "a.b" && b.Spec.LocationRef.Name == "c"
	})

	must(t, hub.Delete(t.Context(), first))
	copyOf(t, "a", "b.c", func(b *v1alpha.LocationBinding) bool {
		return b.Labels[v1alpha.ProjectLabel] == "a" && b.Spec.LocationRef.Name == "b.c"
	})
	// The other's copy has no more to say about it.
	must(t, hub.Delete(t.Context(), second))
	gone(t, "a", "b.c")
}

func TestAProjectsCopiesGoWithWhatConnectedIt(t *testing.T) {
	clear(t)
	connection := secret(t, "acme")
	c := start(t, secrets)
	disconnect := c.connect("acme")
	create(t, grantOf("us", "us"))
	copied := copyOf(t, "acme", "us", nil)

	disconnect()
	// What is made after that is not seen, so the end of the project was.
	eventually(t, func() error {
		if _, connected := c.planes.Get("acme"); connected {
			return errStill
		}
		return nil
	})
	stays(t, copied)
	must(t, hub.Delete(t.Context(), connection))
	gone(t, "acme", "us")
}

func TestAHubThatLooksForProjectsElsewhereDeletesNothing(t *testing.T) {
	clear(t)
	create(t, grantOf("us", "us"))
	copied := grantOf(location.CopyName("acme", "us"), "us")
	copied.Labels = map[string]string{
		v1alpha.ManagedByLabel: v1alpha.ManagedByHub, v1alpha.ProjectLabel: "acme", v1alpha.LocationLabel: "us",
	}
	copied.Annotations = map[string]string{v1alpha.ConnectionAnnotation: "Secret elsewhere/acme"}
	create(t, copied)
	start(t, secrets)
	reported(t, copied, "ConnectedElsewhere")
	stays(t, copied)
}

func TestWhatIsMissingAtTheStart(t *testing.T) {
	t.Run("goes where the project has others", func(t *testing.T) {
		clear(t)
		create(t, grantOf("other", "eu"))
		create(t, ours("acme", "us"))
		start(t, secrets).connect("acme")
		gone(t, "acme", "us")
	})
	t.Run("stays where the project has none, until it has", func(t *testing.T) {
		clear(t)
		copied := ours("acme", "us")
		create(t, copied)
		start(t, secrets).connect("acme")
		reported(t, copied, "SourceEmpty")
		stays(t, copied)
		create(t, grantOf("other", "eu"))
		gone(t, "acme", "us")
	})
}
