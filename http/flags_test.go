package http_test

import (
	"fmt"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// shownAs checks that a GET and the list show a flag as the response to a change did.
func shownAs(c *nodetest.Client, t *testing.T, written *nodetest.Answer) {
	t.Helper()
	body := written.Object()
	one := c.Call("GET", nodetest.FlagPath(body["key"].(string)), nil).Want(200)
	nodetest.Same(t, "the flag after "+written.Call, one.Object(), body)
	nodetest.Same(t, "its ETag after "+written.Call, one.Header.Get("ETag"), written.Header.Get("ETag"))
	nodetest.Same(t, "the ETag tells the version", written.Header.Get("ETag"), fmt.Sprintf(`"%v"`, body["version"]))
	for _, entry := range c.Call("GET", "/api/v1/flags", nil).Want(200).List() {
		if entry["key"] == body["key"] {
			delete(body, "variations")
			nodetest.Same(t, "the list after "+written.Call, entry, body)
			return
		}
	}
	t.Errorf("after %s the list does not show the flag", written.Call)
}

var flagMembers = []string{
	"id",
	"key",
	"name",
	"type",
	"enabled",
	"defaultValue",
	"description",
	"tags",
	"projectId",
	"permanent",
	"clientSide",
	"owner",
	"links",
	"offServes",
	"status",
	"version",
	"createdAt",
	"updatedAt",
	"lastEvaluatedAt",
	"lastPrefetchedAt",
	"lastRequiredAt",
	"lifecycle",
	"inProcess",
}

func TestNullIsNoValueOfMembersThatHoldOne(t *testing.T) {
	nodetest.Cases{
		"of a flag": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for _, member := range []string{"name", "tags", "status", "permanent", "clientSide", "offServes"} {
				me.Call("PATCH", nodetest.FlagPath("k"), `{"`+member+`":null}`).Refused(422, member)
			}
			me.Call("POST", "/api/v1/flags", `{"key":"l","type":"boolean","name":null}`).Refused(422, "name")
		},
		"of a project": func(_ *testing.T, me *nodetest.Client) {
			id := me.Call("POST", "/api/v1/projects", `{"name":"p"}`).Want(201).Object()["id"].(string)
			for _, member := range []string{"name", "color"} {
				me.Call("PATCH", "/api/v1/projects/"+id, `{"`+member+`":null}`).Refused(422, member)
			}
		},
	}.Run(t)
}

func TestCreatingFlags(t *testing.T) {
	nodetest.Cases{
		"a flag is created with its defaults, and reads show the same": func(t *testing.T, me *nodetest.Client) {
			a := me.Call("POST", "/api/v1/flags", `{"key":"new-checkout","type":"boolean"}`).Want(201)
			nodetest.Members(t, "a flag", a.Object(), append([]string{"variations"}, flagMembers...)...)
			a.Shows(map[string]any{
				"key":              "new-checkout",
				"name":             "new-checkout",
				"type":             "boolean",
				"enabled":          false,
				"defaultValue":     false,
				"description":      "",
				"tags":             []string{},
				"projectId":        nil,
				"permanent":        false,
				"clientSide":       false,
				"owner":            nil,
				"links":            []any{},
				"offServes":        "value",
				"lastEvaluatedAt":  nil,
				"lastPrefetchedAt": nil,
				"lastRequiredAt":   nil,
				"lifecycle":        "new",
				"inProcess":        map[string]any{"supported": true, "reason": nil},
				"status":           "active",
				"version":          1,
				"variations":       []string{},
			})
			checkTimes(t, a.Object())
			nodetest.Same(t, "headers", []string{a.Header.Get("Location"), a.Header.Get("ETag")},
				[]string{"/api/v1/flags/new-checkout", `"1"`})
			shownAs(me, t, a)
			nodetest.Members(t, "a flag in the list", me.Call("GET", "/api/v1/flags", nil).Want(200).List()[0], flagMembers...)
		},
		"each type has its default value": func(t *testing.T, me *nodetest.Client) {
			for kind, want := range map[string]string{"boolean": "false", "string": `""`, "number": "0", "json": "{}"} {
				a := me.Call("POST", "/api/v1/flags", map[string]string{"key": kind, "type": kind}).Want(201)
				nodetest.Same(t, kind, a.Raw("defaultValue"), want)
			}
		},
		"a flag keeps what was sent": func(t *testing.T, me *nodetest.Client) {
			project, _ := me.CreateProject("p")
			a := me.Call("POST", "/api/v1/flags", map[string]any{
				"key":          "A.b_c-9",
				"name":         "Näme <&>",
				"type":         "string",
				"defaultValue": "x",
				"description":  "für alle",
				"tags":         []string{"b", "a"},
				"projectId":    project,
				"permanent":    true,
				"flag_variations": []any{
					map[string]any{"name": "one", "value": "1", "description": "d", "weight": 12.5},
					map[string]any{"name": "two", "value": "2"},
				},
			}).Want(201)
			a.Shows(
				map[string]any{
					"name":         "Näme <&>",
					"defaultValue": "x",
					"description":  "für alle",
					"tags":         []string{"b", "a"},
					"projectId":    project,
					"permanent":    true,
					"version":      1,
				},
			)
			variations := a.Object()["variations"].([]any)
			first := variations[0].(map[string]any)
			nodetest.Members(t, "a variation", first, "id", "name", "value", "description", "weight")
			delete(first, "id")
			nodetest.Same(t, "the first variation", first,
				map[string]any{"name": "one", "value": "1", "description": "d", "weight": 12.5})
			nodetest.Same(t, "the second one's weight", variations[1].(map[string]any)["weight"], 0)
			shownAs(me, t, a)
		},
		"a flag is found by any key that it may have": func(_ *testing.T, me *nodetest.Client) {
			for _, key := range []string{"a", "0", "Projects", "projects2", "a..b", "streams", strings.Repeat("k", 128)} {
				me.CreateFlag(key, nil)
				me.Call("GET", nodetest.FlagPath(key), nil).Want(200)
			}
		},
		"keys differ in case": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("a", nil)
			me.CreateFlag("A", nil)
			nodetest.Same(t, "keys", me.FlagKeys(""), []string{"A", "a"})
		},
		"a key that is taken is 409, in another tenant it is free": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", map[string]any{"description": "first"})
			me.Call("POST", "/api/v1/flags", `{"key":"k","type":"string"}`).Refused(409)
			me.Call("GET", nodetest.FlagPath("k"), nil).
				Want(200).
				Shows(map[string]any{"type": "boolean", "description": "first", "version": 1})
			me.NewTenant("other").CreateFlag("k", nil)
		},
		"all that is wrong with a new flag is named at once": func(t *testing.T, me *nodetest.Client) {
			long := strings.Repeat("é", 2001)
			me.Call("POST", "/api/v1/flags", map[string]any{
				"key":          "no key",
				"name":         "",
				"type":         "number",
				"defaultValue": "text",
				"description":  long,
				"tags":         []string{"ok", "ok", "", strings.Repeat("é", 51)},
				"projectId":    "none",
				"flag_variations": []any{
					map[string]any{"name": "v", "value": 1},
					map[string]any{"name": "v", "value": true, "weight": -1, "description": long},
					map[string]any{"weight": 0.0005},
				},
			}).Refused(422, "key", "name", "defaultValue", "description", "tags[2]", "tags[3]", "projectId",
				"flag_variations[1].name", "flag_variations[1].value", "flag_variations[1].weight", "flag_variations[1].description",
				"flag_variations[2].name", "flag_variations[2].value", "flag_variations[2].weight")
			me.Call("POST", "/api/v1/flags", `{}`).Refused(422, "key", "type")
			me.Call("POST", "/api/v1/flags", `null`).Refused(422, "body")
			me.Call("POST", "/api/v1/flags", `{"key":"k","type":"text","defaultValue":"x"}`).Refused(422, "type")
			me.Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean","projectId":""}`).Refused(422, "projectId")
			me.Call("POST", "/api/v1/flags", map[string]any{"key": 1, "type": false, "tags": []int{1}, "enabled": true, "flag_variations": []any{map[string]any{"id": "x"}}}).
				Refused(422, "key", "type", "tags[0]", "enabled", "flag_variations[0].id", "flag_variations[0].name", "flag_variations[0].value")
			nodetest.Same(t, "flags", len(me.FlagKeys("")), 0)
		},
		"tags are a set": func(t *testing.T, me *nodetest.Client) {
			a := me.Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean","tags":["b","a","b"]}`).Want(201)
			a.Shows(map[string]any{"tags": []string{"b", "a"}})
			shownAs(me, t, a)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"tags":["b","a","a"]}`).Want(200).Shows(map[string]any{"version": 1})
			me.CreateFlag("l", map[string]any{"tags": []string{"b"}})
			nodetest.Same(t, "tags", me.Call("GET", "/api/v1/tags", nil).Want(200).List(), []any{
				map[string]any{"name": "a", "flagCount": 1}, map[string]any{"name": "b", "flagCount": 2},
			})
			me.Call("PATCH", nodetest.FlagPath("k"), `{"tags":["a","b"]}`).Want(200).Shows(map[string]any{"version": 1})
			shownAs(
				me,
				t,
				me.Call("PATCH", nodetest.FlagPath("k"), `{"tags":["c","c"]}`).
					Want(200).
					Shows(map[string]any{"tags": []string{"c"}, "version": 2}),
			)
			shownAs(
				me,
				t,
				me.Call("PATCH", nodetest.FlagPath("k"), `{"tags":[]}`).
					Want(200).
					Shows(map[string]any{"tags": []string{}, "version": 3}),
			)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"tags":[]}`).Want(200).Shows(map[string]any{"version": 3})
		},
	}.Run(t)
}

func TestFlagsThatAreNotThere(t *testing.T) {
	nodetest.Cases{
		"a flag that does not exist is 404": func(_ *testing.T, me *nodetest.Client) {
			for _, key := range []string{"none", "%00", "%ff", "a%2Fb", "..%2F..", "%F0%9F%98%80", strings.Repeat("k", 300)} {
				status := 404
				if key == "%00" || key == "%ff" {
					status = 400 // no text
				}
				me.Call("GET", nodetest.FlagPath(key), nil).Refused(status)
				me.Call("PATCH", nodetest.FlagPath(key), `{"name":"n"}`).Refused(status)
				me.Call("DELETE", nodetest.FlagPath(key), nil).Refused(status)
				me.Call("POST", nodetest.FlagPath(key, "/enable"), nil).Refused(status)
				me.Call("POST", nodetest.FlagPath(key, "/disable"), nil).Refused(status)
				me.Call("POST", nodetest.FlagPath(key, "/evaluate"), `{}`).Refused(status)
				me.Call("GET", nodetest.FlagPath(key, "/history"), nil).Refused(status)
				me.Call("GET", nodetest.FlagPath(key, "/variations"), nil).Refused(status)
				me.Call("POST", nodetest.FlagPath(key, "/variations"), `{"name":"v","value":1}`).Refused(status)
			}
		},
		"a key may be percent-encoded in a path": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("new-checkout", nil)
			for _, path := range []string{"/api/v1/flags/new%2Dcheckout", "/api/v1/flags/%6Eew-checkout"} {
				me.Call("GET", path, nil).Want(200)
				me.Call("PATCH", path, `{}`).Want(200)
				me.Call("POST", path+"/enable", nil).Want(200)
				me.Call("POST", path+"/evaluate", `{}`).Want(200)
				me.Call("GET", path+"/history", nil).Want(200)
			}
		},
		"a deleted flag is gone everywhere but in its history": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", map[string]any{"flag_variations": []any{map[string]any{"name": "v", "value": true}}})
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
			deleted := me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			nodetest.Same(t, "the body of 204", string(deleted.Body), "")
			me.Call("GET", nodetest.FlagPath("k"), nil).Refused(404)
			me.Call("PATCH", nodetest.FlagPath("k"), `{}`).Refused(404)
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Refused(404)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Refused(404)
			me.Call("POST", nodetest.FlagPath("k", "/evaluate"), `{}`).Refused(404)
			me.Call("GET", nodetest.FlagPath("k", "/variations"), nil).Refused(404)
			nodetest.Same(t, "the list", string(me.Call("GET", "/api/v1/flags", nil).Want(200).Body), "[]")
			nodetest.Same(t, "the history",
				nodetest.Column(me.Call("GET", nodetest.FlagPath("k", "/history"), nil).Want(200).List(), "action"),
				[]string{"deleted", "enabled", "created"})
		},
		"a deleted key begins a new life": func(t *testing.T, me *nodetest.Client) {
			old := me.CreateFlag(
				"k",
				map[string]any{
					"type":            "string",
					"description":     "old",
					"tags":            []string{"t"},
					"flag_variations": []any{map[string]any{"name": "v", "value": "x", "weight": 1}},
				},
			)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"status":"archived"}`).Want(200)
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			a := me.Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).Want(201)
			a.Shows(
				map[string]any{
					"type":        "boolean",
					"description": "",
					"tags":        []string{},
					"enabled":     false,
					"status":      "active",
					"variations":  []string{},
					"version":     5,
				},
			)
			if a.Object()["id"] == old["id"] {
				t.Error("the new flag has the old one's id")
			}
			shownAs(me, t, a)
			me.Call("POST", nodetest.FlagPath("k", "/evaluate"), `{}`).
				Want(200).
				Shows(map[string]any{"enabled": false, "value": false, "reason": "OFF", "flagVersion": 5})
			me.Call("DELETE", nodetest.FlagPath("k"), nil, "If-Match", `"1"`).Refused(412)
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			me.CreateFlag("k", map[string]any{"type": "number"})
			history := me.Call("GET", nodetest.FlagPath("k", "/history"), nil).Want(200).List()
			nodetest.Same(t, "the history of all lives", nodetest.Column(history, "action"),
				[]string{"created", "deleted", "created", "deleted", "status_changed", "enabled", "created"})
			nodetest.Same(t, "its versions", nodetest.Column(history, "version"), []int{7, 6, 5, 4, 3, 2, 1})
		},
		"another tenant's flag is 404 just as a missing one": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("mine", nil)
			id := me.AddVariation("mine", `{"name":"v","value":true}`).Object()["id"].(string)
			me.Call("POST", nodetest.FlagPath("mine", "/enable"), nil).Want(200)
			other := me.NewTenant("other")
			for _, call := range []struct{ method, path, body string }{
				{"GET", nodetest.FlagPath("mine"), ""}, {"PATCH", nodetest.FlagPath("mine"), `{"name":"n"}`}, {"DELETE", nodetest.FlagPath("mine"), ""}, {"POST", nodetest.FlagPath("mine", "/enable"), ""},
				{"POST", nodetest.FlagPath("mine", "/disable"), ""}, {"POST", nodetest.FlagPath("mine", "/evaluate"), `{}`}, {"GET", nodetest.FlagPath("mine", "/history"), ""},
				{"GET", nodetest.FlagPath("mine", "/variations"), ""}, {"POST", nodetest.FlagPath("mine", "/variations"), `{"name":"w","value":true}`},
				{"PATCH", nodetest.FlagPath("mine", "/variations/", id), `{"name":"w"}`}, {"DELETE", nodetest.FlagPath("mine", "/variations/", id), ""},
			} {
				var body any
				if call.body != "" {
					body = call.body
				}
				foreign := other.Call(call.method, call.path, body).Refused(404)
				missing := other.Call(call.method, strings.Replace(call.path, "/mine", "/none", 1), body).Refused(404)
				sameBut(t, foreign, "mine", missing, "none")
			}
			nodetest.Same(t, "the other's list", string(other.Call("GET", "/api/v1/flags", nil).Want(200).Body), "[]")
			me.Call("GET", nodetest.FlagPath("mine"), nil).Want(200).Shows(map[string]any{"enabled": true, "version": 3})
		},
	}.Run(t)
}

func TestListsOfFlags(t *testing.T) {
	nodetest.Cases{
		"a list shows each change right after it": func(t *testing.T, me *nodetest.Client) {
			var want []any
			for i := range 10 {
				key := fmt.Sprint("k", i)
				me.CreateFlag(key, nil)
				want = append(want, key)
				nodetest.Same(t, "keys", me.FlagKeys(""), want)
				me.Call("PATCH", nodetest.FlagPath(key), `{"tags":["on"]}`).Want(200)
				nodetest.Same(t, "keys by tag", me.FlagKeys("?tag=on"), want)
			}
			for i := range 10 {
				me.Call("DELETE", nodetest.FlagPath(fmt.Sprint("k", i)), nil).Want(204)
				if got := me.FlagKeys(""); len(got) != 9-i {
					t.Errorf("after %d deletions there are %v", i+1, got)
				}
			}
		},
		"lists are filtered": func(t *testing.T, me *nodetest.Client) {
			project, _ := me.CreateProject("p")
			me.CreateFlag("alpha",
				map[string]any{"name": "First 100%", "type": "string", "tags": []string{"a", "b"}, "projectId": project})
			me.CreateFlag("beta", map[string]any{"name": "ÄRGER_1", "tags": []string{"b"}, "projectId": project})
			me.CreateFlag("gamma",
				map[string]any{"name": "alphabet", "type": "json", "description": "Stops Refunds at once", "clientSide": true})
			me.Call("PATCH", nodetest.FlagPath("gamma"), `{"status":"archived"}`).Want(200)
			me.Call("POST", nodetest.FlagPath("beta", "/enable"), nil).Want(200)
			for query, want := range map[string][]string{
				"":                          {"alpha", "beta", "gamma"},
				"?projectId=" + project:     {"alpha", "beta"},
				"?projectId=none":           {},
				"?type=json":                {"gamma"},
				"?status=archived":          {"gamma"},
				"?status=active":            {"alpha", "beta"},
				"?enabled=true":             {"beta"},
				"?enabled=false":            {"alpha", "gamma"},
				"?clientSide=true":          {"gamma"},
				"?clientSide=false":         {"alpha", "beta"},
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
				"?q=refund+gam":             {"gamma"},
				"?q=GAM++refund":            {"gamma"},
				"?q=refund+beta":            {},
				"?q=a+first":                {"alpha"},
				"?q=+":                      {"alpha", "beta", "gamma"},
				"?q=alpha&status=archived":  {"gamma"},
				"?limit=1&offset=1&q=alpha": {"gamma"},
			} {
				nodetest.Same(t, query, me.FlagKeys(query), want)
			}
			nodetest.Same(
				t,
				"in development",
				nodetest.Column(me.Call("GET", "/api/v1/flags?enabled=true", nil, "X-Environment", "development").Want(200).List(),
					"key"),
				[]string{},
			)
			for query, field := range map[string]string{"?type=text": "type", "?status=gone": "status", "?enabled=yes": "enabled", "?tags=a": "tags", "?Q=a": "Q"} {
				me.Call("GET", "/api/v1/flags"+query, nil).Refused(422, field)
			}
			me.Call("GET", "/api/v1/flags?type=text&status=gone&enabled=1&limit=0", nil).
				Refused(422, "type", "status", "enabled", "limit")
			for _, query := range []string{"?q=%00", "?tag=%ff", "?projectId=%00", "?q=%zz", "?%ff=1"} {
				me.Call("GET", "/api/v1/flags"+query, nil).Refused(400)
			}
		},
		"flags are listed by key, page by page": func(t *testing.T, me *nodetest.Client) {
			for _, key := range []string{"b", "a.1", "B", "a", "_x"[1:], "a-1", "0"} {
				me.CreateFlag(key, map[string]any{"tags": []string{"t"}})
			}
			me.CreateFlag("untagged", nil)
			checkPages(t, me, "/api/v1/flags?tag=t", "key", []any{"0", "B", "a", "a-1", "a.1", "b", "x"})
		},
	}.Run(t)
}
