// Package projections builds the read models: tables in Postgres that follow the log and can be dropped and rebuilt at any time. It is the machinery;
// package models says what each read model is.
package projections

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// Projection turns facts into the rows of one read model. Applying the same log gives the same rows, always: rows hold nothing but what
// events say.
type Projection struct {
	Name string
	// Version is part of what the read model is: a change of its tables or of what it makes of facts needs the next one, and the service then
	// rebuilds it by itself.
	Version int
	Tables  []string
	// Schema is the SQL that creates the tables. They are named without their schema, here and in Apply: it is the connection's search_path.
	Schema string
	// FactPrefixes are what the names of the facts that it follows begin with.
	FactPrefixes []string
	// Apply queues the statements that take in one event. It is called for the events of a stream in their order, and again where an attempt failed.
	Apply func(b *pgx.Batch, e events.Recorded) error
}

func (p Projection) follows(name string) bool { return followed(p.FactPrefixes, name) }

func followed(prefixes []string, name string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
