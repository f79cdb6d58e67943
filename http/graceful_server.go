package http

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"flagledger/http/rest"
)

// minIdleGrace is enough for a call that is on its way.
const minIdleGrace = 250 * time.Millisecond

// GracefulServer runs a server on a listener. Unlike http.Server.Shutdown, its Shutdown also answers calls that arrive
// on idle connections meanwhile.
type GracefulServer struct {
	server    *http.Server
	listener  net.Listener
	idleGrace time.Duration
	served    chan struct{} // closed once no more connections are accepted

	mu     sync.Mutex
	open   map[*connection]struct{}
	Ending bool
	empty  chan struct{} // closed once ending is set and open is empty
}

// NewGracefulServer returns a GracefulServer. It replaces the handler and hooks of server. During a shutdown an idle
// connection stays open for idleGrace, or minIdleGrace if that is longer, so that a call on its way is still answered.
func NewGracefulServer(server *http.Server, listener net.Listener, idleGrace time.Duration) *GracefulServer {
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connKey{}).(*connection); ok {
			conn.setIdle(false) // also if the request arrived together with the previous one
		}
		handler.ServeHTTP(w, r)
	})
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		if conn, ok := conn.(*connection); ok && state == http.StateIdle { // the handler's response is fully written
			conn.setIdle(true)
		}
	}
	return &GracefulServer{
		server: server, listener: listener, idleGrace: max(idleGrace, minIdleGrace),
		served: make(chan struct{}), open: map[*connection]struct{}{}, empty: make(chan struct{}),
	}
}

// Serve serves until Shutdown, or until the listener fails.
func (s *GracefulServer) Serve() error {
	defer close(s.served)
	return s.server.Serve(acceptor{s.listener, s})
}

// CloseListener stops accepting connections. Open ones are still served.
func (s *GracefulServer) CloseListener() { _ = s.listener.Close() }

// Shutdown closes the listener, then each connection once its calls are answered. When ctx ends it closes the remaining
// ones and returns an error. The handler must send Connection: close.
func (s *GracefulServer) Shutdown(ctx context.Context) error {
	s.CloseListener()
	<-s.served
	s.mu.Lock()
	s.Ending = true
	for c := range s.open {
		c.end()
	}
	if len(s.open) == 0 {
		close(s.empty)
	}
	s.mu.Unlock()
	defer func() { _ = s.server.Close() }()
	// A connection of HTTP/2 may have no call and never be idle: after the grace its client is told to leave.
	leave := time.AfterFunc(s.idleGrace, func() { _ = s.server.Shutdown(ctx) })
	defer leave.Stop()
	select {
	case <-s.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *GracefulServer) remove(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.open[c]; !open {
		return
	}
	delete(s.open, c)
	if s.Ending && len(s.open) == 0 {
		close(s.empty)
	}
}

// acceptor is the listener of a GracefulServer. It tracks its connections.
type acceptor struct {
	net.Listener
	server *GracefulServer
}

// Accept implements net.Listener.
func (a acceptor) Accept() (net.Conn, error) {
	conn, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: conn, server: a.server, idle: true}
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	a.server.open[c] = struct{}{}
	return c, nil
}

// connKey is the key of the connection in the context of a request.
type connKey struct{}

type connection struct {
	net.Conn
	server *GracefulServer

	mu     sync.Mutex
	idle   bool // no byte of a request was read since the last response
	Ending bool
}

func (c *connection) setIdle(idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = idle
}

// end begins the shutdown of a connection: an idle one is read for idleGrace at most.
func (c *connection) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Ending = true
	if c.idle {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // wakes a Read that waits
	}
}

// Read implements net.Conn. During a shutdown, an idle connection times out after idleGrace, and net/http closes it.
func (c *connection) Read(p []byte) (int, error) {
	for {
		last := c.limitLastRead()
		n, err := c.Conn.Read(p)
		if n > 0 {
			c.beginRequest()
			return n, err
		}
		if last || !errors.Is(err, os.ErrDeadlineExceeded) || !c.limitLastRead() {
			return n, err
		}
	}
}

// limitLastRead sets the deadline of an idle connection during a shutdown. It returns false for other connections.
func (c *connection) limitLastRead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.idle && c.Ending
	if last {
		_ = c.SetReadDeadline(time.Now().Add(c.server.idleGrace))
	}
	return last
}

// beginRequest marks the connection as busy and, during a shutdown, sets the deadline of the request's header.
func (c *connection) beginRequest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle && c.Ending { // net/http may not set the header's deadline again
		_ = c.SetReadDeadline(time.Now().Add(rest.ReadHeaderTimeout))
	}
	c.idle = false
}

// CloseWrite lets net/http finish a response before it closes the connection, so that a client that is still sending
// can read it.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements net.Conn.
func (c *connection) Close() error {
	defer c.server.remove(c)
	return c.Conn.Close()
}
