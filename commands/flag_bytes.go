package commands

import (
	"fmt"
	"slices"

	"flagledger/events"
)

const (
	maxValueBytes = 64 << 10 // bytes of a value that is served, as JSON without white space
	// maxFlagBytes is how many bytes a flag may have, with its variations and the rules and fallthroughs of all
	// environments: see events.FlagBytesAfter.
	maxFlagBytes = 512 << 10
)

// checkSizes returns facts, unless they make the flag or one of its values larger than it may be. What an earlier
// release has taken may stay as large as it is, and shrink.
func (f *Flag) checkSizes(facts ...events.Fact) ([]events.Fact, error) {
	for _, fact := range facts {
		for _, v := range valuesIn(fact) {
			if v.to > maxValueBytes && v.to > v.from {
				return nil, refuse(Conflict, "%s takes %d bytes as JSON: a value may take %d", v.name, v.to, maxValueBytes)
			}
		}
	}
	if growth := flagGrowth(f, facts); growth > 0 && f.Bytes+growth > maxFlagBytes {
		return nil, refuse(Conflict,
			"the flag would take %d bytes: with its variations and the rules of all environments it may take %d", f.Bytes+growth,
			maxFlagBytes)
	}
	return facts, nil
}

// flagGrowth is by how many bytes a flag grows by facts, less than 0 where it shrinks; 0 for any other state.
func flagGrowth(state any, facts []events.Fact) int {
	f, is := state.(*Flag)
	if !is {
		return 0
	}
	n := f.Bytes
	for _, fact := range facts {
		n = events.FlagBytesAfter(n, fact.(events.FlagFact))
	}
	return n - f.Bytes
}

// valueSize is how large a value was and is.
type valueSize struct {
	name     string
	from, to int
}

// valuesIn lists the values that a fact sets.
func valuesIn(fact events.Fact) (sizes []valueSize) {
	switch fact := fact.(type) {
	case events.FlagCreated:
		sizes = append(sizes, valueSize{"defaultValue", 0, len(fact.DefaultValue)})
		for i, v := range fact.Variations {
			sizes = append(sizes, valueSize{fmt.Sprintf("flag_variations[%d].value", i), 0, len(v.Value)})
		}
	case events.FlagUpdated:
		if c := fact.DefaultValue; c != nil {
			sizes = append(sizes, valueSize{"defaultValue", len(c.From), len(c.To)})
		}
	case events.VariationAdded:
		sizes = append(sizes, valueSize{"value", 0, len(fact.Variation.Value)})
	case events.VariationUpdated:
		if c := fact.Value; c != nil {
			sizes = append(sizes, valueSize{"value", len(c.From), len(c.To)})
		}
	case events.RulesChanged:
		for _, c := range slices.Concat(fact.Changed, addedRules(fact)) {
			sizes = append(sizes, valueSize{"the value that a rule serves", len(c.From.Serve.Value), len(c.To.Serve.Value)})
		}
	case events.FallthroughChanged:
		size := valueSize{name: "serve.value"}
		if fact.From != nil {
			size.from = len(fact.From.Value)
		}
		if fact.To != nil {
			size.to = len(fact.To.Value)
		}
		sizes = append(sizes, size)
	}
	return sizes
}

func addedRules(fact events.RulesChanged) (list []events.Change[events.Rule]) {
	for _, r := range fact.Added {
		list = append(list, events.Change[events.Rule]{To: r})
	}
	return list
}
