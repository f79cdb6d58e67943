package http

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"flagledger/http/quota"
	"flagledger/http/rest"
)

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
	var p rest.Problem
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

func TestNothingIsServedBeforeItIsReady(t *testing.T) {
	a := newAPI(anonymous(10))
	if w := a.from("192.0.2.1:1", http.MethodGet, "/api/v1/version"); w.Code != http.StatusServiceUnavailable ||
		w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
