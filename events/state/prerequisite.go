package state

import (
	"slices"
	"time"

	"flagledger/events"
)

// Prerequisite is one of a flag's prerequisites in an environment, with the recorded time since which the flag has
// required the other flag there without a break.
type Prerequisite struct {
	events.Prerequisite
	Since time.Time `json:"since"`
}

// setPrerequisites sets what the flag requires in an environment. Flags that it did not require before are required
// since a time.
func (f *Flag) setPrerequisites(environmentID string, list []events.Prerequisite, at time.Time) {
	before, required := f.Prerequisites[environmentID], f.RequiredFlags(environmentID)
	defer func() {
		if !slices.Equal(required, f.RequiredFlags(environmentID)) {
			if f.RequiredChanged == nil {
				f.RequiredChanged = map[string]time.Time{}
			}
			f.RequiredChanged[environmentID] = at
		}
	}()
	if len(list) == 0 {
		delete(f.Prerequisites, environmentID)
		return
	}
	after := make([]Prerequisite, len(list))
	for i, p := range list {
		after[i] = Prerequisite{p, at}
		if j := slices.IndexFunc(before, func(b Prerequisite) bool { return b.FlagKey == p.FlagKey }); j >= 0 {
			after[i].Since = before[j].Since
		}
	}
	if f.Prerequisites == nil {
		f.Prerequisites = map[string][]Prerequisite{}
	}
	f.Prerequisites[environmentID] = after
}

// PrerequisitesIn returns the prerequisites in an environment as facts hold them.
func (f *Flag) PrerequisitesIn(environmentID string) []events.Prerequisite {
	list := f.Prerequisites[environmentID]
	if len(list) == 0 {
		return nil
	}
	plain := make([]events.Prerequisite, len(list))
	for i, p := range list {
		plain[i] = p.Prerequisite
	}
	return plain
}

// RequiredFlags returns the keys of the flags that the flag requires in an environment, in order.
func (f *Flag) RequiredFlags(environmentID string) []string {
	list := f.Prerequisites[environmentID]
	if len(list) == 0 {
		return nil
	}
	keys := make([]string, len(list))
	for i, p := range list {
		keys[i] = p.FlagKey
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Overheads in bytes: field names, ids and the time in JSON.
const (
	prerequisiteOverhead = 96
	servedValueOverhead  = 64
)

// PrerequisitesBytes returns at least how many bytes prerequisites take as the JSON of a fact.
func PrerequisitesBytes(list []events.Prerequisite) int {
	n := len("null")
	for i := range list {
		n += prerequisiteBytes(&list[i])
	}
	return n
}

func prerequisiteBytes(p *events.Prerequisite) int {
	n := prerequisiteOverhead + textBytes(p.FlagKey)
	for _, s := range p.Serves {
		n += servedValueOverhead + textBytes(s.VariationID) + len(s.Value)
	}
	return n
}
