package projections

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// This file exports what tests need of the machinery. The tests are outside the package because they need the read
// models.

const (
	LiveSchema     = liveSchema
	BuildingSchema = buildingSchema
	WaitTimeout    = waitTimeout
)

var (
	ErrNoReadModel = errNoReadModel
	ErrMoved       = errMoved
	Disconnect     = disconnect
)

// Reached reports a position to Progress.
func (p *Progress) Reached(name string, position events.Position) { p.reached(name, "", position) }

// Failed reports to Progress that this process could not update a read model.
func (p *Progress) Failed(name string) { p.failed(name, true) }

// Notified reports a notification of another process to Progress.
func (p *Progress) Notified(payload string) { p.notified(payload) }

// Resumed reports the position of an existing read model to Progress.
func (p *Progress) Resumed(name string, position events.Position) { p.resumed(name, "", position) }

// HasReadModel returns an error unless the read model exists in this version.
func (p Projection) HasReadModel(ctx context.Context, db querier) error {
	_, err := p.readCheckpoint(ctx, db, liveSchema)
	return err
}

// CarryOn updates one read model, and reports each position that it reaches.
func CarryOn(
	ctx context.Context, p Projection, url string, store events.Store, log *slog.Logger, committed func(events.Position),
) error {
	process, err := newProcess(url, projectorName, store, runConnections, log)
	if err != nil {
		return err
	}
	reached := func(c events.LogPosition) { committed(c.Position) }
	return process.route(ctx,
		&subscriber{process: process, projection: p, schema: liveSchema, committed: reached, resumed: reached})
}

// Build is a rebuild before its switch.
type Build struct {
	b     *build
	built checkpoint
}

// NewBuild makes the new tables, empty.
func NewBuild(ctx context.Context, p Projection, url string, store events.Store, log *slog.Logger) (*Build, error) {
	process, err := newProcess(url, builderName, store, rebuildConnections, log)
	if err != nil {
		return nil, err
	}
	b := &Build{b: &build{process: process, projection: p}}
	return b, process.connections.use(ctx, buildingSchema, func(conn *pgx.Conn) error {
		if err := p.create(ctx, conn, buildingSchema, store.Engine()); err != nil {
			return err
		}
		b.built, err = p.readCheckpoint(ctx, conn, buildingSchema)
		return err
	})
}

// LockLive stops the live projector when no lock is contended. The new tables count as current.
func (b *Build) LockLive(ctx context.Context) error {
	b.b.switching.Lock()
	err := b.b.lockLive(ctx)
	for contended(err) {
		b.b.endHold()
		b.b.switching.Lock()
		err = b.b.lockLive(ctx)
	}
	if err != nil {
		return err
	}
	b.built.Position = b.b.live.Position
	return b.b.connections.use(ctx, buildingSchema, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `update checkpoints set commit = $2, prepare = $3 where projection = $1`,
			b.b.projection.Name, b.b.live.Position.Commit, b.b.live.Position.Prepare)
		return err
	})
}

// Finish ends a rebuild whose new tables are current.
func (b *Build) Finish(ctx context.Context) (done bool, err error) {
	return b.b.switchUnlessBehind(ctx, b.built)
}

// LetGo releases the live projector.
func (b *Build) LetGo() { b.b.endHold() }

// Release releases the live projector and ends.
func (b *Build) Release() {
	b.b.endHold()
	b.b.connections.pool.Close()
}

// MaxHold returns how long a rebuild may stop a live projector after a number of failed holds.
func MaxHold(failedHolds int) time.Duration { return (&build{failedHolds: failedHolds}).maxHold() }

// ConnectSession opens a connection like the one that holds a process's locks.
func ConnectSession(ctx context.Context, url string) (*pgx.Conn, error) {
	s := &session{url: url}
	return s.connect(ctx)
}

// Traffic detects the traffic that a rebuild yields to.
type Traffic struct{ t *traffic }

// NewTraffic returns a Traffic that has not checked yet. It must be closed.
func NewTraffic(url string) (Traffic, error) {
	w, err := openConnections(url, builderName, 1)
	return Traffic{&traffic{connections: w}}, err
}

// Watch checks until ctx ends.
func (t Traffic) Watch(ctx context.Context) { t.t.watch(ctx) }

// Present reports whether there is traffic.
func (t Traffic) Present() bool { return t.t.present() }

// Since reports whether servers have run a query since a time of the database.
func (t Traffic) Since(ctx context.Context, since time.Time) (busy bool, now time.Time, err error) {
	err = t.t.connections.use(ctx, liveSchema, func(conn *pgx.Conn) error {
		busy, now, err = serversBusy(ctx, conn, since)
		return err
	})
	return busy, now, err
}

// Close closes its connection.
func (t Traffic) Close() { t.t.connections.pool.Close() }
