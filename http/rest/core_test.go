package rest

import (
	"log/slog"
	"net/http/httptest"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"flagledger/http/quota"
	"flagledger/projections/snapshot"
)

// newCore returns a core whose operations stay "starting". Its clock stands still.
func newCore(limits quota.Limits) *Core {
	a, _ := newCoreWithClock(limits)
	return a
}

// newCoreWithClock is newCore with a test clock.
func newCoreWithClock(limits quota.Limits) (*Core, *time.Time) {
	clock := new(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))
	a := New(Options{
		Reads:   2,
		Live:    snapshot.New(snapshot.Options{}),
		Metrics: prometheus.NewRegistry(),
		Log:     slog.New(slog.DiscardHandler),
		Quotas:  &quota.Tenants{Limiter: quota.NewLimiter(limits, nil, func() time.Time { return *clock })},
		Now:     func() time.Time { return *clock },
	})
	a.AddOperations(huma.DefaultConfig("test", "1"), func(chi.Router) {})
	return a, clock
}

func anonymous(n int) quota.Limits { return quota.Limits{Anonymous: n, Auth: n} }

// from makes a call from an address.
func (a *Core) from(address, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr = address
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w
}
