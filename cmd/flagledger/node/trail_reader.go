package node

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands/keep/checkpoints"
	"flagledger/queries"
)

// TrailReader reads the audit trails in a database, and what is kept of their checkpoints.
type TrailReader struct {
	Key         string // verifies checkpoints; empty where none was signed yet
	Checkpoints checkpoints.Kept
	Queries     *queries.Queries
	pool        *pgxpool.Pool
}

// OpenTrailReader opens the trails in a database. Its owner must call Close.
func OpenTrailReader(ctx context.Context, databaseURL string) (*TrailReader, error) {
	pool, err := OpenPool(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	t := &TrailReader{Checkpoints: checkpoints.Read(pool), Queries: queries.New(pool, nil, nil), pool: pool}
	if t.Key, err = t.Checkpoints.StoredKey(ctx); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Close disconnects.
func (t *TrailReader) Close() { t.pool.Close() }
