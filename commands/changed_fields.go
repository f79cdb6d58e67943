package commands

import (
	"flagledger/events"
)

// changed returns the change of a field, or nil if to is nil or equal to from.
func changed[T any](from T, to *T, same func(a, b T) bool) *events.Change[T] {
	if to == nil || same(from, *to) {
		return nil
	}
	return &events.Change[T]{From: from, To: *to}
}

func equal[T comparable](a, b T) bool { return a == b }

// assignSent sets a field to the sent value; nil leaves it unchanged.
func assignSent[T any](field *T, sent *T) {
	if sent != nil {
		*field = *sent
	}
}
