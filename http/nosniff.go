package http

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
)

// nosniffHeader is in every answer, as net/http keeps its name.
const nosniffHeader = "X-Content-Type-Options"

// nosniff is the value of nosniffHeader. It must not be changed.
var nosniff = []string{"nosniff"}

// hstsHeader is in every answer of production on https, as net/http keeps its name.
const hstsHeader = "Strict-Transport-Security"

// hsts tells browsers to call this host by https alone for a year. It must not be changed.
var hsts = []string{"max-age=31536000"}

// WithNosniff returns a listener for a server to serve. On it the answers bear X-Content-Type-Options too that net/http writes by itself, without a handler: those to
// requests that it cannot read, and to an Expect that it does not know. The server is changed to tell its connections when a handler answers, whose writes stay as they are.
func WithNosniff(server *http.Server, listener net.Listener) net.Listener {
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connKey{}).(*nosniffConn); ok {
			conn.handled.Store(true)
		}
		handler.ServeHTTP(w, r)
	})
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		if conn, ok := conn.(*nosniffConn); ok && state == http.StateIdle { // the handler's answer is written whole
			conn.handled.Store(false)
		}
	}
	return nosniffListener{listener}
}

// connKey is the key of the connection in the context of a request.
type connKey struct{}

type nosniffListener struct{ net.Listener }

// Accept implements net.Listener.
func (l nosniffListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &nosniffConn{Conn: conn}, nil
}

type nosniffConn struct {
	net.Conn
	handled atomic.Bool // a handler answers the request under way
}

// Write implements net.Conn.
func (c *nosniffConn) Write(p []byte) (int, error) {
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
func (c *nosniffConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
