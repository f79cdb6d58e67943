package commands

import (
	"fmt"
	"slices"

	"flagledger/events"
	"flagledger/events/state"
)

const (
	maxValueBytes = 64 << 10 // bytes of a value that is served, as JSON without white space
	// MaxFlagBytes is how many bytes a flag may have, with its variations and the rules and fallthroughs of all
	// environments: see state.Flag.Bytes.
	MaxFlagBytes = 512 << 10
)

// checkSizes returns facts, unless they make the flag or one of its values larger than its limit. What an earlier
// release accepted may stay as large as it is, and shrink.
func checkSizes(f *state.Flag, facts ...events.Fact) ([]events.Fact, error) {
	next := afterFacts(f, facts)
	before := map[string]int{}
	for _, value := range valueSizes(f) {
		before[value.id] = value.bytes
	}
	for _, value := range valueSizes(&next) {
		if value.bytes > max(maxValueBytes, before[value.id]) {
			if i := slices.IndexFunc(next.Variations, value.isOf); i >= 0 && !f.Exists {
				value.name = fmt.Sprintf("flag_variations[%d].value", i)
			}
			return nil, Refuse(Conflict, "%s takes %d bytes as JSON: a value may take %d", value.name, value.bytes,
				maxValueBytes)
		}
	}
	if n := next.Bytes(); n > max(MaxFlagBytes, f.Bytes()) {
		return nil, Refuse(Conflict,
			"the flag would take %d bytes: with its variations and the rules of all environments it may take %d", n,
			MaxFlagBytes)
	}
	return facts, nil
}

// afterFacts returns the state of a flag after facts that are not recorded yet.
func afterFacts(f *state.Flag, facts []events.Fact) state.Flag {
	next := f.Clone()
	for _, fact := range facts {
		next.Apply(events.Recorded{Event: events.Event{Fact: fact}})
	}
	return next
}

// Growth returns by how many bytes facts make a flag or a segment larger, less than 0 if smaller; 0 for any other
// state.
func Growth(s any, facts []events.Fact) int {
	switch s := s.(type) {
	case *state.Flag:
		next := afterFacts(s, facts)
		return next.Bytes() - s.Bytes()
	case *state.Segment:
		next := segmentAfter(s, facts)
		return next.Bytes() - s.Bytes()
	default:
		return 0
	}
}

// valueSize is the size of a value that a flag serves, with the id of what serves it and its name in errors.
type valueSize struct {
	id, name string
	bytes    int
}

func (s valueSize) isOf(v events.Variation) bool { return s.id == v.ID }

// valueSizes returns the sizes of all values that a flag serves.
func valueSizes(f *state.Flag) []valueSize {
	sizes := []valueSize{{"", "defaultValue", len(f.DefaultValue)}}
	for _, v := range f.Variations {
		sizes = append(sizes, valueSize{v.ID, "value", len(v.Value)})
	}
	for environment, rules := range f.Rules {
		for _, r := range rules {
			sizes = append(sizes, valueSize{environment + " " + r.ID, "the value that a rule serves", len(r.Serve.Value)})
		}
	}
	for environment, s := range f.Fallthrough {
		sizes = append(sizes, valueSize{environment, "serve.value", len(s.Value)})
	}
	return sizes
}
