package http

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"
)

// A call that arrives during the shutdown is answered: on an idle connection, on a new one, and on one with a response
// in progress.
func TestShutdownAnswersLateCalls(t *testing.T) {
	t.Parallel()
	slow, begun := make(chan struct{}), make(chan struct{})
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				close(begun)
				<-slow
			}
			if r.URL.Path != "/first" {
				w.Header().Set("Connection", "close")
			}
			if _, err := io.Copy(w, r.Body); err != nil || r.Context().Err() != nil {
				t.Errorf("%s is broken off: %v", r.URL.Path, err)
			}
		}),
	}
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	graceful := NewGracefulServer(server, inner, time.Minute)
	go func() { _ = graceful.Serve() }()
	dial := func() net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		return conn
	}
	send := func(conn net.Conn, path string) {
		_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody", path)
	}
	answered := func(conn net.Conn) {
		t.Helper()
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "body" {
			t.Errorf("the answer is %q: %v", body, err)
		}
	}
	idle, fresh, busy := dial(), dial(), dial()
	send(idle, "/first")
	answered(idle)
	send(busy, "/slow")
	<-begun
	ended := make(chan error)
	go func() { ended <- graceful.Shutdown(t.Context()) }()
	for end := time.Now().Add(time.Minute); !unreachable(inner.Addr()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the listener is not closed")
		}
	}
	send(idle, "/second")
	send(fresh, "/second")
	answered(idle)
	answered(fresh)
	select {
	case err := <-ended:
		t.Fatalf("it ends before all calls are answered: %v", err)
	default:
	}
	close(slow)
	answered(busy)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A connection without a call is closed.
func TestShutdownClosesIdleConnections(t *testing.T) {
	t.Parallel()
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler:           http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
	}
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	graceful := NewGracefulServer(server, inner, 0)
	go func() { _ = graceful.Serve() }()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	answers := bufio.NewReader(conn)
	answer, err := http.ReadResponse(answers, nil)
	if err != nil || answer.Close {
		t.Fatal(answer, err)
	}
	_ = answer.Body.Close()
	if err := graceful.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := answers.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection ends with %v", err)
	}
}

// unreachable reports whether no server listens on an address.
func unreachable(address net.Addr) bool {
	conn, err := net.Dial("tcp", address.String())
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
