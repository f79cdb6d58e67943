package snapshot

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"unique"

	"flagledger/events"
)

// Flag is a flag compiled for evaluation. It is immutable except for its counts: each event makes a new one. It is
// small, because there may be millions.
type Flag struct {
	compiled
	uses atomic.Pointer[use] // by environment; the next Flag of the same life shares them
}

// compiled is the part that evaluation reads.
type compiled struct {
	version      events.Revision
	defaultValue json.RawMessage
	variations   []*variation
	split        *rollout // between the variations; nil if they have no weight
	environments []environment
	project      unique.Handle[string]
	salt         murmur
	bytes        uint32 // see events.FlagBytesAfter
	life         uint32 // the revision of its FlagCreated
	boolean      bool
	status       status
}

type status uint8

const (
	active status = iota
	inactive
	archived
)

// variation is immutable.
type variation struct {
	id     string
	name   string
	value  json.RawMessage
	weight events.Weight
}

// environment is the state of a flag in an environment. A flag without an entry for one is off there and has no rules.
type environment struct {
	id        unique.Handle[string]
	enabled   bool
	targeting *targeting // nil without rules and fallthrough
}

// Version is the number of the flag's last event.
func (f *Flag) Version() events.Revision { return f.version }

// evolve returns the flag after an event, nil if there is none. If the event cannot be compiled, it returns an error
// and a flag that serves as before.
func evolve(before *Flag, e events.Recorded, fact events.FlagFact) (*Flag, error) {
	if created, ok := fact.(events.FlagCreated); ok {
		f := newFlag(created, e.Revision)
		f.bytes = uint32(events.FlagBytesAfter(0, fact))
		return f, nil
	}
	if before == nil {
		return nil, nil
	}
	f := &Flag{compiled: before.compiled}
	f.version, f.bytes = e.Revision, uint32(max(events.FlagBytesAfter(int(before.bytes), fact), 0))
	switch fact := fact.(type) {
	case events.FlagCreated:
	case events.FlagUpdated:
		if fact.DefaultValue != nil {
			f.defaultValue = shared(fact.DefaultValue.To)
		}
		if fact.ProjectID != nil {
			f.project = unique.Make(fact.ProjectID.To)
		}
	case events.FlagStatusChanged:
		f.status = statusOf(fact.To)
	case events.FlagEnabled:
		f.in(fact.Environment).enabled = true
	case events.FlagDisabled:
		f.in(fact.Environment).enabled = false
	case events.VariationAdded:
		f.variations = append(slices.Clip(f.variations), newVariation(fact.Variation))
		f.weigh()
	case events.VariationUpdated:
		f.update(fact)
	case events.VariationRemoved:
		// Rules of deleted environments may still serve the variation, and keep it in memory. See
		// commands.RemoveVariation.
		f.variations = slices.DeleteFunc(slices.Clone(f.variations),
			func(v *variation) bool { return v.id == fact.Variation.ID })
		f.weigh()
	case events.RulesChanged:
		err := f.target(fact.Environment, func(t *targeting) error { return f.changeRules(t, fact) })
		if err != nil {
			f.version = before.version
			return f, err
		}
	case events.FallthroughChanged:
		var served *serve
		if fact.To != nil {
			s, err := f.compileServe(*fact.To, f.salt)
			if err != nil {
				f.version = before.version
				return f, fmt.Errorf("the fallthrough: %w", err)
			}
			served = &s
		}
		_ = f.target(fact.Environment, func(t *targeting) error { t.fallthroughServe = served; return nil })
	case events.FlagDeleted:
		return nil, nil
	case events.FlagReverted:
		if fact.Variations != nil {
			f.variations = events.OrderVariations(f.variations, fact.Variations.To, func(v *variation) string { return v.id })
			f.weigh()
		}
	}
	return f, nil
}

// newFlag compiles a FlagCreated.
func newFlag(created events.FlagCreated, version events.Revision) *Flag {
	f := &Flag{compiled: compiled{
		version:      version,
		life:         uint32(version),
		defaultValue: shared(created.DefaultValue),
		project:      unique.Make(created.ProjectID),
		salt:         newMurmur(created.Salt),
		boolean:      created.Type == events.BooleanFlag,
	}}
	for _, v := range created.Variations {
		f.variations = append(f.variations, newVariation(v))
	}
	f.weigh()
	return f
}

func statusOf(s events.FlagStatus) status {
	switch s {
	case events.ArchivedFlag:
		return archived
	case events.InactiveFlag:
		return inactive
	default:
		return active
	}
}

// shared returns a shared copy of a common value.
func shared(value json.RawMessage) json.RawMessage {
	switch string(value) {
	case "true":
		return jsonTrue
	case "false":
		return jsonFalse
	default:
		return value
	}
}

func newVariation(v events.Variation) *variation {
	return &variation{id: v.ID, name: v.Name, value: shared(v.Value), weight: v.Weight}
}

// update replaces a variation by a changed one, also in rules and fallthroughs that serve it.
func (f *Flag) update(fact events.VariationUpdated) {
	i := slices.IndexFunc(f.variations, func(v *variation) bool { return v.id == fact.ID })
	if i < 0 {
		return
	}
	before, after := f.variations[i], *f.variations[i]
	fact.Name.Apply(&after.name)
	fact.Value.Apply(&after.value)
	fact.Weight.Apply(&after.weight)
	after.value = shared(after.value)
	f.variations = slices.Clone(f.variations)
	f.variations[i] = &after
	f.environments = slices.Clone(f.environments)
	for j := range f.environments {
		f.environments[j].targeting = f.environments[j].targeting.replace(before, &after)
	}
	f.weigh()
}

// weigh rebuilds the flag's own split.
func (f *Flag) weigh() {
	var shares []share
	for _, v := range f.variations {
		if v.weight > 0 {
			shares = append(shares, share{v, uint64(v.weight)})
		}
	}
	f.split = newRollout(f.salt, events.TargetingKey, shares)
}

// in returns the state in an environment for a change.
func (f *Flag) in(ref events.EnvironmentRef) *environment {
	f.environments = slices.Clone(f.environments)
	id := unique.Make(ref.ID)
	for i := range f.environments {
		if f.environments[i].id == id {
			return &f.environments[i]
		}
	}
	f.environments = append(f.environments, environment{id: id})
	return &f.environments[len(f.environments)-1]
}

// manyStates is the number of states above which they are pruned: as many as a tenant may have environments.
const manyStates = 100

// pruneEnvironments returns the flag, which may be nil, without the states of deleted environments if it has many
// states.
func (f *Flag) pruneEnvironments(all []events.EnvironmentRef) *Flag {
	if f == nil || len(f.environments) <= manyStates {
		return f
	}
	next := &Flag{compiled: f.compiled}
	next.environments = slices.DeleteFunc(slices.Clone(f.environments), func(state environment) bool {
		return !slices.ContainsFunc(all, func(e events.EnvironmentRef) bool { return e.ID == state.id.Value() })
	})
	return next
}

// target changes the targeting of an environment. It returns the error of change.
func (f *Flag) target(ref events.EnvironmentRef, change func(*targeting) error) error {
	var t targeting
	e := f.in(ref)
	if e.targeting != nil {
		t = *e.targeting
	}
	err := change(&t)
	if e.targeting = &t; len(t.rules) == 0 && t.fallthroughServe == nil && t.pending == nil {
		e.targeting = nil
	}
	return err
}

// environment returns the state in an environment, nil if the flag was never changed there.
func (f *Flag) environment(id string) *environment {
	for i := range f.environments {
		if f.environments[i].id.Value() == id {
			return &f.environments[i]
		}
	}
	return nil
}
