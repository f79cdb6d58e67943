package http_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
)

func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

func TestRoutes(t *testing.T) {
	nodetest.Cases{
		"routes that do not exist are 404": func(_ *testing.T, me *nodetest.Client) {
			for _, path := range []string{
				"/nope", "/api", "/api/v1", "/api/v1/nope", "/api/v1/flags//", "/api/v1/flags/k//", "/api/v2/flags", "/api/v1//flags", "/%2Fhealth", "/health%2F", "/docs/nope/nope", "/problems", "/problems/nope",
				"/api/v1/flags/k/variations/a/b", "/health//", "/api/v1/billing/features", "/%F0%9F%98%80", "/a%0Ab", "/" + strings.Repeat("a/", 1000),
			} {
				me.Call("GET", path, nil).Refused(404)
				withToken(me, "").Call("GET", path, nil).Refused(404)
			}
			me.Call("BREW", "/nope", nil).Refused(404)
			for _, path := range []string{"/%ff", "/%00", "/api/v1/flags/%c3%28", "/health?x=%ff", "/health?%zz"} {
				me.Call("GET", path, nil).Refused(400)
			}
		},
		"methods that a route does not take are 405 with those that it takes": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for _, test := range []struct{ method, path, allow string }{
				{"PUT", "/api/v1/flags", "GET, HEAD, POST"}, {"DELETE", "/api/v1/flags", "GET, HEAD, POST"}, {"POST", nodetest.FlagPath("k"), "GET, HEAD, PATCH, DELETE"},
				{"PUT", nodetest.FlagPath("a%2Fb"), "GET, HEAD, PATCH, DELETE"}, {"OPTIONS", nodetest.FlagPath("k"), "GET, HEAD, PATCH, DELETE"}, {"BREW", nodetest.FlagPath("k"), "GET, HEAD, PATCH, DELETE"},
				{"GET", nodetest.FlagPath("k", "/enable"), "POST"}, {"HEAD", nodetest.FlagPath("k", "/enable"), "POST"}, {"GET", nodetest.FlagPath("k", "/evaluate"), "POST"}, {"DELETE", nodetest.FlagPath("k", "/history"), "GET, HEAD"},
				{"POST", nodetest.FlagPath("k", "/variations/x"), "PATCH, DELETE"}, {"POST", "/health", "GET, HEAD"}, {"POST", "/", "GET, HEAD"}, {"POST", "/metrics", "GET, HEAD"},
				{"GET", "/api/v1/auth/logout", "POST"}, {"GET", "/auth/signin", "POST"}, {"PATCH", "/openapi.json", "GET, HEAD"}, {"POST", "/problems/conflict", "GET, HEAD"},
			} {
				a := me.Call(test.method, test.path, nil)
				if test.method == "HEAD" {
					a.Want(405)
				} else {
					a.Refused(405)
				}
				nodetest.Same(t, "Allow of "+a.Call, a.Header.Get("Allow"), test.allow)
			}
		},
		"HEAD answers as GET does, without the body": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for _, path := range []string{"/", "/health", "/openapi.json", "/metrics", "/api/v1/flags?limit=1", nodetest.FlagPath("k"), nodetest.FlagPath("none")} {
				get, head := me.Call("GET", path, nil), me.Call("HEAD", path, nil)
				nodetest.Same(
					t,
					"HEAD "+path,
					[]any{
						head.Status,
						len(head.Body),
						head.Header.Get("Content-Type"),
						head.Header.Get("ETag"),
						head.Header.Get("X-Total-Count"),
					},
					[]any{get.Status, 0, get.Header.Get("Content-Type"), get.Header.Get("ETag"), get.Header.Get("X-Total-Count")},
				)
			}
		},
	}.Run(t)
}

func TestAnswersToAnyone(t *testing.T) {
	const flags = "/api/v1/flags"
	nodetest.Cases{
		"every problem has a type that explains itself": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			project, path := me.CreateProject("p")
			me.CreateFlag("in-p", map[string]any{"projectId": project})
			seen := map[string]bool{}
			for status, a := range map[int]*nodetest.Answer{
				400: me.Call("POST", flags, "{"), 401: withToken(me, "").Call("GET", flags, nil), 403: me.Call("GET", flags, nil, "X-Tenant-ID", "none"), 404: me.Call("GET", "/nope", nil),
				405: me.Call("PUT", flags, nil), 409: me.Call("DELETE", path, nil), 412: me.Call("DELETE", nodetest.FlagPath("k"), nil, "If-Match", `"9"`),
				415: me.Call("POST", flags, "{}", "Content-Type", "text/plain"), 422: me.Call("POST", flags, "{}"),
			} {
				a.Want(status)
				p := a.Object()
				want := []string{"type", "title", "status", "detail", "instance"}
				if status == 422 {
					want = append(want, "errors")
					nodetest.Same(t, "the detail of 422", p["detail"], "validation failed")
				}
				nodetest.Members(t, fmt.Sprint(status), p, want...)
				kind := strings.TrimPrefix(p["type"].(string), me.Service.URL)
				if !strings.HasPrefix(kind, "/problems/") || seen[kind] {
					t.Errorf("%d has the type %v", status, p["type"])
				}
				seen[kind] = true
				explained := withToken(me, "").Call("GET", kind, nil).
					Want(200).
					Shows(map[string]any{"type": p["type"], "title": p["title"], "status": status})
				if explained.Object()["description"] == "" {
					t.Errorf("%s is not explained", kind)
				}
				nodetest.Same(t, "the title", p["title"],
					map[bool]string{true: http.StatusText(status), false: "Unprocessable Entity"}[status != 422])
			}
		},
		"each request has an id, the caller's if it is a UUID": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			seen := map[string]bool{}
			for _, path := range []string{"/", "/health", "/nope", "/metrics", "/api/v1/flags", nodetest.FlagPath("k"), nodetest.FlagPath("none")} {
				for _, sent := range []string{"", "not-a-uuid", "123"} {
					id := me.Call("GET", path, nil, "X-Request-ID", sent).Header.Get("X-Request-ID")
					if uuid.Validate(id) != nil || seen[id] {
						t.Errorf("GET %s: X-Request-ID is %q", path, id)
					}
					seen[id] = true
				}
				sent := uuid.NewString()
				nodetest.Same(t, "X-Request-ID", me.Call("GET", path, nil, "X-Request-ID", sent).Header.Get("X-Request-ID"), sent)
				nodetest.Same(t, "X-Request-ID",
					me.Call("GET", path, nil, "X-Request-ID", strings.ToUpper(sent)).Header.Get("X-Request-ID"), sent)
			}
			id := uuid.NewString()
			nodetest.Same(
				t,
				"instance",
				me.Call("GET", nodetest.FlagPath("none"), nil, "X-Request-ID", id).Refused(404).Object()["instance"],
				"urn:uuid:"+id,
			)
			me.Evaluate("none", `{}`, "X-Request-ID", id).Refused(404).Shows(map[string]any{"instance": "urn:uuid:" + id})
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"n"}`, "X-Request-ID", id).Want(200)
			nodetest.Same(t, "requestId in the history", me.History("k", "")[0]["requestId"], id)
			me.Call("GET", "/health", nil, "X-Correlation-ID", strings.Repeat("x", 129)).Refused(400)
			me.Call("GET", "/health", nil, "X-Correlation-ID", "trace-1").Want(200)
		},
		"the service tells its health, name and version to anyone": func(t *testing.T, me *nodetest.Client) {
			nobody := withToken(me, "")
			me.Service.Eventually("the read models are looked at once more after they were built", func() bool {
				return nobody.Call("GET", "/health", nil).Want(200).Object()["status"] == "ok"
			})
			health := nobody.Call("GET", "/health", nil)
			nodetest.Members(t, "health", health.Object(), "status", "timestamp")
			checkTimes(t, health.Object())
			root := nobody.Call("GET", "/", nil).Want(200).Shows(map[string]any{"name": "flagledger", "version": "1.0.0"})
			nodetest.Members(t, "root", root.Object(), "name", "version")
			version := nobody.Call("GET", "/api/v1/version", nil).
				Want(200).
				Shows(map[string]any{"version": "1.0.0", "environment": "development", "build_number": "dev", "status": "ok"})
			nodetest.Members(t, "version", version.Object(), "version", "build_number", "status", "timestamp", "environment")
			checkTimes(t, version.Object())
			for _, a := range []*nodetest.Answer{health, root, version} {
				nodetest.Same(t, "Content-Type", a.Header.Get("Content-Type"), "application/json")
			}
		},
		"metrics count by route, never by what a caller makes up": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("a-key-that-metrics-must-not-show", nil)
			me.Call("GET", "/made-up-path", nil).Refused(404)
			me.Call("BREW", nodetest.FlagPath("k"), nil).Refused(405)
			me.Evaluate("a-key-that-metrics-must-not-show", `{}`).Want(200)
			text := string(withToken(me, "").Call("GET", "/metrics", nil).Want(200).Body)
			for _, want := range []string{
				`flagledger_http_request_duration_seconds_count{method="POST",route="/api/v1/flags",status="2xx"}`,
				`flagledger_http_request_duration_seconds_count{method="POST",route="/api/v1/flags/{flagKey}/evaluate",status="2xx"}`,
				`route="unknown",status="4xx"`, `flagledger_append_duration_seconds_count`, `flagledger_events_appended_total{type="flag.created"}`,
				`flagledger_projection_lag_events{projection="flags"}`, `flagledger_projection_lag_seconds{projection="audit"}`, `flagledger_snapshot_age_seconds`, `flagledger_projection_parked_streams{`,
				`go_goroutines`, `process_cpu_seconds_total`,
			} {
				if !strings.Contains(text, want) {
					t.Errorf("there is no %s", want)
				}
			}
			for _, bad := range []string{"made-up-path", "BREW", "must-not-show"} {
				if strings.Contains(text, bad) {
					t.Errorf("a caller can make metrics named %s", bad)
				}
			}
		},
		"the page of the interface comes from the binary alone": func(t *testing.T, me *nodetest.Client) {
			page := withToken(me, "").Call("GET", "/docs", nil).Want(200)
			if !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") ||
				!strings.Contains(string(page.Body), "/openapi.json") {
				t.Errorf("the page is %s: %s", page.Header.Get("Content-Type"), page.Body)
			}
			sources := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(string(page.Body), -1)
			if len(sources) == 0 {
				t.Errorf("the page has no script: %s", page.Body)
			}
			for _, source := range sources {
				if !strings.HasPrefix(source[1], "/") {
					t.Errorf("the page loads %s", source[1])
					continue
				}
				withToken(me, "").Call("GET", source[1], nil).Want(200)
			}
			if regexp.MustCompile(`<script[^>]*>[^<]|<style|\son\w+=`).Match(page.Body) {
				t.Errorf("the page has inline scripts or styles: %s", page.Body)
			}
			policy := page.Header.Get("Content-Security-Policy")
			if !strings.Contains(policy, "default-src 'self'") || !strings.Contains(policy, "frame-ancestors 'none'") ||
				strings.Contains(policy, "script-src") ||
				strings.Contains(policy, "http") {
				t.Errorf("Content-Security-Policy is %q", policy)
			}
		},
	}.Run(t)
}
