package queries

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/events/state"
)

// FlagAt returns a flag at a moment. It folds at most some 200 events after the nearest stored state. It returns
// ErrNotFound if the key had no flag at that moment, or never that version.
func (q *Queries) FlagAt(ctx context.Context, tenantID, key string, m Moment) (state.Flag, error) {
	f, err := q.FlagStateAt(ctx, tenantID, key, m)
	if err == nil && !f.Exists {
		err = ErrNotFound
	}
	return f, err
}

// FlagStateAt works like FlagAt, but returns Exists false for a flag that was deleted at the moment.
func (q *Queries) FlagStateAt(ctx context.Context, tenantID, key string, m Moment) (state.Flag, error) {
	f, err := q.storedState(ctx, tenantID, key, m)
	if err != nil {
		return state.Flag{}, err
	}
	from := f.Version + 1
	if f.Version > 0 && !f.Exists { // a deletion stores its version only
		from = f.Version
	}
	for r, err := range q.store.Read(ctx, events.FlagStream(tenantID, key), from) {
		if err == nil && m.Before(r) {
			break
		}
		if err == nil {
			err = r.Err
		}
		if errors.Is(err, events.ErrUnavailable) {
			return state.Flag{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if err != nil {
			return state.Flag{}, fmt.Errorf("stream %s: %w", events.FlagStream(tenantID, key), err)
		}
		f.Apply(r)
	}
	if f.Version == 0 || m.Version > f.Version {
		return state.Flag{}, ErrNotFound
	}
	return f, nil
}

// storedState reads the last stored state of a flag up to a moment, or an empty state if there is none.
func (q *Queries) storedState(ctx context.Context, tenantID, key string, m Moment) (f state.Flag, err error) {
	kept := `select state, recorded from read.flag_states where tenant_id = $1 and key = $2 and `
	var row pgx.Row
	if m.Version > 0 {
		row = q.db.QueryRow(ctx, kept+`version <= $3 order by version desc limit 1`, tenantID, key, m.Version)
	} else {
		row = q.db.QueryRow(ctx, kept+`recorded <= $3 order by recorded desc, version desc limit 1`, tenantID, key, m.At)
	}
	var recorded time.Time
	if err := row.Scan(&f, &recorded); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return f, classify(err)
	}
	f.UpdatedAt = recorded.UTC()
	return f, nil
}
