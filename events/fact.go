package events

import "hash/fnv"

// Fact is something that happened in a stream; an Event is a fact with who did it, when and why. The facts of each kind
// of stream are a sealed interface, such as FlagFact.
type Fact interface {
	// StoredName is the permanent name of the fact in the store. It stays when Go code is renamed.
	StoredName() string
}

// Change is the change of one field. A nil *Change means that the field did not change.
type Change[T any] struct {
	From T `json:"from"`
	To   T `json:"to"`
}

// Apply sets a field to what it was changed to, if it was.
func (c *Change[T]) Apply(field *T) {
	if c != nil {
		*field = c.To
	}
}

// DefaultEnvironment is the environment that every tenant has. Calls that name no environment use it.
const DefaultEnvironment = "production"

// EnvironmentRef names an environment of a tenant by an id that no other ever has: one that is added under the name of
// a deleted one starts empty. Name is the name at the time of the fact.
type EnvironmentRef struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// DefaultColor returns the color of an environment that was added without one: red for production.
func (e EnvironmentRef) DefaultColor() string {
	if e.Name == DefaultEnvironment {
		return "#e03131"
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(e.Name)) // never fails
	return environmentColors[hash.Sum32()%defaultColors]
}

// environmentColors are the colors of new environments. Defaults by name are among the first ones alone.
var environmentColors = []string{
	"#1c7ed6", "#2b8a3e", "#e67700", "#7048e8", "#0c8599", "#868e96",
	"#d6336c", "#5c940d", "#ae3ec9", "#3b5bdb", "#99582a", "#f08c00",
}

const defaultColors = 6

// DistinctColor returns the default color of an environment, or another one if that is in use. It is empty if all are.
func (e EnvironmentRef) DistinctColor(used map[string]bool) string {
	for _, color := range append([]string{e.DefaultColor()}, environmentColors...) {
		if !used[color] {
			return color
		}
	}
	return ""
}
