package health

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// maxSkew limits the difference between this node's clock and the database's: sessions, tokens and plans depend on
// both.
const maxSkew = 5 * time.Second

// ClockSkew returns by how much this node's clock is at least ahead of the database's, given the answer's delay;
// negative if it is behind.
func ClockSkew(ctx context.Context, pool *pgxpool.Pool, now func() time.Time) (time.Duration, error) {
	conn, err := pool.Acquire(ctx) // may take long
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

// skewProblems reports a clock that is too far from the database's.
func skewProblems(skew time.Duration) []string {
	switch {
	case skew > maxSkew:
		return []string{fmt.Sprintf("the clock of this node is %v ahead of the database's", skew.Round(time.Second))}
	case skew < -maxSkew:
		return []string{fmt.Sprintf("the clock of this node is %v behind the database's", -skew.Round(time.Second))}
	}
	return nil
}

// aheadProblems reports a log whose last time is ahead of the store's clock: a clock was set back, or facts of the
// future were imported.
func aheadProblems(ahead time.Duration) []string {
	if ahead <= maxSkew {
		return nil
	}
	return []string{fmt.Sprintf("the last fact is recorded %v later than the event store's clock: changes are recorded "+
		"in the future until it gets there", ahead.Round(time.Second))}
}
