package projections

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// What the tests see of the machinery beyond what it exports. They stand outside of the package because they need the
// read models.

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

// Reached tells Progress of a position.
func (p *Progress) Reached(name string, position events.Position) { p.reached(name, "", position) }

// Failed tells Progress that this process could not carry on a read model.
func (p *Progress) Failed(name string) { p.failed(name, true) }

// Notified tells Progress what another process has sent.
func (p *Progress) Notified(payload string) { p.notified(payload) }

// Resumed tells Progress of a position that a read model was found at.
func (p *Progress) Resumed(name string, position events.Position) { p.resumed(name, "", position) }

// HasReadModel tells, by its error, whether the read model stands in this version.
func (p Projection) HasReadModel(ctx context.Context, db querier) error {
	_, err := p.readCheckpoint(ctx, db, liveSchema)
	return err
}

// CarryOn keeps one read model current, and tells each position that it has reached.
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

// Build is a rebuild that is about to switch.
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

// LockLive stops the live projector, once no lock is contended. The new tables count as so far as the live ones are.
func (b *Build) LockLive(ctx context.Context) error {
	b.b.switching.Lock()
	err := b.b.lockLive(ctx)
	for contended(err) {
		b.b.unlockSwitching()
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

// Finish is called where the new tables are as far as the live ones were when the projector was stopped.
func (b *Build) Finish(ctx context.Context) (done bool, err error) {
	return b.b.switchUnlessBehind(ctx, b.built)
}

// LetGo lets the live projector go on.
func (b *Build) LetGo() { b.b.unlockSwitching() }

// Release lets the live projector go on, and ends.
func (b *Build) Release() {
	b.b.unlockSwitching()
	b.b.connections.pool.Close()
}

// MaxHold is for how long a rebuild stops a live projector after so many failed holds.
func MaxHold(failedHolds int) time.Duration { return (&build{failedHolds: failedHolds}).maxHold() }

// ConnectSession opens a connection like the one that holds the locks of a process.
func ConnectSession(ctx context.Context, url string) (*pgx.Conn, error) {
	s := &session{url: url}
	return s.connect(ctx)
}

// Traffic is what a rebuild gives way to.
type Traffic struct{ t *traffic }

// NewTraffic returns one that has not looked yet. It must be closed.
func NewTraffic(url string) (Traffic, error) {
	w, err := openConnections(url, builderName, 1)
	return Traffic{&traffic{connections: w}}, err
}

// Watch looks until ctx ends.
func (t Traffic) Watch(ctx context.Context) { t.t.watch(ctx) }

// Present reports whether there is some.
func (t Traffic) Present() bool { return t.t.present() }

// Since reports whether servers have run something since a time of the database.
func (t Traffic) Since(ctx context.Context, since time.Time) (busy bool, now time.Time, err error) {
	err = t.t.connections.use(ctx, liveSchema, func(conn *pgx.Conn) error {
		busy, now, err = serversBusy(ctx, conn, since)
		return err
	})
	return busy, now, err
}

// Close closes its connection.
func (t Traffic) Close() { t.t.connections.pool.Close() }
