package projections

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/retry"
)

// Difference counts the rows in which a live table differs from a rebuilt one.
type Difference struct {
	Table   string
	Missing int // rows that only the rebuilt table has
	Surplus int // rows that only the live table has
}

// DifferentError reports that live tables differ from rebuilt ones.
type DifferentError struct {
	Projection string
	Tables     []Difference
	Parked     int // streams that the read model does not follow
}

// Error implements error.
func (e *DifferentError) Error() string {
	var tables []string
	for _, d := range e.Tables {
		tables = append(tables, fmt.Sprintf("%s lacks %d rows and has %d that are wrong", d.Table, d.Missing, d.Surplus))
	}
	text := "the live tables differ from those rebuilt from the facts: " + strings.Join(tables, "; ")
	if e.Parked > 0 {
		text += fmt.Sprintf(" (%d streams are parked)", e.Parked)
	}
	return text
}

// cutAtLive cuts a page at the live checkpoint, so that the new tables can be compared with the live ones there.
func (s *subscriber) cutAtLive(ctx context.Context, page events.Page, reached events.Position) (events.Page, error) {
	b := s.build
	if b == nil || !b.comparing {
		return page, nil
	}
	if b.conn == nil && page.Next.Compare(b.live.Position) > 0 {
		err := s.connections.use(ctx, liveSchema, func(conn *pgx.Conn) error {
			live, err := s.projection.readCheckpoint(ctx, conn, liveSchema)
			b.live = live.LogPosition
			return err
		})
		if err != nil {
			return page, err
		}
	}
	if page.Next.Compare(b.live.Position) <= 0 {
		return page, nil
	}
	for i, e := range page.Events {
		if e.Position.Compare(b.live.Position) > 0 {
			page.Events = page.Events[:i]
			break
		}
	}
	if page.Next = b.live.Position; page.Next.Compare(reached) < 0 {
		page.Next = reached
	}
	return page, nil
}

// compare compares the new rows with the live ones as soon as both hold the same events. done reports that no work is
// left.
func (s *subscriber) compare(ctx context.Context, p *cursor) (done bool, err error) {
	b := s.build
	if !b.caughtUpWithLive(p.reached) {
		b.failExpiredHold()
		return false, nil
	}
	if p.Position != p.reached.Position {
		if err := s.commit(ctx, nil, nil, p.reached, p); err != nil {
			return false, err
		}
	}
	different, compared, err := s.compareAt(ctx, p.LogPosition)
	if contended(err) {
		b.failHold(err)
		return false, nil
	}
	if err != nil || !compared {
		return false, err
	}
	b.comparing, b.failedHolds, b.attempts = false, 0, 0
	if different != nil && (b.options.CompareOnly || !b.options.Force) {
		err = different
	} else if different != nil {
		s.log.Warn("replacing a read model that differs from the facts", "projection", s.projection.Name,
			"err", different)
	}
	if b.options.CompareOnly {
		return true, errors.Join(err, s.discard(ctx))
	}
	return false, err
}

// compareAt stops the live projector, and compares rows if the new tables, whose checkpoint is built, hold all events
// of the live ones. The live projector continues once there is a snapshot of both. Call again if compared is false.
func (s *subscriber) compareAt(
	ctx context.Context, built events.LogPosition,
) (different error, compared bool, err error) {
	b := s.build
	if stopped, err := b.startHold(ctx); err != nil {
		return nil, false, err
	} else if !stopped {
		return nil, false, retry.Sleep(ctx, buildInterval)
	}
	if built.Position.Compare(b.live.Position) > 0 { // the live tables were rebuilt
		return nil, false, errMoved
	}
	if !b.caughtUpWithLive(built) {
		return nil, false, nil
	}
	conn, err := s.session.connect(ctx)
	if err != nil {
		return nil, false, err
	}
	defer disconnect(conn)
	if b.helpers() == 0 {
		if _, err := conn.Exec(ctx, `set max_parallel_workers_per_gather = 0`); err != nil {
			return nil, false, err
		}
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, false, err
	}
	var unmoved int // counts checkpoints: the snapshot must show both unchanged
	err = tx.QueryRow(ctx, `select count(*) from `+liveSchema+`.checkpoints live join `+buildingSchema+`.checkpoints built
		using (projection, version)
		where projection = $1 and (live.commit, live.prepare) = ($2, $3) and (built.commit, built.prepare) = ($4, $5)`,
		s.projection.Name, b.live.Position.Commit, b.live.Position.Prepare, built.Position.Commit, built.Position.Prepare).
		Scan(&unmoved)
	if err != nil {
		return nil, false, err
	}
	if unmoved != 1 {
		return nil, false, errMoved
	}
	b.unlockLive()
	defer s.switching.Unlock()
	s.follower.leave() // it takes no pages meanwhile: others must not wait for it
	different, err = s.projection.differences(ctx, tx)
	return different, err == nil, err
}

// differences compares the live tables with the new ones.
func (p Projection) differences(ctx context.Context, tx pgx.Tx) (different error, err error) {
	e := &DifferentError{Projection: p.Name}
	for _, table := range p.Tables {
		same, err := sameRows(ctx, tx, table)
		if err != nil {
			return nil, err
		}
		if same {
			continue
		}
		d := Difference{Table: table}
		rows := func(schema string) string {
			return `select whole_row::text from ` + schema + `.` + table + ` whole_row`
		}
		err = tx.QueryRow(ctx, fmt.Sprintf(`select (select count(*) from (%[2]s except all %[1]s) missing), (select count(*)
			from (%[1]s except all %[2]s) surplus)`,
			rows(liveSchema), rows(buildingSchema))).
			Scan(&d.Missing, &d.Surplus)
		if err != nil {
			return nil, err
		}
		e.Tables = append(e.Tables, d)
	}
	if len(e.Tables) == 0 {
		return nil, nil
	}
	err = tx.QueryRow(ctx, `select count(*) from keep.parked where projection = $1 and not building`, p.Name).
		Scan(&e.Parked)
	return e, err
}

// sameRows reports whether two tables have the same number of rows and the same order-independent hash. Each row's
// hash is hashed again: as a sum over columns, it would not notice two rows that swap a value.
func sameRows(ctx context.Context, tx pgx.Tx, table string) (same bool, err error) {
	var columns string
	err = tx.QueryRow(ctx, `select string_agg(quote_ident(attname) || case when atttypid = 'json'::regtype then '::text'
		else '' end, ', ')
		from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped`, liveSchema+"."+table).
		Scan(&columns)
	if err != nil {
		return false, err
	}
	digest := func(schema string) string {
		return `(select row(count(*), sum(hashtextextended(hash_record_extended(row(` + columns + `), 0)::text, 0))) from ` + schema + `.` + table + `)`
	}
	err = tx.QueryRow(ctx, `select `+digest(liveSchema)+` is not distinct from `+digest(buildingSchema)).Scan(&same)
	return same, err
}

// discard drops the new tables.
func (s *subscriber) discard(ctx context.Context) error {
	return s.connections.use(ctx, s.schema, func(conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(
				ctx, `delete from keep.parked where projection = $1 and building`, s.projection.Name,
			); err != nil {
				return err
			}
			return s.projection.drop(ctx, tx, buildingSchema)
		})
	})
}
