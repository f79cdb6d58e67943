// Package state folds the facts of each kind of stream into a state. Every event gives the next state, and none fails:
// what happened, happened. The writer, the past, the snapshot, the read models and the command line all use it.
package state

import "flagledger/events"

// State is the state of a stream, used through a pointer to it.
type State[S any] interface {
	*S
	// Apply takes in the next event of the stream, whose fact must be known and of this kind of stream.
	Apply(events.Recorded)
	// Clone returns a copy that shares nothing with the state that Apply changes.
	Clone() S
	// Size returns about how many bytes the state takes in memory.
	Size() int
}
