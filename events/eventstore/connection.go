package eventstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// connection is a client and those who use it. The client would reconnect by itself, but leaves a connection behind each time, does not look at the
// context of who waits for it, and panics when it is closed meanwhile. So it is given up at the first sign of a broken connection, and closed by
// the last of its users.
type connection struct {
	client    *esdb.Client
	found     chan struct{}       // closed when the client has found a node, or never will
	version   *esdb.ServerVersion // set before found is closed, as is err
	err       error
	complaint atomic.Pointer[string] // the last that the client had to say while it looked

	users   int // guarded by Store.mu, as is retired
	retired bool
}

var errClosed = errors.New("closed")

// acquire returns the current connection once it has found a node. Each has to be released.
func (s *Store) acquire(ctx context.Context) (*connection, error) {
	c, err := s.use()
	if err != nil {
		return nil, err
	}
	select {
	case <-c.found:
		if err = c.err; err != nil {
			err = unavailable(err)
		}
	case <-ctx.Done():
		err = unavailable(ctx.Err())
		if complaint := c.complaint.Load(); complaint != nil {
			err = fmt.Errorf("%w: %s", err, *complaint)
		}
	}
	if err != nil {
		s.release(c, nil)
		return nil, err
	}
	return c, nil
}

// findTimeout is how long a call waits for a node to be found. The search goes on, so that a later call finds it: whoever makes calls is told early
// that there is no server, and decides how long to try on.
const findTimeout = 100 * time.Millisecond

// acquireSoon is acquire for calls that shall not wait for a server that is gone.
func (s *Store) acquireSoon(ctx context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	return s.acquire(ctx)
}

// use counts the caller among the users of the current connection, a new one if there is none.
func (s *Store) use() (*connection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, unavailable(errClosed)
	}
	if s.current == nil {
		c := &connection{found: make(chan struct{}), users: 1}
		config := s.config
		config.Logger = c.logTo(s.log)
		client, err := esdb.NewClient(&config)
		if err != nil {
			return nil, err
		}
		c.client = client
		s.current = c
		go func() {
			c.version, c.err = client.GetServerVersion() // which begins with finding a node
			close(c.found)
			s.release(c, c.err)
		}()
	}
	s.current.users++
	return s.current, nil
}

// release ends a use. Where the call's error says that the connection is broken, later calls get another.
func (s *Store) release(c *connection, err error) {
	if broken(err) {
		s.retire(c)
	}
	s.mu.Lock()
	c.users--
	last := c.retired && c.users == 0
	s.mu.Unlock()
	if last {
		_ = c.client.Close()
	}
}

// retire takes a connection out of use. The last user's release closes it, or there is none.
func (s *Store) retire(c *connection) {
	s.mu.Lock()
	if s.current == c {
		s.current = nil
	}
	last := !c.retired && c.users == 0
	c.retired = true
	s.mu.Unlock()
	if last {
		_ = c.client.Close()
	}
}

func broken(err error) bool {
	if e, ok := errors.AsType[*esdb.Error](err); ok && (e.Code() == esdb.ErrorCodeConnectionClosed || e.Code() == esdb.ErrorUnavailable) {
		return true
	}
	return status.Code(err) == codes.Unavailable
}

// logTo takes what the client logs. What it has to say of its search for a node, many times a second, is kept for the errors of those who wait.
func (c *connection) logTo(log *slog.Logger) esdb.LoggingFunc {
	return func(level esdb.LogLevel, format string, args ...any) {
		message := fmt.Sprintf(format, args...)
		if level == esdb.LogWarn || level == esdb.LogError {
			c.complaint.Store(&message)
		}
		log.Debug("event store client", "level", level, "message", message)
	}
}

// call runs f on a client and waits no longer than until ctx ends: the client itself may hang for as long as there is no server.
func call[T any](ctx context.Context, s *Store, f func(*esdb.Client) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	c, err := s.acquireSoon(ctx)
	if err != nil {
		return none, err
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := f(c.client)
		s.release(c, err)
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, classify(ctx, a.err)
	case <-ctx.Done():
		return none, unavailable(ctx.Err())
	}
}
