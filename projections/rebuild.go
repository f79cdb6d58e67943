package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/events"
	"flagledger/retry"
)

// The live projector is the subscriber that updates the live tables. A hold stops it, by locking its checkpoint's row,
// so that new tables can catch up with the live ones and replace them.
const (
	// usualHold is the usual length of a hold: half to catch up, the rest to wait for readers and to switch.
	usualHold = 100 * time.Millisecond
	// longestHold limits that time. It grows by usualHold after each ten failed holds.
	longestHold = 2 * time.Second
	// switchTime is the part of it that is reserved for the switch itself.
	switchTime = 20 * time.Millisecond
	// holdBackoff is the pause after a failed hold, as a multiple of its longest time.
	holdBackoff = 10
	// afterSwitchTakes limits the time for announcing new tables and dropping the old ones.
	afterSwitchTakes = 10 * time.Second
)

// rebuildConnections is a rebuild's number of connections for transactions. One of them may wait to switch.
const rebuildConnections = 3

// RebuildOptions holds the options of Rebuild.
type RebuildOptions struct {
	// Report, unless nil, is called after each page with the position of a read model's new tables and the number of
	// events read since the last call. Several goroutines call it.
	Report func(projection string, reached events.Position, read int)
	// Rate limits the events read a second; 0 means no limit.
	Rate int
	// FullSpeed does not yield to servers that read or write.
	FullSpeed bool
	// Force switches to new tables even if they differ from the live ones.
	Force bool
	// Afresh starts at the first event even if an interrupted rebuild has left new tables.
	Afresh bool
	// CompareOnly drops the new tables after the comparison instead of switching to them. It starts afresh.
	CompareOnly bool
}

// Rebuild builds new tables of read models in one pass over the log, or continues an interrupted rebuild. It switches
// to each as soon as it has caught up; readers never see a missing table.
//
// Before the switch it compares the new rows with the live ones. If they differ, it returns a *DifferentError and does
// not switch. Live tables of another version or log are not compared.
func Rebuild(
	ctx context.Context, url string, store events.Store, list []Projection, options RebuildOptions, log *slog.Logger,
) error {
	p, err := newProcess(url, builderName, store, rebuildConnections, log)
	if err != nil {
		return err
	}
	p.feed.catchUpOnly = true
	p.feed.limit(options.Rate)
	if !options.FullSpeed {
		p.traffic = &traffic{connections: p.connections}
		p.feed.traffic = p.traffic
	}
	var subscribers []*subscriber
	for _, projection := range list {
		s := &subscriber{process: p, projection: projection}
		b := s.builder(p.feed.follow())
		b.follower.expect()
		b.build.options, b.build.comparing = options, true
		if options.Report != nil {
			b.build.report = func(reached events.Position, read int) { options.Report(projection.Name, reached, read) }
		}
		subscribers = append(subscribers, b)
	}
	if err := p.route(ctx, subscribers...); err != nil {
		return err
	}
	var failed []error
	for _, s := range subscribers {
		if s.build.err != nil {
			failed = append(failed, fmt.Errorf("read model %s: %w", s.projection.Name, s.build.err))
		}
	}
	return errors.Join(failed...)
}

// builder returns a subscriber that builds the same projection beside the live one.
func (s *subscriber) builder(f *follower) *subscriber {
	b := *s
	b.schema = buildingSchema
	b.committed, b.resumed = func(events.LogPosition) {}, func(events.LogPosition) {}
	b.follower = f
	b.follower.building = true
	b.build = &build{process: s.process, projection: s.projection, report: func(events.Position, int) {}}
	return &b
}

// createTablesRetrying retries createTables while other processes interfere: only one process creates tables at a
// time.
func (s *subscriber) createTablesRetrying(ctx context.Context) error {
	for {
		err := s.connections.use(ctx, s.schema, func(conn *pgx.Conn) error { return s.createTables(ctx, conn) })
		if !contended(err) {
			return err
		}
		if err := retry.Sleep(ctx, lockInterval); err != nil {
			return err
		}
	}
}

// createTables creates the new tables, or finds the tables of an interrupted rebuild.
func (s *subscriber) createTables(ctx context.Context, conn *pgx.Conn) error {
	b := s.build
	if !b.options.CompareOnly {
		// Old tables that a killed rebuild has left would make the switch fail, after an hour of reading.
		if err := s.projection.dropReplaced(ctx, conn); err != nil && !contended(err) {
			return err
		}
	}
	if b.upgrade {
		version, err := s.projection.liveVersion(ctx, conn)
		if err != nil {
			return err
		}
		if version >= s.projection.Version {
			return errMoved // another node has switched
		}
	}
	live, err := s.projection.resume(ctx, conn, liveSchema, s.store)
	if errors.Is(err, errNoReadModel) || errors.Is(err, errAnotherLog) {
		if b.options.CompareOnly {
			return err
		}
		b.comparing, err = false, nil
	}
	if err != nil {
		return err
	}
	left, err := s.projection.resume(ctx, conn, buildingSchema, s.store)
	if err != nil && !errors.Is(err, errNoReadModel) && !errors.Is(err, errAnotherLog) {
		return err
	}
	// New tables past the live ones can no longer be compared.
	ahead := b.comparing && left.Position.Compare(live.Position) > 0
	if err != nil || ahead || b.options.Afresh || b.options.CompareOnly || b.indexFirst {
		if err := s.projection.create(ctx, conn, buildingSchema, s.store.Engine()); err != nil || !b.indexFirst {
			return err
		}
		b.indexed = true
		return s.projection.index(ctx, conn, b.helpers())
	}
	s.log.Info("continuing an interrupted rebuild", "projection", s.projection.Name, "position", left.Position)
	return nil
}

// build switches a projection from live tables to new ones.
type build struct {
	*process
	projection  Projection
	options     RebuildOptions
	report      func(reached events.Position, read int)
	upgrade     bool          // the live tables are of an older version; if they no longer are, nothing is left to do
	comparing   bool          // the rows are still to be compared with the live ones
	indexed     bool          // the new tables have all indexes
	indexFirst  bool          // to create all indexes at the beginning
	conn        *pgxpool.Conn // locks the live checkpoint during a hold; this build has locked switching while it is set
	tx          pgx.Tx
	heldSince   time.Time          // when the hold began; zero without one
	failedHolds int                // holds without a comparison or a switch
	attempts    int                // failed attempts to hold, including those
	notBefore   time.Time          // the earliest time of the next hold
	live        events.LogPosition // of the live checkpoint when last read
	err         error              // how the subscriber ended
}

// helpers returns the number of additional processors for a statement: none with a rate, in an upgrade, and beside
// traffic.
func (b *build) helpers() int {
	if b.options.Rate > 0 || b.upgrade || b.traffic.present() {
		return 0
	}
	return 1
}

// reachedLive reports whether a position has reached the live checkpoint, as last read, and the rows are still to be
// compared.
func (b *build) reachedLive(position events.Position) bool {
	return b.comparing && b.live != (events.LogPosition{}) && position.Compare(b.live.Position) >= 0
}

// errNotIndexed reports that a row is too large for an index.
var errNotIndexed = errors.New("cannot create an index of the rows")

// index creates the indexes that the new tables still lack. It skips while another read model does so or is about to
// switch, because both hold one of the few connections.
func (s *subscriber) index(ctx context.Context) error {
	if !s.switching.TryLock() {
		return retry.Sleep(ctx, buildInterval)
	}
	defer s.switching.Unlock()
	s.follower.leave() // it takes no pages meanwhile: others must not wait for it
	err := s.connections.use(ctx, s.schema,
		func(conn *pgx.Conn) error { return s.projection.index(ctx, conn, s.build.helpers()) })
	if inapplicable(err) {
		s.log.Warn(
			"a row is too large for an index: building the tables again with indexes first, so that only its stream is parked",
			"projection",
			s.projection.Name,
			"err",
			err,
		)
		return fmt.Errorf("%w: %w", errNotIndexed, err)
	}
	s.build.indexed = err == nil
	return err
}

// finish begins a hold, and switches if the new tables have all events of the live ones. Call it when they have caught
// up with the log and were compared. If done is false the hold may go on: call it again soon, or failExpiredHold.
func (s *subscriber) finish(ctx context.Context, p *cursor) (done bool, err error) {
	if p.Position != p.reached.Position {
		if err := s.commit(ctx, nil, nil, p.reached, p); err != nil {
			return false, err
		}
	}
	return s.build.switchUnlessBehind(ctx, p.checkpoint)
}

// switchUnlessBehind does the work of finish once the checkpoint is written.
func (b *build) switchUnlessBehind(ctx context.Context, built checkpoint) (done bool, err error) {
	done, err = b.trySwitch(ctx, built)
	if contended(err) {
		b.failHold(err)
		return false, nil
	}
	if done || err != nil {
		b.endHold()
	}
	if done {
		b.ending.Go(func() { b.afterSwitch(ctx, built) })
	}
	return done, err
}

func (b *build) trySwitch(ctx context.Context, built checkpoint) (done bool, err error) {
	if stopped, err := b.startHold(ctx); !stopped || err != nil {
		return false, err
	}
	if !b.caughtUpWithLive(built.LogPosition) {
		if atHead, err := b.atHead(ctx, built.Position); !atHead || err != nil {
			return false, err
		}
	}
	if err := b.switchOver(ctx, built); err != nil {
		return false, err
	}
	if err := b.tx.Commit(ctx); err != nil {
		return false, err
	}
	b.log.Info("a read model was replaced", "projection", b.projection.Name,
		"stopped", time.Since(b.heldSince).Round(time.Millisecond))
	return true, nil
}

// afterSwitch announces the new tables, which may be ahead of the old ones, and drops those. It runs even if ctx has
// ended.
func (b *build) afterSwitch(ctx context.Context, built checkpoint) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterSwitchTakes)
	defer cancel()
	err := b.connections.use(ctx, liveSchema, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(
			ctx, `select pg_notify($1, $2)`, progressChannel, formatProgress(b.projection.Name, built.LogID, built.Position),
		); err != nil {
			return err
		}
		return b.projection.dropReplaced(ctx, conn)
	})
	if err != nil {
		b.log.Warn("replaced a read model, but could not drop its old tables; its next rebuild retries",
			"projection", b.projection.Name, "err", err)
	}
}

// caughtUpWithLive reports whether new tables have all events of the live ones: if they are at the live checkpoint or
// past it, or if the last event is the same. The live checkpoint also moves past events of other models.
func (b *build) caughtUpWithLive(built events.LogPosition) bool {
	return built.Position.Compare(b.live.Position) >= 0 || built.Last == b.live.Last
}

// atHead reports whether a position has reached the head of the log. New tables there hold all events, even if the
// live ones are of a different log. If the store does not answer in time, the live projector continues.
func (b *build) atHead(ctx context.Context, position events.Position) (bool, error) {
	ctx, cancel := context.WithDeadline(ctx, b.heldSince.Add(b.maxHold()))
	defer cancel()
	head, err := b.store.Head(ctx)
	switch {
	case errors.Is(err, events.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		b.failHold(err)
		return false, nil
	case err != nil:
		return false, err
	case position.Compare(head) < 0:
		b.failExpiredHold()
		return false, nil
	}
	return true, nil
}

// startHold stops the live projector until endHold. stopped is false before notBefore, and while another read model
// switches.
func (b *build) startHold(ctx context.Context) (stopped bool, err error) {
	if b.conn != nil {
		return true, nil
	}
	if !time.Now().After(b.notBefore) || !b.switching.TryLock() {
		return false, nil
	}
	return true, b.lockLive(ctx)
}

// failExpiredHold fails a hold if too little time is left to switch.
func (b *build) failExpiredHold() {
	if b.conn != nil && time.Since(b.heldSince) > b.maxHold()/2 {
		b.failHold(errAhead)
	}
}

// errAhead reports that the new tables did not catch up while the live projector was stopped.
var errAhead = errors.New("the live tables are ahead")

// maxHold returns how long the live projector may be stopped.
func (b *build) maxHold() time.Duration {
	return min(usualHold*time.Duration(1+b.failedHolds/10), longestHold)
}

// failHold ends a hold without a switch, and sets a pause before the next.
func (b *build) failHold(why error) {
	b.notBefore = time.Now().Add(holdBackoff * b.maxHold())
	if !b.heldSince.IsZero() {
		b.failedHolds++
	}
	if b.attempts++; b.attempts%10 == 0 {
		b.log.Warn("cannot switch to the new tables yet; retrying", "projection", b.projection.Name,
			"attempts", b.attempts, "err", why)
	}
	b.endHold()
}

// lockLive stops the live projector by locking its checkpoint, and reads the checkpoint. The caller holds switching.
// Call endHold afterwards, even after an error.
func (b *build) lockLive(ctx context.Context) (err error) {
	if b.conn, err = b.connections.acquire(ctx, liveSchema); err != nil {
		b.switching.Unlock()
		return err
	}
	if !b.options.CompareOnly {
		if err = b.projection.dropReplaced(ctx, b.conn); err != nil { // a rebuild was killed after its switch
			return err
		}
	}
	if err = createSchema(ctx, b.conn, liveSchema); err != nil {
		return err
	}
	if b.tx, err = b.conn.Begin(ctx); err != nil {
		return err
	}
	if _, err = b.tx.Exec(ctx, `set local lock_timeout = '2s'`); err != nil {
		return err
	}
	if err = b.keepVacuumAway(ctx); err != nil {
		return err
	}
	b.live = events.LogPosition{}
	err = b.tx.QueryRow(ctx, `select commit, prepare, last_event from checkpoints where projection = $1 for update`, b.projection.Name).
		Scan(&b.live.Position.Commit, &b.live.Position.Prepare, &b.live.Last)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	if err == nil {
		b.heldSince = time.Now()
	}
	return err
}

// switchOver moves the live tables to replacedSchema, which must be empty, and the new ones with their checkpoint and
// parked streams into their place. The caller commits.
func (b *build) switchOver(ctx context.Context, built checkpoint) error {
	name := b.projection.Name
	// Another process may have taken the lock and begun to build these tables again.
	own, err := b.tx.Exec(ctx, `select from `+buildingSchema+`.checkpoints
		where projection = $1 and commit = $2 and prepare = $3 and to_regclass($4)::oid = $5 for update`,
		name, built.Position.Commit, built.Position.Prepare, buildingSchema+"."+b.projection.Tables[0], built.table)
	if err != nil {
		return err
	}
	if own.RowsAffected() != 1 {
		return errMoved
	}
	if err := b.lockTables(ctx); err != nil {
		return err
	}
	// Readers wait until the commit, so this only moves tables. afterSwitch drops and notifies, which would make the
	// commit wait.
	var moves strings.Builder
	// Move all old tables first: a new table's index may have the name of one of them.
	for _, table := range b.projection.Tables {
		moves.WriteString(`alter table if exists ` + liveSchema + `.` + table + ` set schema ` + replacedSchema + `;`)
	}
	for _, table := range b.projection.Tables {
		moves.WriteString(`alter table ` + buildingSchema + `.` + table + ` set schema ` + liveSchema + `;`)
	}
	if _, err := b.tx.Exec(ctx, moves.String()); err != nil {
		return err
	}
	batch := &pgx.Batch{}
	for _, statement := range []string{
		`delete from ` + liveSchema + `.checkpoints where projection = $1`,
		`insert into ` + liveSchema + `.checkpoints select * from ` + buildingSchema + `.checkpoints where projection = $1`,
		`delete from ` + buildingSchema + `.checkpoints where projection = $1`,
		`delete from keep.parked where projection = $1 and not building`,
		`update keep.parked set building = false where projection = $1`,
	} {
		batch.Queue(statement, name)
	}
	return b.tx.SendBatch(ctx, batch).Close()
}

// keepVacuumAway waits until no autovacuum works on the tables, before readers are blocked. None starts while this
// lock is held; rows can be read and written.
func (b *build) keepVacuumAway(ctx context.Context) error {
	tables, err := b.tables(ctx, liveSchema, buildingSchema)
	if err != nil || tables == "" {
		return err
	}
	_, err = b.tx.Exec(ctx, `lock table `+tables+` in share update exclusive mode`)
	return err
}

// lockTables waits for readers of the tables for up to maxHold, because later readers wait too.
func (b *build) lockTables(ctx context.Context) error {
	tables, err := b.tables(ctx, liveSchema, buildingSchema)
	if err != nil || tables == "" {
		return err
	}
	// at least a moment: 0 would mean no limit
	wait := max(time.Until(b.heldSince.Add(b.maxHold()-switchTime)), switchTime/4)
	for _, statement := range []string{
		fmt.Sprintf(`set local statement_timeout = %d`, wait.Milliseconds()),
		`lock table ` + tables + ` in access exclusive mode`,
		// for each of the following statements, which take a few milliseconds
		fmt.Sprintf(`set local statement_timeout = %d`, usualHold.Milliseconds()),
	} {
		if _, err := b.tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// tables returns the SQL names of the projection's existing tables in schemas.
func (b *build) tables(ctx context.Context, schemas ...string) (names string, err error) {
	err = b.tx.QueryRow(ctx, `select coalesce(string_agg(format('%I.%I', schemaname, tablename), ', '), '') from pg_tables
		where schemaname = any($1) and tablename = any($2)`,
		schemas, b.projection.Tables).
		Scan(&names)
	return names, err
}

// endHold ends a hold, if there is one: it restarts the live projector and lets other read models switch.
func (b *build) endHold() {
	if b.conn != nil {
		b.unlockLive()
		b.switching.Unlock()
	}
}

// unlockLive restarts the stopped live projector.
func (b *build) unlockLive() {
	if b.tx != nil {
		ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
		defer cancel()
		_ = b.tx.Rollback(ctx) // does nothing after a commit
	}
	b.conn.Release()
	b.conn, b.tx, b.heldSince = nil, nil, time.Time{}
}
