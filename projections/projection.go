// Package projections builds the read models: tables in Postgres that follow the log and can be dropped and rebuilt at
// any time. It holds the machinery; package models defines the read models.
package projections

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// Projection turns facts into the rows of one read model. The same log always gives the same rows.
type Projection struct {
	Name string
	// Version must grow with each change of the tables or of how facts change them. The service then rebuilds the read
	// model by itself.
	Version int
	Tables  []string
	// Schema is the SQL that creates the tables. Here and in Apply they are named without their schema, which the
	// search_path sets.
	Schema string
	// Indexes is the SQL that creates the indexes that Apply does not need, as "create index if not exists" with a
	// name. A rebuild creates them at the end, which is many times faster than maintaining them for each row.
	Indexes string
	// Ordered requires that events of all streams are applied in log order: a parked stream needs a rebuild.
	Ordered bool
	// FactPrefixes are prefixes of the names of the facts that it follows.
	FactPrefixes []string
	// Apply queues the statements of one event. It is called for the events of a stream in order, and again after a
	// failure.
	Apply func(b *Batch, e events.Recorded) error
	// New takes the place of Apply in a projection that caches in memory what its rows say. Each Model is used from a
	// checkpoint on until something fails.
	New func() Model
}

// Model applies events with what it caches of the rows.
type Model interface {
	// Load is called before a list of events is applied. It may read rows on a connection from use.
	Load(ctx context.Context, use func(func(*pgx.Conn) error) error, list []events.Recorded) error
	// Apply is as in a Projection. If it fails, it changes nothing that it caches.
	Apply(b *Batch, e events.Recorded) error
}

func (p Projection) follows(name string) bool { return followed(p.FactPrefixes, name) }

func followed(prefixes []string, name string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
