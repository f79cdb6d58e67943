// Package queries answers reads: lists and single resources from the read models, evaluations from the snapshot.
package queries

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/events"
	"flagledger/migrations/database"
)

// Queries reads. Its methods return ErrNotFound or ErrUnavailable if they say so; other errors are internal.
//
// Methods that take a time answer as of that time by the store's clock; the zero time means now. They return ErrFuture
// for a time that is not past: see WaitUntilCurrent.
type Queries struct {
	db       *pgxpool.Pool
	store    events.Store
	wait     func(ctx context.Context, position events.Position, names []string) bool
	lists    *flagKeyCache
	segments *segmentStates
	salt     func(ctx context.Context, id string) ([]byte, error) // of a private segment
	now      func() time.Time                                     // for how long reads take; callers pass the current time
}

// New returns Queries over the read models of a store. wait waits until the read models of the named events reach a
// position, and returns false if that takes too long. salt returns the salt of a private segment, nil if it was
// forgotten.
func New(
	db *pgxpool.Pool, store events.Store, wait func(ctx context.Context, position events.Position, names []string) bool,
	salt func(ctx context.Context, id string) ([]byte, error),
) *Queries {
	return &Queries{
		db: db, store: store, wait: wait, lists: newFlagKeyCache(), segments: newSegmentStates(), salt: salt, now: time.Now,
	}
}

var (
	// ErrNotFound reports that the requested thing does not exist.
	ErrNotFound = database.ErrNotFound
	// ErrUnavailable reports that the read models cannot be read now.
	ErrUnavailable = database.ErrUnavailable
)

// classify turns a database error into ErrNotFound or ErrUnavailable.
func classify(err error) error { return database.Classify(err) }

// reader is a transaction, or a pool, whose queries each see the newest rows.
type reader interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// found returns ErrNotFound unless a table has rows of a tenant with a key.
func (q *Queries) found(ctx context.Context, table, tenantID, key string) error {
	var exists bool
	err := q.db.QueryRow(ctx, `select exists (select from `+table+` where tenant_id = $1 and key = $2)`, tenantID, key).
		Scan(&exists)
	if err == nil && !exists {
		err = ErrNotFound
	}
	return classify(err)
}

// one reads one row into the fields of T by column name. It returns ErrNotFound if there is none.
func one[T any](ctx context.Context, db reader, query string, args ...any) (row T, err error) {
	rows, err := db.Query(ctx, query, args...)
	if err != nil {
		return row, classify(err)
	}
	row, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
	return row, classify(err)
}
