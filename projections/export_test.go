package projections

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5"

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

// Resumed tells Progress of a position that a read model was found at.
func (p *Progress) Resumed(name string, position events.Position) { p.resumed(name, position) }

// HasReadModel tells, by its error, whether the read model stands in this version.
func (p Projection) HasReadModel(ctx context.Context, db querier, engine string) error {
	_, err := p.readCheckpoint(ctx, db, liveSchema, engine)
	return err
}

// CarryOn keeps one read model current, and tells each position that it has reached.
func CarryOn(ctx context.Context, p Projection, url string, store events.Store, log *slog.Logger, committed func(events.Position)) error {
	process, err := newProcess(url, store, runConnections, log)
	if err != nil {
		return err
	}
	return process.route(ctx, &subscriber{process: process, projection: p, schema: liveSchema, committed: committed, resumed: committed})
}

// Build is a rebuild that is about to switch.
type Build struct{ b *build }

// NewBuild makes the new tables, empty.
func NewBuild(ctx context.Context, p Projection, url string, store events.Store, log *slog.Logger) (Build, error) {
	process, err := newProcess(url, store, rebuildConnections, log)
	if err != nil {
		return Build{}, err
	}
	return Build{&build{process: process, projection: p}}, process.writers.use(ctx, buildingSchema, func(conn *pgx.Conn) error {
		return p.create(ctx, conn, buildingSchema, store.Engine())
	})
}

// LockLive stops the live projector.
func (b Build) LockLive(ctx context.Context) error {
	b.b.switching.Lock()
	return b.b.lockLive(ctx)
}

// Finish is called where the new tables are as far as the live ones were when the projector was stopped.
func (b Build) Finish(ctx context.Context) (done bool, err error) { return b.b.finish(ctx, b.b.live) }

// Release lets the live projector go on.
func (b Build) Release() {
	b.b.release()
	b.b.writers.pool.Close()
}
