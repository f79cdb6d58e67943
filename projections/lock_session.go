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

// session is the connection on which a process holds the locks of its projections, and is notified how far those of
// others are. Postgres frees the locks when the connection ends: then all projections of the process stop until they
// hold them again.
type session struct {
	url string
	log *slog.Logger
	// listen is called on each new connection, before locks are taken; nil for nothing.
	listen func(ctx context.Context, conn *pgx.Conn) error
	// notified is called with what comes on the channels that listen listens to.
	notified func(payload string)
	// broken is called when a connection has ended.
	broken func()

	mu     sync.Mutex
	claims map[*claim]struct{}
	dirty  bool               // claims have changed since updateLocks
	wake   context.CancelFunc // ends the wait for notifications
}

// claim is the wish to hold a lock.
type claim struct {
	name     string
	granted  func()        // called before done is closed; may be nil
	done     chan struct{} // closed once the lock is held
	held     bool
	released bool
	lose     context.CancelCauseFunc // ends the context of who holds it
}

var errLost = errors.New("the connection that holds the projections' locks broke")

// hold waits until no other process holds a lock, and takes it; the context that it returns ends when the lock is lost,
// with errLost as its cause. granted is called as soon as the lock is held: of several that can be had at once, before
// any hold returns.
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

// update changes the claims, and wakes the session.
func (s *session) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.dirty = true
	if s.wake != nil {
		s.wake()
	}
}

// lost tells those who hold a lock that they no longer do.
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
		s.log.Warn("the projections' locks are lost; taking them again", "retry_in", wait, "err", err)
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

// handleNotifications handles them until a claim is made or given up, or it is time to look at the locks again.
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

// updateLocks frees the locks that are no longer wanted, and tries to take those that are. waiting says that another
// process has some of them.
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

// collect finds the claims that are to be fulfilled, and the names of the locks that nobody wants any more, which it
// forgets.
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

// grant tells those whose claims are fulfilled. It reports whether there are others.
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
