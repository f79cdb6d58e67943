package http

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
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
		go func() { _ = server.Serve(ForbidSniffing(listener)) }()
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
