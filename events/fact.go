package events

// Fact is something that happened in a stream. The facts of each kind of stream are a sealed interface, such as FlagFact.
type Fact interface {
	// StoredName is the permanent name of the fact in the store. It outlives every renaming of Go code.
	StoredName() string
}

// Change is what an update did to one field. A nil *Change left the field alone.
type Change[T any] struct {
	From T `json:"from"`
	To   T `json:"to"`
}

// DefaultEnvironment is the environment that every tenant has, and that a call is about where it names none.
const DefaultEnvironment = "production"

// EnvironmentRef names an environment of a tenant. The id is never used again, so an environment that is deleted and added again
// starts clean; the name is the one it had then.
type EnvironmentRef struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}
