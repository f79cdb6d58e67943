// Package queries answers reads: lists and single resources from the read models, evaluations from the snapshot.
package queries

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/events"
)

// Queries reads. Its methods return ErrNotFound or ErrUnavailable where they say so, and otherwise errors that are
// faults of the service.
//
// Those that take a time answer what was so then, by the times that the store recorded; for the zero time, what is so
// now. They return ErrFuture for one that is not past: see WaitUntilCurrent.
type Queries struct {
	db    *pgxpool.Pool
	store events.Store
	wait  func(ctx context.Context, position events.Position, names []string) bool
	lists *flagKeyCache
	now   func() time.Time // tells how long reading takes; what is so now is told by the caller's clock
}

// New returns Queries over the read models in a database, which follow a store. wait waits until the read models of
// facts of the given names hold a position, and returns false where that takes too long.
func New(
	db *pgxpool.Pool, store events.Store, wait func(ctx context.Context, position events.Position, names []string) bool,
) *Queries {
	return &Queries{db: db, store: store, wait: wait, lists: newFlagKeyCache(), now: time.Now}
}

var (
	// ErrNotFound says that what was asked for does not exist.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable says that the read models cannot be read now.
	ErrUnavailable = errors.New("the read models cannot be read")
)

// Error codes of Postgres for what is being built, or rebuilt in another shape.
const (
	undefinedTable  = "42P01"
	undefinedColumn = "42703"
	undefinedSchema = "3F000"
)

// missingTable reports whether an error is that a table, or its schema, is not there.
func missingTable(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == undefinedTable || pg.Code == undefinedSchema)
}

// classify makes errors of the database ErrNotFound or ErrUnavailable. A statement that the database refuses stays a
// fault of the service.
func classify(err error) error {
	if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnavailable) {
		return err
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		if missingTable(err) || pg.Code == undefinedColumn {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		switch pg.Code[:2] {
		case "22", "23", "42":
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// reader is a pool, whose every query sees the newest rows, or a transaction.
type reader interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// found returns ErrNotFound unless a table has rows of a tenant under a key.
func (q *Queries) found(ctx context.Context, table, tenantID, key string) error {
	var exists bool
	err := q.db.QueryRow(ctx, `select exists (select from `+table+` where tenant_id = $1 and key = $2)`, tenantID, key).
		Scan(&exists)
	if err == nil && !exists {
		err = ErrNotFound
	}
	return classify(err)
}

// one reads one row whose columns are named as the fields of T. It returns ErrNotFound where there is none.
func one[T any](ctx context.Context, db reader, query string, args ...any) (row T, err error) {
	rows, err := db.Query(ctx, query, args...)
	if err != nil {
		return row, classify(err)
	}
	row, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
	return row, classify(err)
}
