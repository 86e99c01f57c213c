package inspect

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/presence"
)

// Step is a place in the chain that a presence depends on.
type Step string

// The chain, in its order: each step needs those before it.
const (
	// StepProject is the hub namespace and the project that it names.
	StepProject Step = "project"
	// StepGrant is the hub's copy of the project's LocationBinding.
	StepGrant Step = "grant"
	// StepContext is the NetworkContext on the hub.
	StepContext Step = "context"
	// StepPlacement is Karmada's ResourceBinding of the context.
	StepPlacement Step = "ResourceBinding"
	// StepWork is Karmada's Work for one cell.
	StepWork Step = "Work"
	// StepCopy is the context's copy in one cell, as that cell reports it.
	StepCopy Step = "copy"
	// StepHolders are the addresses that are out in one cell.
	StepHolders Step = "holders"
)

// LinkState says how a link stands.
type LinkState string

// The states of a link.
const (
	// LinkOK means that the link is as it should be.
	LinkOK LinkState = "ok"
	// LinkBroken means that the presence does not come further than this link.
	LinkBroken LinkState = "broken"
	// LinkWaiting means that the link is not there yet, since one before it is broken.
	LinkWaiting LinkState = "waiting"
	// LinkUnseen means that the user may not see the link, or that its cell cannot be
	// reached: nothing is known to be wrong with it.
	LinkUnseen LinkState = "unseen"
)

// Link is one object of the chain, and how it stands.
type Link struct {
	Step Step `json:"step"`
	// Cell is the name of the cell's Cluster. Empty for links on the hub alone.
	Cell string `json:"cell,omitempty"`
	// Object is the object's kind and name. Empty where there is none.
	Object string    `json:"object,omitempty"`
	State  LinkState `json:"state"`
	// Created is when the object was created. Nil where there is none, or where it is in a
	// cell.
	Created *metav1.Time `json:"created,omitempty"`
	// Generation is the object's metadata.generation; that of the network for a copy. 0
	// where there is none.
	Generation int64 `json:"generation,omitempty"`
	// Note is what there is to say of the link, in one sentence.
	Note string `json:"note,omitempty"`
	// Advice is what to do about a broken link. Empty for others.
	Advice string `json:"advice,omitempty"`
}

// Explanation is a whole chain, judged.
type Explanation struct {
	Key presence.Key `json:"presence"`
	// Binding is the binding that was asked about, or one for the pair. Empty where there
	// is none.
	Binding string `json:"binding,omitempty"`
	// State of the presence, as everywhere.
	State presence.State `json:"state"`
	// Answer is the binding's condition Ready. Nil where there is no binding.
	Answer *metav1.Condition `json:"answer,omitempty"`
	Links  []Link            `json:"links"`
	// Broken is the index in Links of the first broken one. Nil where none is.
	Broken *int `json:"broken,omitempty"`
	// Cause is why the network cannot be used, in one sentence. Empty where it can.
	Cause string `json:"cause,omitempty"`
	// Advice is what to do next. Empty where there is nothing to do.
	Advice string `json:"advice,omitempty"`
}

// First is the first broken link, and nil where none is.
func (e *Explanation) First() *Link {
	if e.Broken == nil {
		return nil
	}
	return &e.Links[*e.Broken]
}

// Usable tells whether the network can be used where it was asked for.
func (e *Explanation) Usable() bool {
	return e.Answer != nil && e.Answer.Status == metav1.ConditionTrue && e.Broken == nil
}
