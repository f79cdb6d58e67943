package http

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flagledger/projections/snapshot"
)

// What net/http answers by itself, before any handler.
func TestAnswersWithoutAHandlerForbidToGuessTheirType(t *testing.T) {
	t.Parallel()
	api := New(Options{Live: snapshot.New(), Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Limits: anonymous(1000), Now: time.Now})
	for name, server := range map[string]*http.Server{"the interface": api.Server(), "the metrics": api.MetricsServer()} {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = NewGracefulServer(server, listener).Serve() }()
		t.Cleanup(func() { _ = server.Close() })
		for sent, status := range map[string]int{
			"nonsense\r\n\r\n":       400,
			"GET / HTTP/1.1\r\n\r\n": 400, // without a Host
			"GET / HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n":                    400,
			"GET / HTTP/9.9\r\nHost: a\r\n\r\n":                                     505,
			"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n":            501,
			"GET /?" + strings.Repeat("a", 64<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n": 431,
			"GET / HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n":                     417,
			"GET / HTTP/1.0\r\nHost: a\r\nExpect: more\r\n\r\n":                     417,
			"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n":                                 0,
			"GET //health HTTP/1.1\r\nHost: a\r\n\r\n":                              0,
			"PUT /health HTTP/1.1\r\nHost: a\r\n\r\n":                               405,
		} {
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			_, _ = io.WriteString(conn, sent)
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%s: %.60q: %v", name, sent, err)
			}
			if got := answer.Header.Values("X-Content-Type-Options"); len(got) != 1 || got[0] != "nosniff" || status != 0 && answer.StatusCode != status {
				t.Errorf("%s: %.60q is answered with %d and %q", name, sent, answer.StatusCode, got)
			}
			if body, err := io.ReadAll(answer.Body); err != nil || answer.ContentLength >= 0 && int64(len(body)) != answer.ContentLength {
				t.Errorf("%s: %.60q: a body of %d: %v", name, sent, len(body), err)
			}
			_ = answer.Body.Close()
			_ = conn.Close()
		}
	}
}

// What a handler writes stays as it is, also where a write begins like an answer of net/http's own, or is one. The answer to the next request, which cannot be read, has the header.
func TestAnswersOfHandlersAreNotChanged(t *testing.T) {
	t.Parallel()
	own := []string{
		"HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\nDate: Sun, 22 Nov 2026 15:00:00 GMT\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request",
		"HTTP/1.0 417 ", "HTTP/1.1 417 ", "HTTP/1.1 200 OK\r\n",
	}
	var bodies []string
	for _, text := range own {
		for shift := range len(text) {
			bodies = append(bodies, text[shift:]+strings.Repeat(text, (64<<10)/len(text)))
		}
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := bodies[0]
		if i, err := strconv.Atoi(r.URL.Query().Get("body")); err == nil {
			body = bodies[i]
		}
		if r.URL.Path == "/flushed" { // so that the body begins a write
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, body)
	})}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = NewGracefulServer(server, listener).Serve() }()
	t.Cleanup(func() { _ = server.Close() })
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	answers := bufio.NewReader(conn)
	for i, want := range bodies {
		for _, path := range []string{"/flushed", "/chunked"} {
			_, _ = fmt.Fprintf(conn, "GET %s?body=%d HTTP/1.1\r\nHost: a\r\n\r\n", path, i)
			answer, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err != nil || string(got) != want {
				t.Fatalf("%s: a body that repeats %.40q is changed: %v", path, want, err)
			}
		}
	}
	_, _ = io.WriteString(conn, "nonsense\r\n\r\n")
	answer, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("nonsense after answers of handlers is answered with %d and %v", answer.StatusCode, answer.Header)
	}
}

// A call that comes while the server ends is answered, on a connection that waited for it, on one that is new, and on one whose answer is under way.
func TestShutdownAnswersLateCalls(t *testing.T) {
	t.Parallel()
	slow, begun := make(chan struct{}), make(chan struct{})
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	})}
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	graceful := NewGracefulServer(server, inner)
	graceful.IdleGrace = time.Minute
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
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	graceful := NewGracefulServer(server, inner)
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

// unreachable reports whether nobody listens at an address.
func unreachable(address net.Addr) bool {
	conn, err := net.Dial("tcp", address.String())
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
