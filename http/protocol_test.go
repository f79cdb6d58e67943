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

func TestProtocol(t *testing.T) {
	const flags = "/api/v1/flags"
	nodetest.Cases{
		"JSON that is malformed or ambiguous is 400": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
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
				for _, call := range [][2]string{{"POST", flags}, {"PATCH", nodetest.FlagPath("k")}, {"POST", nodetest.FlagPath("k", "/evaluate")}, {"POST", nodetest.FlagPath("k", "/variations")}, {"POST", "/auth/signin"}} {
					if a := me.Call(call[0], call[1], body); a.Status != 400 {
						t.Errorf("%s: %s answers %d: %s", what, a.Call, a.Status, a.Body)
					} else {
						a.Refused(400)
					}
				}
			}
			nodetest.Same(t, "keys", me.FlagKeys(""), []string{"k"})
			me.CreateFlag("deep", map[string]any{"type": "json"})
			me.Call("PATCH", nodetest.FlagPath("deep"), `{"defaultValue":`+nested(63)+`}`).Want(200)
			me.Evaluate("deep", `{"attributes":{"a":`+nested(62)+`}}`).Want(200)
			me.Evaluate("deep", `{"attributes":{"a":`+nested(63)+`}}`).Refused(400)
			me.Call("POST", flags, `{"key":"brackets","type":"string","defaultValue":"`+strings.Repeat("[", 100)+`\"{{"}`).Want(201)
			me.Call("POST", flags, `{"key":"escapes","type":"string","defaultValue":"\\u0000"}`).Want(201)
		},
		"members that do not exist are 422, all of them": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			me.Call("POST", flags, `{"key":"n","KEY":"m","type":"json"}`).Refused(422, "KEY")
			me.Call("POST", flags, `{"Key":"n","Type":"json","TYPE":"json","bogus":1,"":2}`).Refused(422, "Key", "Type", "TYPE", "bogus", "", "key", "type")
			me.Call("POST", flags, `{"key":"n","type":"json","flag_variations":[{"Name":"v"},{"name":"w","VALUE":1}]}`).Refused(422, "flag_variations[0].Name", "flag_variations[0].name", "flag_variations[0].value", "flag_variations[1].VALUE", "flag_variations[1].value")
			me.Call("PATCH", nodetest.FlagPath("k"), `{"Name":"x","ENABLED":true}`).Refused(422, "Name", "ENABLED")
			me.Call("POST", nodetest.FlagPath("k", "/variations"), `{"name":"v","value":{"any":{"Name":1}},"Weight":1}`).Refused(422, "Weight", "value")
			me.Evaluate("k", `{"TARGETINGKEY":"u","bogus":1,"targetingKey":2,"attributes":{"any":3}}`).Refused(422, "TARGETINGKEY", "bogus", "targetingKey")
			me.Evaluate("k", `{"attributes":{"any":1,"ANY":2}}`).Want(200)
			me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"version": 1})
		},
		"a body of another shape is 422": func(_ *testing.T, me *nodetest.Client) {
			for _, body := range []string{"null", "[]", `"text"`, "1", "true"} {
				me.Call("POST", flags, body).Refused(422, "body")
			}
		},
		"only application/json is taken": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for i, media := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON", "application/json;charset=utf-8", " application/json ; a=b"} {
				me.Call("POST", flags, fmt.Sprintf(`{"key":"m%d","type":"json"}`, i), "Content-Type", media).Want(201)
				me.Evaluate("k", `{}`, "Content-Type", media).Want(200)
			}
			for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/xml", "application/merge-patch+json", "application/jsonx", "json", "application/json+x", "application/vnd.x+json; a=b"} {
				for _, call := range [][2]string{{"POST", flags}, {"PATCH", nodetest.FlagPath("k")}, {"POST", nodetest.FlagPath("k", "/evaluate")}, {"POST", nodetest.FlagPath("k", "/variations")}, {"POST", "/api/v1/auth/login"}, {"POST", "/auth/signin"}} {
					me.Call(call[0], call[1], `{}`, "Content-Type", media).Refused(415)
				}
			}
		},
		"a body may have 1 MiB": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			padded := func(body string, size int) string { return body + strings.Repeat(" ", size-len(body)) }
			const limit = 1 << 20
			me.Call("POST", flags, padded(`{"key":"fits","type":"json"}`, limit)).Want(201)
			me.Call("POST", flags, padded(`{"key":"large","type":"json"}`, limit+1)).Refused(400)
			me.Call("POST", flags, padded(`{"key":"large","type":"json"}`, 3*limit)).Refused(400)
			me.Evaluate("k", padded(`{}`, limit)).Want(200)
			me.Evaluate("k", padded(`{}`, limit+1)).Refused(400)
			nodetest.Same(t, "keys", me.FlagKeys(""), []string{"fits", "k"})
		},
		"a large value is kept, one too large for a fact is 422": func(t *testing.T, me *nodetest.Client) {
			value := func(size int) string { return `"` + strings.Repeat("x", size) + `"` }
			me.Call("POST", flags, `{"key":"large","type":"string","defaultValue":`+value(1_000_000)+`}`).Want(201)
			nodetest.Same(t, "the value", len(me.Evaluate("large", `{}`).Want(200).Raw("value")), 1_000_002)
			me.Call("POST", flags, `{"key":"larger","type":"string","defaultValue":`+value(1<<20-100)+`}`).Refused(422, "body")
			me.Call("GET", nodetest.FlagPath("larger"), nil).Refused(404)
		},
		"long lists are refused as fast as short ones": func(_ *testing.T, me *nodetest.Client) {
			var tags, variations strings.Builder
			for i := range 40_000 {
				fmt.Fprintf(&tags, `,"t%d"`, i)
				variations.WriteString(`,{"value":1}`)
			}
			me.Call("POST", flags, `{"key":"k","type":"json","tags":["t"`+tags.String()+`]}`).Refused(422, "tags")
			if a := me.Call("POST", flags, `{"key":"k","type":"json","flag_variations":[{"value":1}`+variations.String()+`]}`).Want(422); len(a.Body) > 100_000 {
				me.Service.T.Errorf("the answer has %d bytes", len(a.Body))
			}
			me.Call("POST", flags, `{"key":"k","type":"json","tags":[""`+strings.Repeat(`,""`, 40_000)+`]}`).Refused(422, "tags[0]")
		},
		"routes that do not exist are 404": func(_ *testing.T, me *nodetest.Client) {
			for _, path := range []string{
				"/nope", "/api", "/api/v1", "/api/v1/nope", "/api/v1/flags/", "/api/v1/flags/k/", "/api/v2/flags", "//", "/api/v1//flags", "/docs/nope/nope", "/problems", "/problems/nope",
				"/api/v1/flags/k/variations/a/b", "/health/", "/api/v1/billing/subscription", "/%F0%9F%98%80", "/a%0Ab", "/" + strings.Repeat("a/", 1000),
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
				nodetest.Same(t, "HEAD "+path, []any{head.Status, len(head.Body), head.Header.Get("Content-Type"), head.Header.Get("ETag"), head.Header.Get("X-Total-Count")},
					[]any{get.Status, 0, get.Header.Get("Content-Type"), get.Header.Get("ETag"), get.Header.Get("X-Total-Count")})
			}
		},
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
				explained := withToken(me, "").Call("GET", kind, nil).Want(200).Shows(map[string]any{"type": p["type"], "title": p["title"], "status": status})
				if explained.Object()["description"] == "" {
					t.Errorf("%s is not explained", kind)
				}
				nodetest.Same(t, "the title", p["title"], map[bool]string{true: http.StatusText(status), false: "Unprocessable Entity"}[status != 422])
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
				nodetest.Same(t, "X-Request-ID", me.Call("GET", path, nil, "X-Request-ID", strings.ToUpper(sent)).Header.Get("X-Request-ID"), sent)
			}
			id := uuid.NewString()
			nodetest.Same(t, "instance", me.Call("GET", nodetest.FlagPath("none"), nil, "X-Request-ID", id).Refused(404).Object()["instance"], "urn:uuid:"+id)
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
			version := nobody.Call("GET", "/api/v1/version", nil).Want(200).Shows(map[string]any{"version": "1.0.0", "environment": "development", "build_number": "dev", "status": "ok"})
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
		"the page of the interface comes from the binary alone": func(t *testing.T, me *nodetest.Client) {
			page := withToken(me, "").Call("GET", "/docs", nil).Want(200)
			if !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") || !strings.Contains(string(page.Body), "/openapi.json") {
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
			if policy := page.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'self'") || strings.Contains(policy, "http") {
				t.Errorf("Content-Security-Policy is %q", policy)
			}
		},
	}.Run(t)
}

func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
