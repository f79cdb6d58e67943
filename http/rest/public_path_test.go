package rest

import (
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flagledger/http/quota"
)

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
