package interpreter

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"go.datum.net/network-presence/api/v1alpha"
)

// Report is what Karmada stores of one copy, in ResourceBinding.status.aggregatedStatus:
// the cell's report, and what of the copy could not be read for it.
type Report struct {
	v1alpha.CellReport `json:",inline"`

	// Error names the field of the copy that could not be read, its value and what is
	// right. Empty when everything could.
	Error string `json:"error,omitempty"`
}

// ReadReport reads a stored report, as Reflect or another version of it made it, from its
// JSON. The error names the first field that is not what it should be, its value and what is
// right; the report then holds what else there is. Fields that are not known are ignored.
func ReadReport(raw []byte) (Report, error) {
	var generation, uid, families, mtu, holders, terminating, conditions, fault node
	var r reader
	r.fields("it", document(raw), func(key string, value node) {
		switch key {
		case "networkGeneration":
			generation = value
		case "networkUID":
			uid = value
		case "ipFamilies":
			families = value
		case "mtu":
			mtu = value
		case "holders":
			holders = value
		case "terminating":
			terminating = value
		case "conditions":
			conditions = value
		case "error":
			fault = value
		}
	})
	var report Report
	report.NetworkGeneration = r.wholeOrZero("networkGeneration", generation, mostWhole)
	report.NetworkUID = types.UID(r.text("networkUID", uid))
	report.IPFamilies = r.families("ipFamilies", families)
	report.MTU = int32(r.wholeOrZero("mtu", mtu, mostInt32))
	if count, reported := r.whole("holders", holders, mostWhole); reported {
		report.Holders = &count
	}
	report.Terminating = r.truth("terminating", terminating)
	report.Conditions = r.conditions("conditions", conditions)
	report.Error = r.text("error", fault)
	return report, r.err()
}

// err is the first fault as an error; nil where there is none.
func (r *reader) err() error {
	if r.fault == "" {
		return nil
	}
	return errors.New(r.fault)
}
