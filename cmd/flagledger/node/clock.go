package node

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// maxSkew is how far the clock of this node may be from that of the database: sessions, tokens and plans end by both.
const maxSkew = 5 * time.Second

// clockSkew returns by how much the clock of this node is at least ahead of the database's, given how long the answer
// took. It is negative for one that is behind.
func clockSkew(ctx context.Context, pool *pgxpool.Pool, now func() time.Time) (time.Duration, error) {
	conn, err := pool.Acquire(ctx) // which may take long
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	var theirs time.Time
	before := now()
	if err := conn.QueryRow(ctx, "select clock_timestamp()").Scan(&theirs); err != nil {
		return 0, err
	}
	switch after := now(); {
	case theirs.Before(before):
		return before.Sub(theirs), nil
	case theirs.After(after):
		return after.Sub(theirs), nil
	default:
		return 0, nil
	}
}

// skewHealth names a clock that is too far from the database's.
func skewHealth(skew time.Duration) []string {
	switch {
	case skew > maxSkew:
		return []string{fmt.Sprintf("the clock of this node is %v ahead of the database's", skew.Round(time.Second))}
	case skew < -maxSkew:
		return []string{fmt.Sprintf("the clock of this node is %v behind the database's", -skew.Round(time.Second))}
	}
	return nil
}

// aheadHealth names a log whose last time the store's clock has not reached: a clock was set back, or facts of the
// future were imported.
func aheadHealth(ahead time.Duration) []string {
	if ahead <= maxSkew {
		return nil
	}
	return []string{
		fmt.Sprintf(
			"the last fact is recorded %v later than the event store's clock: changes are recorded in the future until it "+
				"gets there",
			ahead.Round(time.Second),
		),
	}
}
