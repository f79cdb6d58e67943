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
	trafficInterval = 100 * time.Millisecond // between looks at what servers do
	trafficLooks    = 20                     // that are remembered
	// of them have to see something: servers do now and then ask the database by themselves
	trafficSeen = 3
)

// traffic knows whether servers read or change something, as the database has it: evaluations, which are answered from
// memory, are not seen. nil sees none.
type traffic struct {
	connections *connections
	now         atomic.Bool
	turn        sync.Mutex // held while a piece of work goes on beside traffic, and rests
}

// idleShare is for how many times as long as a rebuild has worked it leaves the processors to others, beside traffic.
const idleShare = 3

// giveWay runs a piece of a rebuild's work. Beside traffic it waits for other pieces, and stays idle after it.
func (t *traffic) giveWay(ctx context.Context, work func() error) error {
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

// present reports whether there is some.
func (t *traffic) present() bool { return t != nil && t.now.Load() }

// watch looks until ctx ends.
func (t *traffic) watch(ctx context.Context) {
	var since time.Time // by the database's clock
	var seen uint32     // a bit for each look, the last one lowest
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

// serversBusy reports whether a server has run something since a time: not what fetches jobs, or checks a connection,
// which begins with a comment.
func serversBusy(ctx context.Context, conn *pgx.Conn, since time.Time) (busy bool, now time.Time, err error) {
	err = conn.QueryRow(ctx, `select clock_timestamp(), exists (select from pg_stat_activity
		where datname = current_database()
		and application_name in ('`+ReaderName+`', '`+projectorName+`') and query not like '-- %' and (state <> 'idle' or state_change >= $1))`, since).
		Scan(&now, &busy)
	return busy, now, err
}
