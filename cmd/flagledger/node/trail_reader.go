package node

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands/keep/checkpoints"
	"flagledger/events"
	"flagledger/projections/models"
	"flagledger/queries"
)

// TrailReader reads the audit trails in a database, and their stored checkpoints.
type TrailReader struct {
	Key         string // verifies checkpoints; empty if no server has created it
	Checkpoints checkpoints.Reader
	Queries     *queries.Queries
	pool        *pgxpool.Pool
}

// OpenTrailReader opens the trails in a database. The caller must call Close.
func OpenTrailReader(ctx context.Context, databaseURL string) (*TrailReader, error) {
	pool, err := OpenPool(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	stored := checkpoints.NewReader(pool)
	key, err := stored.StoredKey(ctx)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &TrailReader{Key: key, Checkpoints: stored, Queries: queries.New(pool, nil, nil, nil), pool: pool}, nil
}

// Wait waits until the audit trail has reached a position of the log, up to trailWait, and reports whether it has.
func (t *TrailReader) Wait(ctx context.Context, position events.Position) (bool, error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; {
		reached, err := models.Audit().Reached(ctx, t.pool)
		if err != nil || reached.Compare(position) >= 0 || time.Since(began) > trailWait {
			return reached.Compare(position) >= 0, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// trailWait is much longer than servers need to project an event.
const trailWait = 10 * time.Second

// Close disconnects.
func (t *TrailReader) Close() { t.pool.Close() }
