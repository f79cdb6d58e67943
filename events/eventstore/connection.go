package eventstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// connection is a client with the number of its users. A broken client is replaced, and its last user closes it:
// otherwise it would leak a connection at each reconnection, ignore contexts meanwhile, and panic when closed.
type connection struct {
	client    *esdb.Client
	found     chan struct{}       // closed when the client has found a node or failed for good
	version   *esdb.ServerVersion // set before found is closed, as is err
	err       error
	complaint atomic.Pointer[string] // the last problem logged by the client's search
	replaced  chan struct{}          // closed when a new connection replaces this one

	findTimeout time.Duration // how long a call waits for found

	users   int // guarded by Store.mu, as is retired
	retired bool
}

var errClosed = errors.New("closed")

const (
	// findTimeout limits a call's wait for a node, while the search continues for later calls. After a server that did
	// not answer, which may be slow, calls wait for answerTimeout instead.
	findTimeout = 100 * time.Millisecond
	// answerTimeout limits a call's wait for an answer. Then the node counts as hung, and the call looks for another
	// one, which may be the new leader.
	answerTimeout = 1500 * time.Millisecond
	// gossipTimeout limits in seconds the client's wait for a node's answer while it looks for the leader. Its
	// default, 5, is too long for a cluster with a hung node.
	gossipTimeout       = 1
	clientGossipTimeout = 5
)

// acquire returns the current connection once it has found a node. Every acquired connection must be released.
func (s *Store) acquire(ctx context.Context) (*connection, error) {
	c, err := s.use()
	if err != nil {
		return nil, err
	}
	return s.find(ctx, c)
}

// acquireSoon works like acquire with the connection's findTimeout.
func (s *Store) acquireSoon(ctx context.Context) (*connection, error) {
	c, err := s.use()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.findTimeout)
	defer cancel()
	return s.find(ctx, c)
}

// find waits until a connection in use has found a node. It releases the connection if that fails.
func (s *Store) find(ctx context.Context, c *connection) (*connection, error) {
	var err error
	select {
	case <-c.found:
		if err = c.err; err != nil {
			err = unavailable(err)
		}
	case <-ctx.Done():
		err = unavailable(ctx.Err())
		if complaint := c.complaint.Load(); complaint != nil {
			err = fmt.Errorf("%w: %s%s", err, *complaint, s.tlsHint(*complaint))
		}
	}
	if err != nil {
		s.release(c, nil)
		return nil, err
	}
	return c, nil
}

// tlsHint names the wrong setting if the client's complaint shows that only one side uses TLS.
func (s *Store) tlsHint(complaint string) string {
	switch {
	case s.config.DisableTLS && strings.Contains(complaint, "error reading server preface: EOF"):
		return " (the connection string says tls=false; a server that answers like this wants tls=true)"
	case !s.config.DisableTLS && strings.Contains(complaint, "first record does not look like a TLS handshake"):
		return " (the server does not speak TLS; the connection string needs tls=false)"
	}
	return ""
}

// use adds the caller to the users of the current connection. It creates one if necessary.
func (s *Store) use() (*connection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, unavailable(errClosed)
	}
	if s.current == nil {
		c := &connection{found: make(chan struct{}), replaced: make(chan struct{}), findTimeout: findTimeout, users: 1}
		if s.silent {
			c.findTimeout = answerTimeout
			s.silent = false
		}
		config := s.config
		config.Logger = c.logTo(s.log)
		client, err := esdb.NewClient(&config)
		if err != nil {
			return nil, err
		}
		c.client = client
		s.current = c
		go func() {
			c.version, c.err = client.GetServerVersion() // makes the client look for a node
			close(c.found)
			s.release(c, c.err)
		}()
	}
	s.current.users++
	return s.current, nil
}

// release ends a use. If err means that the connection is broken, later calls get a new one.
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

// retireSilent retires a connection whose server does not answer.
func (s *Store) retireSilent(c *connection) {
	s.mu.Lock()
	s.silent = s.silent || s.current == c
	s.mu.Unlock()
	s.retire(c)
}

// retire takes a connection out of use. Its last user closes it.
func (s *Store) retire(c *connection) {
	s.mu.Lock()
	if s.current == c {
		s.current = nil
	}
	last := !c.retired && c.users == 0
	if !c.retired {
		c.retired = true
		close(c.replaced)
	}
	s.mu.Unlock()
	if last {
		_ = c.client.Close()
	}
}

func broken(err error) bool {
	if e, ok := errors.AsType[*esdb.Error](err); ok &&
		(e.Code() == esdb.ErrorCodeConnectionClosed || e.Code() == esdb.ErrorUnavailable) {
		return true
	}
	return status.Code(err) == codes.Unavailable
}

// logTo handles the client's log, which is frequent while it looks for a node. It stores the last problem for the
// errors of waiting callers.
func (c *connection) logTo(log *slog.Logger) esdb.LoggingFunc {
	return func(level esdb.LogLevel, format string, args ...any) {
		message := fmt.Sprintf(format, args...)
		if level == esdb.LogWarn || level == esdb.LogError {
			c.complaint.Store(&message)
		}
		log.Debug("event store client", "level", level, "message", message)
	}
}
