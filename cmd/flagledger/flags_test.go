package main

import (
	"fmt"
	"strings"
	"testing"
)

// shownAs checks that a GET and the list show a flag as an answer to a change did.
func (c *client) shownAs(t *testing.T, written *answer) {
	t.Helper()
	body := written.object()
	one := c.call("GET", flagPath(body["key"].(string)), nil).want(200)
	same(t, "the flag after "+written.call, one.object(), body)
	same(t, "its ETag after "+written.call, one.header.Get("ETag"), written.header.Get("ETag"))
	same(t, "the ETag tells the version", written.header.Get("ETag"), fmt.Sprintf(`"%v"`, body["version"]))
	for _, entry := range c.call("GET", "/api/v1/flags", nil).want(200).list() {
		if entry["key"] == body["key"] {
			delete(body, "variations")
			same(t, "the list after "+written.call, entry, body)
			return
		}
	}
	t.Errorf("after %s the list does not show the flag", written.call)
}

func (c *client) keys(query string) []any {
	c.s.t.Helper()
	return column(c.call("GET", "/api/v1/flags"+query, nil).want(200).list(), "key")
}

var flagMembers = []string{"id", "key", "name", "type", "enabled", "defaultValue", "description", "tags", "projectId", "status", "version", "createdAt", "updatedAt"}

func TestFlags(t *testing.T) {
	cases{
		"a flag is created with its defaults, and reads show the same": func(t *testing.T, me *client) {
			a := me.call("POST", "/api/v1/flags", `{"key":"new-checkout","type":"boolean"}`).want(201)
			members(t, "a flag", a.object(), append([]string{"variations"}, flagMembers...)...)
			a.shows(map[string]any{
				"key": "new-checkout", "name": "new-checkout", "type": "boolean", "enabled": false, "defaultValue": false, "description": "",
				"tags": []string{}, "projectId": nil, "status": "active", "version": 1, "variations": []string{},
			})
			checkTimes(t, a.object())
			same(t, "headers", []string{a.header.Get("Location"), a.header.Get("ETag")}, []string{"/api/v1/flags/new-checkout", `"1"`})
			me.shownAs(t, a)
			members(t, "a flag in the list", me.call("GET", "/api/v1/flags", nil).want(200).list()[0], flagMembers...)
		},
		"each type has its default value": func(t *testing.T, me *client) {
			for kind, want := range map[string]string{"boolean": "false", "string": `""`, "number": "0", "json": "{}"} {
				a := me.call("POST", "/api/v1/flags", map[string]string{"key": kind, "type": kind}).want(201)
				same(t, kind, a.raw("defaultValue"), want)
			}
		},
		"a flag keeps what was sent": func(t *testing.T, me *client) {
			project, _ := me.createProject("p")
			a := me.call("POST", "/api/v1/flags", map[string]any{
				"key": "A.b_c-9", "name": "Näme <&>", "type": "string", "defaultValue": "x", "description": "für alle", "tags": []string{"b", "a"}, "projectId": project,
				"flag_variations": []any{map[string]any{"name": "one", "value": "1", "description": "d", "weight": 12.5}, map[string]any{"name": "two", "value": "2"}},
			}).want(201)
			a.shows(map[string]any{"name": "Näme <&>", "defaultValue": "x", "description": "für alle", "tags": []string{"b", "a"}, "projectId": project, "version": 1})
			variations := a.object()["variations"].([]any)
			first := variations[0].(map[string]any)
			members(t, "a variation", first, "id", "name", "value", "description", "weight")
			delete(first, "id")
			same(t, "the first variation", first, map[string]any{"name": "one", "value": "1", "description": "d", "weight": 12.5})
			same(t, "the second one's weight", variations[1].(map[string]any)["weight"], 0)
			me.shownAs(t, a)
		},
		"a key follows the pattern and is none of the reserved words": func(_ *testing.T, me *client) {
			for _, key := range []string{"", " ", "-a", ".a", "_a", "a b", "a/b", "ä", "a\n", "a%", strings.Repeat("k", 129), "projects", "evaluate", "stream"} {
				me.call("POST", "/api/v1/flags", map[string]string{"key": key, "type": "boolean"}).refused(422, "key")
			}
			for _, key := range []string{"a", "0", "Projects", "projects2", "a..b", "streams", strings.Repeat("k", 128)} {
				me.createFlag(key, nil)
				me.call("GET", flagPath(key), nil).want(200)
			}
		},
		"keys differ in case": func(t *testing.T, me *client) {
			me.createFlag("a", nil)
			me.createFlag("A", nil)
			same(t, "keys", me.keys(""), []string{"A", "a"})
		},
		"a key that is taken is 409, in another tenant it is free": func(_ *testing.T, me *client) {
			me.createFlag("k", map[string]any{"description": "first"})
			me.call("POST", "/api/v1/flags", `{"key":"k","type":"string"}`).refused(409)
			me.call("GET", flagPath("k"), nil).want(200).shows(map[string]any{"type": "boolean", "description": "first", "version": 1})
			me.newTenant("other").createFlag("k", nil)
		},
		"all that is wrong with a new flag is named at once": func(t *testing.T, me *client) {
			long := strings.Repeat("é", 2001)
			me.call("POST", "/api/v1/flags", map[string]any{
				"key": "no key", "name": "", "type": "number", "defaultValue": "text", "description": long, "tags": []string{"ok", "ok", "", strings.Repeat("é", 51)}, "projectId": "none",
				"flag_variations": []any{
					map[string]any{"name": "v", "value": 1},
					map[string]any{"name": "v", "value": true, "weight": -1, "description": long},
					map[string]any{"weight": 0.0005},
				},
			}).refused(422, "key", "name", "defaultValue", "description", "tags[2]", "tags[3]", "projectId",
				"flag_variations[1].name", "flag_variations[1].value", "flag_variations[1].weight", "flag_variations[1].description",
				"flag_variations[2].name", "flag_variations[2].value", "flag_variations[2].weight")
			me.call("POST", "/api/v1/flags", `{}`).refused(422, "key", "type")
			me.call("POST", "/api/v1/flags", `null`).refused(422, "body")
			me.call("POST", "/api/v1/flags", `{"key":"k","type":"text","defaultValue":"x"}`).refused(422, "type")
			me.call("POST", "/api/v1/flags", `{"key":"k","type":"boolean","projectId":""}`).refused(422, "projectId")
			me.call("POST", "/api/v1/flags", map[string]any{"key": "k", "type": "boolean", "name": strings.Repeat("é", 201)}).refused(422, "name")
			me.call("POST", "/api/v1/flags", map[string]any{"key": "k", "type": "boolean", "tags": tags(51)}).refused(422, "tags")
			me.call("POST", "/api/v1/flags", map[string]any{"key": 1, "type": false, "tags": []int{1}, "enabled": true, "flag_variations": []any{map[string]any{"id": "x"}}}).
				refused(422, "key", "type", "tags[0]", "enabled", "flag_variations[0].id", "flag_variations[0].name", "flag_variations[0].value")
			same(t, "flags", len(me.keys("")), 0)
			me.call("POST", "/api/v1/flags", map[string]any{
				"key": "k", "type": "boolean", "name": strings.Repeat("é", 200), "description": strings.Repeat("é", 2000), "tags": append(tags(50), tags(50)...), "projectId": nil,
			}).want(201)
		},
		"a default value must be of the flag's type": func(_ *testing.T, me *client) {
			values := map[string][]string{
				"boolean": {`true`, `false`}, "string": {`""`, `"x"`}, "number": {`0`, `-1.5e3`, `9007199254740993`}, "json": {`{}`, `[1]`, `"x"`, `1`, `true`, `null`},
			}
			i := 0
			for kind := range values {
				for owner, list := range values {
					for _, value := range list {
						i++
						body := fmt.Sprintf(`{"key":"k%d","type":%q,"defaultValue":%s}`, i, kind, value)
						if owner == kind || kind == "json" || owner == "json" && kindOf(value) == kind {
							me.call("POST", "/api/v1/flags", body).want(201)
						} else {
							me.call("POST", "/api/v1/flags", body).refused(422, "defaultValue")
						}
					}
				}
			}
			me.call("POST", "/api/v1/flags", `{"key":"huge","type":"number","defaultValue":1e999}`).refused(422, "defaultValue")
		},
		"tags are a set": func(t *testing.T, me *client) {
			a := me.call("POST", "/api/v1/flags", `{"key":"k","type":"boolean","tags":["b","a","b"]}`).want(201)
			a.shows(map[string]any{"tags": []string{"b", "a"}})
			me.shownAs(t, a)
			me.call("PATCH", flagPath("k"), `{"tags":["b","a","a"]}`).want(200).shows(map[string]any{"version": 1})
			me.call("PATCH", flagPath("k"), `{"tags":["a","b"]}`).want(200).shows(map[string]any{"version": 1})
			me.shownAs(t, me.call("PATCH", flagPath("k"), `{"tags":["c","c"]}`).want(200).shows(map[string]any{"tags": []string{"c"}, "version": 2}))
			me.call("PATCH", flagPath("k"), `{"tags":["c","c",""]}`).refused(422, "tags[2]")
			me.call("PATCH", flagPath("k"), map[string]any{"tags": tags(51)}).refused(422, "tags")
			me.shownAs(t, me.call("PATCH", flagPath("k"), `{"tags":[]}`).want(200).shows(map[string]any{"tags": []string{}, "version": 3}))
			me.call("PATCH", flagPath("k"), `{"tags":[]}`).want(200).shows(map[string]any{"version": 3})
		},
		"PATCH changes what is sent and nothing else": func(t *testing.T, me *client) {
			project, _ := me.createProject("p")
			created := me.createFlag("k", map[string]any{
				"type": "string", "name": "N", "description": "D", "defaultValue": "V", "tags": []string{"t"}, "projectId": project,
				"flag_variations": []any{map[string]any{"name": "v", "value": "x"}},
			})
			version := 1
			for _, patch := range []struct {
				body string
				want map[string]any
			}{
				{`{"name":"N2"}`, map[string]any{"name": "N2"}},
				{`{"description":"D2"}`, map[string]any{"description": "D2"}},
				{`{"description":null}`, map[string]any{"description": ""}},
				{`{"defaultValue":""}`, map[string]any{"defaultValue": ""}},
				{`{"tags":["t","u"]}`, map[string]any{"tags": []string{"t", "u"}}},
				{`{"name":"N3","description":"D3","defaultValue":"V3","tags":["w"]}`, map[string]any{"name": "N3", "description": "D3", "defaultValue": "V3", "tags": []string{"w"}}},
			} {
				version++
				a := me.call("PATCH", flagPath("k"), patch.body).want(200)
				for name, value := range patch.want {
					created[name] = value
				}
				created["version"], created["updatedAt"] = version, a.object()["updatedAt"]
				same(t, "the flag after "+patch.body, a.object(), created)
				me.shownAs(t, a)
			}
		},
		"any status may follow any": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			version := 1
			for _, status := range []string{"inactive", "archived", "active", "archived", "inactive", "active"} {
				version++
				me.shownAs(t, me.call("PATCH", flagPath("k"), map[string]string{"status": status}).want(200).shows(map[string]any{"status": status, "version": version}))
			}
			me.call("PATCH", flagPath("k"), `{"status":"gone"}`).refused(422, "status")
			me.shownAs(t, me.call("PATCH", flagPath("k"), `{"status":"archived","name":"both"}`).want(200).shows(map[string]any{"status": "archived", "name": "both", "version": 9}))
		},
		"a PATCH that changes nothing appends nothing": func(t *testing.T, me *client) {
			me.createFlag("k", map[string]any{"type": "json", "name": "N", "description": "D", "defaultValue": map[string]int{"a": 1}, "tags": []string{"t"}})
			before := me.call("GET", flagPath("k"), nil).want(200)
			for _, body := range []string{
				`{}`, `{"name":"N"}`, `{"status":"active"}`, `{"name":"N","description":"D","defaultValue":{"a":1},"tags":["t"],"status":"active"}`, `{"defaultValue": { "a" : 1 } }`,
			} {
				a := me.call("PATCH", flagPath("k"), body).want(200)
				same(t, "the flag after "+body, a.object(), before.object())
				same(t, "the ETag", a.header.Get("ETag"), `"1"`)
			}
			same(t, "entries of the history", len(me.call("GET", flagPath("k", "/history"), nil).want(200).list()), 1)
		},
		"all that is wrong with a PATCH is named at once": func(_ *testing.T, me *client) {
			me.createFlag("k", nil)
			me.call("PATCH", flagPath("k"), map[string]any{
				"name": "", "description": strings.Repeat("é", 2001), "defaultValue": "text", "tags": []string{"", strings.Repeat("é", 51)}, "status": "gone", "enabled": true,
			}).refused(422, "name", "description", "defaultValue", "tags[0]", "tags[1]", "status", "enabled")
			me.call("PATCH", flagPath("k"), `{"key":"other","type":"string","version":5,"id":"x","projectId":"p","flag_variations":[]}`).
				refused(422, "key", "type", "version", "id", "projectId", "flag_variations")
			me.call("PATCH", flagPath("k"), `{"name":null,"description":null,"defaultValue":null,"tags":null,"status":null}`).
				refused(422, "name", "defaultValue", "tags", "status")
			me.call("GET", flagPath("k"), nil).want(200).shows(map[string]any{"version": 1})
		},
		"enabled is not for PATCH, which says what is": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			for _, value := range []string{"true", "false", "null"} {
				a := me.call("PATCH", flagPath("k"), `{"enabled":`+value+`}`).refused(422, "enabled")
				text := a.object()["errors"].(map[string]any)["enabled"].(string)
				if !strings.Contains(text, "/enable") || !strings.Contains(text, "/disable") {
					t.Errorf("enabled: %s", text)
				}
			}
		},
		"enable and disable work per environment, and repeated do nothing": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			shows := func(environment string, enabled bool, version int) {
				t.Helper()
				me.call("GET", flagPath("k"), nil, "X-Environment", environment).want(200).shows(map[string]any{"enabled": enabled, "version": version})
				list := me.call("GET", "/api/v1/flags", nil, "X-Environment", environment).want(200).list()
				same(t, "the list", []any{list[0]["enabled"], list[0]["version"]}, []any{enabled, version})
				filtered := me.call("GET", fmt.Sprintf("/api/v1/flags?enabled=%v", enabled), nil, "X-Environment", environment).want(200).list()
				same(t, "the filtered list", len(filtered), 1)
			}
			do := func(action, environment string) {
				t.Helper()
				me.call("POST", flagPath("k", action), nil, "X-Environment", environment).want(200).shows(map[string]any{"success": true})
			}
			shows("production", false, 1)
			do("/disable", "production")
			shows("production", false, 1)
			do("/enable", "development")
			shows("development", true, 2)
			shows("production", false, 2)
			do("/enable", "development")
			shows("development", true, 2)
			do("/enable", "")
			shows("production", true, 3)
			shows("", true, 3)
			do("/disable", "development")
			shows("development", false, 4)
			shows("production", true, 4)
			me.call("PATCH", flagPath("k"), `{"name":"n"}`, "X-Environment", "development").want(200).shows(map[string]any{"enabled": false})
			me.shownAs(t, me.call("PATCH", flagPath("k"), `{"name":"m"}`).want(200).shows(map[string]any{"enabled": true}))
		},
		"an environment that the tenant does not have is 404 on every flag call": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			id := me.addVariation("k", `{"name":"v","value":true}`).object()["id"].(string)
			calls := []struct{ method, path, body string }{
				{"GET", "/api/v1/flags", ""}, {"POST", "/api/v1/flags", `{"key":"n","type":"boolean"}`}, {"GET", flagPath("k"), ""}, {"PATCH", flagPath("k"), `{"name":"n"}`},
				{"POST", flagPath("k", "/enable"), ""}, {"POST", flagPath("k", "/disable"), ""}, {"POST", flagPath("k", "/evaluate"), `{}`},
				{"GET", flagPath("k", "/history"), ""}, {"GET", flagPath("k", "/variations"), ""}, {"POST", flagPath("k", "/variations"), `{"name":"w","value":true}`},
				{"PATCH", flagPath("k", "/variations/", id), `{"name":"w"}`}, {"DELETE", flagPath("k", "/variations/", id), ""}, {"DELETE", flagPath("k"), ""},
			}
			for _, environment := range []string{"staging", "Production", "production ", "\xff"} {
				for _, call := range calls {
					if environment == "production " {
						continue // HTTP itself drops the space
					}
					var body any
					if call.body != "" {
						body = call.body
					}
					me.call(call.method, call.path, body, "X-Environment", environment).refused(404)
				}
			}
			me.call("GET", flagPath("k"), nil).want(200).shows(map[string]any{"version": 2})
			same(t, "keys", me.keys(""), []string{"k"})
		},
		"a flag that does not exist is 404": func(_ *testing.T, me *client) {
			for _, key := range []string{"none", "%00", "%ff", "a%2Fb", "..%2F..", "%F0%9F%98%80", strings.Repeat("k", 300)} {
				status := 404
				if key == "%00" || key == "%ff" {
					status = 400 // no text
				}
				me.call("GET", flagPath(key), nil).refused(status)
				me.call("PATCH", flagPath(key), `{"name":"n"}`).refused(status)
				me.call("DELETE", flagPath(key), nil).refused(status)
				me.call("POST", flagPath(key, "/enable"), nil).refused(status)
				me.call("POST", flagPath(key, "/disable"), nil).refused(status)
				me.call("POST", flagPath(key, "/evaluate"), `{}`).refused(status)
				me.call("GET", flagPath(key, "/history"), nil).refused(status)
				me.call("GET", flagPath(key, "/variations"), nil).refused(status)
				me.call("POST", flagPath(key, "/variations"), `{"name":"v","value":1}`).refused(status)
			}
		},
		"a key may be percent-encoded in a path": func(_ *testing.T, me *client) {
			me.createFlag("new-checkout", nil)
			for _, path := range []string{"/api/v1/flags/new%2Dcheckout", "/api/v1/flags/%6Eew-checkout"} {
				me.call("GET", path, nil).want(200)
				me.call("PATCH", path, `{}`).want(200)
				me.call("POST", path+"/enable", nil).want(200)
				me.call("POST", path+"/evaluate", `{}`).want(200)
				me.call("GET", path+"/history", nil).want(200)
			}
		},
		"a deleted flag is gone everywhere but in its history": func(t *testing.T, me *client) {
			me.createFlag("k", map[string]any{"flag_variations": []any{map[string]any{"name": "v", "value": true}}})
			me.call("POST", flagPath("k", "/enable"), nil).want(200)
			deleted := me.call("DELETE", flagPath("k"), nil).want(204)
			same(t, "the body of 204", string(deleted.body), "")
			me.call("GET", flagPath("k"), nil).refused(404)
			me.call("PATCH", flagPath("k"), `{}`).refused(404)
			me.call("DELETE", flagPath("k"), nil).refused(404)
			me.call("POST", flagPath("k", "/enable"), nil).refused(404)
			me.call("POST", flagPath("k", "/evaluate"), `{}`).refused(404)
			me.call("GET", flagPath("k", "/variations"), nil).refused(404)
			same(t, "the list", string(me.call("GET", "/api/v1/flags", nil).want(200).body), "[]")
			same(t, "the history", column(me.call("GET", flagPath("k", "/history"), nil).want(200).list(), "action"), []string{"deleted", "enabled", "created"})
		},
		"a deleted key begins a new life": func(t *testing.T, me *client) {
			old := me.createFlag("k", map[string]any{"type": "string", "description": "old", "tags": []string{"t"}, "flag_variations": []any{map[string]any{"name": "v", "value": "x", "weight": 1}}})
			me.call("POST", flagPath("k", "/enable"), nil).want(200)
			me.call("PATCH", flagPath("k"), `{"status":"archived"}`).want(200)
			me.call("DELETE", flagPath("k"), nil).want(204)
			a := me.call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).want(201)
			a.shows(map[string]any{"type": "boolean", "description": "", "tags": []string{}, "enabled": false, "status": "active", "variations": []string{}, "version": 5})
			if a.object()["id"] == old["id"] {
				t.Error("the new flag has the old one's id")
			}
			me.shownAs(t, a)
			me.call("POST", flagPath("k", "/evaluate"), `{}`).want(200).shows(map[string]any{"enabled": false, "value": false, "reason": "OFF", "flagVersion": 5})
			me.call("DELETE", flagPath("k"), nil, "If-Match", `"1"`).refused(412)
			me.call("DELETE", flagPath("k"), nil).want(204)
			me.createFlag("k", map[string]any{"type": "number"})
			history := me.call("GET", flagPath("k", "/history"), nil).want(200).list()
			same(t, "the history of all lives", column(history, "action"), []string{"created", "deleted", "created", "deleted", "status_changed", "enabled", "created"})
			same(t, "its versions", column(history, "version"), []int{7, 6, 5, 4, 3, 2, 1})
		},
		"If-Match lets a change through only at the version that it names": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			id := me.addVariation("k", `{"name":"v","value":true}`).object()["id"].(string)
			calls := []struct {
				method, path, body string
				appends            bool
			}{
				{"PATCH", flagPath("k"), `{"name":"%s"}`, true},
				{"POST", flagPath("k", "/enable"), "", true},
				{"POST", flagPath("k", "/enable"), "", false},
				{"POST", flagPath("k", "/disable"), "", true},
				{"POST", flagPath("k", "/variations"), `{"name":"%s","value":false}`, true},
				{"PATCH", flagPath("k", "/variations/", id), `{"name":"%s"}`, true},
				{"DELETE", flagPath("k", "/variations/", id), "", true},
				{"DELETE", flagPath("k"), "", true},
			}
			version := 2
			for i, call := range calls {
				send := func(match string) *answer {
					var body any
					if call.body != "" {
						body = strings.ReplaceAll(call.body, "%s", fmt.Sprint("name", i))
					}
					return me.call(call.method, call.path, body, "If-Match", match)
				}
				before := string(me.call("GET", flagPath("k"), nil).want(200).body)
				for _, match := range []string{`"0"`, fmt.Sprintf(`"%d"`, version-1), fmt.Sprintf(`"%d"`, version+1), fmt.Sprintf(`W/"%d"`, version), fmt.Sprint(version), `""`, "nonsense", `"0", "1000"`} {
					a := send(match).refused(412)
					same(t, "the ETag of 412", a.header.Get("ETag"), fmt.Sprintf(`"%d"`, version))
				}
				same(t, "the flag after the refusals", string(me.call("GET", flagPath("k"), nil).want(200).body), before)
				good := []string{fmt.Sprintf(`"%d"`, version), "*", fmt.Sprintf(`"77", "%d"`, version), fmt.Sprintf(`W/"1","%d"`, version)}
				if a := send(good[i%len(good)]); a.status >= 300 {
					t.Errorf("%s with If-Match %s: %d %s", a.call, good[i%len(good)], a.status, a.body)
				}
				if call.appends {
					version++
				}
			}
			me.call("PATCH", flagPath("k"), `{}`, "If-Match", "*").refused(404)
		},
		"a list shows each change right after it": func(t *testing.T, me *client) {
			var want []any
			for i := range 10 {
				key := fmt.Sprint("k", i)
				me.createFlag(key, nil)
				want = append(want, key)
				same(t, "keys", me.keys(""), want)
				me.call("PATCH", flagPath(key), `{"tags":["on"]}`).want(200)
				same(t, "keys by tag", me.keys("?tag=on"), want)
			}
			for i := range 10 {
				me.call("DELETE", flagPath(fmt.Sprint("k", i)), nil).want(204)
				if got := me.keys(""); len(got) != 9-i {
					t.Errorf("after %d deletions there are %v", i+1, got)
				}
			}
		},
		"lists are filtered": func(t *testing.T, me *client) {
			project, _ := me.createProject("p")
			me.createFlag("alpha", map[string]any{"name": "First 100%", "type": "string", "tags": []string{"a", "b"}, "projectId": project})
			me.createFlag("beta", map[string]any{"name": "ÄRGER_1", "tags": []string{"b"}, "projectId": project})
			me.createFlag("gamma", map[string]any{"name": "alphabet", "type": "json"})
			me.call("PATCH", flagPath("gamma"), `{"status":"archived"}`).want(200)
			me.call("POST", flagPath("beta", "/enable"), nil).want(200)
			for query, want := range map[string][]string{
				"":                          {"alpha", "beta", "gamma"},
				"?projectId=" + project:     {"alpha", "beta"},
				"?projectId=none":           {},
				"?type=json":                {"gamma"},
				"?status=archived":          {"gamma"},
				"?status=active":            {"alpha", "beta"},
				"?enabled=true":             {"beta"},
				"?enabled=false":            {"alpha", "gamma"},
				"?tag=b":                    {"alpha", "beta"},
				"?tag=B":                    {},
				"?tag=a&type=string":        {"alpha"},
				"?tag=a&type=json":          {},
				"?q=alpha":                  {"alpha", "gamma"},
				"?q=ALPHA":                  {"alpha", "gamma"},
				"?q=%25":                    {"alpha"},
				"?q=_":                      {"beta"},
				"?q=%C3%84RGER":             {"beta"},
				"?q=%27%3B--":               {},
				"?q=alpha&status=archived":  {"gamma"},
				"?limit=1&offset=1&q=alpha": {"gamma"},
			} {
				same(t, query, me.keys(query), want)
			}
			same(t, "in development", column(me.call("GET", "/api/v1/flags?enabled=true", nil, "X-Environment", "development").want(200).list(), "key"), []string{})
			for query, field := range map[string]string{"?type=text": "type", "?status=gone": "status", "?enabled=yes": "enabled", "?tags=a": "tags", "?Q=a": "Q"} {
				me.call("GET", "/api/v1/flags"+query, nil).refused(422, field)
			}
			me.call("GET", "/api/v1/flags?type=text&status=gone&enabled=1&limit=0", nil).refused(422, "type", "status", "enabled", "limit")
			for _, query := range []string{"?q=%00", "?tag=%ff", "?projectId=%00", "?q=%zz", "?%ff=1"} {
				me.call("GET", "/api/v1/flags"+query, nil).refused(400)
			}
		},
		"flags are listed by key, page by page": func(t *testing.T, me *client) {
			for _, key := range []string{"b", "a.1", "B", "a", "_x"[1:], "a-1", "0"} {
				me.createFlag(key, map[string]any{"tags": []string{"t"}})
			}
			me.createFlag("untagged", nil)
			checkPages(t, me, "/api/v1/flags?tag=t", "key", []any{"0", "B", "a", "a-1", "a.1", "b", "x"})
		},
		"another tenant's flag is 404 just as a missing one": func(t *testing.T, me *client) {
			me.createFlag("mine", nil)
			id := me.addVariation("mine", `{"name":"v","value":true}`).object()["id"].(string)
			me.call("POST", flagPath("mine", "/enable"), nil).want(200)
			other := me.newTenant("other")
			for _, call := range []struct{ method, path, body string }{
				{"GET", flagPath("mine"), ""}, {"PATCH", flagPath("mine"), `{"name":"n"}`}, {"DELETE", flagPath("mine"), ""}, {"POST", flagPath("mine", "/enable"), ""},
				{"POST", flagPath("mine", "/disable"), ""}, {"POST", flagPath("mine", "/evaluate"), `{}`}, {"GET", flagPath("mine", "/history"), ""},
				{"GET", flagPath("mine", "/variations"), ""}, {"POST", flagPath("mine", "/variations"), `{"name":"w","value":true}`},
				{"PATCH", flagPath("mine", "/variations/", id), `{"name":"w"}`}, {"DELETE", flagPath("mine", "/variations/", id), ""},
			} {
				var body any
				if call.body != "" {
					body = call.body
				}
				foreign := other.call(call.method, call.path, body).refused(404)
				missing := other.call(call.method, strings.Replace(call.path, "/mine", "/none", 1), body).refused(404)
				sameBut(t, foreign, "mine", missing, "none")
			}
			same(t, "the other's list", string(other.call("GET", "/api/v1/flags", nil).want(200).body), "[]")
			me.call("GET", flagPath("mine"), nil).want(200).shows(map[string]any{"enabled": true, "version": 3})
		},
	}.run(t)
}

func tags(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint("tag", i))
	}
	return list
}

// kindOf is the flag type of a JSON value.
func kindOf(value string) string {
	switch value[0] {
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case '{', '[', 'n':
		return "json"
	default:
		return "number"
	}
}

func TestNullIsNoValueOfMembersThatHoldOne(t *testing.T) {
	cases{
		"of a flag": func(_ *testing.T, me *client) {
			me.createFlag("k", nil)
			for _, member := range []string{"name", "tags", "status"} {
				me.call("PATCH", flagPath("k"), `{"`+member+`":null}`).refused(422, member)
			}
			me.call("POST", "/api/v1/flags", `{"key":"l","type":"boolean","name":null}`).refused(422, "name")
		},
		"of a project": func(_ *testing.T, me *client) {
			id := me.call("POST", "/api/v1/projects", `{"name":"p"}`).want(201).object()["id"].(string)
			for _, member := range []string{"name", "color"} {
				me.call("PATCH", "/api/v1/projects/"+id, `{"`+member+`":null}`).refused(422, member)
			}
		},
	}.run(t)
}
