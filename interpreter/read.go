package interpreter

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/api/v1alpha"
)

const (
	// mostWhole is the largest whole number that Lua, which has only floats, can tell from
	// its neighbours.
	mostWhole = 1<<53 - 1
	mostInt32 = 1<<31 - 1

	// The API server's own limits on conditions.
	mostConditionType   = 316
	mostConditionReason = 1024
)

// reader reads values that came from a cell. What cannot be read counts as absent, and the
// first such fault is kept.
type reader struct {
	fault string

	// list and index, where list is not empty, are where in the document the fields that
	// are read now belong. Paths are spelled only for faults: reading must be quick.
	list  string
	index int
}

func (r *reader) fail(path string, value node, want string) {
	if r.fault != "" {
		return
	}
	if r.list != "" {
		path = strings.TrimSuffix(fmt.Sprintf("%s[%d].%s", r.list, r.index, path), ".")
	}
	r.fault = fmt.Sprintf("%s is %s, want %s", path, value.describe(), want)
}

// text reads a string; "" where it is absent.
func (r *reader) text(path string, value node) string {
	if value.isText() {
		return value.text()
	}
	if !value.absent() {
		r.fail(path, value, "text")
	}
	return ""
}

// truth reads a boolean; false where it is absent.
func (r *reader) truth(path string, value node) bool {
	if !value.absent() && !value.isTruth() {
		r.fail(path, value, "true or false")
	}
	return value == "true"
}

// whole reads a whole number from 0 to most; 0 and false where it is absent.
func (r *reader) whole(path string, value node, most int64) (int64, bool) {
	if value.absent() {
		return 0, false
	}
	number := value.number()
	if !value.isNumber() || number != math.Trunc(number) || number < 0 || number > float64(most) {
		r.fail(path, value, fmt.Sprintf("a whole number from 0 to %d", most))
		return 0, false
	}
	return int64(number), true
}

// wholeOrZero reads a whole number from 0 to most; 0 where it is absent.
func (r *reader) wholeOrZero(path string, value node, most int64) int64 {
	whole, _ := r.whole(path, value, most)
	return whole
}

// fields visits the values of an object that are not null, a key that is there twice twice.
func (r *reader) fields(path string, value node, visit func(key string, value node)) {
	if value.absent() || value.isList() && value.isEmpty() {
		return
	}
	if !value.isObject() {
		r.fail(path, value, "an object")
		return
	}
	value.each(func(key string, field node) bool {
		visit(key, field)
		return true
	})
}

// items visits the values of a list that are not null, with r set to where each is.
func (r *reader) items(path string, value node, visit func(item node)) {
	if value.absent() || value.isObject() && value.isEmpty() {
		return
	}
	if !value.isList() {
		r.fail(path, value, "a list")
		return
	}
	r.list, r.index = path, 0
	value.each(func(_ string, item node) bool {
		if !item.absent() {
			visit(item)
			r.index++
		}
		return true
	})
	r.list = ""
}

// families reads address families, sorted, each once; nil where there are none.
func (r *reader) families(path string, value node) []v1alpha.IPFamily {
	var families []v1alpha.IPFamily
	r.items(path, value, func(item node) {
		family := v1alpha.IPFamily(item.text())
		if family != v1alpha.IPv4 && family != v1alpha.IPv6 {
			r.fail("", item, "IPv4 or IPv6")
			return
		}
		if families == nil {
			families = make([]v1alpha.IPFamily, 0, 2)
		}
		if !slices.Contains(families, family) {
			families = append(families, family)
		}
	})
	slices.Sort(families)
	return families
}

// conditions reads conditions that the API server would take, sorted by type; nil where
// there are none.
func (r *reader) conditions(path string, value node) []metav1.Condition {
	var conditions []metav1.Condition
	r.items(path, value, func(item node) {
		condition, complete := r.condition(item)
		if !complete {
			return
		}
		if slices.ContainsFunc(conditions, func(other metav1.Condition) bool { return other.Type == condition.Type }) {
			r.fail("type", node(strconv.Quote(condition.Type)), "each type once")
			return
		}
		if conditions == nil {
			conditions = make([]metav1.Condition, 0, 2) // as many as an agent reports
		}
		conditions = append(conditions, condition)
	})
	slices.SortFunc(conditions, byType)
	return conditions
}

// condition reads one condition; false where the API server would not take it.
func (r *reader) condition(value node) (metav1.Condition, bool) {
	var kind, status, reason, message, transition, generation node
	if !value.isObject() || value.isEmpty() {
		r.fail("", value, "a condition")
		return metav1.Condition{}, false
	}
	value.each(func(key string, field node) bool {
		switch key {
		case "type":
			kind = field
		case "status":
			status = field
		case "reason":
			reason = field
		case "message":
			message = field
		case "lastTransitionTime":
			transition = field
		case "observedGeneration":
			generation = field
		}
		return true
	})
	before := r.fault
	r.fault = ""
	condition := metav1.Condition{
		Type:               r.matching("type", kind, isConditionType, "a name like Ready or example.com/Ready"),
		Status:             metav1.ConditionStatus(r.matching("status", status, isConditionStatus, "True, False or Unknown")),
		Reason:             r.matching("reason", reason, isConditionReason, "a word like NotReady"),
		Message:            Clip(r.text("message", message), mostMessage),
		LastTransitionTime: r.moment("lastTransitionTime", transition),
		ObservedGeneration: r.wholeOrZero("observedGeneration", generation, mostWhole),
	}
	complete := r.fault == ""
	r.fault = cmp.Or(before, r.fault)
	return condition, complete
}

// matching reads a string of a certain form, which must be there.
func (r *reader) matching(path string, value node, right func(string) bool, want string) string {
	text := value.text()
	if !value.isText() || !right(text) {
		r.fail(path, value, want)
	}
	return text
}

// moment reads a time as Kubernetes writes it, in UTC and whole seconds. The zero time,
// which would be written as null, is none.
func (r *reader) moment(path string, value node) metav1.Time {
	text := value.text()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil || len(text) != len("2006-01-02T15:04:05Z") || moment.IsZero() {
		r.fail(path, value, "a time like 2026-01-31T12:00:00Z")
	}
	return metav1.Time{Time: moment}
}

func isConditionStatus(text string) bool {
	return text == "True" || text == "False" || text == "Unknown"
}

// isConditionType tells whether the API server takes a text as a condition's type: a name,
// or a DNS subdomain, a slash and a name.
func isConditionType(text string) bool {
	if len(text) > mostConditionType {
		return false
	}
	name := text
	if domain, rest, found := strings.Cut(text, "/"); found {
		if !isDomain(domain) {
			return false
		}
		name = rest
	}
	return consists(name, isNameByte) && isAlphanumeric(name[0]) && isAlphanumeric(name[len(name)-1])
}

func isDomain(text string) bool {
	for label := range strings.SplitSeq(text, ".") {
		if !consists(label, func(b byte) bool { return isLower(b) || isDigit(b) || b == '-' }) ||
			label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return true
}

func isConditionReason(text string) bool {
	return len(text) <= mostConditionReason && consists(text, isReasonByte) &&
		isLetter(text[0]) && text[len(text)-1] != ',' && text[len(text)-1] != ':'
}

// consists tells whether a text is not empty and every byte of it is right.
func consists(text string, right func(byte) bool) bool {
	for i := range len(text) {
		if !right(text[i]) {
			return false
		}
	}
	return text != ""
}

func isNameByte(b byte) bool     { return isAlphanumeric(b) || b == '-' || b == '_' || b == '.' }
func isReasonByte(b byte) bool   { return isAlphanumeric(b) || b == '_' || b == ',' || b == ':' }
func isAlphanumeric(b byte) bool { return isLetter(b) || isDigit(b) }
func isLetter(b byte) bool       { return isLower(b) || 'A' <= b && b <= 'Z' }
func isLower(b byte) bool        { return 'a' <= b && b <= 'z' }
func isDigit(b byte) bool        { return '0' <= b && b <= '9' }
