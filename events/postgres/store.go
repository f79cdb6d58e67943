// Package postgres implements the default event store: an append-only table in Postgres.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/events"
	"flagledger/migrations/database"
)

// Store is an events.Store over the table events.event, which package migrations creates. It is safe for concurrent
// use.
type Store struct {
	pool         *pgxpool.Pool // for reads
	writing      *pgxpool.Pool // one connection for the committer, so that reads do not delay it
	log          *slog.Logger
	pollInterval time.Duration
	appends      chan *pending
	closing      chan struct{}
	finished     chan struct{}
	recent       recent
	clock        clock
}

const readers = 2 // connections that read streams

// Connections is the most connections of a Store, beside one for each subscription: the readers' and the committer's.
const Connections = readers + 1

const (
	connectTimeout = 2 * time.Second
	openTimeout    = 30 * time.Second // for a database that accepts connections, but is too busy to answer in time
)

// Open connects to the database at url, or returns events.ErrUnavailable: at once if it is down, after 30 seconds if it
// does not answer. It refuses one with fsync or synchronous_commit off, which could lose acknowledged appends.
func Open(ctx context.Context, url string, log *slog.Logger) (*Store, error) {
	s, err := New(url, log)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	err = s.writing.Ping(ctx)
	for pgconn.Timeout(err) && ctx.Err() == nil && time.Since(began) < openTimeout {
		err = s.writing.Ping(ctx)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("event store: %w", classify(err))
	}
	return s, nil
}

// New works like Open for a database that may be down: calls are unavailable until it can be reached.
func New(url string, log *slog.Logger) (*Store, error) {
	ctx := context.Background() // only used to open connections in advance, which the pool does not
	config, err := database.PoolConfig(url, nil)
	if err != nil {
		return nil, fmt.Errorf("event store: %w", err)
	}
	config.MaxConns = readers
	config.ConnConfig.ConnectTimeout = connectTimeout
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("event store: %w", err)
	}
	config = config.Copy()
	config.MinConns, config.MaxConns = 0, 1
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		// Settings of a role or a database may change between two connections.
		if err := checkDurable(ctx, conn); err != nil {
			return err
		}
		return compressFast(ctx, conn)
	}
	writing, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("event store: %w", err)
	}
	s := &Store{
		pool:         pool,
		writing:      writing,
		log:          log,
		pollInterval: pollInterval,
		appends:      make(chan *pending),
		closing:      make(chan struct{}),
		finished:     make(chan struct{}),
	}
	go s.commit()
	return s, nil
}

// checkDurable refuses a connection whose commits may be lost in a crash.
func checkDurable(ctx context.Context, conn *pgx.Conn) error {
	for _, setting := range []string{"fsync", "synchronous_commit"} {
		var value string
		if err := conn.QueryRow(ctx, "select current_setting($1)", setting).Scan(&value); err != nil {
			return err
		}
		if value == "off" {
			return fmt.Errorf("the database runs with %s off and would lose acknowledged writes in a crash; set it to on",
				setting)
		}
	}
	return nil
}

// compressFast sets LZ4 compression if the server supports it. The default takes four times as long and delays all
// other appends.
func compressFast(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(
		ctx,
		"select set_config(name, 'lz4', false) from pg_settings where name = 'default_toast_compression' and 'lz4' = any "+
			"(enumvals)",
	)
	return err
}

// Close waits for the appends under way and disconnects. The Store must not be used afterwards.
func (s *Store) Close() {
	close(s.closing)
	<-s.finished
	s.writing.Close()
	s.pool.Close()
}

// Engine implements events.Store.
func (s *Store) Engine() string { return "postgres" }

// Head implements events.Store.
func (s *Store) Head(ctx context.Context) (events.Position, error) {
	position, err := head(ctx, s.pool)
	return at(position), err
}

// Log implements events.Store.
func (s *Store) Log(ctx context.Context) (events.Log, error) {
	log := events.Log{Engine: s.Engine()}
	var end uint64
	var first struct {
		id       *uuid.UUID
		position *uint64
	}
	err := s.pool.QueryRow(ctx, `select h.position, e.id, e.position from events.head h
		left join (select id, position from events.event order by position limit 1) e on true`).Scan(&end, &first.id, &first.position)
	if err != nil {
		return events.Log{}, classify(err)
	}
	log.End = at(end)
	if first.id != nil {
		log.ID = events.LogID(events.Recorded{Event: events.Event{ID: *first.id}, Position: at(*first.position)})
	}
	return log, nil
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func head(ctx context.Context, q querier) (position uint64, err error) {
	if err := q.QueryRow(ctx, "select position from events.head").Scan(&position); err != nil {
		return 0, classify(err)
	}
	return position, nil
}

const (
	firstPiece   = 4 // events; each piece has twice as many as the one before
	largestPiece = 512
)

// Read implements events.Store. It fetches a stream piece by piece, so that a caller who stops early has waited for at
// most twice what they took.
func (s *Store) Read(ctx context.Context, stream string, from events.Revision) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		next := from
		for size := firstPiece; ; size = min(2*size, largestPiece) {
			n := 0
			for recorded, err := range s.readPiece(ctx, stream, next, size) {
				if !yield(recorded, err) || err != nil {
					return
				}
				next = recorded.Revision + 1
				n++
			}
			if n < size {
				return
			}
		}
	}
}

func (s *Store) readPiece(
	ctx context.Context, stream string, from events.Revision, size int,
) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		rows, err := s.pool.Query(ctx,
			"select "+columns+" from events.event where stream = $1 and revision >= $2 order by revision limit $3", stream,
			int64(from), size)
		if err != nil {
			yield(events.Recorded{}, classify(err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			recorded, err := scan(rows)
			if err != nil {
				yield(events.Recorded{}, classify(err))
				return
			}
			recorded.Event, recorded.Err = events.Decode(recorded.Stored)
			if !yield(recorded, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(events.Recorded{}, classify(err))
		}
	}
}

// Find implements events.Store. It scans the stream's revisions without reading data.
func (s *Store) Find(ctx context.Context, stream string, id uuid.UUID) (revision events.Revision, err error) {
	err = s.pool.QueryRow(ctx, "select revision from events.event where stream = $1 and id = $2", stream, id).
		Scan(&revision)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return revision, classify(err)
}

const columns = "position, stream, revision, id, name, version, data, metadata, recorded"

// scan reads a row by column positions: finding columns by name for each row would be slow for a whole log. It does
// not decode the event.
func scan(rows pgx.Rows) (recorded events.Recorded, err error) {
	var position uint64
	stored := &recorded.Stored
	err = rows.Scan(&position, &recorded.Stream, &recorded.Revision, &stored.ID, &stored.Name, &stored.Version,
		&stored.Data, &stored.Metadata, &stored.At)
	stored.At = stored.At.UTC()
	recorded.Position, recorded.Name, recorded.At = at(position), stored.Name, stored.At
	return recorded, err
}

func at(position uint64) events.Position { return events.Position{Commit: position, Prepare: position} }

// DiskFull reports whether an error means that the database's disk is full.
func DiskFull(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "53100" // https://www.postgresql.org/docs/current/errcodes-appendix.html
}

// aheadCode is the error code of the function events.append for a copy from the future.
const aheadCode = "FL001"

// classify wraps errors of broken connections and stopping servers in events.ErrUnavailable, that of a full disk in
// events.ErrDiskFull too, and that of a copy from the future in events.ErrAhead. Other errors stay unchanged.
func classify(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == aheadCode {
		return events.ErrAhead
	}
	if DiskFull(err) {
		return fmt.Errorf("%w: %w: %w", events.ErrUnavailable, events.ErrDiskFull, err)
	}
	if Unavailable(err) {
		return fmt.Errorf("%w: %w", events.ErrUnavailable, err)
	}
	return err
}

// Unavailable reports whether an error means that the database cannot be reached or cannot work now.
func Unavailable(err error) bool {
	if err == nil {
		return false
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code[:2] {
		case "08", "53", "57", "58": // connection, resources, shutdown or cancellation, disk
			return true
		case "40": // serialization, deadlock
			return true
		}
		return database.IsReadOnlyError(err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	// pgx's other errors are connections that were refused or broke.
	_, connect := errors.AsType[*pgconn.ConnectError](err)
	return connect || pgconn.SafeToRetry(err) || isBroken(err)
}

// isBroken reports whether a connection ended in the middle of a call.
func isBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || pgconn.Timeout(err) ||
		err.Error() == "conn closed"
}
