package local

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const removedAtOnce = 10_000 // rows

// RemoveExpired deletes refresh tokens and tokens of mailed links that have expired by a time, in batches.
func RemoveExpired(ctx context.Context, pool *pgxpool.Pool, now time.Time) error {
	for _, statement := range []string{
		`delete from keep.refresh_tokens where hash in (select hash from keep.refresh_tokens where expires_at <= $1 limit $2)`,
		`delete from keep.mailed_tokens where hash in (select hash from keep.mailed_tokens where expires_at <= $1 limit $2)`,
	} {
		for {
			removed, err := pool.Exec(ctx, statement, now, removedAtOnce)
			if err != nil {
				return databaseError("remove expired tokens", err)
			}
			if removed.RowsAffected() < removedAtOnce {
				break
			}
		}
	}
	return nil
}
