package http_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
)

// onProjectFlag are the calls on one flag by its project.
var onProjectFlag = []struct{ method, tail, body string }{
	{
		"GET",
		"",
		"",
	},
	{"PATCH", "", `{"name":"stolen"}`},
	{"POST", "/enable", ""},
	{"POST", "/disable", ""},
	{"DELETE", "", ""},
}

// sent is a body, nil where it is empty.
func sent(body string) any {
	if body == "" {
		return nil
	}
	return body
}

func TestFlagsOfAProject(t *testing.T) {
	nodetest.Cases{
		"a flag is created in a project, and is the tenant's too": func(t *testing.T, me *nodetest.Client) {
			project, path := me.CreateProject("p")
			a := me.Call("POST", nodetest.ProjectFlagsPath(project), `{"key":"k","name":"N","type":"number","defaultValue":9007199254740993,"description":"D",
				"flag_variations":[{"name":"one","value":1,"description":"d"},{"name":"two","value":2}]}`).
				Want(201)
			nodetest.Members(t, "a flag", a.Object(), append([]string{"variations"}, flagMembers...)...)
			a.Shows(
				map[string]any{
					"key":         "k",
					"name":        "N",
					"description": "D",
					"projectId":   project,
					"enabled":     false,
					"status":      "active",
					"version":     1,
				},
			)
			nodetest.Same(t, "the default value", a.Raw("defaultValue"), "9007199254740993")
			nodetest.Same(t, "the headers", []string{a.Header.Get("Location"), a.Header.Get("ETag")},
				[]string{nodetest.ProjectFlagsPath(project, "/k"), `"1"`})
			shownAs(me, t, a)
			one := me.Call("GET", nodetest.ProjectFlagsPath(project, "/k"), nil).Want(200)
			nodetest.Same(t, "the flag by its project", []any{one.Object(), one.Header.Get("ETag")}, []any{a.Object(), `"1"`})
			nodetest.Same(t, "names of variations", nodetest.Column(me.Variations("k"), "name"), []string{"one", "two"})
			list := me.Call("GET", nodetest.ProjectFlagsPath(project), nil).Want(200).List()
			nodetest.Members(t, "a flag in the list", list[0], flagMembers...)
			nodetest.Same(t, "the list", list, me.Call("GET", "/api/v1/flags", nil).Want(200).List())
			me.Call("GET", path, nil).Want(200).Shows(map[string]any{"flagCount": 1})
			me.Call("POST", nodetest.ProjectFlagsPath(project), `{"key":"k","type":"boolean"}`).Refused(409)
			me.Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).Refused(409)
		},
		"all that is wrong with a new flag is named at once": func(t *testing.T, me *nodetest.Client) {
			project, _ := me.CreateProject("p")
			me.Call("POST", nodetest.ProjectFlagsPath(project), `{"key":"no key","name":"","type":"number","defaultValue":"x","flag_variations":[{"value":1},{"name":"v","value":"x"}]}`).
				Refused(422, "key", "name", "defaultValue", "flag_variations[0].name", "flag_variations[1].value")
			me.Call("POST", nodetest.ProjectFlagsPath(project), map[string]any{"key": "k", "type": "boolean", "projectId": project, "enabled": true, "status": "active"}).
				Refused(422, "projectId", "enabled", "status")
			me.Call("POST", nodetest.ProjectFlagsPath(project), `{}`).Refused(422, "key", "type")
			nodetest.Same(t, "the list", string(me.Call("GET", nodetest.ProjectFlagsPath(project), nil).Want(200).Body), "[]")
		},
		"PATCH changes what is sent": func(t *testing.T, me *nodetest.Client) {
			project, _ := me.CreateProject("p")
			flag := me.CreateFlag("k", map[string]any{"type": "string", "projectId": project})
			version := 1
			for _, patch := range []struct {
				body string
				want map[string]any
			}{
				{`{"status":"inactive"}`, map[string]any{"status": "inactive"}},
				{`{"status":"archived"}`, map[string]any{"status": "archived", "lifecycle": "archived",
					"inProcess": map[string]any{"supported": false, "reason": "the flag is archived"}}},
				{`{"status":"active"}`, map[string]any{"status": "active", "lifecycle": "new",
					"inProcess": map[string]any{"supported": true, "reason": nil}}},
				{`{"name":"N"}`, map[string]any{"name": "N"}},
				{`{"description":"D"}`, map[string]any{"description": "D"}},
				{`{"description":null}`, map[string]any{"description": ""}},
				{`{"defaultValue":"V","tags":["t"]}`, map[string]any{"defaultValue": "V", "tags": []string{"t"}}},
			} {
				version++
				a := me.Call("PATCH", nodetest.ProjectFlagsPath(project, "/k"), patch.body).Want(200)
				for name, value := range patch.want {
					flag[name] = value
				}
				flag["version"], flag["updatedAt"] = version, a.Object()["updatedAt"]
				nodetest.Same(t, "the flag after "+patch.body, a.Object(), flag)
				shownAs(me, t, a)
				nodetest.Same(t, "the flag by its project",
					me.Call("GET", nodetest.ProjectFlagsPath(project, "/k"), nil).Want(200).Object(), flag)
				me.Call("PATCH", nodetest.ProjectFlagsPath(project, "/k"), patch.body).
					Want(200).
					Shows(map[string]any{"version": version})
			}
			me.Call("PATCH", nodetest.ProjectFlagsPath(project, "/k"), `{"status":"gone","name":"","enabled":true,"defaultValue":1}`).
				Refused(422, "status", "name", "enabled", "defaultValue")
			me.Call("PATCH", nodetest.ProjectFlagsPath(project, "/k"), `{"key":"l","projectId":"x","flag_variations":[]}`).
				Refused(422, "key", "projectId", "flag_variations")
		},
		"a flag is switched per environment": func(t *testing.T, me *nodetest.Client) {
			project, _ := me.CreateProject("p")
			me.CreateFlag("k", map[string]any{"projectId": project})
			enabled := func(environment string, want bool) {
				t.Helper()
				for _, path := range []string{nodetest.ProjectFlagsPath(project, "/k"), nodetest.FlagPath("k")} {
					me.Call("GET", path, nil, "X-Environment", environment).Want(200).Shows(map[string]any{"enabled": want})
				}
				list := me.Call("GET", nodetest.ProjectFlagsPath(project, fmt.Sprintf("?enabled=%v", want)), nil, "X-Environment", environment).
					Want(200).
					List()
				nodetest.Same(t, "flags of the list", len(list), 1)
			}
			enabled("production", false)
			for i := range 2 { // the second call does nothing
				a := me.Call("POST", nodetest.ProjectFlagsPath(project, "/k/enable"), nil, "X-Environment", "development", "X-Change-Reason", "a trial").
					Want(200)
				nodetest.Same(t, "the answer", a.Object(), map[string]any{"success": true})
				nodetest.Same(t, fmt.Sprint("the ETag of time ", i), a.Header.Get("ETag"), `"2"`)
			}
			enabled("development", true)
			enabled("production", false)
			nodetest.Same(t, "the reason", me.Call("GET", nodetest.FlagPath("k", "/history"), nil).Want(200).List()[0]["reason"],
				"a trial")
			me.Call("POST", nodetest.ProjectFlagsPath(project, "/k/disable"), nil, "X-Environment", "development").
				Want(200).
				Shows(map[string]any{"success": true})
			enabled("development", false)
			for _, call := range onProjectFlag {
				me.Call(call.method, nodetest.ProjectFlagsPath(project, "/k", call.tail), sent(call.body), "X-Environment", "staging").
					Refused(404)
			}
			me.Call("GET", nodetest.ProjectFlagsPath(project), nil, "X-Environment", "staging").Refused(404)
			me.Call("POST", nodetest.ProjectFlagsPath(project), `{"key":"l","type":"boolean"}`, "X-Environment", "staging").
				Refused(404)
		},
		"If-Match lets a change through only at the version that it names": func(t *testing.T, me *nodetest.Client) {
			project, _ := me.CreateProject("p")
			me.CreateFlag("k", map[string]any{"projectId": project})
			version := 1
			for _, call := range onProjectFlag[1:] {
				path := nodetest.ProjectFlagsPath(project, "/k", call.tail)
				a := me.Call(call.method, path, sent(call.body), "If-Match", `"77"`).Refused(412)
				nodetest.Same(t, "the ETag of 412", a.Header.Get("ETag"), fmt.Sprintf(`"%d"`, version))
				if a := me.Call(call.method, path, sent(call.body), "If-Match", fmt.Sprintf(`"%d"`, version)); a.Status >= 300 {
					t.Errorf("%s: %d %s", a.Call, a.Status, a.Body)
				}
				version++
			}
			me.Call("GET", nodetest.ProjectFlagsPath(project, "/k"), nil).Refused(404)
			nodetest.Same(t, "the list", string(me.Call("GET", nodetest.ProjectFlagsPath(project), nil).Want(200).Body), "[]")
		},
	}.Run(t)
}

func TestPathsOfAProjectsFlags(t *testing.T) {
	nodetest.Cases{
		"a flag of another project, or of none, is 404 just as a missing one": func(t *testing.T, me *nodetest.Client) {
			project, _ := me.CreateProject("p")
			other, _ := me.CreateProject("other")
			gone, path := me.CreateProject("gone")
			me.Call("DELETE", path, nil).Want(204)
			me.CreateFlag("mine", map[string]any{"projectId": project})
			me.CreateFlag("free", nil)
			for _, key := range []string{"mine", "free"} {
				before := me.Call("GET", nodetest.FlagPath(key), nil).Want(200).Object()
				for _, at := range []string{other, gone, uuid.NewString(), "none", "%20"} {
					for _, call := range onProjectFlag {
						foreign := me.Call(call.method, nodetest.ProjectFlagsPath(at, "/", key, call.tail), sent(call.body)).Refused(404)
						sameBut(t, foreign, key,
							me.Call(call.method, nodetest.ProjectFlagsPath(at, "/none", call.tail), sent(call.body)).Refused(404), "none")
						me.Call(call.method, nodetest.ProjectFlagsPath(at, "/", key, call.tail), sent(call.body), "If-Match", `"77"`).
							Refused(404)
					}
				}
				nodetest.Same(t, "the flag", me.Call("GET", nodetest.FlagPath(key), nil).Want(200).Object(), before)
			}
			for _, at := range []string{gone, uuid.NewString(), "none", "%20"} {
				me.Call("GET", nodetest.ProjectFlagsPath(at), nil).Refused(404)
				me.Call("GET", nodetest.ProjectFlagsPath(at, "?limit=5&offset=2&status=active"), nil).Refused(404)
				me.Call("POST", nodetest.ProjectFlagsPath(at), `{"key":"l","type":"boolean"}`).Refused(404)
			}
			nodetest.Same(t, "the other project's flags",
				string(me.Call("GET", nodetest.ProjectFlagsPath(other), nil).Want(200).Body), "[]")
			nodetest.Same(t, "flags", me.FlagKeys(""), []string{"free", "mine"})
		},
		"a key that moves to another project leaves the old one": func(t *testing.T, me *nodetest.Client) {
			old, _ := me.CreateProject("old")
			current, _ := me.CreateProject("new")
			me.CreateFlag("k", map[string]any{"projectId": old})
			me.Call("DELETE", nodetest.ProjectFlagsPath(old, "/k"), nil).Want(204)
			me.Call("POST", nodetest.ProjectFlagsPath(current), `{"key":"k","type":"boolean"}`).Want(201)
			for _, call := range onProjectFlag {
				me.Call(call.method, nodetest.ProjectFlagsPath(old, "/k", call.tail), sent(call.body)).Refused(404)
				if a := me.Call(
					call.method, nodetest.ProjectFlagsPath(current, "/k", call.tail), sent(call.body),
				); a.Status >= 300 {
					t.Errorf("%s: %d %s", a.Call, a.Status, a.Body)
				}
			}
		},
		"another tenant's project and its flags are 404 just as missing ones": func(t *testing.T, me *nodetest.Client) {
			project, _ := me.CreateProject("p")
			me.CreateFlag("k", map[string]any{"projectId": project})
			other := me.NewTenant("other")
			other.CreateFlag("k", nil)
			missing := uuid.NewString()
			for _, call := range onProjectFlag {
				foreign := other.Call(call.method, nodetest.ProjectFlagsPath(project, "/k", call.tail), sent(call.body)).
					Refused(404)
				sameBut(
					t,
					foreign,
					project,
					other.Call(call.method, nodetest.ProjectFlagsPath(missing, "/k", call.tail), sent(call.body)).Refused(404),
					missing,
				)
			}
			sameBut(t, other.Call("GET", nodetest.ProjectFlagsPath(project), nil).Refused(404), project,
				other.Call("GET", nodetest.ProjectFlagsPath(missing), nil).Refused(404), missing)
			body := `{"key":"l","type":"boolean"}`
			sameBut(t, other.Call("POST", nodetest.ProjectFlagsPath(project), body).Refused(404), project,
				other.Call("POST", nodetest.ProjectFlagsPath(missing), body).Refused(404), missing)
			me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"version": 1})
			other.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"version": 1})
		},
		"lists are filtered and come page by page": func(t *testing.T, me *nodetest.Client) {
			project, _ := me.CreateProject("p")
			other, _ := me.CreateProject("other")
			for _, key := range []string{"b", "a", "d", "c"} {
				me.CreateFlag(key, map[string]any{"projectId": project, "tags": []string{"t"}, "type": "json"})
			}
			me.CreateFlag("aa", map[string]any{"projectId": other})
			me.CreateFlag("ab", nil)
			checkPages(t, me, nodetest.ProjectFlagsPath(project), "key", []any{"a", "b", "c", "d"})
			me.Call("PATCH", nodetest.ProjectFlagsPath(project, "/c"), `{"status":"inactive","name":"Alpha","tags":[]}`).
				Want(200)
			me.Call("POST", nodetest.ProjectFlagsPath(project, "/d/enable"), nil).Want(200)
			for query, want := range map[string][]string{
				"?q=A": {"a", "c"}, "?tag=t": {"a", "b", "d"}, "?status=inactive": {"c"}, "?enabled=true": {"d"}, "?enabled=false&tag=t": {"a", "b"}, "?type=json&limit=1&offset=1": {"b"},
				"?type=boolean": {},
			} {
				nodetest.Same(t, query,
					nodetest.Column(me.Call("GET", nodetest.ProjectFlagsPath(project, query), nil).Want(200).List(), "key"), want)
			}
			me.Call("GET", nodetest.ProjectFlagsPath(project, "?projectId="+project), nil).Refused(422, "projectId")
			me.Call("GET", nodetest.ProjectFlagsPath(project, "?type=text&status=gone"), nil).Refused(422, "type", "status")
		},
		"the words of the paths stand in no flag's way": func(_ *testing.T, me *nodetest.Client) {
			project, _ := me.CreateProject("p")
			for _, key := range []string{"flags", "enable", "variations", "p.projects"} {
				me.CreateFlag(key, map[string]any{"projectId": project})
				for _, path := range []string{nodetest.FlagPath(key), nodetest.ProjectFlagsPath(project, "/", key)} {
					me.Call("GET", path, nil).Want(200)
					me.Call("POST", path+"/enable", nil).Want(200)
				}
				me.Call("POST", nodetest.FlagPath(key, "/evaluate"), `{}`).Want(200)
			}
			for _, path := range []string{
				"/api/v1/flags/projects", "/api/v1/flags/projects/history", "/api/v1/flags/projects/variations", "/api/v1/flags/projects/" + project,
				"/api/v1/flags/projects//flags", "/api/v1/flags/projects//flags/flags", nodetest.ProjectFlagsPath(project, "//"), "/api/v1/flags//",
			} {
				me.Call("GET", path, nil).Refused(404)
			}
			me.Call("POST", "/api/v1/flags/projects/enable", nil).Refused(404)
			me.Call("POST", "/api/v1/flags/projects//flags/flags/enable", nil).Refused(404)
			me.Call("PUT", nodetest.ProjectFlagsPath(project), `{}`).Refused(405)
		},
	}.Run(t)
}
