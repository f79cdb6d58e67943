package main

import (
	"net/netip"
	"strings"
	"testing"

	"flagledger/migrations/pgtest"
)

// browser makes calls as the page of an origin does.
func (c *client) browser(origin, method, path string, body any, headers ...string) *answer {
	c.s.t.Helper()
	return c.call(method, path, body, append([]string{"Origin", origin}, headers...)...)
}

// preflight asks, as a browser does before it makes a call, whether the page of an origin may make it.
func (s *service) preflight(origin, path, method, headers string) *answer {
	s.t.Helper()
	return s.anonymous().call("OPTIONS", path, nil, "Origin", origin, "Access-Control-Request-Method", method, "Access-Control-Request-Headers", headers)
}

func (a *answer) allows(origin string) *answer {
	a.t.Helper()
	same(a.t, "Access-Control-Allow-Origin of "+a.call, a.header.Get("Access-Control-Allow-Origin"), origin)
	if !strings.Contains(strings.Join(a.header.Values("Vary"), ","), "Origin") {
		a.t.Errorf("%s: Vary is %v", a.call, a.header.Values("Vary"))
	}
	return a
}

const sentByBrowsers = "authorization,content-type,idempotency-key,if-match,if-none-match,last-event-id,x-change-reason,x-correlation-id,x-environment,x-request-id,x-tenant-id"

func TestBrowsersOfListedOriginsMayCall(t *testing.T) {
	t.Parallel()
	const app, other = "https://app.example.com", "http://localhost:5173"
	s := serviceWith(t, pgtest.URL(t), config{EventStoreURL: engineURL(t), Environment: "development", Origins: []string{app, other}}, testLog(t))
	me := s.signUp("me@example.com")
	me.createFlag("k", nil)
	paths := []string{"/api/v1/flags", flagPath("k"), flagPath("k", "/evaluate"), "/api/flags", "/auth/signin", "/api/v1/tenants", "/none"}
	t.Run("a preflight request is answered without credentials", func(t *testing.T) {
		s := s.in(t)
		for _, path := range paths {
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				for _, origin := range []string{app, other} {
					a := s.preflight(origin, path, method, sentByBrowsers).want(204).allows(origin)
					same(t, "what is allowed", []string{a.header.Get("Access-Control-Allow-Methods"), a.header.Get("Access-Control-Allow-Headers"), a.header.Get("Access-Control-Max-Age")},
						[]string{method, sentByBrowsers, "7200"})
					same(t, "whether cookies are taken", a.header.Get("Access-Control-Allow-Credentials"), "")
				}
			}
		}
	})
	t.Run("a preflight request shows the limits and is told of in the metrics", func(t *testing.T) {
		s := s.in(t)
		if limit, remaining, _ := s.preflight(app, "/api/v1/flags", "GET", "authorization").want(204).budget(); limit != generous.Anonymous || remaining < limit/2 {
			t.Errorf("it shows %d of %d", remaining, limit)
		}
		if a := s.preflight(app, "/api/v1/flags", "GET", "authorization"); a.header.Get("X-Request-ID") == "" {
			t.Error("it has no id")
		}
		s.eventually("they are counted", func() bool {
			return strings.Contains(string(s.anonymous().call("GET", "/metrics", nil).body), `flagledger_http_request_duration_seconds_count{method="OPTIONS",route="unknown",status="2xx"}`)
		})
	})
	t.Run("what is not allowed is not", func(t *testing.T) {
		s := s.in(t)
		for _, origin := range []string{"https://evil.example", "https://app.example.com.evil.example", "http://app.example.com", "https://app.example.com:8443", "null", "https://sub.app.example.com"} {
			s.preflight(origin, "/api/v1/flags", "GET", "authorization").allows("")
			s.anonymous().browser(origin, "GET", "/health", nil).want(200).allows("")
		}
		s.preflight(app, "/api/v1/flags", "TRACE", "authorization").allows("")
		s.preflight(app, "/api/v1/flags", "GET", "authorization,cookie").allows("")
	})
	t.Run("every answer can be read, with its headers", func(t *testing.T) {
		s := s.in(t)
		me := *me
		me.s = s
		nobody := s.anonymous()
		for _, a := range []*answer{
			me.browser(app, "GET", "/api/v1/flags?limit=1", nil).want(200),
			me.browser(app, "PATCH", flagPath("k"), `{"name":"n"}`).want(200),
			me.browser(app, "POST", flagPath("k", "/evaluate"), `{}`).want(200),
			me.browser(app, "GET", "/api/flags", nil).want(200),
			nobody.browser(app, "GET", "/health", nil).want(200),
			nobody.browser(app, "GET", "/api/v1/flags", nil).refused(401),
			me.browser(app, "GET", "/none", nil).refused(404),
			me.browser(app, "PUT", "/api/v1/flags", nil).refused(405),
			me.browser(app, "PATCH", flagPath("k"), `{}`, "If-Match", `"9"`).refused(412),
			me.browser(app, "PATCH", flagPath("k"), `{}`, "X-Change-Reason", strings.Repeat("x", 501)).refused(422, "X-Change-Reason"),
			me.browser(app, "PATCH", flagPath("k"), `{}`, "X-Correlation-ID", strings.Repeat("x", 501)).refused(400),
		} {
			a.allows(app)
			exposed := strings.Split(a.header.Get("Access-Control-Expose-Headers"), ", ")
			same(t, "what is exposed", exposed, []string{
				"Etag", "Retry-After", "Location", "Link", "X-Total-Count", "X-Request-Id", "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset",
				"Preference-Applied", "Idempotent-Replayed", "Deprecation",
			})
			same(t, "whether cookies are taken", a.header.Get("Access-Control-Allow-Credentials"), "")
		}
		me.call("GET", "/api/v1/flags", nil).want(200).allows("")
	})
}

// A page cannot read why a preflight request is refused, and all who sit behind one address would share its limit.
func TestPreflightRequestsAreNotCounted(t *testing.T) {
	t.Parallel()
	const app = "https://app.example.com"
	limits := generous
	limits.Anonymous = 1000 // the service is asked for its health until it has started
	s := serviceWith(t, pgtest.URL(t), config{
		EventStoreURL: engineURL(t), Environment: "development", Origins: []string{app}, limits: limits, proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}, testLog(t))
	from := func(method string) *answer {
		return s.anonymous().call(method, "/api/v1/flags", nil, "X-Forwarded-For", "192.0.2.1", "Origin", app, "Access-Control-Request-Method", "GET")
	}
	for want := 1000; want > 0; want-- {
		if _, remaining, _ := from("OPTIONS").want(204).allows(app).budget(); remaining != want {
			t.Fatalf("%d are left, want %d", remaining, want)
		}
		from("GET").refused(401).allows(app)
	}
	from("GET").allows(app).limited()
	if _, remaining, _ := from("OPTIONS").want(204).allows(app).budget(); remaining != 0 {
		t.Errorf("%d are left", remaining)
	}
}

func TestBrowsersOfAllOriginsMayCall(t *testing.T) {
	t.Parallel()
	s := serviceWith(t, pgtest.URL(t), config{EventStoreURL: engineURL(t), Environment: "development", Origins: []string{"*"}}, testLog(t))
	me := s.signUp("me@example.com")
	for _, origin := range []string{"https://app.example.com", "https://any.example", "capacitor://localhost", "null"} {
		s.preflight(origin, "/api/v1/flags", "POST", sentByBrowsers).want(204).allows("*")
		a := me.browser(origin, "GET", "/api/v1/flags", nil).want(200).allows("*")
		same(t, "whether cookies are taken", a.header.Get("Access-Control-Allow-Credentials"), "")
	}
}

func TestBrowsersOfOtherOriginsMayCallNothing(t *testing.T) {
	cases{
		"unless an origin is listed": func(t *testing.T, me *client) {
			me.s.preflight("https://app.example.com", "/api/v1/flags", "GET", "authorization").refused(405)
			a := me.browser("https://app.example.com", "GET", "/api/v1/flags", nil).want(200)
			same(t, "headers", []string{a.header.Get("Access-Control-Allow-Origin"), a.header.Get("Vary")}, []string{"", ""})
		},
	}.run(t)
}
