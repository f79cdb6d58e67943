package postgres

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/retry"
)

const (
	pageSize  = 500
	pageBytes = 8 << 20
	// pollInterval limits how long an event waits if its notification is lost.
	pollInterval = 2 * time.Second
)

type delivery struct {
	page events.Page
	err  error
}

// Subscribe implements events.Store. It reads the next page while the caller handles the last one.
func (s *Store) Subscribe(ctx context.Context, after events.Position) iter.Seq2[events.Page, error] {
	return func(yield func(events.Page, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		pages := make(chan delivery)
		go s.follow(ctx, after.Commit, pages)
		defer func() {
			cancel()
			for range pages { // until the connection is closed: callers have a limit of connections
			}
		}()
		for d := range pages {
			if !yield(d.page, d.err) || d.err != nil {
				return
			}
		}
		yield(events.Page{}, ctx.Err())
	}
}

// follow sends pages until ctx ends or the log cannot be read. After a broken connection it continues over a new one.
func (s *Store) follow(ctx context.Context, last uint64, pages chan<- delivery) {
	defer close(pages)
	var delivered uuid.UUID // the event at last; zero before the first
	err := retry.Run(ctx, func(progressed func()) error {
		began := last
		err := s.followOnce(ctx, &last, &delivered, pages)
		if last > began {
			progressed()
		}
		if !Unavailable(err) {
			return retry.Permanent(err)
		}
		return err
	}, func(err error, wait time.Duration) {
		s.log.Warn("a subscription lost its connection and reconnects", "after", last, "retry_in", wait, "err", err)
	})
	select {
	case pages <- delivery{err: err}:
	case <-ctx.Done():
	}
}

// followOnce follows the log over one connection. It sets last to the end of the pages sent so far, and delivered to
// the event there.
func (s *Store) followOnce(ctx context.Context, last *uint64, delivered *uuid.UUID, pages chan<- delivery) error {
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	// Listen first: later appends are either on a page or notified.
	if _, err := conn.Exec(ctx, "listen flagledger_events"); err != nil {
		return err
	}
	end, err := head(ctx, conn)
	if err != nil {
		return err
	}
	if *last > end {
		return fmt.Errorf("%w: it is %d, the end %d", events.ErrPastEnd, *last, end)
	}
	if err := holdsEvent(ctx, conn, *last, *delivered); err != nil {
		return err
	}
	live := false // the last page sent was live
	for {
		for {
			page, err := s.readPage(ctx, conn, *last)
			if err != nil {
				return err
			}
			if len(page.Events) > 0 || !live {
				select {
				case pages <- delivery{page: page}:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			*last, live = page.Next.Commit, page.Live
			if n := len(page.Events); n > 0 {
				*delivered = page.Events[n-1].ID
			}
			if live {
				break
			}
		}
		waiting, cancel := context.WithTimeout(ctx, s.pollInterval)
		_, err := conn.WaitForNotification(waiting)
		cancel()
		if err != nil && (ctx.Err() != nil || waiting.Err() == nil) {
			return err
		}
	}
}

// holdsEvent returns ErrPastEnd if a different event than the delivered one is at a position: a standby that lacked it
// has taken over.
func holdsEvent(ctx context.Context, conn *pgx.Conn, position uint64, delivered uuid.UUID) error {
	if delivered == uuid.Nil {
		return nil
	}
	var id uuid.UUID
	err := conn.QueryRow(ctx, "select id from events.event where position = $1", position).Scan(&id)
	if err == nil && id != delivered {
		err = fmt.Errorf("%w: the event at %d was %s and is %s", events.ErrPastEnd, position, delivered, id)
	}
	return err
}

// readPage reads the events after last, up to a gap. A gap directly after last is a GapError.
func (s *Store) readPage(ctx context.Context, conn *pgx.Conn, last uint64) (events.Page, error) {
	page := events.Page{Next: at(last), Live: true}
	rows, err := conn.Query(ctx, "select "+columns+" from events.event where position > $1 order by position limit $2",
		last, pageSize)
	if err != nil {
		return page, err
	}
	defer rows.Close()
	bytes := 0
	for rows.Next() {
		recorded, err := scan(rows)
		if err != nil {
			return page, err
		}
		if recorded.Position.Commit != page.Next.Commit+1 {
			page.Live = false
			if len(page.Events) > 0 { // those before the gap come first
				return page, nil
			}
			return page, &events.GapError{First: page.Next.Commit + 1, Last: recorded.Position.Commit - 1}
		}
		s.recent.decode(&recorded)
		page.Events = append(page.Events, recorded)
		page.Next = recorded.Position
		if bytes += len(recorded.Stored.Data) + len(recorded.Stored.Metadata); bytes >= pageBytes {
			return upToAppend(page), nil
		}
	}
	if len(page.Events) == pageSize {
		page = upToAppend(page)
	}
	return page, rows.Err()
}

// upToAppend shortens a page with more behind it, so that it ends with the last event of an append: the events of one
// have one time, unless they are copies. A page of that time alone stays as it is.
func upToAppend(page events.Page) events.Page {
	page.Live = false
	n := len(page.Events)
	for n > 0 && page.Events[n-1].At.Equal(page.Events[len(page.Events)-1].At) {
		n--
	}
	if n > 0 {
		page.Events, page.Next = page.Events[:n], page.Events[n-1].Position
	}
	return page
}
