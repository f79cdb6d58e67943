package projections

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/migrations/database"
	"flagledger/retry"
)

const (
	lockInterval = 500 * time.Millisecond // between attempts to take over from another node
	pingInterval = 5 * time.Second        // between checks of a connection on which nothing else happens
)

// session is the connection on which a process holds its projections' locks and hears the progress of other processes.
// When it breaks, Postgres frees the locks, and the projections stop until they hold them again.
type session struct {
	url string
	log *slog.Logger
	// listen, unless nil, is called on each new connection before it takes locks.
	listen func(ctx context.Context, conn *pgx.Conn) error
	// notified is called with each notification.
	notified func(payload string)
	// broken is called when a connection has broken.
	broken func()

	mu     sync.Mutex
	claims map[*claim]struct{}
	dirty  bool               // claims changed since updateLocks
	wake   context.CancelFunc // ends the wait for notifications
}

// claim is a request for a lock.
type claim struct {
	name     string
	granted  func()        // called before done is closed; may be nil
	done     chan struct{} // closed once the lock is held
	held     bool
	released bool
	lose     context.CancelCauseFunc // ends the holder's context
}

var errLost = errors.New("the connection that holds the projections' locks broke")

// hold waits for a lock. The returned context ends with errLost when the lock is lost. granted is called as soon as
// the lock is held; if several locks are taken at once, before any hold returns.
func (s *session) hold(
	ctx context.Context, name string, granted func(),
) (held context.Context, release func(), err error) {
	held, lose := context.WithCancelCause(ctx)
	c := &claim{name: name, granted: granted, done: make(chan struct{}), lose: lose}
	s.update(func() { s.claims[c] = struct{}{} })
	release = func() {
		lose(nil)
		s.update(func() { c.released = true })
	}
	select {
	case <-c.done:
		return held, release, nil
	case <-ctx.Done():
		release()
		return nil, nil, ctx.Err()
	}
}

// update runs a change of the claims, and wakes the session.
func (s *session) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.dirty = true
	if s.wake != nil {
		s.wake()
	}
}

// lost ends the context of all holders.
func (s *session) lost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.claims {
		if c.held || c.released {
			c.lose(errLost)
			delete(s.claims, c)
		}
	}
}

// run keeps a connection open until ctx ends.
func (s *session) run(ctx context.Context) {
	retry.Forever(ctx, func(connected func()) error {
		err := s.runOnce(ctx, connected)
		s.lost()
		s.broken()
		return err
	}, func(err error, wait time.Duration) {
		s.log.Warn("lost the projections' locks; retrying", "retry_in", wait, "err", err)
	})
}

func (s *session) runOnce(ctx context.Context, connected func()) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer disconnect(conn)
	if s.listen != nil {
		if err := s.listen(ctx, conn); err != nil {
			return err
		}
	}
	connected()
	for {
		waiting, err := s.updateLocks(ctx, conn)
		if err != nil {
			return err
		}
		if err := s.handleNotifications(ctx, conn, waiting); err != nil {
			return err
		}
	}
}

func (s *session) connect(ctx context.Context) (*pgx.Conn, error) {
	settings := map[string]string{}
	SetKeepalive(settings)
	config, err := database.Config(s.url, settings)
	if err != nil {
		return nil, err
	}
	config.ConnectTimeout = connectTimeout
	config.RuntimeParams["application_name"] = "flagledger projections"
	return pgx.ConnectConfig(ctx, config)
}

func disconnect(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// handleNotifications handles notifications until claims change, or it is time to check the locks again.
func (s *session) handleNotifications(ctx context.Context, conn *pgx.Conn, waiting bool) error {
	interval := pingInterval
	if waiting {
		interval = lockInterval
	}
	wait, cancel := context.WithTimeout(ctx, interval)
	defer cancel()
	s.mu.Lock()
	s.wake = cancel
	if s.dirty {
		cancel()
	}
	s.mu.Unlock()
	for {
		n, err := conn.WaitForNotification(wait)
		if err != nil {
			if ctx.Err() == nil && wait.Err() != nil {
				return nil
			}
			return err
		}
		s.notified(n.Payload)
	}
}

// updateLocks frees the unwanted locks and tries to take the wanted ones. waiting reports that another process holds
// some of them.
func (s *session) updateLocks(ctx context.Context, conn *pgx.Conn) (waiting bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pingInterval)
	defer cancel()
	if err := conn.Ping(ctx); err != nil {
		return false, err
	}
	wanted, unwanted := s.collect()
	if len(unwanted) > 0 {
		if _, err := conn.Exec(
			ctx, `select pg_advisory_unlock(hashtext('flagledger projection'), hashtext(name)) from unnest($1::text[]) name`,
			unwanted,
		); err != nil {
			return false, err
		}
	}
	if len(wanted) == 0 {
		return false, nil
	}
	names := make([]string, len(wanted))
	for i, c := range wanted {
		names[i] = c.name
	}
	rows, err := conn.Query(ctx, `select pg_try_advisory_lock(hashtext('flagledger projection'), hashtext(name))
		from unnest($1::text[]) with ordinality list (name, n) order by n`, names)
	if err != nil {
		return false, err
	}
	locked, err := pgx.CollectRows(rows, pgx.RowTo[bool])
	if err != nil {
		return false, err
	}
	return s.grant(wanted, locked), nil
}

// collect returns the pending claims, and removes and returns the unwanted locks.
func (s *session) collect() (wanted []*claim, unwanted []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty = false
	for c := range s.claims {
		switch {
		case c.released:
			delete(s.claims, c)
			if c.held {
				unwanted = append(unwanted, c.name)
			}
		case !c.held:
			wanted = append(wanted, c)
		}
	}
	return wanted, unwanted
}

// grant ends the wait of fulfilled claims. It reports whether others are pending.
func (s *session) grant(wanted []*claim, locked []bool) (waiting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range wanted {
		c.held = locked[i]
		waiting = waiting || !c.held
		if c.held && c.granted != nil && !c.released {
			c.granted()
		}
	}
	for _, c := range wanted {
		if c.held {
			close(c.done)
		}
	}
	return waiting
}
