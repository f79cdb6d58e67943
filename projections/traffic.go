package projections

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/retry"
)

const (
	trafficInterval = 100 * time.Millisecond // between checks of what servers do
	trafficLooks    = 20                     // that are remembered
	// trafficSeen of them must see something: idle servers query the database now and then.
	trafficSeen = 3
)

// traffic detects whether servers read or write through the database. It does not see evaluations, which are answered
// from memory. nil sees nothing.
type traffic struct {
	connections *connections
	now         atomic.Bool
	turn        sync.Mutex // held by one piece of work and its pause beside traffic
}

// idleShare is the pause after a piece of a rebuild's work beside traffic, as a multiple of its duration.
const idleShare = 3

// yield runs a piece of a rebuild's work. Beside traffic, it runs one piece at a time with a pause after it.
func (t *traffic) yield(ctx context.Context, work func() error) error {
	if !t.present() {
		return work()
	}
	t.turn.Lock()
	defer t.turn.Unlock()
	began := time.Now()
	if err := work(); err != nil {
		return err
	}
	return retry.Sleep(ctx, idleShare*time.Since(began))
}

// present reports whether there is traffic.
func (t *traffic) present() bool { return t != nil && t.now.Load() }

// watch checks for traffic until ctx ends.
func (t *traffic) watch(ctx context.Context) {
	var since time.Time // by the database's clock
	var seen uint32     // a bit for each check, the last one lowest
	for ctx.Err() == nil {
		busy := false
		err := t.connections.use(ctx, liveSchema, func(conn *pgx.Conn) (err error) {
			busy, since, err = serversBusy(ctx, conn, since)
			return err
		})
		if err == nil {
			seen = seen << 1 & (1<<trafficLooks - 1)
			if busy {
				seen |= 1
			}
			t.now.Store(bits.OnesCount32(seen) >= trafficSeen)
		}
		_ = retry.Sleep(ctx, trafficInterval)
	}
}

// serversBusy reports whether a server has run a query since a time. It ignores queries that begin with a comment,
// such as fetching jobs and checking connections.
func serversBusy(ctx context.Context, conn *pgx.Conn, since time.Time) (busy bool, now time.Time, err error) {
	err = conn.QueryRow(ctx, `select clock_timestamp(), exists (select from pg_stat_activity
		where datname = current_database()
		and application_name in ('`+ReaderName+`', '`+projectorName+`') and query not like '-- %' and (state <> 'idle' or state_change >= $1))`, since).
		Scan(&now, &busy)
	return busy, now, err
}
