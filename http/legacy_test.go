package http_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// legacyPath returns a legacy path of a current one.
func legacyPath(path string) string { return strings.Replace(path, "/api/v1/", "/api/", 1) }

func TestLegacyRoutes(t *testing.T) {
	nodetest.Cases{
		"the document shows them as deprecated, and otherwise like those that they stand for": func(t *testing.T, me *nodetest.Client) {
			_, operations := me.Document()
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
				if description, _ := old["description"].(string); !strings.HasPrefix(description, "Deprecated: use "+path+".") {
					t.Errorf("the description of %s is %q", name, description)
				}
				for _, part := range []string{"parameters", "requestBody", "responses", "security"} {
					isCheckout := name == "POST /api/billing/checkout"
					if part == "requestBody" && (strings.HasSuffix(name, "/evaluate") || isCheckout) ||
						part == "responses" && isCheckout {
						continue // a different one
					}
					nodetest.Same(t, part+" of "+name, old[part], now[part])
				}
			}
		},
		"they answer what the new ones do, and say where those are": func(t *testing.T, me *nodetest.Client) {
			project, _ := me.CreateProject("p")
			flag := me.Call("POST", "/api/flags", `{"key":"k","type":"boolean"}`).Want(201)
			nodetest.Same(t, "Location", flag.Header.Get("Location"), nodetest.FlagPath("k"))
			me.Call("POST", legacyPath(nodetest.ProjectFlagsPath(project)), `{"key":"l","type":"boolean"}`).
				Want(201).
				Shows(map[string]any{"projectId": project})
			me.Call("PATCH", "/api/flags/k", `{"name":"N"}`).Want(200).Shows(map[string]any{"name": "N"})
			id := me.Call("POST", "/api/flags/k/variations", `{"name":"v","value":true}`).Want(201).Object()["id"].(string)
			me.Call("PATCH", "/api/flags/k/variations/"+id, `{"weight":5}`).Want(200).Shows(map[string]any{"weight": 5})
			me.Call("POST", "/api/flags/k/enable", nil, "X-Change-Reason", "because").
				Want(200).
				Shows(map[string]any{"success": true})
			me.Call("PATCH", legacyPath(nodetest.ProjectFlagsPath(project, "/l")), `{"status":"archived"}`).
				Want(200).
				Shows(map[string]any{"status": "archived"})
			me.Call("POST", "/api/projects", `{"name":"q"}`).Want(201)
			for _, path := range []string{
				"/api/v1/flags", nodetest.FlagPath("k"), nodetest.FlagPath("l"), nodetest.FlagPath("k", "/variations"), nodetest.FlagPath("k", "/history"), nodetest.ProjectFlagsPath(project), nodetest.ProjectFlagsPath(project, "/l"),
				"/api/v1/projects", "/api/v1/projects/" + project, "/api/v1/tenants", "/api/v1/tenants/" + me.Tenant, nodetest.FlagPath("none"), nodetest.FlagPath("a%2Fb%3E"), nodetest.FlagPath("a%20b"),
			} {
				now, old := me.Call("GET", path, nil), me.Call("GET", legacyPath(path), nil)
				nodetest.Same(t, "the status of "+path, old.Status, now.Status)
				if now.Status == 200 {
					nodetest.Same(t, path, old.JSON(), now.JSON())
				} else {
					old.Refused(now.Status)
				}
				nodetest.Same(t, "the headers of "+path, []string{old.Header.Get("ETag"), old.Header.Get("X-Total-Count")},
					[]string{now.Header.Get("ETag"), now.Header.Get("X-Total-Count")})
				deprecatedFor(old, path)
				nodetest.Same(t, "what a new route says of itself", []string{now.Header.Get("Deprecation"), now.Header.Get("Link")},
					[]string{"", ""})
			}
			deprecatedFor(me.Call("DELETE", "/api/flags/k/variations/"+id, nil).Want(204),
				nodetest.FlagPath("k", "/variations/", id))
			deprecatedFor(me.Call("DELETE", "/api/flags/k", nil).Want(204), nodetest.FlagPath("k"))
			me.Call("GET", nodetest.FlagPath("k"), nil).Refused(404)
		},
		"an evaluation is of a userId": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag(
				"k",
				map[string]any{
					"type": "number",
					"flag_variations": []any{
						map[string]any{"name": "a", "value": 1, "weight": 50},
						map[string]any{"name": "b", "value": 2, "weight": 50},
					},
				},
			)
			const path = "/api/flags/k/evaluate"
			off := deprecatedFor(me.Call("POST", path, `{"userId":"u"}`).Want(200), nodetest.FlagPath("k", "/evaluate"))
			off.Shows(map[string]any{"enabled": false, "value": 0, "reason": "OFF"})
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "development").Want(200)
			for i := range 20 {
				user := fmt.Sprint("user-", i)
				now := me.Call("POST", nodetest.FlagPath("k", "/evaluate"), map[string]any{"targetingKey": user, "environment": "development"}).
					Want(200)
				old := me.Call("POST", path, map[string]any{"userId": user, "environment": "development", "attributes": map[string]any{"plan": "pro"}}).
					Want(200)
				nodetest.Same(t, user, old.Object(), now.Object())
				nodetest.Same(t, user,
					me.Call("POST", path, map[string]any{"userId": user}, "X-Environment", "development").Want(200).Object(),
					now.Object())
			}
			for _, body := range []string{`{}`, `{"userId":""}`, `{"userId":null}`} {
				deprecatedFor(me.Call("POST", path, body, "X-Environment", "development").Refused(422, "userId"),
					nodetest.FlagPath("k", "/evaluate"))
			}
			me.Call("POST", path, `{"targetingKey":"u"}`).Refused(422, "targetingKey")
			me.Call("POST", path, `{"userId":1,"targetingKey":"u","attributes":[],"more":1}`).
				Refused(422, "userId", "targetingKey", "attributes", "more")
			me.Call("POST", path, `{"userId":"u","userId":"v"}`).Refused(400)
			me.Call("POST", path, `{"userId":"u","environment":"none"}`).Refused(404)
			me.Call("POST", path, `{}`, "X-Tenant-ID", "").Refused(400)
			deprecatedFor(me.Call("POST", "/api/flags/none/evaluate", `{}`).Refused(404), nodetest.FlagPath("none", "/evaluate"))
		},
		"a refusal too says that the route is deprecated": func(_ *testing.T, me *nodetest.Client) {
			nobody := *me
			nobody.Token = ""
			deprecatedFor(nobody.Call("GET", "/api/flags", nil).Refused(401), "/api/v1/flags")
			deprecatedFor(me.Call("GET", "/api/flags", nil, "X-Tenant-ID", "").Refused(400), "/api/v1/flags")
			deprecatedFor(me.Call("POST", "/api/flags", `{}`).Refused(422, "key", "type"), "/api/v1/flags")
			deprecatedFor(me.Call("GET", "/api/flags?page=1", nil).Refused(422, "page"), "/api/v1/flags")
			deprecatedFor(me.Service.Anonymous().Call("POST", "/auth/signin", `{}`).Refused(422, "email", "password"),
				"/api/v1/auth/login")
		},
		"a list's next page is on the same route, and not lost beside the successor": func(t *testing.T, me *nodetest.Client) {
			var want []any
			for _, key := range []string{"a", "b", "c"} {
				me.CreateFlag(key, nil)
				want = append(want, key)
			}
			next := regexp.MustCompile(`^<(/api/flags\?[^>]+)>; rel="next"$`)
			var got []any
			for path := "/api/flags?limit=1"; path != ""; {
				a := deprecatedFor(me.Call("GET", path, nil).Want(200), "/api/v1/flags")
				got = append(got, nodetest.Column(a.List(), "key")...)
				path = ""
				for _, link := range a.Header.Values("Link") {
					if match := next.FindStringSubmatch(link); match != nil {
						path = match[1]
					}
				}
			}
			nodetest.Same(t, "keys", got, want)
		},
		"there are no old paths of what the interface does not list": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for _, path := range []string{"/api/version", "/api/tenants/" + me.Tenant + "/environments"} {
				me.Call("GET", path, nil).Refused(404)
			}
			me.Call("POST", "/api/auth/logout", nil).Refused(404)
		},
	}.Run(t)
}

var deprecation = regexp.MustCompile(`^@\d+$`)

// deprecatedFor checks that a response reports its route as deprecated, and names the successor.
func deprecatedFor(a *nodetest.Answer, path string) *nodetest.Answer {
	a.T.Helper()
	if !deprecation.MatchString(a.Header.Get("Deprecation")) {
		a.T.Errorf("%s: Deprecation is %q", a.Call, a.Header.Get("Deprecation"))
	}
	var successors []string
	for _, link := range a.Header.Values("Link") {
		if strings.HasSuffix(link, `rel="successor-version"`) {
			successors = append(successors, link)
		}
	}
	nodetest.Same(a.T, "the successors of "+a.Call, successors, []string{"<" + path + `>; rel="successor-version"`})
	return a
}
