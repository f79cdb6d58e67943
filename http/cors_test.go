package http_test

import (
	"net/netip"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
)

// browser makes calls like a page of an origin.
func browser(c *nodetest.Client, origin, method, path string, body any, headers ...string) *nodetest.Answer {
	c.Service.T.Helper()
	return c.Call(method, path, body, append([]string{"Origin", origin}, headers...)...)
}

// preflight makes the request by which a browser checks whether a page of the origin may make a call.
func preflight(s *nodetest.Service, origin, path, method, headers string) *nodetest.Answer {
	s.T.Helper()
	return s.Anonymous().
		Call("OPTIONS", path, nil, "Origin", origin, "Access-Control-Request-Method", method, "Access-Control-Request-Headers", headers)
}

func allows(a *nodetest.Answer, origin string) *nodetest.Answer {
	a.T.Helper()
	nodetest.Same(a.T, "Access-Control-Allow-Origin of "+a.Call, a.Header.Get("Access-Control-Allow-Origin"), origin)
	if !strings.Contains(strings.Join(a.Header.Values("Vary"), ","), "Origin") {
		a.T.Errorf("%s: Vary is %v", a.Call, a.Header.Values("Vary"))
	}
	return a
}

const sentByBrowsers = "authorization,baggage,content-type,idempotency-key,if-match,if-none-match,last-event-id,sentry-trace,traceparent,tracestate,x-change-reason,x-correlation-id,x-environment,x-request-id,x-requested-with,x-tenant-id"

func TestBrowsersOfListedOriginsMayCall(t *testing.T) {
	t.Parallel()
	const app, other = "https://app.example.com", "http://localhost:5173"
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{Environment: "development", Origins: []string{app, other}},
		nodetest.Log(t))
	me := s.SignUp("me@example.com")
	me.CreateFlag("k", nil)
	paths := []string{
		"/api/v1/flags",
		nodetest.FlagPath("k"),
		nodetest.FlagPath("k", "/evaluate"),
		"/api/flags",
		"/auth/signin",
		"/api/v1/tenants",
		"/none",
	}
	t.Run("a preflight request is answered without credentials", func(t *testing.T) {
		s := s.In(t)
		for _, path := range paths {
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				for _, origin := range []string{app, other} {
					a := allows(preflight(s, origin, path, method, sentByBrowsers).Want(204), origin)
					nodetest.Same(
						t,
						"what is allowed",
						[]string{
							a.Header.Get("Access-Control-Allow-Methods"),
							a.Header.Get("Access-Control-Allow-Headers"),
							a.Header.Get("Access-Control-Max-Age"),
						},
						[]string{method, sentByBrowsers, "7200"},
					)
					nodetest.Same(t, "whether cookies are taken", a.Header.Get("Access-Control-Allow-Credentials"), "")
				}
			}
		}
	})
	t.Run("a preflight request shows the limits and is told of in the metrics", func(t *testing.T) {
		s := s.In(t)
		if limit, remaining, _ := budget(
			preflight(s, app, "/api/v1/flags", "GET", "authorization").Want(204),
		); limit != nodetest.Generous.Anonymous ||
			remaining < limit/2 {
			t.Errorf("it shows %d of %d", remaining, limit)
		}
		if a := preflight(s, app, "/api/v1/flags", "GET", "authorization"); a.Header.Get("X-Request-ID") == "" {
			t.Error("it has no id")
		}
		s.Eventually("they are counted", func() bool {
			return strings.Contains(string(s.Anonymous().Call("GET", "/metrics", nil).Body),
				`flagledger_http_request_duration_seconds_count{method="OPTIONS",route="unknown",status="2xx"}`)
		})
	})
	t.Run("what is not allowed is not", func(t *testing.T) {
		s := s.In(t)
		for _, origin := range []string{"https://evil.example", "https://app.example.com.evil.example", "http://app.example.com", "https://app.example.com:8443", "null", "https://sub.app.example.com"} {
			allows(preflight(s, origin, "/api/v1/flags", "GET", "authorization"), "")
			allows(browser(s.Anonymous(), origin, "GET", "/health", nil).Want(200), "")
		}
		allows(preflight(s, app, "/api/v1/flags", "TRACE", "authorization"), "")
		allows(preflight(s, app, "/api/v1/flags", "GET", "authorization,cookie"), "")
	})
	t.Run("every answer can be read, with its headers", func(t *testing.T) {
		s := s.In(t)
		me := *me
		me.Service = s
		nobody := s.Anonymous()
		for _, a := range []*nodetest.Answer{
			browser(&me, app, "GET", "/api/v1/flags?limit=1", nil).Want(200),
			browser(&me, app, "PATCH", nodetest.FlagPath("k"), `{"name":"n"}`).Want(200),
			browser(&me, app, "POST", nodetest.FlagPath("k", "/evaluate"), `{}`).Want(200),
			browser(&me, app, "GET", "/api/flags", nil).Want(200),
			browser(nobody, app, "GET", "/health", nil).Want(200),
			browser(nobody, app, "GET", "/api/v1/flags", nil).Refused(401),
			browser(&me, app, "GET", "/none", nil).Refused(404),
			browser(&me, app, "PUT", "/api/v1/flags", nil).Refused(405),
			browser(&me, app, "PATCH", nodetest.FlagPath("k"), `{}`, "If-Match", `"9"`).Refused(412),
			browser(&me, app, "PATCH", nodetest.FlagPath("k"), `{}`, "X-Change-Reason", strings.Repeat("x", 501)).Refused(422, "X-Change-Reason"),
			browser(&me, app, "PATCH", nodetest.FlagPath("k"), `{}`, "X-Correlation-ID", strings.Repeat("x", 501)).Refused(400),
		} {
			allows(a, app)
			exposed := strings.Split(a.Header.Get("Access-Control-Expose-Headers"), ", ")
			nodetest.Same(t, "what is exposed", exposed, []string{
				"Etag",
				"Retry-After",
				"Location",
				"Link",
				"X-Total-Count",
				"X-Request-Id",
				"Ratelimit-Limit",
				"Ratelimit-Remaining",
				"Ratelimit-Reset",
				"Preference-Applied",
				"Idempotent-Replayed",
				"Deprecation",
				"X-Evaluated-At",
			})
			nodetest.Same(t, "whether cookies are taken", a.Header.Get("Access-Control-Allow-Credentials"), "")
		}
		allows(me.Call("GET", "/api/v1/flags", nil).Want(200), "")
	})
}

// A page cannot read why a preflight request is refused, and all people behind one address would share its limit.
func TestPreflightRequestsAreNotCounted(t *testing.T) {
	t.Parallel()
	const app = "https://app.example.com"
	limits := nodetest.Generous
	limits.Anonymous = 500 // the test calls health until the service has started
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment:   "development",
		Origins:       []string{app},
		Limits:        limits,
		ProxyNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Now:           stopped().now,
	}, nodetest.Log(t))
	from := func(method string) *nodetest.Answer {
		return s.Anonymous().
			Call(method, "/api/v1/flags", nil, "X-Forwarded-For", "192.0.2.1", "Origin", app, "Access-Control-Request-Method", "GET")
	}
	for want := limits.Anonymous; want > 0; want-- {
		if want%100 == 0 {
			if _, remaining, _ := budget(allows(from("OPTIONS").Want(204), app)); remaining != want {
				t.Fatalf("%d are left, want %d", remaining, want)
			}
		}
		allows(from("GET").Refused(401), app)
	}
	isLimited(allows(from("GET"), app))
	if _, remaining, _ := budget(allows(from("OPTIONS").Want(204), app)); remaining != 0 {
		t.Errorf("%d are left", remaining)
	}
}

func TestBrowsersOfAllOriginsMayCall(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{Environment: "development", Origins: []string{"*"}},
		nodetest.Log(t))
	me := s.SignUp("me@example.com")
	for _, origin := range []string{"https://app.example.com", "https://any.example", "capacitor://localhost", "null"} {
		allows(preflight(s, origin, "/api/v1/flags", "POST", sentByBrowsers).Want(204), "*")
		a := allows(browser(me, origin, "GET", "/api/v1/flags", nil).Want(200), "*")
		nodetest.Same(t, "whether cookies are taken", a.Header.Get("Access-Control-Allow-Credentials"), "")
	}
}

func TestBrowsersOfOtherOriginsMayCallNothing(t *testing.T) {
	nodetest.Cases{
		"unless an origin is listed": func(t *testing.T, me *nodetest.Client) {
			preflight(me.Service, "https://app.example.com", "/api/v1/flags", "GET", "authorization").Refused(405)
			a := browser(me, "https://app.example.com", "GET", "/api/v1/flags", nil).Want(200)
			nodetest.Same(t, "headers",
				[]bool{a.Header.Get("Access-Control-Allow-Origin") == "", strings.Contains(a.Header.Get("Vary"), "Origin")},
				[]bool{true, false})
		},
	}.Run(t)
}
