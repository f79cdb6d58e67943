package postgres

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"golang.org/x/sync/singleflight"
)

const (
	// clockInterval is the time between two reads of the server's clock, because a read waits for the running append,
	// and delays the next one.
	clockInterval = 20 * time.Millisecond
	// maxClockWait limits a read.
	maxClockWait = 2 * time.Second
)

// clock caches the server's clock between two appends. At most one read runs at a time.
type clock struct {
	looking singleflight.Group
	looked  time.Time                 // when last read; only the reader uses it
	passed  atomic.Pointer[time.Time] // the last watermark; nil before the first
}

// Watermark implements events.Store. It uses the cached time or the time of the
// last event if that is late enough, otherwise the database server's clock: if that is set back, events may be recorded
// before an earlier watermark.
func (s *Store) Watermark(ctx context.Context, at time.Time) (time.Time, error) {
	if passed := s.clock.passed.Load(); passed != nil && at.Before(*passed) {
		return *passed, nil
	}
	var passed time.Time
	if err := s.pool.QueryRow(ctx, "select recorded + interval '1 microsecond' from events.head").
		Scan(&passed); err != nil {
		return time.Time{}, classify(err)
	}
	if !at.Before(passed) {
		now, err := s.readClock(ctx)
		if err != nil {
			return time.Time{}, classify(err)
		}
		if now.After(passed) {
			passed = now
		}
	}
	passed = passed.UTC()
	s.clock.passed.Store(&passed)
	return passed, nil
}

// Clock implements events.Store.
func (s *Store) Clock(ctx context.Context) (now, last time.Time, err error) {
	err = s.pool.QueryRow(ctx, "select clock_timestamp(), case when position > 0 then recorded end from events.head").
		Scan(&now, (*zeronull.Timestamptz)(&last))
	return now.UTC(), last.UTC(), classify(err)
}

// readClock returns a time at which no append is running. Concurrent calls share it.
func (s *Store) readClock(ctx context.Context) (now time.Time, err error) {
	look := s.clock.looking.DoChan("", func() (any, error) {
		time.Sleep(clockInterval - time.Since(s.clock.looked))
		s.clock.looked = time.Now()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxClockWait) // other callers wait for it too
		defer cancel()
		var now time.Time
		err := s.pool.QueryRow(ctx, `with no_append as materialized
			(select pg_advisory_xact_lock(hashtext('flagledger append'))) select clock_timestamp() from no_append`).
			Scan(&now)
		return now, err
	})
	select {
	case seen := <-look:
		return seen.Val.(time.Time), seen.Err
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}
