package http_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
)

func change(from, to any) map[string]any { return map[string]any{"from": from, "to": to} }

func TestHistory(t *testing.T) { nodetest.BothEngines(t, testHistory) }

func testHistory(t *testing.T) {
	nodetest.Cases{
		"each change has an entry that tells who did what": func(t *testing.T, me *nodetest.Client) {
			created := me.Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).Want(201)
			entries := me.History("k", "")
			nodetest.Same(t, "entries", len(entries), 1)
			entry := entries[0]
			nodetest.Members(t, "an entry", entry, "id", "action", "changes", "userId", "userName", "timestamp", "environment",
				"version", "actorType", "requestId", "reason")
			checkTimes(t, entry)
			nodetest.Same(t, "the entry's time", entry["timestamp"], created.Object()["createdAt"])
			for name, want := range map[string]any{
				"action": "created", "userId": me.UserID, "userName": me.Email, "environment": nil, "version": 1, "actorType": "user",
				"requestId": created.Header.Get("X-Request-ID"), "reason": "",
			} {
				nodetest.Same(t, name, entry[name], want)
			}
			if _, err := uuid.Parse(fmt.Sprint(entry["id"])); err != nil {
				t.Errorf("id: %v", err)
			}
		},
		"each action shows what changed, from what to what": func(t *testing.T, me *nodetest.Client) {
			project, _ := me.CreateProject("p")
			me.CreateFlag(
				"k",
				map[string]any{
					"type":         "string",
					"defaultValue": "d",
					"description":  "D",
					"tags":         []string{"t"},
					"projectId":    project,
				},
			)
			v := me.AddVariation("k", `{"name":"v","value":"1","weight":1.5}`).Object()
			id := v["id"].(string)
			path := nodetest.FlagPath("k", "/variations/", id)
			me.Call("PATCH", path, `{"name":"w","value":"2","description":"E","weight":2}`).Want(200)
			me.Call("DELETE", path, nil).Want(204)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"N","defaultValue":"e","description":null,"tags":[]}`).Want(200)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"status":"inactive"}`).Want(200)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "development").Want(200)
			me.Call("POST", nodetest.FlagPath("k", "/disable"), nil, "X-Environment", "development").Want(200)
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			variation := map[string]any{"id": id, "name": "v", "value": "1", "weight": 1.5}
			changed := map[string]any{"id": id, "name": "w", "value": "2", "description": "E", "weight": 2}
			want := []struct {
				action      string
				environment any
				changes     map[string]any
			}{
				{"deleted", nil, map[string]any{"name": change("N", nil)}},
				{"disabled", "development", map[string]any{"enabled": change(true, false)}},
				{"enabled", "development", map[string]any{"enabled": change(false, true)}},
				{"status_changed", nil, map[string]any{"status": change("active", "inactive")}},
				{
					"updated",
					nil,
					map[string]any{
						"name":         change("k", "N"),
						"defaultValue": change("d", "e"),
						"description":  change("D", ""),
						"tags":         change([]string{"t"}, []string{}),
					},
				},
				{"variation_removed", nil, map[string]any{"variations." + id: change(changed, nil)}},
				{"variation_updated", nil, map[string]any{
					"variations." + id + ".name": change("v", "w"), "variations." + id + ".value": change("1", "2"),
					"variations." + id + ".description": change("", "E"), "variations." + id + ".weight": change(1.5, 2),
				}},
				{"variation_added", nil, map[string]any{"variations." + id: change(nil, variation)}},
				{
					"created",
					nil,
					map[string]any{
						"name":         change(nil, "k"),
						"type":         change(nil, "string"),
						"defaultValue": change(nil, "d"),
						"description":  change(nil, "D"),
						"tags":         change(nil, []string{"t"}),
						"projectId":    change(nil, project),
					},
				},
			}
			entries := me.History("k", "")
			nodetest.Same(t, "entries", len(entries), len(want))
			for i, entry := range entries {
				nodetest.Same(t, "action and version", []any{entry["action"], entry["version"]},
					[]any{want[i].action, len(want) - i})
				nodetest.Same(t, want[i].action+": environment", entry["environment"], want[i].environment)
				nodetest.Same(t, want[i].action+": changes", entry["changes"], want[i].changes)
			}
		},
		"one PATCH of fields and status makes an entry of each with one request": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			a := me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"N","status":"archived"}`).Want(200)
			entries := me.History("k", "")
			nodetest.Same(t, "actions", nodetest.Column(entries, "action"), []string{"status_changed", "updated", "created"})
			id := a.Header.Get("X-Request-ID")
			nodetest.Same(t, "requests", nodetest.Column(entries, "requestId")[:2], []string{id, id})
		},
		"X-Change-Reason is kept with every kind of change": func(t *testing.T, me *nodetest.Client) {
			reason := strings.Repeat("é", 499) + "🚀"
			me.Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`, "X-Change-Reason", reason).Want(201)
			id := me.Call("POST", nodetest.FlagPath("k", "/variations"), `{"name":"v","value":true}`, "X-Change-Reason", `"quoted" <&> \`).Want(201).Object()["id"].(string)
			me.Call("PATCH", nodetest.FlagPath("k", "/variations/", id), `{"weight":1}`, "X-Change-Reason", "3").Want(200)
			me.Call("DELETE", nodetest.FlagPath("k", "/variations/", id), nil, "X-Change-Reason", "4").Want(204)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"n"}`, "X-Change-Reason", "5").Want(200)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Change-Reason", "6").Want(200)
			me.Call("POST", nodetest.FlagPath("k", "/disable"), nil, "X-Change-Reason", "7").Want(200)
			me.Call("DELETE", nodetest.FlagPath("k"), nil, "X-Change-Reason", "8").Want(204)
			nodetest.Same(t, "reasons", nodetest.Column(me.History("k", ""), "reason"),
				[]string{"8", "7", "6", "5", "4", "3", `"quoted" <&> \`, reason})
			me.Call("POST", "/api/v1/projects", `{"name":"p"}`, "X-Change-Reason", reason).Want(201)
		},
		"a reason over 500 characters, or one that is no text, is refused and changes nothing": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for _, reason := range []string{strings.Repeat("x", 501), strings.Repeat("é", 501), "\xff"} {
				me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"n"}`, "X-Change-Reason", reason).Refused(422, "X-Change-Reason")
				me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Change-Reason", reason).Refused(422, "X-Change-Reason")
			}
			me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"version": 1})
		},
		"nothing is reverted so far": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			nodetest.Same(t, "entries", me.History("k", "?action=reverted"), []any{})
		},
	}.Run(t)
}

func TestHistoryLists(t *testing.T) { nodetest.BothEngines(t, testHistoryLists) }

func testHistoryLists(t *testing.T) {
	nodetest.Cases{
		"a history is read page by page, newest first": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			want := []any{float64(1)}
			for i := range 5 {
				me.Call("PATCH", nodetest.FlagPath("k"), fmt.Sprintf(`{"name":"n%d"}`, i)).Want(200)
				want = append([]any{float64(i + 2)}, want...)
				nodetest.Same(t, "versions right after a change", nodetest.Column(me.History("k", ""), "version"), want)
			}
			checkPages(t, me, nodetest.FlagPath("k", "/history"), "version", want)
		},
		"a history is filtered": func(t *testing.T, me *nodetest.Client) {
			developer := me.Join("developer")
			me.CreateFlag("k", nil)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "development").Want(200)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
			developer.Call("POST", nodetest.FlagPath("k", "/disable"), nil).Want(200)
			entries := me.History("k", "")
			at := func(i int) string { return url.QueryEscape(entries[i]["timestamp"].(string)) }
			for query, want := range map[string][]int{
				"":                                          {4, 3, 2, 1},
				"?action=enabled":                           {3, 2},
				"?action=created":                           {1},
				"?action=deleted":                           {},
				"?userId=" + me.UserID:                      {3, 2, 1},
				"?userId=" + developer.UserID:               {4},
				"?userId=nobody":                            {},
				"?environment=production":                   {4, 3},
				"?environment=development":                  {2},
				"?environment=none":                         {},
				"?action=enabled&environment=production":    {3},
				"?from=2999-01-01T00:00:00Z":                {},
				"?to=2999-01-01T00:00:00Z":                  {4, 3, 2, 1},
				"?from=2020-01-01T00:00:00%2B02:00&limit=1": {4},
			} {
				nodetest.Same(t, query, nodetest.Column(me.History("k", query), "version"), want)
			}
			for i, entry := range entries {
				for _, found := range me.History("k", "?from="+at(i)) {
					if found["timestamp"].(string) < entry["timestamp"].(string) {
						t.Errorf("from %v finds %v", entry["timestamp"], found["timestamp"])
					}
				}
				for _, found := range me.History("k", "?to="+at(i)) {
					if found["timestamp"].(string) >= entry["timestamp"].(string) {
						t.Errorf("to %v finds %v", entry["timestamp"], found["timestamp"])
					}
				}
				if found := me.History("k", "?from="+at(i)+"&userId="+entry["userId"].(string)); len(found) == 0 {
					t.Errorf("from %v does not find the entry of that time", entry["timestamp"])
				}
			}
			for query, field := range map[string]string{"?from=yesterday": "from", "?to=1": "to", "?from=2026-01-02T03:04:51,5Z": "from", "?user=x": "user", "?action=enable": "action"} {
				me.Call("GET", nodetest.FlagPath("k", "/history", query), nil).Refused(422, field)
			}
			me.Call("GET", nodetest.FlagPath("k", "/history?from=x&to=y&limit=0"), nil).Refused(422, "from", "to", "limit")
			for _, query := range []string{"?userId=%00", "?action=%ff"} {
				me.Call("GET", nodetest.FlagPath("k", "/history", query), nil).Refused(400)
			}
		},
		"a key that no flag ever had has no history": func(_ *testing.T, me *nodetest.Client) {
			me.Call("GET", nodetest.FlagPath("none", "/history"), nil).Refused(404)
			me.Call("GET", nodetest.FlagPath("none", "/history?action=created"), nil).Refused(404)
			me.CreateFlag("k", nil)
			me.Call("GET", nodetest.FlagPath("k", "/history?action=deleted&limit=1"), nil).Want(200)
		},
	}.Run(t)
}

func TestHistoryNamesPeople(t *testing.T) { nodetest.BothEngines(t, testHistoryNamesPeople) }

func testHistoryNamesPeople(t *testing.T) {
	nodetest.Cases{
		"people are shown by their names where they have some": func(t *testing.T, me *nodetest.Client) {
			email := nodetest.Address()
			token := me.Service.Anonymous().Call("POST", "/auth/signup", map[string]string{"email": email, "password": nodetest.Password, "displayName": "Ada Lovelace"}).Want(201).Object()["token"].(string)
			ada := withToken(me, token).NewTenant("ada's")
			ada.CreateFlag("k", nil)
			nodetest.Same(t, "name", ada.History("k", "")[0]["userName"], "Ada Lovelace")
		},
		"people without a name and an address are shown by their id": func(t *testing.T, me *nodetest.Client) {
			account := newAccount(me)
			nameless := withToken(me, account.token).NewTenant("t")
			nameless.CreateFlag("k", nil)
			// another person has verified the address
			sql(me.Service, `update keep.people set email = null where user_id = $1`, account.user)
			nodetest.Same(t, "name", nameless.History("k", "")[0]["userName"], account.user)
		},
		"somebody since erased is shown as erased user": func(t *testing.T, me *nodetest.Client) {
			account := newAccount(me)
			gone := withToken(me, account.token).NewTenant("t")
			gone.CreateFlag("k", nil)
			pool, err := node.OpenPool(t.Context(), me.Service.DatabaseURL)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			if _, err := pool.Exec(t.Context(), `delete from keep.people where user_id = $1`, account.user); err != nil {
				t.Fatal(err)
			}
			entry := gone.History("k", "")[0]
			nodetest.Same(t, "name", []any{entry["userName"], entry["userId"]}, []string{"erased user", account.user})
		},
	}.Run(t)
}
