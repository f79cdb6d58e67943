package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// projectFlags is where the flags of a project stand, or one of them.
func projectFlags(project string, rest ...string) string {
	return "/api/v1/flags/projects/" + project + "/flags" + strings.Join(rest, "")
}

// onProjectFlag are the calls on one flag by its project.
var onProjectFlag = []struct{ method, tail, body string }{
	{"GET", "", ""}, {"PATCH", "", `{"name":"stolen"}`}, {"POST", "/enable", ""}, {"POST", "/disable", ""}, {"DELETE", "", ""},
}

func TestProjectFlags(t *testing.T) {
	cases{
		"a flag is created in a project, and is the tenant's too": func(t *testing.T, me *client) {
			project, path := me.createProject("p")
			a := me.call("POST", projectFlags(project), `{"key":"k","name":"N","type":"number","defaultValue":9007199254740993,"description":"D",
				"flag_variations":[{"name":"one","value":1,"description":"d"},{"name":"two","value":2}]}`).want(201)
			members(t, "a flag", a.object(), append([]string{"variations"}, flagMembers...)...)
			a.shows(map[string]any{"key": "k", "name": "N", "description": "D", "projectId": project, "enabled": false, "status": "active", "version": 1})
			same(t, "the default value", a.raw("defaultValue"), "9007199254740993")
			same(t, "the headers", []string{a.header.Get("Location"), a.header.Get("ETag")}, []string{projectFlags(project, "/k"), `"1"`})
			me.shownAs(t, a)
			one := me.call("GET", projectFlags(project, "/k"), nil).want(200)
			same(t, "the flag by its project", []any{one.object(), one.header.Get("ETag")}, []any{a.object(), `"1"`})
			same(t, "names of variations", column(me.variations("k"), "name"), []string{"one", "two"})
			list := me.call("GET", projectFlags(project), nil).want(200).list()
			members(t, "a flag in the list", list[0], flagMembers...)
			same(t, "the list", list, me.call("GET", "/api/v1/flags", nil).want(200).list())
			me.call("GET", path, nil).want(200).shows(map[string]any{"flagCount": 1})
			me.call("POST", projectFlags(project), `{"key":"k","type":"boolean"}`).refused(409)
			me.call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).refused(409)
		},
		"all that is wrong with a new flag is named at once": func(t *testing.T, me *client) {
			project, _ := me.createProject("p")
			me.call("POST", projectFlags(project), `{"key":"no key","name":"","type":"number","defaultValue":"x","flag_variations":[{"value":1},{"name":"v","value":"x"}]}`).
				refused(422, "key", "name", "defaultValue", "flag_variations[0].name", "flag_variations[1].value")
			me.call("POST", projectFlags(project), map[string]any{"key": "k", "type": "boolean", "projectId": project, "enabled": true, "status": "active"}).
				refused(422, "projectId", "enabled", "status")
			me.call("POST", projectFlags(project), `{}`).refused(422, "key", "type")
			for _, key := range []string{"projects", "evaluate", "stream"} {
				me.call("POST", projectFlags(project), map[string]string{"key": key, "type": "boolean"}).refused(422, "key")
			}
			same(t, "the list", string(me.call("GET", projectFlags(project), nil).want(200).body), "[]")
		},
		"PATCH changes what is sent": func(t *testing.T, me *client) {
			project, _ := me.createProject("p")
			flag := me.createFlag("k", map[string]any{"type": "string", "projectId": project})
			version := 1
			for _, patch := range []struct {
				body string
				want map[string]any
			}{
				{`{"status":"inactive"}`, map[string]any{"status": "inactive"}},
				{`{"status":"archived"}`, map[string]any{"status": "archived"}},
				{`{"status":"active"}`, map[string]any{"status": "active"}},
				{`{"name":"N"}`, map[string]any{"name": "N"}},
				{`{"description":"D"}`, map[string]any{"description": "D"}},
				{`{"description":null}`, map[string]any{"description": ""}},
				{`{"defaultValue":"V","tags":["t"]}`, map[string]any{"defaultValue": "V", "tags": []string{"t"}}},
			} {
				version++
				a := me.call("PATCH", projectFlags(project, "/k"), patch.body).want(200)
				for name, value := range patch.want {
					flag[name] = value
				}
				flag["version"], flag["updatedAt"] = version, a.object()["updatedAt"]
				same(t, "the flag after "+patch.body, a.object(), flag)
				me.shownAs(t, a)
				same(t, "the flag by its project", me.call("GET", projectFlags(project, "/k"), nil).want(200).object(), flag)
				me.call("PATCH", projectFlags(project, "/k"), patch.body).want(200).shows(map[string]any{"version": version})
			}
			me.call("PATCH", projectFlags(project, "/k"), `{"status":"gone","name":"","enabled":true,"defaultValue":1}`).refused(422, "status", "name", "enabled", "defaultValue")
			me.call("PATCH", projectFlags(project, "/k"), `{"key":"l","projectId":"x","flag_variations":[]}`).refused(422, "key", "projectId", "flag_variations")
		},
		"a flag is switched per environment": func(t *testing.T, me *client) {
			project, _ := me.createProject("p")
			me.createFlag("k", map[string]any{"projectId": project})
			enabled := func(environment string, want bool) {
				t.Helper()
				for _, path := range []string{projectFlags(project, "/k"), flagPath("k")} {
					me.call("GET", path, nil, "X-Environment", environment).want(200).shows(map[string]any{"enabled": want})
				}
				list := me.call("GET", projectFlags(project, fmt.Sprintf("?enabled=%v", want)), nil, "X-Environment", environment).want(200).list()
				same(t, "flags of the list", len(list), 1)
			}
			enabled("production", false)
			for i := range 2 { // the second time does nothing
				a := me.call("POST", projectFlags(project, "/k/enable"), nil, "X-Environment", "development", "X-Change-Reason", "a trial").want(200)
				same(t, "the answer", a.object(), map[string]any{"success": true})
				same(t, fmt.Sprint("the ETag of time ", i), a.header.Get("ETag"), `"2"`)
			}
			enabled("development", true)
			enabled("production", false)
			same(t, "the reason", me.call("GET", flagPath("k", "/history"), nil).want(200).list()[0]["reason"], "a trial")
			me.call("POST", projectFlags(project, "/k/disable"), nil, "X-Environment", "development").want(200).shows(map[string]any{"success": true})
			enabled("development", false)
			for _, call := range onProjectFlag {
				me.call(call.method, projectFlags(project, "/k", call.tail), sent(call.body), "X-Environment", "staging").refused(404)
			}
			me.call("GET", projectFlags(project), nil, "X-Environment", "staging").refused(404)
			me.call("POST", projectFlags(project), `{"key":"l","type":"boolean"}`, "X-Environment", "staging").refused(404)
		},
		"If-Match lets a change through only at the version that it names": func(t *testing.T, me *client) {
			project, _ := me.createProject("p")
			me.createFlag("k", map[string]any{"projectId": project})
			version := 1
			for _, call := range onProjectFlag[1:] {
				path := projectFlags(project, "/k", call.tail)
				a := me.call(call.method, path, sent(call.body), "If-Match", `"77"`).refused(412)
				same(t, "the ETag of 412", a.header.Get("ETag"), fmt.Sprintf(`"%d"`, version))
				if a := me.call(call.method, path, sent(call.body), "If-Match", fmt.Sprintf(`"%d"`, version)); a.status >= 300 {
					t.Errorf("%s: %d %s", a.call, a.status, a.body)
				}
				version++
			}
			me.call("GET", projectFlags(project, "/k"), nil).refused(404)
			same(t, "the list", string(me.call("GET", projectFlags(project), nil).want(200).body), "[]")
		},
		"a flag of another project, or of none, is 404 just as a missing one": func(t *testing.T, me *client) {
			project, _ := me.createProject("p")
			other, _ := me.createProject("other")
			gone, path := me.createProject("gone")
			me.call("DELETE", path, nil).want(204)
			me.createFlag("mine", map[string]any{"projectId": project})
			me.createFlag("free", nil)
			for _, key := range []string{"mine", "free"} {
				before := me.call("GET", flagPath(key), nil).want(200).object()
				for _, at := range []string{other, gone, uuid.NewString(), "none", "%20"} {
					for _, call := range onProjectFlag {
						foreign := me.call(call.method, projectFlags(at, "/", key, call.tail), sent(call.body)).refused(404)
						sameBut(t, foreign, key, me.call(call.method, projectFlags(at, "/none", call.tail), sent(call.body)).refused(404), "none")
						me.call(call.method, projectFlags(at, "/", key, call.tail), sent(call.body), "If-Match", `"77"`).refused(404)
					}
				}
				same(t, "the flag", me.call("GET", flagPath(key), nil).want(200).object(), before)
			}
			for _, at := range []string{gone, uuid.NewString(), "none", "%20"} {
				me.call("GET", projectFlags(at), nil).refused(404)
				me.call("GET", projectFlags(at, "?limit=5&offset=2&status=active"), nil).refused(404)
				me.call("POST", projectFlags(at), `{"key":"l","type":"boolean"}`).refused(404)
			}
			same(t, "the other project's flags", string(me.call("GET", projectFlags(other), nil).want(200).body), "[]")
			same(t, "flags", me.keys(""), []string{"free", "mine"})
		},
		"a key that moves to another project leaves the old one": func(t *testing.T, me *client) {
			old, _ := me.createProject("old")
			current, _ := me.createProject("new")
			me.createFlag("k", map[string]any{"projectId": old})
			me.call("DELETE", projectFlags(old, "/k"), nil).want(204)
			me.call("POST", projectFlags(current), `{"key":"k","type":"boolean"}`).want(201)
			for _, call := range onProjectFlag {
				me.call(call.method, projectFlags(old, "/k", call.tail), sent(call.body)).refused(404)
				if a := me.call(call.method, projectFlags(current, "/k", call.tail), sent(call.body)); a.status >= 300 {
					t.Errorf("%s: %d %s", a.call, a.status, a.body)
				}
			}
		},
		"another tenant's project and its flags are 404 just as missing ones": func(t *testing.T, me *client) {
			project, _ := me.createProject("p")
			me.createFlag("k", map[string]any{"projectId": project})
			other := me.newTenant("other")
			other.createFlag("k", nil)
			missing := uuid.NewString()
			for _, call := range onProjectFlag {
				foreign := other.call(call.method, projectFlags(project, "/k", call.tail), sent(call.body)).refused(404)
				sameBut(t, foreign, project, other.call(call.method, projectFlags(missing, "/k", call.tail), sent(call.body)).refused(404), missing)
			}
			sameBut(t, other.call("GET", projectFlags(project), nil).refused(404), project, other.call("GET", projectFlags(missing), nil).refused(404), missing)
			body := `{"key":"l","type":"boolean"}`
			sameBut(t, other.call("POST", projectFlags(project), body).refused(404), project, other.call("POST", projectFlags(missing), body).refused(404), missing)
			me.call("GET", flagPath("k"), nil).want(200).shows(map[string]any{"version": 1})
			other.call("GET", flagPath("k"), nil).want(200).shows(map[string]any{"version": 1})
		},
		"lists are filtered and come page by page": func(t *testing.T, me *client) {
			project, _ := me.createProject("p")
			other, _ := me.createProject("other")
			for _, key := range []string{"b", "a", "d", "c"} {
				me.createFlag(key, map[string]any{"projectId": project, "tags": []string{"t"}, "type": "json"})
			}
			me.createFlag("aa", map[string]any{"projectId": other})
			me.createFlag("ab", nil)
			checkPages(t, me, projectFlags(project), "key", []any{"a", "b", "c", "d"})
			me.call("PATCH", projectFlags(project, "/c"), `{"status":"inactive","name":"Alpha","tags":[]}`).want(200)
			me.call("POST", projectFlags(project, "/d/enable"), nil).want(200)
			for query, want := range map[string][]string{
				"?q=A": {"a", "c"}, "?tag=t": {"a", "b", "d"}, "?status=inactive": {"c"}, "?enabled=true": {"d"}, "?enabled=false&tag=t": {"a", "b"}, "?type=json&limit=1&offset=1": {"b"},
				"?type=boolean": {},
			} {
				same(t, query, column(me.call("GET", projectFlags(project, query), nil).want(200).list(), "key"), want)
			}
			me.call("GET", projectFlags(project, "?projectId="+project), nil).refused(422, "projectId")
			me.call("GET", projectFlags(project, "?type=text&status=gone"), nil).refused(422, "type", "status")
		},
		"the words of the paths stand in no flag's way": func(_ *testing.T, me *client) {
			project, _ := me.createProject("p")
			for _, key := range []string{"flags", "enable", "variations", "p.projects"} {
				me.createFlag(key, map[string]any{"projectId": project})
				for _, path := range []string{flagPath(key), projectFlags(project, "/", key)} {
					me.call("GET", path, nil).want(200)
					me.call("POST", path+"/enable", nil).want(200)
				}
				me.call("POST", flagPath(key, "/evaluate"), `{}`).want(200)
			}
			for _, path := range []string{
				"/api/v1/flags/projects", "/api/v1/flags/projects/history", "/api/v1/flags/projects/variations", "/api/v1/flags/projects/" + project,
				"/api/v1/flags/projects//flags", "/api/v1/flags/projects//flags/flags", projectFlags(project, "/"), "/api/v1/flags/",
			} {
				me.call("GET", path, nil).refused(404)
			}
			me.call("POST", "/api/v1/flags/projects/enable", nil).refused(404)
			me.call("POST", "/api/v1/flags/projects//flags/flags/enable", nil).refused(404)
			me.call("PUT", projectFlags(project), `{}`).refused(405)
		},
	}.run(t)
}

// sent is a body, nil where it is empty.
func sent(body string) any {
	if body == "" {
		return nil
	}
	return body
}
