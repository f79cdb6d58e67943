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

const (
	// usualHold is how long a rebuild stops a live projector: half of it to catch up, the rest to wait for readers and to
	// switch.
	usualHold = 100 * time.Millisecond
	// longestHold is how long it does so at most: after each ten stops in vain the next ones last usualHold longer.
	longestHold = 2 * time.Second
	// switchTime is what is kept of it for the switch itself.
	switchTime = 20 * time.Millisecond
	// holdBackoff is how many times the longest duration of a failed stop passes before the next.
	holdBackoff = 10
	// afterSwitchTakes is how long it may take at most to tell of new tables, and to drop the old ones.
	afterSwitchTakes = 10 * time.Second
)

// rebuildConnections is how many connections a rebuild has for transactions. One of them may wait to switch.
const rebuildConnections = 3

// RebuildOptions say how Rebuild goes about it.
type RebuildOptions struct {
	// Report, if not nil, is told how far the new tables of a read model are, and how many events it has read since the
	// last time: after each page, from several goroutines.
	Report func(projection string, reached events.Position, read int)
	// Rate is how many events a second are read at most; 0 for as many as can be.
	Rate int
	// FullSpeed uses all processors also while servers read or change something.
	FullSpeed bool
	// Force switches to new tables also if they differ from the live ones.
	Force bool
	// Afresh begins at the first event also where a rebuild that was ended has left new tables.
	Afresh bool
	// CompareOnly drops the new tables once they are compared, in place of switching to them. It begins afresh.
	CompareOnly bool
}

// Rebuild builds new tables of read models from the log, which it reads once for all of them, or goes on with those
// that a rebuild left when it was ended. It switches to each as soon as it has caught up: readers see the old rows or
// the new ones, never none.
//
// Before that, it compares their rows with the live ones, once both hold the same events. The error is a
// *DifferentError where they differ; nothing is switched then. Live tables of another version, or made from another
// log, are not compared.
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

// startBuild is beginBuild as often as others are in the way: tables are made by one process at a time.
func (s *subscriber) startBuild(ctx context.Context) error {
	for {
		err := s.connections.use(ctx, s.schema, func(conn *pgx.Conn) error { return s.beginBuild(ctx, conn) })
		if !contended(err) {
			return err
		}
		if err := retry.Sleep(ctx, lockInterval); err != nil {
			return err
		}
	}
}

// beginBuild makes the new tables, or finds those that a rebuild has left which was ended.
func (s *subscriber) beginBuild(ctx context.Context, conn *pgx.Conn) error {
	b := s.build
	if !b.options.CompareOnly { // lockLive would fail too, but after an hour of reading
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
	// Tables that are further than the live ones can no longer be compared with them.
	ahead := b.comparing && left.Position.Compare(live.Position) > 0
	if err != nil || ahead || b.options.Afresh || b.options.CompareOnly || b.indexFirst {
		if err := s.projection.create(ctx, conn, buildingSchema, s.store.Engine()); err != nil || !b.indexFirst {
			return err
		}
		b.indexed = true
		return s.projection.index(ctx, conn, b.helpers())
	}
	s.log.Info("going on with what a rebuild has left", "projection", s.projection.Name, "position", left.Position)
	return nil
}

// build switches from a projection's live tables to new ones.
type build struct {
	*process
	projection Projection
	options    RebuildOptions
	report     func(reached events.Position, read int)
	upgrade    bool          // the live tables are of an older version; there is nothing to do once they are not
	comparing  bool          // the rows are still to be compared with the live ones
	indexed    bool          // the new tables have all indexes
	indexFirst bool          // they are to have them from the beginning
	conn       *pgxpool.Conn // on which the live checkpoint is locked; switching is held while it is set
	tx         pgx.Tx
	stoppedAt  time.Time          // since when the live projector is stopped; zero while it is not
	inVain     int                // how many stops ended with neither a comparison nor a switch
	attempts   int                // the same, with those that ended before the live projector was stopped
	notBefore  time.Time          // before then the live projector is not stopped again
	live       events.LogPosition // of the live checkpoint, when it was read last
	err        error              // that the subscriber ended with
}

// helpers is how many processors may work on a statement beside the first: none where they are left to those who read
// and write.
func (b *build) helpers() int {
	if b.options.Rate > 0 || b.upgrade || b.traffic.present() {
		return 0
	}
	return 1
}

// atLive reports whether a position is that of the live tables, or after it.
func (b *build) atLive(position events.Position) bool {
	return b.comparing && b.live != (events.LogPosition{}) && position.Compare(b.live.Position) >= 0
}

// errNotIndexed says that there is a row for which an index has no room.
var errNotIndexed = errors.New("an index cannot be made of the rows")

// index makes the indexes that the new tables still lack, or nothing while another read model of the process does so or
// is about to switch: both keep one of the few connections.
func (s *subscriber) index(ctx context.Context) error {
	if !s.switching.TryLock() {
		return retry.Sleep(ctx, buildInterval)
	}
	defer s.switching.Unlock()
	s.follower.leave() // it takes no pages meanwhile, and others shall not wait for it
	err := s.connections.use(ctx, s.schema,
		func(conn *pgx.Conn) error { return s.projection.index(ctx, conn, s.build.helpers()) })
	if inapplicable(err) {
		s.log.Warn(
			"new tables are built once more, with all indexes from the beginning: they park the stream of a row that does not "+
				"fit",
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

// finish is called when the new tables have caught up with the log. It stops the live projector, and switches once the
// new tables hold all that the live ones do. done is false where they do not yet, or where a lock was contended: the
// next call tries again.
func (s *subscriber) finish(ctx context.Context, p *cursor) (done bool, err error) {
	if p.Position != p.reached.Position {
		if err := s.commit(ctx, nil, nil, p.reached, p); err != nil {
			return false, err
		}
	}
	return s.build.switchUnlessBehind(ctx, p.checkpoint)
}

// switchUnlessBehind is finish where the checkpoint is written.
func (b *build) switchUnlessBehind(ctx context.Context, built checkpoint) (done bool, err error) {
	done, err = b.trySwitch(ctx, built)
	if contended(err) {
		b.letGo(err)
		return false, nil
	}
	if done || err != nil {
		b.unlockSwitching()
	}
	if done {
		b.ending.Go(func() { b.afterSwitch(ctx, built) })
	}
	return done, err
}

func (b *build) trySwitch(ctx context.Context, built checkpoint) (done bool, err error) {
	if stopped, err := b.stopLive(ctx); !stopped || err != nil {
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
		"stopped", time.Since(b.stoppedAt).Round(time.Millisecond))
	return true, nil
}

// afterSwitch does what nobody needs to wait for, also where ctx has ended: it tells of the new tables, which may be
// further than the old ones were, and drops those.
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
		b.log.Warn("a read model was replaced, but its old tables could not be dropped; its next rebuild tries again",
			"projection", b.projection.Name, "err", err)
	}
}

// caughtUpWithLive reports whether tables at a position hold all events that the live ones do: they stand at the live
// checkpoint or past it, or the last event of both is the same, as that checkpoint may be past events of others.
func (b *build) caughtUpWithLive(built events.LogPosition) bool {
	return built.Position.Compare(b.live.Position) >= 0 || built.Last == b.live.Last
}

// atHead reports whether a position is at the head of the log or past it. Then new tables that stand there hold all
// events, also where the live ones were made from another log. Where the store cannot tell in the time of a stop, the
// live projector goes on.
func (b *build) atHead(ctx context.Context, position events.Position) (bool, error) {
	ctx, cancel := context.WithDeadline(ctx, b.stoppedAt.Add(b.maxHold()))
	defer cancel()
	head, err := b.store.Head(ctx)
	switch {
	case errors.Is(err, events.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		b.letGo(err)
		return false, nil
	case err != nil:
		return false, err
	case position.Compare(head) < 0:
		b.releaseIfExpired()
		return false, nil
	}
	return true, nil
}

// stopLive stops the live projector, if it is not stopped yet, until unlockSwitching. stopped is false before
// notBefore, and while another read model is being switched: one is stopped after the other.
func (b *build) stopLive(ctx context.Context) (stopped bool, err error) {
	if b.conn != nil {
		return true, nil
	}
	if !time.Now().After(b.notBefore) || !b.switching.TryLock() {
		return false, nil
	}
	return true, b.lockLive(ctx)
}

// releaseIfExpired lets the live projector go on where it has been stopped for too long to switch in what is left.
func (b *build) releaseIfExpired() {
	if b.conn != nil && time.Since(b.stoppedAt) > b.maxHold()/2 {
		b.letGo(errAhead)
	}
}

// errAhead says that the new tables have not caught up with the live ones in the time of a stop.
var errAhead = errors.New("the live tables are ahead")

// maxHold is how long the live projector may be stopped.
func (b *build) maxHold() time.Duration {
	return min(usualHold*time.Duration(1+b.inVain/10), longestHold)
}

// letGo gives up for some time: it lets the live projector go on, and others switch. A stop that ends so was in vain.
func (b *build) letGo(why error) {
	b.notBefore = time.Now().Add(holdBackoff * b.maxHold())
	if !b.stoppedAt.IsZero() {
		b.inVain++
	}
	if b.attempts++; b.attempts%10 == 0 {
		b.log.Warn("cannot switch to the new tables yet; it tries again", "projection", b.projection.Name,
			"attempts", b.attempts, "err", why)
	}
	b.unlockSwitching()
}

// lockLive stops the live projector: it locks its checkpoint, and reads where that stands. It is called with switching
// locked. unlockSwitching lets the projector go on, and unlocks switching, also after an error.
func (b *build) lockLive(ctx context.Context) (err error) {
	if b.conn, err = b.connections.acquire(ctx, liveSchema); err != nil {
		b.switching.Unlock()
		return err
	}
	if !b.options.CompareOnly {
		if err = b.projection.dropReplaced(ctx, b.conn); err != nil { // of a rebuild that was killed once it had switched
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
		b.stoppedAt = time.Now()
	}
	return err
}

// switchOver moves the live tables to replacedSchema, where none of them may stand yet, and the new ones into their
// place, with their checkpoint and parked streams. The caller commits.
func (b *build) switchOver(ctx context.Context, built checkpoint) error {
	name := b.projection.Name
	// Another process that took the lock over, which this one may not have heard of yet, has begun to build them again.
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
	// Readers wait until the commit. So there are few round trips, and the old tables are only moved: a commit that drops
	// tables waits for the disk, and one that notifies waits for the commits of others that do.
	var moves strings.Builder
	// all of them first: an index of the new ones may have the name of one of these
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

// keepVacuumAway waits until no autovacuum works on the tables, before anybody is stopped. None begins while they are
// locked so; rows are read and written.
func (b *build) keepVacuumAway(ctx context.Context) error {
	tables, err := b.tables(ctx, liveSchema, buildingSchema)
	if err != nil || tables == "" {
		return err
	}
	_, err = b.tx.Exec(ctx, `lock table `+tables+` in share update exclusive mode`)
	return err
}

// lockTables waits for those who read the tables, for as long as maxHold leaves: others, who come after, wait too.
func (b *build) lockTables(ctx context.Context) error {
	tables, err := b.tables(ctx, liveSchema, buildingSchema)
	if err != nil || tables == "" {
		return err
	}
	// a moment at least: 0 would mean no limit
	wait := max(time.Until(b.stoppedAt.Add(b.maxHold()-switchTime)), switchTime/4)
	for _, statement := range []string{
		fmt.Sprintf(`set local statement_timeout = %d`, wait.Milliseconds()),
		`lock table ` + tables + ` in access exclusive mode`,
		// of each of the statements that follow; they take a few milliseconds
		fmt.Sprintf(`set local statement_timeout = %d`, usualHold.Milliseconds()),
	} {
		if _, err := b.tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// tables are those of the projection that stand in schemas, by their names in SQL.
func (b *build) tables(ctx context.Context, schemas ...string) (names string, err error) {
	err = b.tx.QueryRow(ctx, `select coalesce(string_agg(format('%I.%I', schemaname, tablename), ', '), '') from pg_tables
		where schemaname = any($1) and tablename = any($2)`,
		schemas, b.projection.Tables).
		Scan(&names)
	return names, err
}

// unlockSwitching lets the live projector go on, where it was stopped, and others switch.
func (b *build) unlockSwitching() {
	if b.conn != nil {
		b.unlockLive()
		b.switching.Unlock()
	}
}

// unlockLive lets the live projector go on, which is stopped.
func (b *build) unlockLive() {
	if b.tx != nil {
		ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
		defer cancel()
		_ = b.tx.Rollback(ctx) // nothing, where it is committed
	}
	b.conn.Release()
	b.conn, b.tx, b.stoppedAt = nil, nil, time.Time{}
}
