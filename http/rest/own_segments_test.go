package rest_test

import (
	"log/slog"
	nethttp "net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"flagledger/http"
	"flagledger/http/quota"
	"flagledger/http/rest"
)

// A public path must not start like a route, because the path would be ambiguous.
func TestOwnSegmentsCoverAllRoutes(t *testing.T) {
	t.Parallel()
	api := http.New(http.Options{LoopbackMetrics: true, Options: rest.Options{
		Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Now: time.Now, Quotas: &quota.Tenants{},
	}})
	served := map[string]bool{}
	note := func(_, route string, _ nethttp.Handler, _ ...func(nethttp.Handler) nethttp.Handler) error {
		if first, _, _ := strings.Cut(strings.TrimPrefix(route, "/"), "/"); first != "" {
			served[first] = true
			if !slices.Contains(rest.OwnSegments, first) {
				t.Errorf("%s is served, and ownSegments lacks %s", route, first)
			}
		}
		return nil
	}
	if err := chi.Walk(api.Router, note); err != nil {
		t.Fatal(err)
	}
	for _, segment := range rest.OwnSegments {
		if !served[segment] {
			t.Errorf("nothing is served below /%s", segment)
		}
	}
}
