package projections

import (
	"context"
	"log/slog"

	"flagledger/events"
)

// What the tests see of the machinery beyond what it exports. They stand outside of the package because they need the read models.

const (
	LiveSchema  = liveSchema
	WaitTimeout = waitTimeout
)

var (
	ErrNoReadModel = errNoReadModel
	Disconnect     = disconnect
)

// Reached tells Progress of a position.
func (p *Progress) Reached(name string, position events.Position) { p.reached(name, position) }

// HasReadModel tells, by its error, whether the read model stands in this version.
func (p Projection) HasReadModel(ctx context.Context, db querier, engine string) error {
	_, err := p.readCheckpoint(ctx, db, liveSchema, engine)
	return err
}

// CarryOn keeps one read model current, and tells each position that it has reached.
func CarryOn(ctx context.Context, p Projection, url string, store events.Store, log *slog.Logger, committed func(events.Position)) error {
	return route(ctx, &subscriber{projection: p, schema: liveSchema, url: url, store: store, log: log, committed: committed})
}

// Build is a rebuild that is about to switch.
type Build struct{ b *build }

// NewBuild makes the new tables, empty.
func NewBuild(ctx context.Context, p Projection, url string, store events.Store) (Build, error) {
	conn, err := connect(ctx, url, buildingSchema)
	if err != nil {
		return Build{}, err
	}
	defer disconnect(conn)
	return Build{&build{projection: p, url: url, store: store}}, p.create(ctx, conn, buildingSchema, store.Engine())
}

// LockLive stops the live projector.
func (b Build) LockLive(ctx context.Context) error { return b.b.lockLive(ctx) }

// Finish is called where the new tables are as far as the live ones were when the projector was stopped.
func (b Build) Finish(ctx context.Context) (done bool, err error) { return b.b.finish(ctx, b.b.live) }

// Release lets the live projector go on.
func (b Build) Release() { b.b.release() }
