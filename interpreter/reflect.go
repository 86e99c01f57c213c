package interpreter

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"go.datum.net/network-presence/api/v1alpha"
)

// ReadCopy reads those fields of a copy that Reflect needs, and no others, from its JSON.
// The error names the first field that is not what it should be, its value and what is
// right; the copy then holds what else there is. The copy is nil only where the JSON is no
// object.
func ReadCopy(raw []byte) (*v1alpha.NetworkContext, error) {
	whole := document(raw)
	if !whole.isObject() {
		return nil, fmt.Errorf("read the copy: it is %s, want an object", whole.describe())
	}
	var metadata, spec, status node
	whole.each(func(key string, value node) bool {
		switch key {
		case "metadata":
			metadata = value
		case "spec":
			spec = value
		case "status":
			status = value
		}
		return true
	})
	var r reader
	var copied v1alpha.NetworkContext
	r.metadata(&copied, metadata)
	r.spec(&copied, spec)
	r.status(&copied, status)
	return &copied, r.err()
}

func (r *reader) metadata(copied *v1alpha.NetworkContext, value node) {
	var labels, uid, deletion node
	r.fields("metadata", value, func(key string, value node) {
		switch key {
		case "labels":
			labels = value
		case "deletionTimestamp":
			deletion = value
		}
	})
	r.fields("metadata.labels", labels, func(key string, value node) {
		if key == v1alpha.NetworkUIDLabel {
			uid = value
		}
	})
	if text := r.text("metadata.labels["+v1alpha.NetworkUIDLabel+"]", uid); text != "" {
		copied.Labels = map[string]string{v1alpha.NetworkUIDLabel: text}
	}
	if !deletion.absent() {
		// Any time will do: only that there is one is ever asked.
		copied.DeletionTimestamp = &metav1.Time{}
	}
}

func (r *reader) spec(copied *v1alpha.NetworkContext, value node) {
	var generation, families, mtu node
	r.fields("spec", value, func(key string, value node) {
		switch key {
		case "networkGeneration":
			generation = value
		case "ipFamilies":
			families = value
		case "mtu":
			mtu = value
		}
	})
	copied.Spec.NetworkGeneration = r.wholeOrZero("spec.networkGeneration", generation, mostWhole)
	copied.Spec.IPFamilies = r.families("spec.ipFamilies", families)
	copied.Spec.MTU = int32(r.wholeOrZero("spec.mtu", mtu, mostInt32))
}

func (r *reader) status(copied *v1alpha.NetworkContext, value node) {
	var agent, holders, conditions node
	r.fields("status", value, func(key string, value node) {
		switch key {
		case "agent":
			agent = value
		case "conditions":
			conditions = value
		}
	})
	r.fields("status.agent", agent, func(key string, value node) {
		if key == "holders" {
			holders = value
		}
	})
	if count, reported := r.whole("status.agent.holders", holders, mostWhole); reported {
		copied.Status.Agent = &v1alpha.AgentStatus{Holders: count}
	}
	copied.Status.Conditions = r.conditions("status.conditions", conditions)
}

// Reflect is what a copy amounts to. Unreadable is the error of ReadCopy: it goes into the
// report, so that a copy that cannot be read is reported as such at once, and never hides
// behind the last report that could be made. Nil where the copy came typed.
func Reflect(copied *v1alpha.NetworkContext, unreadable error) Report {
	report := Report{CellReport: v1alpha.CellReport{
		NetworkGeneration: copied.Spec.NetworkGeneration,
		NetworkUID:        types.UID(copied.Labels[v1alpha.NetworkUIDLabel]),
		IPFamilies:        sorted(copied.Spec.IPFamilies, cmp.Compare[v1alpha.IPFamily]),
		MTU:               copied.Spec.MTU,
		Terminating:       copied.DeletionTimestamp != nil,
		Conditions:        sorted(copied.Status.Conditions, byType),
	}}
	if copied.Status.Agent != nil {
		report.Holders = &copied.Status.Agent.Holders
	}
	if unreadable != nil {
		report.Error = unreadable.Error()
	}
	return report
}

// sorted is a list in order. The list itself, which may belong to a cache, stays as it is.
func sorted[T any](list []T, compare func(a, b T) int) []T {
	if slices.IsSortedFunc(list, compare) {
		return list
	}
	list = slices.Clone(list)
	slices.SortFunc(list, compare)
	return list
}

func byType(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) }
