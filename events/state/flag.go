package state

import (
	"maps"
	"slices"
	"time"

	"flagledger/events"
)

// StoredStateInterval is the number of versions between two states of a flag that the read models store.
const StoredStateInterval = 100

// Flag is the state of a flag's stream. Its JSON is stored, so that an old state is folded from a
// stored one and not from the first event.
type Flag struct {
	events.FlagCreated
	Exists      bool                     `json:"exists,omitempty"`
	Status      events.FlagStatus        `json:"status,omitempty"`
	Enabled     EnvironmentSet           `json:"enabled,omitempty"`
	Rules       map[string][]events.Rule `json:"rules,omitempty"` // by environment id, as is the next
	Fallthrough map[string]events.Serve  `json:"fallthrough,omitempty"`
	// Prerequisites are by environment id.
	Prerequisites map[string][]Prerequisite `json:"prerequisites,omitempty"`
	// RequiredChanged is when the flags last changed that the flag requires in an environment, by its id. Answers of flags
	// that require it depend on that.
	RequiredChanged map[string]time.Time `json:"requiredChanged,omitempty"`
	CreatedAt       time.Time            `json:"createdAt,omitzero"`
	UpdatedAt       time.Time            `json:"updatedAt,omitzero"` // when the store recorded the version
	Version         events.Revision      `json:"version"`
	// CreatedVersion is the version with which this life of the key began.
	CreatedVersion events.Revision `json:"createdVersion,omitempty"`
	ChangedAt      time.Time       `json:"-"` // the time of the last event by the clock of its node; commands use it
}

// Apply implements State.
func (f *Flag) Apply(r events.Recorded) {
	f.Version, f.UpdatedAt, f.ChangedAt = r.Revision, r.At, r.Time
	switch fact := r.Fact.(events.FlagFact).(type) {
	case events.FlagCreated:
		*f = Flag{
			FlagCreated: fact, Exists: true, Status: events.ActiveFlag,
			CreatedAt: r.At, UpdatedAt: r.At, ChangedAt: r.Time, Version: r.Revision, CreatedVersion: r.Revision,
		}
		f.Variations = slices.Clone(fact.Variations)
	case events.FlagUpdated:
		fact.Name.Apply(&f.Name)
		fact.DefaultValue.Apply(&f.DefaultValue)
		fact.Description.Apply(&f.Description)
		fact.Tags.Apply(&f.Tags)
		fact.ProjectID.Apply(&f.ProjectID)
		fact.Permanent.Apply(&f.Permanent)
		fact.ClientSide.Apply(&f.ClientSide)
		fact.Owner.Apply(&f.Owner)
		fact.Links.Apply(&f.Links)
		fact.OffServes.Apply(&f.OffServes)
	case events.FlagStatusChanged:
		f.Status = fact.To
	case events.FlagEnabled:
		f.Enabled = f.Enabled.With(fact.Environment.ID)
	case events.FlagDisabled:
		f.Enabled = f.Enabled.Without(fact.Environment.ID)
	case events.VariationAdded:
		f.Variations = append(f.Variations, fact.Variation)
	case events.VariationUpdated:
		if v := f.Variation(fact.ID); v != nil {
			fact.Name.Apply(&v.Name)
			fact.Value.Apply(&v.Value)
			fact.Description.Apply(&v.Description)
			fact.Weight.Apply(&v.Weight)
		}
	case events.VariationRemoved:
		f.Variations = slices.DeleteFunc(f.Variations, func(v events.Variation) bool { return v.ID == fact.Variation.ID })
	case events.RulesChanged:
		f.SetRules(fact.Environment.ID, applyRules(f.Rules[fact.Environment.ID], fact))
	case events.FallthroughChanged:
		f.SetFallthrough(fact.Environment.ID, fact.To)
	case events.PrerequisitesChanged:
		f.setPrerequisites(fact.Environment.ID, fact.To, r.At)
	case events.FlagDeleted:
		f.Exists = false
	case events.FlagReverted: // facts before it in the same append have restored the fields: the order is left
		if fact.Variations != nil {
			f.Variations = events.OrderVariations(f.Variations, fact.Variations.To,
				func(v events.Variation) string { return v.ID })
		}
	}
}

// SetRules sets the rules of an environment.
func (f *Flag) SetRules(environmentID string, rules []events.Rule) {
	if len(rules) == 0 {
		delete(f.Rules, environmentID)
		return
	}
	if f.Rules == nil {
		f.Rules = map[string][]events.Rule{}
	}
	f.Rules[environmentID] = rules
}

// SetFallthrough sets what the flag serves in an environment if no rule matches; nil unsets it.
func (f *Flag) SetFallthrough(environmentID string, serve *events.Serve) {
	if serve == nil {
		delete(f.Fallthrough, environmentID)
		return
	}
	if f.Fallthrough == nil {
		f.Fallthrough = map[string]events.Serve{}
	}
	f.Fallthrough[environmentID] = *serve
}

// Clone implements State.
func (f *Flag) Clone() Flag {
	c := *f
	c.Variations = slices.Clone(f.Variations)
	// rules and prerequisites are replaced, not changed
	c.Rules, c.Fallthrough = maps.Clone(f.Rules), maps.Clone(f.Fallthrough)
	c.Prerequisites, c.RequiredChanged = maps.Clone(f.Prerequisites), maps.Clone(f.RequiredChanged)
	return c
}

// Size implements State.
func (f *Flag) Size() int {
	return 1024 + 2*f.content() + 128*(len(f.Enabled)+len(f.Rules)+len(f.Fallthrough)+len(f.Prerequisites))
}

// Bytes of ids, salts and field names in JSON, beside texts and values.
const (
	flagOverhead      = 384
	linkOverhead      = 32
	variationOverhead = 128
)

// Bytes returns the size that counts against limits, 0 if the flag does not exist. It approximates the JSON of texts,
// values, rules and prerequisites, with 16 bytes more for each value of a condition. The memory that a flag takes is a
// small multiple of it. Those of a deleted environment count until the flag is deleted.
func (f *Flag) Bytes() int {
	if !f.Exists {
		return 0
	}
	return f.content()
}

func (f *Flag) content() int {
	n := flagOverhead + len(f.Key) + len(f.DefaultValue) + f.ListedBytes()
	for _, v := range f.Variations {
		n += variationOverhead + textBytes(v.Name) + len(v.Value) + textBytes(v.Description)
	}
	for _, rules := range f.Rules {
		for i := range rules {
			n += ruleBytes(&rules[i])
		}
	}
	for _, s := range f.Fallthrough {
		n += serveBytes(&s)
	}
	for _, list := range f.Prerequisites {
		for i := range list {
			n += prerequisiteBytes(&list[i].Prerequisite)
		}
	}
	return n
}

// ListedBytes returns the size of the texts that lists of flags show.
func (f *Flag) ListedBytes() int {
	n := textBytes(f.Name) + textBytes(f.Description)
	for _, tag := range f.Tags {
		n += textBytes(tag) + len(`"",`)
	}
	for _, link := range f.Links {
		n += linkOverhead + textBytes(link.Title) + textBytes(link.URL)
	}
	return n
}

// Variation returns a variation of the flag, nil for an id that none has.
func (f *Flag) Variation(id string) *events.Variation {
	for i := range f.Variations {
		if f.Variations[i].ID == id {
			return &f.Variations[i]
		}
	}
	return nil
}

// FallthroughIn returns what the flag serves in an environment if no rule matches, nil if it is not set.
func (f *Flag) FallthroughIn(environmentID string) *events.Serve {
	if serve, ok := f.Fallthrough[environmentID]; ok {
		return &serve
	}
	return nil
}

// applyRules returns the list of rules after a change.
func applyRules(before []events.Rule, change events.RulesChanged) []events.Rule {
	return events.ApplyRules(before, change, func(r events.Rule) string { return r.ID },
		func(r events.Rule) events.Rule { return r })
}
