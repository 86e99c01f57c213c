package inspect

import (
	"cmp"
	"slices"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/presence"
)

// Pair is a presence with its objects on the hub.
type Pair struct {
	presence.Key
	State presence.State `json:"state"`
	// Reason is why, as in a condition. Empty where nobody asks any more.
	Reason string `json:"reason,omitempty"`
	// Message of the answer, or of what it waits for.
	Message string `json:"message,omitempty"`
	// Names of the bindings, and of the context: empty where there is none.
	BindingNames []string `json:"bindings,omitempty"`
	ContextName  string   `json:"context,omitempty"`

	Bindings []*v1alpha.NetworkBinding `json:"-"`
	// Context is nil where there is none.
	Context *v1alpha.NetworkContext `json:"-"`
}

// Carrying counts the cells that have the network's rules, and all that it is placed in.
func (p *Pair) Carrying() (carrying, all int) {
	if p.Context == nil {
		return 0, 0
	}
	for i := range p.Context.Status.Cells {
		if p.Context.Status.Cells[i].Message == "" {
			carrying++
		}
	}
	return carrying, len(p.Context.Status.Cells)
}

// Pairs are presences, sorted by namespace, network and location once read.
type Pairs struct {
	Items []*Pair

	byKey map[presence.Key]*Pair
}

// NewPairs are the presences that bindings and contexts are about, those of one network where
// it is named.
func NewPairs(network string, bindings []*v1alpha.NetworkBinding, contexts []*v1alpha.NetworkContext) *Pairs {
	pairs := &Pairs{byKey: map[presence.Key]*Pair{}}
	for _, binding := range bindings {
		pairs.add(presence.KeyOfBinding(binding), network, binding, nil)
	}
	for _, context := range contexts {
		pairs.add(presence.KeyOfContext(context), network, nil, context)
	}
	pairs.sort()
	return pairs
}

func (p *Pairs) add(key presence.Key, network string, binding *v1alpha.NetworkBinding, context *v1alpha.NetworkContext) {
	if network != "" && key.Network != network {
		return
	}
	pair := p.byKey[key]
	if pair == nil {
		pair = &Pair{Key: key}
		p.byKey[key] = pair
		p.Items = append(p.Items, pair)
	}
	if binding != nil {
		pair.Bindings = append(pair.Bindings, binding)
		pair.BindingNames = append(pair.BindingNames, binding.Name)
	}
	if context != nil && (pair.Context == nil || !pair.Context.DeletionTimestamp.IsZero()) {
		pair.Context, pair.ContextName = context, context.Name
	}
}

func (p *Pairs) sort() {
	slices.SortFunc(p.Items, func(a, b *Pair) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Network, b.Network), cmp.Compare(a.Location, b.Location))
	})
	for _, pair := range p.Items {
		pair.State, pair.Reason = presence.StateOf(pair.Bindings, pair.Context)
		if answer := presence.Answer(pair.Bindings); answer != nil {
			pair.Message = answer.Message
		} else {
			pair.Message = declared(pair.Context)
		}
	}
}

// Row is a network, with its presences by location.
type Row struct {
	Namespace, Network string
	Cells              map[string]*Pair
}

// Matrix is networks by locations, both sorted.
func (p *Pairs) Matrix() (locations []string, rows []Row) {
	for _, pair := range p.Items {
		if !slices.Contains(locations, pair.Location) {
			locations = append(locations, pair.Location)
		}
		last := len(rows) - 1
		if last < 0 || rows[last].Namespace != pair.Namespace || rows[last].Network != pair.Network {
			rows = append(rows, Row{pair.Namespace, pair.Network, map[string]*Pair{}})
			last++
		}
		rows[last].Cells[pair.Location] = pair
	}
	slices.Sort(locations)
	return locations, rows
}
