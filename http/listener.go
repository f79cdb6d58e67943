package http

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// nosniffHeader is in every answer, as net/http keeps its name.
const nosniffHeader = "X-Content-Type-Options"

// nosniff is the value of nosniffHeader. It must not be changed.
var nosniff = []string{"nosniff"}

// hstsHeader is in every answer of production on https, as net/http keeps its name.
const hstsHeader = "Strict-Transport-Security"

// hsts tells browsers to call this host by https alone for a year. It must not be changed.
var hsts = []string{"max-age=31536000"}

// lastLook is how long a connection without a call stays open at the end: a call that is on its way is still answered.
const lastLook = 250 * time.Millisecond

// Listener is what a server listens on. The answers that net/http writes by itself, without a handler, bear X-Content-Type-Options too:
// those to requests that it cannot read, and to an Expect that it does not know. End loses no call, as Shutdown of net/http does.
type Listener struct {
	net.Listener
	server   *http.Server
	lastLook time.Duration
	served   chan struct{} // closed once nothing is accepted any more

	mu     sync.Mutex
	open   map[*connection]struct{}
	ending bool
	empty  chan struct{} // closed once ending is set and open is empty
}

// NewListener returns a listener for a server, which it changes: Serve serves it.
func NewListener(server *http.Server, listener net.Listener) *Listener {
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connKey{}).(*connection); ok {
			conn.handled.Store(true)
			conn.setIdle(false) // also if the request came together with the one before
		}
		handler.ServeHTTP(w, r)
	})
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		if conn, ok := conn.(*connection); ok && state == http.StateIdle { // the handler's answer is written whole
			conn.handled.Store(false)
			conn.setIdle(true)
		}
	}
	return &Listener{
		Listener: listener, server: server, lastLook: lastLook, served: make(chan struct{}), open: map[*connection]struct{}{}, empty: make(chan struct{}),
	}
}

// Serve serves until End, or until the listener fails.
func (l *Listener) Serve() error {
	defer close(l.served)
	return l.server.Serve(l)
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: conn, listener: l, idle: true}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = struct{}{}
	return c, nil
}

// End closes the listener, then each connection once its calls are answered. When ctx ends it closes those that are left, and returns an error.
// The answers themselves must say that their connection is closed.
func (l *Listener) End(ctx context.Context) error {
	_ = l.Close()
	<-l.served
	l.mu.Lock()
	l.ending = true
	for c := range l.open {
		c.end()
	}
	if len(l.open) == 0 {
		close(l.empty)
	}
	l.mu.Unlock()
	defer func() { _ = l.server.Close() }()
	select {
	case <-l.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Listener) remove(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.open[c]; !open {
		return
	}
	delete(l.open, c)
	if l.ending && len(l.open) == 0 {
		close(l.empty)
	}
}

// connKey is the key of the connection in the context of a request.
type connKey struct{}

type connection struct {
	net.Conn
	listener *Listener
	handled  atomic.Bool // a handler answers the request under way

	mu     sync.Mutex
	idle   bool // nothing of a request has been read since the last answer
	ending bool
}

func (c *connection) setIdle(idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = idle
}

// end has Read look a last time once the connection is idle.
func (c *connection) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	if c.idle {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // wakes a Read that waits
	}
}

// Read implements net.Conn. At the end, an idle connection reads what has come or comes within lastLook, and net/http closes it if that is nothing.
func (c *connection) Read(p []byte) (int, error) {
	for {
		last := c.lookLast()
		n, err := c.Conn.Read(p)
		if c.hasRead(n) || last || !errors.Is(err, os.ErrDeadlineExceeded) || !c.lookLast() {
			return n, err
		}
	}
}

// lookLast reports whether the next read is the last one, and bounds it then.
func (c *connection) lookLast() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.idle && c.ending
	if last {
		_ = c.SetReadDeadline(time.Now().Add(c.listener.lastLook))
	}
	return last
}

// hasRead reports whether something was read, which begins a request on an idle connection.
func (c *connection) hasRead(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 && c.idle {
		c.idle = false
		if c.ending { // net/http may not set the time for the header again
			_ = c.SetReadDeadline(time.Now().Add(readHeaderTimeout))
		}
	}
	return n > 0
}

// Write implements net.Conn.
func (c *connection) Write(p []byte) (int, error) {
	if c.handled.Load() || !bytes.HasPrefix(p, []byte("HTTP/1.")) {
		return c.Conn.Write(p)
	}
	status := bytes.Index(p, []byte("\r\n")) + 2 // net/http writes each of its own answers in one call
	if _, err := c.Conn.Write(slices.Insert(slices.Clone(p), status, []byte(nosniffHeader+": "+nosniff[0]+"\r\n")...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseWrite has net/http end an answer before it closes the connection, so that a client that still sends reads it to its end.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements net.Conn.
func (c *connection) Close() error {
	defer c.listener.remove(c)
	return c.Conn.Close()
}
