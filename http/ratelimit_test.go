package http

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flagledger/commands"
	"flagledger/http/quota"
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
	return New(Options{
		Reads:           2,
		Live:            snapshot.New(snapshot.Options{}),
		Metrics:         prometheus.NewRegistry(),
		LoopbackMetrics: true,
		Log:             slog.New(slog.DiscardHandler),
		Troubles:        func() []string { return nil },
		Quotas:          &quota.Tenants{Limiter: quota.NewLimiter(limits, nil, func() time.Time { return *clock })},
		Now:             func() time.Time { return *clock },
	}), clock
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

// shows checks the three headers of a response.
func shows(t *testing.T, w *httptest.ResponseRecorder, status, limit, remaining, reset int) {
	t.Helper()
	h := w.Result().Header
	got := []int{w.Code}
	for _, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
		n, err := strconv.Atoi(strings.Join(h[name], ","))
		if err != nil {
			t.Fatalf("%d: %s is %q", w.Code, name, h[name])
		}
		got = append(got, n)
	}
	if want := []int{status, limit, remaining, reset}; !slices.Equal(got, want) {
		t.Errorf("status, limit, remaining and reset are %v, want %v", got, want)
	}
	if status != http.StatusTooManyRequests {
		return
	}
	var p problem
	if err := json.Unmarshal(
		w.Body.Bytes(), &p,
	); err != nil || h.Get("Retry-After") != strconv.Itoa(reset) || h.Get("Content-Type") != "application/problem+json" ||
		p.Status != status || !strings.Contains(p.Detail, "rate limit is exceeded") || !strings.Contains(p.Detail, "try again later") ||
		p.Instance == "" {
		t.Errorf("it is refused with %v %s", h, w.Body)
	}
}

func TestAWindow(t *testing.T) {
	a, clock := newAPIWithClock(anonymous(2))
	call := func(status, remaining, reset int) {
		t.Helper()
		shows(t, a.from("192.0.2.1:1", "GET", "/"), status, 2, remaining, reset)
	}
	call(503, 1, 60)
	*clock = clock.Add(30*time.Second + 500*time.Millisecond)
	call(503, 0, 30)
	call(429, 0, 30)
	*clock = clock.Add(29 * time.Second)
	call(429, 0, 1)
	*clock = clock.Add(time.Second) // as long as the last response said
	call(503, 1, 60)
	*clock = clock.Add(time.Hour)
	call(503, 1, 60)
	call(503, 0, 60)
	call(429, 0, 60)
}

func TestEveryAnswerShowsTheLimit(t *testing.T) {
	a := newAPI(quota.Limits{Anonymous: 100, Auth: 1000})
	remaining := 100
	for status, calls := range map[int][][]string{
		200: {{"GET", "/docs"}, {"GET", "/openapi.json"}, {"GET", "/problems/not-found"}, {"HEAD", "/problems/not-found"}},
		400: {{"GET", "/health", "X-Correlation-ID", strings.Repeat("x", 200)}, {"GET", "/health?%00"}},
		404: {{"GET", "/nowhere"}, {"GET", "/problems/none"}, {"GET", "/nowhere", "Authorization", "Basic eDp5"}},
		405: {{"DELETE", "/health"}, {"PROPFIND", "/health"}},
		422: {{"GET", "/health", "X-Change-Reason", strings.Repeat("x", 501)}},
		503: {{"GET", "/health"}, {"GET", "/api/v1/flags"}, {"POST", "/api/v1/flags/f/evaluate"}, {"POST", "/api/v1/auth/login"}},
	} {
		for _, call := range calls {
			w := a.from("192.0.2.1:1", call[0], call[1], call[2:]...)
			remaining--
			if w.Code != status {
				t.Errorf("%v: %d, want %d", call, w.Code, status)
			}
			shows(t, w, w.Code, 100, remaining, 60)
		}
	}
	for range remaining {
		a.from("192.0.2.1:1", "GET", "/nowhere")
	}
	for _, call := range [][2]string{{"GET", "/health"}, {"GET", "/nowhere"}, {"DELETE", "/health"}, {"GET", "/docs"}, {"POST", "/api/v1/auth/login"}} {
		shows(t, a.from("192.0.2.1:1", call[0], call[1]), 429, 100, 0, 60)
	}
}

func TestSigningInHasALimitOfItsOwn(t *testing.T) {
	a := newAPI(quota.Limits{Anonymous: 20, Auth: 2})
	call := func(path string, status, limit, remaining int) {
		t.Helper()
		shows(t, a.from("192.0.2.1:1", "POST", path), status, limit, remaining, 60)
	}
	call("/api/v1/oauth/token", 503, 2, 1)
	call("/auth/signin", 503, 2, 0)
	for _, path := range []string{"/api/v1/auth/login", "/api/v1/auth/signin/google", "/api/v1/auth/signup", "/auth/signup", "/oauth/token", "/api/v1/auth/forgot-password"} {
		if w := a.from("192.0.2.1:1", "POST", path); w.Code != 429 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	call("/api/v1/flags", 503, 20, 11)
	call("/api/v1/auth/logout", 503, 20, 10)
	shows(t, a.from("192.0.2.2:1", "POST", "/auth/signin"), 503, 2, 1, 60)

	a = newAPI(quota.Limits{Anonymous: 2, Auth: 10})
	call("/auth/signin", 503, 2, 1)
	call("/auth/signin", 503, 2, 0)
	call("/auth/signin", 429, 2, 0)
}

// A path with an escaped letter is different for the router, so it has the limit of an unknown path.
func TestEscapedPathsAreLimited(t *testing.T) {
	for _, path := range []string{"/api/v1/billing/%77ebhook", "/%61pi/v1/billing/webhook", "/api/v1/oauth/%74oken"} {
		a := newAPI(quota.Limits{Anonymous: 2, Auth: 1})
		for _, left := range []int{1, 0} {
			shows(t, a.from("192.0.2.1:1", "POST", path), 404, 2, left, 60)
		}
		shows(t, a.from("192.0.2.1:1", "POST", path), 429, 2, 0, 60)
	}
}

// A mail that may have been sent counts, even if the call failed.
func TestMailsThatMayHaveGoneOutCount(t *testing.T) {
	a := newAPI(quota.Limits{Auth: 1})
	req := &request{answer: http.Header{}, serviceLog: a.Log, received: httptest.NewRequest(http.MethodPost, "/", nil)}
	ctx := context.WithValue(t.Context(), requestKey{}, req)
	mail := func(result error) error { return a.limitMails(ctx, func() error { return result }) }
	for _, refusal := range []error{&commands.Error{Kind: commands.Conflict}, &commands.Error{Kind: commands.TooMany}, newProblem(http.StatusBadRequest, "")} {
		for range 10 {
			if err := mail(refusal); !errors.Is(err, refusal) {
				t.Fatalf("%v counts: %v", refusal, err)
			}
		}
	}
	for _, result := range []error{nil, errors.New("lost"), context.Canceled, &commands.Error{Kind: commands.Unavailable}, nil} {
		if err := mail(result); !errors.Is(err, result) {
			t.Fatalf("refused too early: %v", err)
		}
	}
	if refused, _ := errors.AsType[*problem](mail(nil)); refused == nil || refused.Status != http.StatusTooManyRequests {
		t.Error("a further mail goes out")
	}
}

func TestWhoIsRefusedElsewhereIsToldOneTimeToWait(t *testing.T) {
	req := &request{answer: http.Header{"RateLimit-Reset": {"17"}}, serviceLog: slog.New(slog.DiscardHandler)}
	ctx := context.WithValue(t.Context(), requestKey{}, req)
	p := problemOf(ctx, &commands.Error{Kind: commands.TooMany, Detail: "Firebase has seen too many attempts"})
	if p.Status != 429 || p.headers.Get("Retry-After") != "17" {
		t.Errorf("refused with %+v", p)
	}
}
