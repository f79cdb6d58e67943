// Package projections builds the read models: tables in Postgres that follow the log and can be dropped and rebuilt at
// any time. It is the machinery; package models says what each read model is.
package projections

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// Projection turns facts into the rows of one read model. Applying the same log gives the same rows, always: rows hold
// nothing but what events say.
type Projection struct {
	Name string
	// Version is part of what the read model is: a change of its tables or of what it makes of facts needs the next one,
	// and the service then rebuilds it by itself.
	Version int
	Tables  []string
	// Schema is the SQL that creates the tables. They are named without their schema, here and in Apply: it is the
	// connection's search_path.
	Schema string
	// Indexes is the SQL that creates those indexes that Apply does without, as "create index if not exists" with a name.
	// A rebuild makes them once it has caught up: to keep them current row by row takes many times as long.
	Indexes string
	// Ordered says that events of all streams must be applied in the order of the log: a parked stream needs a rebuild.
	Ordered bool
	// FactPrefixes are what the names of the facts that it follows begin with.
	FactPrefixes []string
	// Apply queues the statements that apply one event. It is called for the events of a stream in their order, and
	// again after a failure.
	Apply func(b *Batch, e events.Recorded) error
	// New takes the place of Apply in an Ordered projection that keeps in memory what its rows say. Each is used from a
	// checkpoint on until something fails.
	New func() Model
}

// Model applies events with what it keeps in memory of the rows.
type Model interface {
	// Load is called before some events are applied. It may read the rows that there are, on a connection that use has.
	Load(ctx context.Context, use func(func(*pgx.Conn) error) error, list []events.Recorded) error
	// Apply is as in a Projection. Where it fails it changes nothing of what it keeps.
	Apply(b *Batch, e events.Recorded) error
}

func (p Projection) follows(name string) bool { return followed(p.FactPrefixes, name) }

func followed(prefixes []string, name string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
