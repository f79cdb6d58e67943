package flagd

import (
	"encoding/json"

	"flagledger/events/state"
)

// Dialects lists all dialects.
func Dialects() []Dialect { return []Dialect{Strict, Go, Node, Python} }

// Translate returns the definition of a flag in an environment. The error is the Reason of Supports.
func Translate(f *state.Flag, environmentID string, d Dialect) (json.RawMessage, error) {
	t, err := translate(f, environmentID, d)
	if err != nil {
		return nil, err
	}
	return t.encode()
}
