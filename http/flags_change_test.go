package http_test

import (
	"fmt"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestUpdatingFlags(t *testing.T) {
	nodetest.Cases{
		"PATCH changes what is sent and nothing else": func(t *testing.T, me *nodetest.Client) {
			project, _ := me.CreateProject("p")
			created := me.CreateFlag("k", map[string]any{
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
				{`{"permanent":true}`, map[string]any{"permanent": true}},
				{`{"tags":["t","u"]}`, map[string]any{"tags": []string{"t", "u"}}},
				{`{"name":"N3","description":"D3","defaultValue":"V3","tags":["w"]}`, map[string]any{"name": "N3", "description": "D3", "defaultValue": "V3", "tags": []string{"w"}}},
			} {
				version++
				a := me.Call("PATCH", nodetest.FlagPath("k"), patch.body).Want(200)
				for name, value := range patch.want {
					created[name] = value
				}
				created["version"], created["updatedAt"] = version, a.Object()["updatedAt"]
				nodetest.Same(t, "the flag after "+patch.body, a.Object(), created)
				shownAs(me, t, a)
			}
		},
		"any status may follow any": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			version := 1
			for _, status := range []string{"inactive", "archived", "active", "archived", "inactive", "active"} {
				version++
				shownAs(
					me,
					t,
					me.Call("PATCH", nodetest.FlagPath("k"), map[string]string{"status": status}).
						Want(200).
						Shows(map[string]any{"status": status, "version": version}),
				)
			}
			me.Call("PATCH", nodetest.FlagPath("k"), `{"status":"gone"}`).Refused(422, "status")
			shownAs(
				me,
				t,
				me.Call("PATCH", nodetest.FlagPath("k"), `{"status":"archived","name":"both"}`).
					Want(200).
					Shows(map[string]any{"status": "archived", "name": "both", "version": 9}),
			)
		},
		"a PATCH that changes nothing appends nothing": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag(
				"k",
				map[string]any{
					"type":         "json",
					"name":         "N",
					"description":  "D",
					"defaultValue": map[string]int{"a": 1},
					"tags":         []string{"t"},
				},
			)
			before := me.Call("GET", nodetest.FlagPath("k"), nil).Want(200)
			for _, body := range []string{
				`{}`, `{"name":"N"}`, `{"status":"active"}`, `{"name":"N","description":"D","defaultValue":{"a":1},"tags":["t"],"status":"active"}`, `{"defaultValue": { "a" : 1 } }`,
			} {
				a := me.Call("PATCH", nodetest.FlagPath("k"), body).Want(200)
				nodetest.Same(t, "the flag after "+body, a.Object(), before.Object())
				nodetest.Same(t, "the ETag", a.Header.Get("ETag"), `"1"`)
			}
			nodetest.Same(t, "entries of the history",
				len(me.Call("GET", nodetest.FlagPath("k", "/history"), nil).Want(200).List()), 1)
		},
		"all that is wrong with a PATCH is named at once": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{
				"name":         "",
				"description":  strings.Repeat("é", 2001),
				"defaultValue": "text",
				"tags":         []string{"", strings.Repeat("é", 51)},
				"status":       "gone",
				"enabled":      true,
			}).Refused(422, "name", "description", "defaultValue", "tags[0]", "tags[1]", "status", "enabled")
			me.Call("PATCH", nodetest.FlagPath("k"), `{"key":"other","type":"string","version":5,"id":"x","projectId":"p","flag_variations":[]}`).
				Refused(422, "key", "type", "version", "id", "projectId", "flag_variations")
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":null,"description":null,"defaultValue":null,"tags":null,"status":null}`).
				Refused(422, "name", "defaultValue", "tags", "status")
			me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"version": 1})
		},
		"enabled is not for PATCH, which says what is": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for _, value := range []string{"true", "false", "null"} {
				a := me.Call("PATCH", nodetest.FlagPath("k"), `{"enabled":`+value+`}`).Refused(422, "enabled")
				text := a.Object()["errors"].(map[string]any)["enabled"].(string)
				if !strings.Contains(text, "/enable") || !strings.Contains(text, "/disable") {
					t.Errorf("enabled: %s", text)
				}
			}
		},
		"If-Match lets a change through only at the version that it names": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			id := me.AddVariation("k", `{"name":"v","value":true}`).Object()["id"].(string)
			calls := []struct {
				method, path, body string
				appends            bool
			}{
				{"PATCH", nodetest.FlagPath("k"), `{"name":"%s"}`, true},
				{"POST", nodetest.FlagPath("k", "/enable"), "", true},
				{"POST", nodetest.FlagPath("k", "/enable"), "", false},
				{"POST", nodetest.FlagPath("k", "/disable"), "", true},
				{"POST", nodetest.FlagPath("k", "/variations"), `{"name":"%s","value":false}`, true},
				{"PATCH", nodetest.FlagPath("k", "/variations/", id), `{"name":"%s"}`, true},
				{"DELETE", nodetest.FlagPath("k", "/variations/", id), "", true},
				{"DELETE", nodetest.FlagPath("k"), "", true},
			}
			version := 2
			for i, call := range calls {
				send := func(match string) *nodetest.Answer {
					var body any
					if call.body != "" {
						body = strings.ReplaceAll(call.body, "%s", fmt.Sprint("name", i))
					}
					return me.Call(call.method, call.path, body, "If-Match", match)
				}
				before := string(me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Body)
				stale := []string{`"0"`, `"%d"`, `W/"%d"`, `"%d-gzip"`, `""`, `"nonsense"`, `"0", "1000"`}
				for _, match := range stale {
					a := send(strings.ReplaceAll(match, "%d", fmt.Sprint(version+1))).Refused(412)
					nodetest.Same(t, "the ETag of 412", a.Header.Get("ETag"), fmt.Sprintf(`"%d"`, version))
				}
				for _, match := range []string{"%d", "nonsense", `"%d`, `w/"%d"`, `"%d" "77"`, `*, "%d"`} {
					send(strings.ReplaceAll(match, "%d", fmt.Sprint(version))).Refused(422, "If-Match")
				}
				nodetest.Same(t, "the flag after the refusals", string(me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Body),
					before)
				// Proxies that compress a response make its tag weak or add the encoding to it.
				good := []string{`"%d"`, "*", `"77", "%d"`, `W/"1","%d"`, `W/"%d"`, `"%d-gzip"`, `W/"77",W/"%d-br"`, `"%d--gzip"`}
				if a := send(strings.ReplaceAll(good[i%len(good)], "%d", fmt.Sprint(version))); a.Status >= 300 {
					t.Errorf("%s with If-Match %s: %d %s", a.Call, good[i%len(good)], a.Status, a.Body)
				}
				if call.appends {
					version++
				}
			}
			me.Call("PATCH", nodetest.FlagPath("k"), `{}`, "If-Match", "*").Refused(404)
		},
	}.Run(t)
}

func TestSwitchingFlags(t *testing.T) {
	nodetest.Cases{
		"enable and disable work per environment, and repeated do nothing": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			shows := func(environment string, enabled bool, version int) {
				t.Helper()
				me.Call("GET", nodetest.FlagPath("k"), nil, "X-Environment", environment).
					Want(200).
					Shows(map[string]any{"enabled": enabled, "version": version})
				list := me.Call("GET", "/api/v1/flags", nil, "X-Environment", environment).Want(200).List()
				nodetest.Same(t, "the list", []any{list[0]["enabled"], list[0]["version"]}, []any{enabled, version})
				filtered := me.Call("GET", fmt.Sprintf("/api/v1/flags?enabled=%v", enabled), nil, "X-Environment", environment).
					Want(200).
					List()
				nodetest.Same(t, "the filtered list", len(filtered), 1)
			}
			do := func(action, environment string) {
				t.Helper()
				me.Call("POST", nodetest.FlagPath("k", action), nil, "X-Environment", environment).
					Want(200).
					Shows(map[string]any{"success": true})
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
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"n"}`, "X-Environment", "development").
				Want(200).
				Shows(map[string]any{"enabled": false})
			shownAs(me, t,
				me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"m"}`).Want(200).Shows(map[string]any{"enabled": true}))
		},
		"an environment that the tenant does not have is 404 on every flag call": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			id := me.AddVariation("k", `{"name":"v","value":true}`).Object()["id"].(string)
			calls := []struct{ method, path, body string }{
				{
					"GET",
					"/api/v1/flags",
					"",
				},
				{"POST", "/api/v1/flags", `{"key":"n","type":"boolean"}`},
				{"GET", nodetest.FlagPath("k"), ""},
				{"PATCH", nodetest.FlagPath("k"), `{"name":"n"}`},
				{
					"POST",
					nodetest.FlagPath("k", "/enable"),
					"",
				},
				{"POST", nodetest.FlagPath("k", "/disable"), ""},
				{"POST", nodetest.FlagPath("k", "/evaluate"), `{}`},
				{
					"GET",
					nodetest.FlagPath("k", "/history"),
					"",
				},
				{"GET", nodetest.FlagPath("k", "/versions"), ""},
				{"GET", nodetest.FlagPath("k", "/versions/1"), ""},
				{"GET", nodetest.FlagPath("k", "/diff?from=1&to=2"), ""},
				{
					"GET",
					nodetest.FlagPath("k", "/variations"),
					"",
				},
				{"POST", nodetest.FlagPath("k", "/variations"), `{"name":"w","value":true}`},
				{
					"PATCH",
					nodetest.FlagPath("k", "/variations/", id),
					`{"name":"w"}`,
				},
				{"DELETE", nodetest.FlagPath("k", "/variations/", id), ""},
				{"DELETE", nodetest.FlagPath("k"), ""},
			}
			for _, environment := range []string{"staging", "Production", "production ", "\xff"} {
				for _, call := range calls {
					if environment == "production " {
						continue // HTTP itself removes the space
					}
					var body any
					if call.body != "" {
						body = call.body
					}
					me.Call(call.method, call.path, body, "X-Environment", environment).Refused(404)
				}
			}
			me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"version": 2})
			nodetest.Same(t, "keys", me.FlagKeys(""), []string{"k"})
		},
	}.Run(t)
}
