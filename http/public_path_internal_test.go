package http

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"flagledger/http/quota"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
)

// A public path must not start like a route, because the path would be ambiguous.
func TestOwnSegmentsCoverAllRoutes(t *testing.T) {
	t.Parallel()
	api := New(Options{
		Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Now: time.Now, LoopbackMetrics: true,
		Quotas: &quota.Tenants{},
	})
	served := map[string]bool{}
	note := func(_, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if first, _, _ := strings.Cut(strings.TrimPrefix(route, "/"), "/"); first != "" {
			served[first] = true
			if !slices.Contains(ownSegments, first) {
				t.Errorf("%s is served, and ownSegments lacks %s", route, first)
			}
		}
		return nil
	}
	if err := chi.Walk(api.router, note); err != nil {
		t.Fatal(err)
	}
	for _, segment := range ownSegments {
		if !served[segment] {
			t.Errorf("nothing is served below /%s", segment)
		}
	}
}

func TestPublicPathIsRemovedFromPaths(t *testing.T) {
	t.Parallel()
	api := New(Options{
		Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Now: time.Now,
		PublicURL: "https://example.com/tools/flags", Quotas: &quota.Tenants{},
	})
	for path, want := range map[string]string{
		"/tools/flags/health": "/health", "/health": "/health", "/tools/flags": "/", "/tools/flags/": "/",
		"/tools/flags//health/": "/health", "//tools/flags/health": "/health", "/tools/flagsx": "/tools/flagsx",
		"/tools": "/tools", "/": "/", "//": "/", "*": "*", "/tools/flags/tools/flags": "/tools/flags",
		"/a%2F/": "/a%2F", "/a//": "/a/",
	} {
		if got := api.ownPath(path); got != want {
			t.Errorf("%s is read as %s, want %s", path, got, want)
		}
	}
}
