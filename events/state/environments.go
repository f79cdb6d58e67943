package state

import (
	"encoding/json"
	"maps"
	"slices"
)

// EnvironmentSet is a sorted set of the ids of environments. It takes a fifth of the memory of a map. Nothing changes
// it: With and Without return other sets. As JSON it is an object with true for each id.
type EnvironmentSet []string

// Has reports whether the set has an id.
func (s EnvironmentSet) Has(id string) bool { return slices.Contains(s, id) }

// With returns the set with an id.
func (s EnvironmentSet) With(id string) EnvironmentSet {
	at, has := slices.BinarySearch(s, id)
	if has {
		return s
	}
	return slices.Insert(slices.Clone(s), at, id)
}

// Without returns the set without an id.
func (s EnvironmentSet) Without(id string) EnvironmentSet {
	at, has := slices.BinarySearch(s, id)
	if !has {
		return s
	}
	if len(s) == 1 {
		return nil
	}
	return slices.Delete(slices.Clone(s), at, at+1)
}

// MarshalJSON writes an object.
func (s EnvironmentSet) MarshalJSON() ([]byte, error) {
	object := make(map[string]bool, len(s))
	for _, id := range s {
		object[id] = true
	}
	return json.Marshal(object)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *EnvironmentSet) UnmarshalJSON(text []byte) error {
	var object map[string]bool
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	*s = nil
	for _, id := range slices.Sorted(maps.Keys(object)) {
		if object[id] {
			*s = append(*s, id)
		}
	}
	return nil
}
