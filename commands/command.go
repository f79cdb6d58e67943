// Package commands decides what may happen: a command names a stream and turns its state into facts, or refuses.
package commands

import (
	"cmp"
	"reflect"

	"flagledger/events"
)

// Command is a decision about one stream with the state S. It is plain data that can be stored as JSON, and deciding
// is pure: times and new ids are fields.
type Command[S any] interface {
	Stream() string
	// Tenant returns the id of the tenant whose share of the node the command uses; empty for people and the platform.
	Tenant() string
	// Decide does not change the state, which is shared.
	Decide(state S) ([]events.Fact, error)
}

// renamed maps commands whose types were renamed to their names in the ids of events.
var renamed = map[string]string{"InviteMember": "AddMember"}

// StoredName returns a command's name in the ids of events of a request with an Idempotency-Key. It never changes, so
// that a retry after an update finds earlier events.
func StoredName(cmd any) string {
	name := reflect.TypeOf(cmd).Name()
	return "commands." + cmp.Or(renamed[name], name)
}
