package http

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flagledger/http/quota"
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
)

func TestMetricsAreForClientsOnTheSameMachine(t *testing.T) {
	a := newAPI(anonymous(100))
	for _, near := range []string{"127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"} {
		if w := a.from(near, "GET", "http://localhost/metrics"); w.Code != 200 ||
			!strings.Contains(w.Body.String(), "flagledger_streams") {
			t.Errorf("from %s: %d", near, w.Code)
		}
	}
	// a local web page may use a name of its own
	for host, want := range map[string]int{"localhost:8080": 200, "127.0.0.1": 200, "[::1]:8080": 200, "localhost.example.com": 404, "example.com:8080": 404, "": 404} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.RemoteAddr, r.Host = "127.0.0.1:1", host
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("by the name %q: %d, want %d", host, w.Code, want)
		}
	}
	for _, call := range [][]string{{"192.0.2.1:1"}, {"127.0.0.1:1", "X-Forwarded-For", "127.0.0.1"}, {"127.0.0.1:1", "Forwarded", "for=127.0.0.1"}, {"@"}} {
		if w := a.from(
			call[0],
			"GET",
			"http://localhost/metrics",
			call[1:]...); w.Code != 404 ||
			strings.Contains(w.Body.String(), "flagledger_streams") {
			t.Errorf("from %v: %d", call, w.Code)
		}
	}
}

func TestMetricsHaveAnAddressOfTheirOwn(t *testing.T) {
	a := New(
		Options{Options: rest.Options{
			Reads:   2,
			Live:    snapshot.New(snapshot.Options{}),
			Metrics: prometheus.NewRegistry(),
			Log:     slog.New(slog.DiscardHandler),
			Quotas:  &quota.Tenants{Limiter: quota.NewLimiter(anonymous(100), nil, time.Now)},
			Now:     time.Now,
		}},
	)
	if w := a.from("127.0.0.1:1", "GET", "/metrics"); w.Code != 404 {
		t.Errorf("the interface answers %d", w.Code)
	}
	own := httptest.NewServer(a.MetricsServer().Handler)
	defer own.Close()
	get := func(path string) (status int, header http.Header, text string) {
		t.Helper()
		r, err := own.Client().Get(own.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Body.Close() }()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, r.Header, string(body)
	}
	if status, header, text := get("/metrics"); status != http.StatusOK || !strings.Contains(text, "flagledger_streams") ||
		header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("its own address answers %d %v", status, header)
	}
	if status, _, _ := get("/api/v1/version"); status != http.StatusNotFound {
		t.Errorf("its own address answers calls of the interface with %d", status)
	}
}

func TestEveryAnswerForbidsToGuessItsType(t *testing.T) {
	a := newAPI(anonymous(20))
	for range 3 { // the last ones exceed the limit
		for _, call := range [][]string{
			{"GET", "/"}, {"GET", "/health"}, {"GET", "/nowhere"}, {"DELETE", "/health"}, {"GET", "/docs"}, {"GET", "/docs/page.js"}, {"GET", "/docs/none"}, {"GET", "/openapi.json"},
			{"POST", "/api/v1/flags/f/evaluate"}, {"POST", "/ofrep/v1/evaluate/flags"}, {"GET", "/api/v1/flags/stream"}, {"GET", "/metrics"}, {"GET", "/reset-password"},
			{"GET", "/health", "X-Correlation-ID", strings.Repeat("x", 200)},
		} {
			w := a.from("127.0.0.1:1", call[0], call[1], call[2:]...)
			if got := w.Result().Header.Values("X-Content-Type-Options"); len(got) != 1 || got[0] != "nosniff" {
				t.Errorf("%v: %d with %q", call, w.Code, got)
			}
		}
	}
}
