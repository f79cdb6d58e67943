package http

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/projections/snapshot"
	"flagledger/queries"
)

// newAPI is an interface over nothing: it is starting forever.
func newAPI(limits Limits, proxies ...netip.Prefix) *API {
	a := New(Options{
		Queries: queries.New(nil, snapshot.New()), Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
		Health: func() []string { return nil }, Limits: limits, Proxies: proxies,
	})
	a.limiter.now = func() time.Time { return a.limiter.began }
	return a
}

func anonymous(n int) Limits { return Limits{Anonymous: n, Auth: n} }

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

// shows checks the three headers of an answer.
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
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || h.Get("Retry-After") != strconv.Itoa(reset) || h.Get("Content-Type") != "application/problem+json" ||
		p.Status != status || !strings.Contains(p.Detail, "rate limit is exceeded") || !strings.Contains(p.Detail, "try again later") || p.Instance == "" {
		t.Errorf("it is refused with %v %s", h, w.Body)
	}
}

func TestAWindow(t *testing.T) {
	a := newAPI(anonymous(2))
	clock := a.limiter.began
	a.limiter.now = func() time.Time { return clock }
	call := func(status, remaining, reset int) {
		t.Helper()
		shows(t, a.from("192.0.2.1:1", "GET", "/"), status, 2, remaining, reset)
	}
	call(503, 1, 60)
	clock = clock.Add(30*time.Second + 500*time.Millisecond)
	call(503, 0, 30)
	call(429, 0, 30)
	clock = clock.Add(29 * time.Second)
	call(429, 0, 1)
	clock = clock.Add(time.Second) // as long as the last answer told to wait
	call(503, 1, 60)
	clock = clock.Add(time.Hour)
	call(503, 1, 60)
	call(503, 0, 60)
	call(429, 0, 60)
}

func TestEveryAnswerShowsTheLimit(t *testing.T) {
	a := newAPI(anonymous(100))
	remaining := 100
	for status, calls := range map[int][][]string{
		200: {{"GET", "/metrics"}, {"GET", "/docs"}, {"GET", "/openapi.json"}, {"GET", "/problems/not-found"}, {"HEAD", "/problems/not-found"}},
		400: {{"GET", "/health", "X-Correlation-ID", strings.Repeat("x", 200)}, {"GET", "/health?%00"}},
		404: {{"GET", "/nowhere"}, {"GET", "/problems/none"}, {"GET", "/nowhere", "Authorization", "Basic eDp5"}},
		405: {{"DELETE", "/health"}, {"PROPFIND", "/health"}},
		422: {{"GET", "/health", "X-Change-Reason", strings.Repeat("x", 501)}},
		503: {{"GET", "/health"}, {"GET", "/api/v1/flags"}, {"POST", "/api/v1/flags/f/evaluate"}, {"POST", "/api/v1/auth/login"}},
	} {
		for _, call := range calls {
			a.limiter.signIns = newWindows[netip.Addr](requestWindow)
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
	a := newAPI(Limits{Anonymous: 6, Auth: 2})
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
		a.limiter.addresses.giveBack(netip.MustParseAddr("192.0.2.1"))
	}
	call("/api/v1/flags", 503, 6, 3)
	call("/api/v1/auth/logout", 503, 6, 2)
	shows(t, a.from("192.0.2.2:1", "POST", "/auth/signin"), 503, 2, 1, 60)

	a = newAPI(Limits{Anonymous: 2, Auth: 10})
	call("/auth/signin", 503, 2, 1)
	call("/auth/signin", 503, 2, 0)
	call("/auth/signin", 429, 2, 0)
}

func TestWhoIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		remote, forwarded, want string
	}{
		"an address":                              {"192.0.2.1:4711", "", "192.0.2.1"},
		"whom nobody trusts":                      {"192.0.2.1:4711", "198.51.100.1", "192.0.2.1"},
		"behind a proxy":                          {"10.0.0.1:4711", "198.51.100.1", "198.51.100.1"},
		"behind two":                              {"10.0.0.1:4711", "198.51.100.1, 10.9.9.9", "198.51.100.1"},
		"what a client claims of itself":          {"10.0.0.1:4711", "203.0.113.1, 198.51.100.1,10.9.9.9", "198.51.100.1"},
		"several headers":                         {"10.0.0.1:4711", "203.0.113.1\n198.51.100.1\n10.9.9.9", "198.51.100.1"},
		"a proxy that calls by itself":            {"10.0.0.1:4711", "", "10.0.0.1"},
		"proxies alone":                           {"10.0.0.1:4711", "10.0.0.3, 10.0.0.2", "10.0.0.3"},
		"an unreadable one":                       {"10.0.0.1:4711", "198.51.100.1, unknown", "10.0.0.1"},
		"an unreadable one behind a proxy":        {"10.0.0.1:4711", "unknown,10.0.0.2", "10.0.0.2"},
		"an empty one":                            {"10.0.0.1:4711", "198.51.100.1,", "10.0.0.1"},
		"a port":                                  {"10.0.0.1:4711", "198.51.100.1:80", "198.51.100.1"},
		"IPv6":                                    {"[2001:db8:1:2:3:4:5:6]:4711", "", "2001:db8:1:2::"},
		"IPv6 with a zone":                        {"[fe80::1%eth0]:4711", "", "fe80::"},
		"IPv6 behind a proxy, in brackets":        {"[2001:db8:ffff::1]:4711", "[2001:db8:1:2::9]:443", "2001:db8:1:2::"},
		"IPv6 behind a proxy, in bare brackets":   {"[2001:db8:ffff::1]:4711", "[2001:db8:1:2::9]", "2001:db8:1:2::"},
		"IPv4 in IPv6":                            {"[::ffff:192.0.2.1]:4711", "", "192.0.2.1"},
		"IPv4 in IPv6, of a proxy":                {"[::ffff:10.0.0.1]:4711", "::ffff:198.51.100.1", "198.51.100.1"},
		"a connection that comes from no address": {"@", "", "invalid IP"},
	} {
		t.Run(name, func(t *testing.T) {
			proxies, err := ParseProxies("10.0.0.0/8, 2001:db8:ffff::1")
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = c.remote
			for line := range strings.SplitSeq(c.forwarded, "\n") {
				if line != "" {
					r.Header.Add("X-Forwarded-For", line)
				}
			}
			if got := newLimiter(DefaultLimits(), proxies).client(r).String(); got != c.want {
				t.Errorf("%s is counted, want %s", got, c.want)
			}
		})
	}
	t.Run("who cannot be counted is let pass", func(t *testing.T) {
		a := newAPI(anonymous(1))
		for range 3 {
			shows(t, a.from("@", "GET", "/nowhere"), 404, 1, 1, 60)
		}
	})
}

func TestSettingLimits(t *testing.T) {
	limits, err := ParseLimits(" free=5, enterprise = 7 ,auth=3,")
	want := DefaultLimits()
	want.Plans[events.FreePlan], want.Plans["enterprise"], want.Auth = 5, 7, 3
	if err != nil || fmt.Sprint(limits) != fmt.Sprint(want) {
		t.Errorf("%v, %v", limits, err)
	}
	for _, text := range []string{"free", "free=x", "free=0", "gold=1", "=1", "free=5;auth=3"} {
		if _, err := ParseLimits(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// However many call at once, a window lets pass as many as it should.
func TestCountingAtOnce(t *testing.T) {
	ws := newWindows[string](60)
	for turn := range uint32(3) {
		var passed atomic.Int64
		var callers sync.WaitGroup
		for caller := range uint32(8) {
			callers.Go(func() {
				now := turn*60 + caller%2 // some look at the clock later than others
				for range 1000 {
					if !ws.take("k", newRate(500), now).exceeded {
						passed.Add(1)
					}
				}
			})
		}
		callers.Wait()
		if n := passed.Load(); n != 500 {
			t.Errorf("%d passed in window %d, want 500", n, turn)
		}
	}
}

func TestAFloodOfAddresses(t *testing.T) {
	a := newAPI(anonymous(3))
	clock := a.limiter.began
	a.limiter.now = func() time.Time { return clock }
	address := func(i int) string { return fmt.Sprintf("[2001:db8:%x:%x::1]:1", i>>16, i&0xffff) }
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	req := &request{refusal: errors.New("none")}
	count := func(i int) budget {
		r.RemoteAddr = address(i)
		return a.count(r, req)
	}
	for i := range 3 * maxWindows {
		if count(i).exceeded {
			t.Fatal("one that calls for the first time is refused")
		}
		if n := a.limiter.addresses.byKey.Size(); n > maxWindows {
			t.Fatalf("%d addresses are remembered", n)
		}
	}
	t.Run("who calls too often is still refused once it is over", func(t *testing.T) {
		for range 4 {
			count(1 << 20)
		}
		clock = clock.Add(59 * time.Second)
		for i := range maxWindows / 4 {
			count(i)
		}
		if !count(1 << 20).exceeded {
			t.Error("forgotten")
		}
	})
}

func TestGuessing(t *testing.T) {
	a := newAPI(anonymous(1000))
	clock := a.limiter.began
	a.limiter.now = func() time.Time { return clock }
	req := &request{answer: http.Header{}, serviceLog: a.options.Log}
	ctx := context.WithValue(t.Context(), requestKey{}, req)
	tried := 0
	guess := func(account string, result error) error {
		return a.limitGuesses(ctx, account, func() error {
			tried++
			return result
		})
	}
	wrong := &commands.Error{Kind: commands.Unauthenticated}
	for range 100 {
		if err := guess("person me@example.com", nil); err != nil {
			t.Fatal("the right secret is refused")
		}
		if err := guess("person me@example.com", &commands.Error{Kind: commands.Unavailable}); commands.KindOf(err) != commands.Unavailable {
			t.Fatalf("an outage counts as a guess: %v", err)
		}
	}
	for range maxGuesses {
		if err := guess("person Me@Example.com ", wrong); !errors.Is(err, wrong) {
			t.Fatalf("refused too early: %v", err)
		}
	}
	tried = 0
	clock = clock.Add(14 * time.Minute)
	for _, result := range []error{wrong, nil} {
		refused, ok := errors.AsType[*problem](guess("person me@example.com", result))
		if !ok || refused.Status != 429 || refused.headers.Get("Retry-After") != "60" || tried != 0 {
			t.Fatalf("%d tried: %v", tried, refused)
		}
	}
	if got := fmt.Sprint(req.answer); got != "map[RateLimit-Limit:[20] RateLimit-Remaining:[0] RateLimit-Reset:[60]]" {
		t.Errorf("the answer shows %s", got)
	}
	if err := guess("person you@example.com", nil); err != nil {
		t.Errorf("another is refused: %v", err)
	}
	clock = clock.Add(time.Minute)
	if err := guess("person me@example.com", nil); err != nil {
		t.Errorf("refused when it is over: %v", err)
	}
}

func TestWhoIsRefusedElsewhereIsToldOneTimeToWait(t *testing.T) {
	req := &request{answer: http.Header{"RateLimit-Reset": {"17"}}, serviceLog: slog.New(slog.DiscardHandler)}
	ctx := context.WithValue(t.Context(), requestKey{}, req)
	p := problemOf(ctx, &commands.Error{Kind: commands.TooMany, Detail: "the rate limit of Firebase is exceeded"})
	if p.Status != 429 || p.headers.Get("Retry-After") != "17" {
		t.Errorf("refused with %+v", p)
	}
}

func BenchmarkLimit(b *testing.B) {
	l := newLimiter(DefaultLimits(), nil)
	l.plans[events.FreePlan] = newRate(maxLimit)
	l.anonymous = newRate(maxLimit)
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = commands.NewID()
	}
	b.Run("tenant", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			h := http.Header{}
			for pb.Next() {
				l.tenants.take(keys[rand.IntN(len(keys))], l.plans[events.FreePlan], l.second()).show(h)
			}
		})
	})
	b.Run("one tenant for all", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			h := http.Header{}
			for pb.Next() {
				l.tenants.take(keys[0], l.plans[events.FreePlan], l.second()).show(h)
			}
		})
	})
	b.Run("address", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			h := http.Header{}
			for pb.Next() {
				l.addresses.take(l.client(r), l.anonymous, l.second()).show(h)
			}
		})
	})
}
