package http

import (
	"log/slog"
	"net/http/httptest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flagledger/http/quota"
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
)

// newAPI returns an API without parts, which stays "starting". Its clock stands still.
func newAPI(limits quota.Limits) *API {
	a, _ := newAPIWithClock(limits)
	return a
}

// newAPIWithClock is newAPI with a test clock.
func newAPIWithClock(limits quota.Limits) (*API, *time.Time) {
	clock := new(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))
	return New(Options{Options: rest.Options{
		Reads:   2,
		Live:    snapshot.New(snapshot.Options{}),
		Metrics: prometheus.NewRegistry(),
		Log:     slog.New(slog.DiscardHandler),
		Quotas:  &quota.Tenants{Limiter: quota.NewLimiter(limits, nil, func() time.Time { return *clock })},
		Now:     func() time.Time { return *clock },
	}, LoopbackMetrics: true, Troubles: func() []string { return nil }}), clock
}

func anonymous(n int) quota.Limits { return quota.Limits{Anonymous: n, Auth: n} }

// from makes a call from an address.
func (a *API) from(address, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr = address
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w
}
