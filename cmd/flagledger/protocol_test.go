package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestProtocol(t *testing.T) {
	const flags = "/api/v1/flags"
	cases{
		"JSON that is malformed or ambiguous is 400": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			member := `"key":"n","type":"json"`
			for what, body := range map[string]string{
				"nothing":                     "",
				"white space":                 " \n",
				"cut off":                     `{` + member,
				"text after it":               `{` + member + `}x`,
				"an object after it":          `{` + member + `}{}`,
				"a member twice":              `{` + member + `,"key":"m"}`,
				"a member twice, escaped":     `{` + member + `,"k\u0065y":"m"}`,
				"a member twice in a value":   `{` + member + `,"defaultValue":{"a":[{"b":1,"b":2}]}}`,
				"no UTF-8":                    `{` + member + ",\"name\":\"\xff\"}",
				"no UTF-8 in a value":         `{` + member + ",\"defaultValue\":[\"\xc3\"]}",
				"no UTF-8 in a name":          `{` + member + ",\"\xff\":1}",
				"half a surrogate pair":       `{` + member + `,"name":"\ud83d"}`,
				"half a pair in a value":      `{` + member + `,"defaultValue":["\udc00"]}`,
				"NUL":                         `{` + member + `,"name":"a\u0000b"}`,
				"NUL in a value":              `{` + member + `,"defaultValue":["\u0000"]}`,
				"NUL in a name":               `{` + member + `,"defaultValue":{"\u0000":1}}`,
				"NUL after a backslash":       `{` + member + `,"name":"\\\u0000"}`,
				"a raw NUL":                   `{` + member + ",\"name\":\"a\x00b\"}",
				"a raw line break":            `{` + member + ",\"name\":\"a\nb\"}",
				"a comma too many":            `{` + member + `,}`,
				"single quotes":               `{'key':'n'}`,
				"a comment":                   `{` + member + `/**/}`,
				"a byte order mark":           "\ufeff{" + member + "}",
				"a number with leading zero":  `{` + member + `,"defaultValue":01}`,
				"NaN":                         `{` + member + `,"defaultValue":NaN}`,
				"a bad escape":                `{` + member + `,"name":"\x"}`,
				"UTF-16":                      "\xff\xfe{\x00}\x00",
				"65 levels":                   `{` + member + `,"defaultValue":` + nested(64) + `}`,
				"65 levels of objects":        `{` + member + `,"defaultValue":` + strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64) + `}`,
				"100,000 levels":              `{` + member + `,"defaultValue":` + nested(100_000) + `}`,
				"100,000 levels never closed": strings.Repeat("[", 100_000),
			} {
				for _, call := range [][2]string{{"POST", flags}, {"PATCH", flagPath("k")}, {"POST", flagPath("k", "/evaluate")}, {"POST", flagPath("k", "/variations")}, {"POST", "/auth/signin"}} {
					if a := me.call(call[0], call[1], body); a.status != 400 {
						t.Errorf("%s: %s answers %d: %s", what, a.call, a.status, a.body)
					} else {
						a.refused(400)
					}
				}
			}
			same(t, "keys", me.keys(""), []string{"k"})
			me.createFlag("deep", map[string]any{"type": "json"})
			me.call("PATCH", flagPath("deep"), `{"defaultValue":`+nested(63)+`}`).want(200)
			me.evaluate("deep", `{"attributes":{"a":`+nested(62)+`}}`).want(200)
			me.evaluate("deep", `{"attributes":{"a":`+nested(63)+`}}`).refused(400)
			me.call("POST", flags, `{"key":"brackets","type":"string","defaultValue":"`+strings.Repeat("[", 100)+`\"{{"}`).want(201)
			me.call("POST", flags, `{"key":"escapes","type":"string","defaultValue":"\\u0000"}`).want(201)
		},
		"members that do not exist are 422, all of them": func(_ *testing.T, me *client) {
			me.createFlag("k", nil)
			me.call("POST", flags, `{"key":"n","KEY":"m","type":"json"}`).refused(422, "KEY")
			me.call("POST", flags, `{"Key":"n","Type":"json","TYPE":"json","bogus":1,"":2}`).refused(422, "Key", "Type", "TYPE", "bogus", "", "key", "type")
			me.call("POST", flags, `{"key":"n","type":"json","flag_variations":[{"Name":"v"},{"name":"w","VALUE":1}]}`).refused(422, "flag_variations[0].Name", "flag_variations[0].name", "flag_variations[0].value", "flag_variations[1].VALUE", "flag_variations[1].value")
			me.call("PATCH", flagPath("k"), `{"Name":"x","ENABLED":true}`).refused(422, "Name", "ENABLED")
			me.call("POST", flagPath("k", "/variations"), `{"name":"v","value":{"any":{"Name":1}},"Weight":1}`).refused(422, "Weight", "value")
			me.evaluate("k", `{"TARGETINGKEY":"u","bogus":1,"targetingKey":2,"attributes":{"any":3}}`).refused(422, "TARGETINGKEY", "bogus", "targetingKey")
			me.evaluate("k", `{"attributes":{"any":1,"ANY":2}}`).want(200)
			me.call("GET", flagPath("k"), nil).want(200).shows(map[string]any{"version": 1})
		},
		"a body of another shape is 422": func(_ *testing.T, me *client) {
			for _, body := range []string{"null", "[]", `"text"`, "1", "true"} {
				me.call("POST", flags, body).refused(422, "body")
			}
		},
		"only application/json is taken": func(_ *testing.T, me *client) {
			me.createFlag("k", nil)
			for i, media := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON", "application/json;charset=utf-8", " application/json ; a=b"} {
				me.call("POST", flags, fmt.Sprintf(`{"key":"m%d","type":"json"}`, i), "Content-Type", media).want(201)
				me.evaluate("k", `{}`, "Content-Type", media).want(200)
			}
			for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/xml", "application/merge-patch+json", "application/jsonx", "json", "application/json+x", "application/vnd.x+json; a=b"} {
				for _, call := range [][2]string{{"POST", flags}, {"PATCH", flagPath("k")}, {"POST", flagPath("k", "/evaluate")}, {"POST", flagPath("k", "/variations")}, {"POST", "/api/v1/auth/login"}, {"POST", "/auth/signin"}} {
					me.call(call[0], call[1], `{}`, "Content-Type", media).refused(415)
				}
			}
		},
		"a body may have 1 MiB": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			padded := func(body string, size int) string { return body + strings.Repeat(" ", size-len(body)) }
			const limit = 1 << 20
			me.call("POST", flags, padded(`{"key":"fits","type":"json"}`, limit)).want(201)
			me.call("POST", flags, padded(`{"key":"large","type":"json"}`, limit+1)).refused(400)
			me.call("POST", flags, padded(`{"key":"large","type":"json"}`, 3*limit)).refused(400)
			me.evaluate("k", padded(`{}`, limit)).want(200)
			me.evaluate("k", padded(`{}`, limit+1)).refused(400)
			same(t, "keys", me.keys(""), []string{"fits", "k"})
		},
		"a large value is kept, one too large for a fact is 422": func(t *testing.T, me *client) {
			value := func(size int) string { return `"` + strings.Repeat("x", size) + `"` }
			me.call("POST", flags, `{"key":"large","type":"string","defaultValue":`+value(1_000_000)+`}`).want(201)
			same(t, "the value", len(me.evaluate("large", `{}`).want(200).raw("value")), 1_000_002)
			me.call("POST", flags, `{"key":"larger","type":"string","defaultValue":`+value(1<<20-100)+`}`).refused(422, "body")
			me.call("GET", flagPath("larger"), nil).refused(404)
		},
		"long lists are refused as fast as short ones": func(_ *testing.T, me *client) {
			var tags, variations strings.Builder
			for i := range 40_000 {
				fmt.Fprintf(&tags, `,"t%d"`, i)
				variations.WriteString(`,{"value":1}`)
			}
			me.call("POST", flags, `{"key":"k","type":"json","tags":["t"`+tags.String()+`]}`).refused(422, "tags")
			if a := me.call("POST", flags, `{"key":"k","type":"json","flag_variations":[{"value":1}`+variations.String()+`]}`).want(422); len(a.body) > 100_000 {
				me.s.t.Errorf("the answer has %d bytes", len(a.body))
			}
			me.call("POST", flags, `{"key":"k","type":"json","tags":[""`+strings.Repeat(`,""`, 40_000)+`]}`).refused(422, "tags[0]")
		},
		"routes that do not exist are 404": func(_ *testing.T, me *client) {
			for _, path := range []string{
				"/nope", "/api", "/api/v1", "/api/v1/nope", "/api/v1/flags/", "/api/v1/flags/k/", "/api/v2/flags", "//", "/api/v1//flags", "/docs/nope/nope", "/problems", "/problems/nope",
				"/api/v1/flags/k/variations/a/b", "/health/", "/api/v1/billing/subscription", "/%F0%9F%98%80", "/a%0Ab", "/" + strings.Repeat("a/", 1000),
			} {
				me.call("GET", path, nil).refused(404)
				me.with("").call("GET", path, nil).refused(404)
			}
			me.call("BREW", "/nope", nil).refused(404)
			for _, path := range []string{"/%ff", "/%00", "/api/v1/flags/%c3%28", "/health?x=%ff", "/health?%zz"} {
				me.call("GET", path, nil).refused(400)
			}
		},
		"methods that a route does not take are 405 with those that it takes": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			for _, test := range []struct{ method, path, allow string }{
				{"PUT", "/api/v1/flags", "GET, HEAD, POST"}, {"DELETE", "/api/v1/flags", "GET, HEAD, POST"}, {"POST", flagPath("k"), "GET, HEAD, PATCH, DELETE"},
				{"PUT", flagPath("a%2Fb"), "GET, HEAD, PATCH, DELETE"}, {"OPTIONS", flagPath("k"), "GET, HEAD, PATCH, DELETE"}, {"BREW", flagPath("k"), "GET, HEAD, PATCH, DELETE"},
				{"GET", flagPath("k", "/enable"), "POST"}, {"HEAD", flagPath("k", "/enable"), "POST"}, {"GET", flagPath("k", "/evaluate"), "POST"}, {"DELETE", flagPath("k", "/history"), "GET, HEAD"},
				{"POST", flagPath("k", "/variations/x"), "PATCH, DELETE"}, {"POST", "/health", "GET, HEAD"}, {"POST", "/", "GET, HEAD"}, {"POST", "/metrics", "GET, HEAD"},
				{"GET", "/api/v1/auth/logout", "POST"}, {"GET", "/auth/signin", "POST"}, {"PATCH", "/openapi.json", "GET, HEAD"}, {"POST", "/problems/conflict", "GET, HEAD"},
			} {
				a := me.call(test.method, test.path, nil)
				if test.method == "HEAD" {
					a.want(405)
				} else {
					a.refused(405)
				}
				same(t, "Allow of "+a.call, a.header.Get("Allow"), test.allow)
			}
		},
		"HEAD answers as GET does, without the body": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			for _, path := range []string{"/", "/health", "/openapi.json", "/metrics", "/api/v1/flags?limit=1", flagPath("k"), flagPath("none")} {
				get, head := me.call("GET", path, nil), me.call("HEAD", path, nil)
				same(t, "HEAD "+path, []any{head.status, len(head.body), head.header.Get("Content-Type"), head.header.Get("ETag"), head.header.Get("X-Total-Count")},
					[]any{get.status, 0, get.header.Get("Content-Type"), get.header.Get("ETag"), get.header.Get("X-Total-Count")})
			}
		},
		"every problem has a type that explains itself": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			project, path := me.createProject("p")
			me.createFlag("in-p", map[string]any{"projectId": project})
			seen := map[string]bool{}
			for status, a := range map[int]*answer{
				400: me.call("POST", flags, "{"), 401: me.with("").call("GET", flags, nil), 403: me.call("GET", flags, nil, "X-Tenant-ID", "none"), 404: me.call("GET", "/nope", nil),
				405: me.call("PUT", flags, nil), 409: me.call("DELETE", path, nil), 412: me.call("DELETE", flagPath("k"), nil, "If-Match", `"9"`),
				415: me.call("POST", flags, "{}", "Content-Type", "text/plain"), 422: me.call("POST", flags, "{}"),
			} {
				a.want(status)
				p := a.object()
				want := []string{"type", "title", "status", "detail", "instance"}
				if status == 422 {
					want = append(want, "errors")
					same(t, "the detail of 422", p["detail"], "validation failed")
				}
				members(t, fmt.Sprint(status), p, want...)
				kind := strings.TrimPrefix(p["type"].(string), me.s.url)
				if !strings.HasPrefix(kind, "/problems/") || seen[kind] {
					t.Errorf("%d has the type %v", status, p["type"])
				}
				seen[kind] = true
				explained := me.with("").call("GET", kind, nil).want(200).shows(map[string]any{"type": p["type"], "title": p["title"], "status": status})
				if explained.object()["description"] == "" {
					t.Errorf("%s is not explained", kind)
				}
				same(t, "the title", p["title"], map[bool]string{true: http.StatusText(status), false: "Unprocessable Entity"}[status != 422])
			}
		},
		"each request has an id, the caller's if it is a UUID": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			seen := map[string]bool{}
			for _, path := range []string{"/", "/health", "/nope", "/metrics", "/api/v1/flags", flagPath("k"), flagPath("none")} {
				for _, sent := range []string{"", "not-a-uuid", "123"} {
					id := me.call("GET", path, nil, "X-Request-ID", sent).header.Get("X-Request-ID")
					if uuid.Validate(id) != nil || seen[id] {
						t.Errorf("GET %s: X-Request-ID is %q", path, id)
					}
					seen[id] = true
				}
				sent := uuid.NewString()
				same(t, "X-Request-ID", me.call("GET", path, nil, "X-Request-ID", sent).header.Get("X-Request-ID"), sent)
				same(t, "X-Request-ID", me.call("GET", path, nil, "X-Request-ID", strings.ToUpper(sent)).header.Get("X-Request-ID"), sent)
			}
			id := uuid.NewString()
			same(t, "instance", me.call("GET", flagPath("none"), nil, "X-Request-ID", id).refused(404).object()["instance"], "urn:uuid:"+id)
			me.evaluate("none", `{}`, "X-Request-ID", id).refused(404).shows(map[string]any{"instance": "urn:uuid:" + id})
			me.call("PATCH", flagPath("k"), `{"name":"n"}`, "X-Request-ID", id).want(200)
			same(t, "requestId in the history", me.history("k", "")[0]["requestId"], id)
			me.call("GET", "/health", nil, "X-Correlation-ID", strings.Repeat("x", 129)).refused(400)
			me.call("GET", "/health", nil, "X-Correlation-ID", "trace-1").want(200)
		},
		"the service tells its health, name and version to anyone": func(t *testing.T, me *client) {
			nobody := me.with("")
			me.s.eventually("the read models are looked at once more after they were built", func() bool {
				return nobody.call("GET", "/health", nil).want(200).object()["status"] == "ok"
			})
			health := nobody.call("GET", "/health", nil)
			members(t, "health", health.object(), "status", "timestamp")
			checkTimes(t, health.object())
			root := nobody.call("GET", "/", nil).want(200).shows(map[string]any{"name": "flagledger", "version": "1.0.0"})
			members(t, "root", root.object(), "name", "version")
			version := nobody.call("GET", "/api/v1/version", nil).want(200).shows(map[string]any{"version": "1.0.0", "environment": "development", "build_number": "dev", "status": "ok"})
			members(t, "version", version.object(), "version", "build_number", "status", "timestamp", "environment")
			checkTimes(t, version.object())
			for _, a := range []*answer{health, root, version} {
				same(t, "Content-Type", a.header.Get("Content-Type"), "application/json")
			}
		},
		"metrics count by route, never by what a caller makes up": func(t *testing.T, me *client) {
			me.createFlag("a-key-that-metrics-must-not-show", nil)
			me.call("GET", "/made-up-path", nil).refused(404)
			me.call("BREW", flagPath("k"), nil).refused(405)
			me.evaluate("a-key-that-metrics-must-not-show", `{}`).want(200)
			text := string(me.with("").call("GET", "/metrics", nil).want(200).body)
			for _, want := range []string{
				`flagledger_http_request_duration_seconds_count{method="POST",route="/api/v1/flags",status="2xx"}`,
				`flagledger_http_request_duration_seconds_count{method="POST",route="/api/v1/flags/{flagKey}/evaluate",status="2xx"}`,
				`route="unknown",status="4xx"`, `flagledger_append_duration_seconds_count`, `flagledger_events_appended_total{type="flag.created"}`,
				`flagledger_projection_lag_events{projection="flags"}`, `flagledger_projection_lag_seconds{projection="history"}`, `flagledger_snapshot_age_seconds`, `flagledger_projection_parked_streams{`,
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
		"the page of the interface comes from the binary alone": func(t *testing.T, me *client) {
			page := me.with("").call("GET", "/docs", nil).want(200)
			if !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") || !strings.Contains(string(page.body), "/openapi.json") {
				t.Errorf("the page is %s: %s", page.header.Get("Content-Type"), page.body)
			}
			sources := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(string(page.body), -1)
			if len(sources) == 0 {
				t.Errorf("the page has no script: %s", page.body)
			}
			for _, source := range sources {
				if !strings.HasPrefix(source[1], "/") {
					t.Errorf("the page loads %s", source[1])
					continue
				}
				me.with("").call("GET", source[1], nil).want(200)
			}
			if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'self'") || strings.Contains(policy, "http") {
				t.Errorf("Content-Security-Policy is %q", policy)
			}
		},
	}.run(t)
}

func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
