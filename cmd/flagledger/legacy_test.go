package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// legacyRoutes are the old paths that the interface lists for flags, projects and tenants, with the methods of the new ones.
var legacyRoutes = []string{
	"GET /api/flags", "POST /api/flags", "GET /api/flags/{flagKey}", "PATCH /api/flags/{flagKey}", "DELETE /api/flags/{flagKey}",
	"GET /api/flags/{flagKey}/variations", "POST /api/flags/{flagKey}/variations", "GET /api/projects", "POST /api/projects",
	"GET /api/flags/projects/{projectId}/flags", "POST /api/flags/projects/{projectId}/flags", "GET /api/tenants", "POST /api/tenants",
	"GET /api/tenants/{tenantId}/users", "POST /api/tenants/{tenantId}/users", "POST /api/flags/{flagKey}/evaluate",
}

// legacyPath is an old path of a new one.
func legacyPath(path string) string { return strings.Replace(path, "/api/v1/", "/api/", 1) }

func TestLegacyRoutes(t *testing.T) {
	cases{
		"the document shows them as deprecated, and otherwise like those that they stand for": func(t *testing.T, me *client) {
			_, operations := me.document()
			for _, name := range legacyRoutes {
				if operations[name] == nil {
					t.Errorf("%s is missing", name)
				}
			}
			for name, old := range operations {
				deprecated, _ := old["deprecated"].(bool)
				if under := strings.Contains(name, " /api/v1/") || !strings.Contains(name, " /api/"); under {
					continue
				}
				now := operations[current(name)]
				if !deprecated || now == nil || now["deprecated"] != nil {
					t.Errorf("%s is deprecated: %v; it stands for %v", name, deprecated, now["operationId"])
					continue
				}
				_, path, _ := strings.Cut(current(name), " ")
				same(t, "the description of "+name, old["description"], "Deprecated: use "+path+".")
				for _, part := range []string{"parameters", "requestBody", "responses", "security"} {
					if part == "requestBody" && strings.HasSuffix(name, "/evaluate") {
						continue // which is another
					}
					same(t, part+" of "+name, old[part], now[part])
				}
			}
		},
		"they answer what the new ones do, and say where those are": func(t *testing.T, me *client) {
			project, _ := me.createProject("p")
			flag := me.call("POST", "/api/flags", `{"key":"k","type":"boolean"}`).want(201)
			same(t, "Location", flag.header.Get("Location"), flagPath("k"))
			me.call("POST", legacyPath(projectFlags(project)), `{"key":"l","type":"boolean"}`).want(201).shows(map[string]any{"projectId": project})
			me.call("PATCH", "/api/flags/k", `{"name":"N"}`).want(200).shows(map[string]any{"name": "N"})
			id := me.call("POST", "/api/flags/k/variations", `{"name":"v","value":true}`).want(201).object()["id"].(string)
			me.call("PATCH", "/api/flags/k/variations/"+id, `{"weight":5}`).want(200).shows(map[string]any{"weight": 5})
			me.call("POST", "/api/flags/k/enable", nil, "X-Change-Reason", "because").want(200).shows(map[string]any{"success": true})
			me.call("PATCH", legacyPath(projectFlags(project, "/l")), `{"status":"archived"}`).want(200).shows(map[string]any{"status": "archived"})
			me.call("POST", "/api/projects", `{"name":"q"}`).want(201)
			for _, path := range []string{
				"/api/v1/flags", flagPath("k"), flagPath("l"), flagPath("k", "/variations"), flagPath("k", "/history"), projectFlags(project), projectFlags(project, "/l"),
				"/api/v1/projects", "/api/v1/projects/" + project, "/api/v1/tenants", "/api/v1/tenants/" + me.tenant, flagPath("none"), flagPath("a%2Fb%3E"), flagPath("a%20b"),
			} {
				now, old := me.call("GET", path, nil), me.call("GET", legacyPath(path), nil)
				same(t, "the status of "+path, old.status, now.status)
				if now.status == 200 {
					same(t, path, old.json(), now.json())
				} else {
					old.refused(now.status)
				}
				same(t, "the headers of "+path, []string{old.header.Get("ETag"), old.header.Get("X-Total-Count")}, []string{now.header.Get("ETag"), now.header.Get("X-Total-Count")})
				old.deprecatedFor(path)
				same(t, "what a new route says of itself", []string{now.header.Get("Deprecation"), now.header.Get("Link")}, []string{"", ""})
			}
			me.call("DELETE", "/api/flags/k/variations/"+id, nil).want(204).deprecatedFor(flagPath("k", "/variations/", id))
			me.call("DELETE", "/api/flags/k", nil).want(204).deprecatedFor(flagPath("k"))
			me.call("GET", flagPath("k"), nil).refused(404)
		},
		"an evaluation is of a userId": func(t *testing.T, me *client) {
			me.createFlag("k", map[string]any{"type": "number", "flag_variations": []any{map[string]any{"name": "a", "value": 1, "weight": 50}, map[string]any{"name": "b", "value": 2, "weight": 50}}})
			const path = "/api/flags/k/evaluate"
			off := me.call("POST", path, `{"userId":"u"}`).want(200).deprecatedFor(flagPath("k", "/evaluate"))
			off.shows(map[string]any{"enabled": false, "value": 0, "reason": "OFF"})
			me.call("POST", flagPath("k", "/enable"), nil, "X-Environment", "development").want(200)
			for i := range 20 {
				user := fmt.Sprint("user-", i)
				now := me.call("POST", flagPath("k", "/evaluate"), map[string]any{"targetingKey": user, "environment": "development"}).want(200)
				old := me.call("POST", path, map[string]any{"userId": user, "environment": "development", "attributes": map[string]any{"plan": "pro"}}).want(200)
				same(t, user, old.object(), now.object())
				same(t, user, me.call("POST", path, map[string]any{"userId": user}, "X-Environment", "development").want(200).object(), now.object())
			}
			for _, body := range []string{`{}`, `{"userId":""}`, `{"userId":null}`} {
				me.call("POST", path, body, "X-Environment", "development").refused(422, "userId").deprecatedFor(flagPath("k", "/evaluate"))
			}
			me.call("POST", path, `{"targetingKey":"u"}`).refused(422, "targetingKey")
			me.call("POST", path, `{"userId":1,"targetingKey":"u","attributes":[],"more":1}`).refused(422, "userId", "targetingKey", "attributes", "more")
			me.call("POST", path, `{"userId":"u","userId":"v"}`).refused(400)
			me.call("POST", path, `{"userId":"u","environment":"none"}`).refused(404)
			me.call("POST", path, `{}`, "X-Tenant-ID", "").refused(400)
			me.call("POST", "/api/flags/none/evaluate", `{}`).refused(404).deprecatedFor(flagPath("none", "/evaluate"))
		},
		"a refusal too says that the route is deprecated": func(_ *testing.T, me *client) {
			nobody := *me
			nobody.token = ""
			nobody.call("GET", "/api/flags", nil).refused(401).deprecatedFor("/api/v1/flags")
			me.call("GET", "/api/flags", nil, "X-Tenant-ID", "").refused(400).deprecatedFor("/api/v1/flags")
			me.call("POST", "/api/flags", `{}`).refused(422, "key", "type").deprecatedFor("/api/v1/flags")
			me.call("GET", "/api/flags?page=1", nil).refused(422, "page").deprecatedFor("/api/v1/flags")
			me.s.anonymous().call("POST", "/auth/signin", `{}`).refused(422, "email", "password").deprecatedFor("/api/v1/auth/login")
		},
		"a list's next page is on the same route, and not lost beside the successor": func(t *testing.T, me *client) {
			var want []any
			for _, key := range []string{"a", "b", "c"} {
				me.createFlag(key, nil)
				want = append(want, key)
			}
			next := regexp.MustCompile(`^<(/api/flags\?[^>]+)>; rel="next"$`)
			var got []any
			for path := "/api/flags?limit=1"; path != ""; {
				a := me.call("GET", path, nil).want(200).deprecatedFor("/api/v1/flags")
				got = append(got, column(a.list(), "key")...)
				path = ""
				for _, link := range a.header.Values("Link") {
					if match := next.FindStringSubmatch(link); match != nil {
						path = match[1]
					}
				}
			}
			same(t, "keys", got, want)
		},
		"there are no old paths of what the interface does not list": func(_ *testing.T, me *client) {
			me.createFlag("k", nil)
			for _, path := range []string{"/api/version", "/api/tenants/" + me.tenant + "/environments"} {
				me.call("GET", path, nil).refused(404)
			}
			me.call("POST", "/api/auth/logout", nil).refused(404)
		},
	}.run(t)
}

var deprecation = regexp.MustCompile(`^@\d+$`)

// deprecatedFor checks that an answer says that its route is deprecated, and which one to take instead.
func (a *answer) deprecatedFor(path string) *answer {
	a.t.Helper()
	if !deprecation.MatchString(a.header.Get("Deprecation")) {
		a.t.Errorf("%s: Deprecation is %q", a.call, a.header.Get("Deprecation"))
	}
	var successors []string
	for _, link := range a.header.Values("Link") {
		if strings.HasSuffix(link, `rel="successor-version"`) {
			successors = append(successors, link)
		}
	}
	same(a.t, "the successors of "+a.call, successors, []string{"<" + path + `>; rel="successor-version"`})
	return a
}
