package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func (c *client) history(key, query string) []map[string]any {
	c.s.t.Helper()
	return c.call("GET", flagPath(key, "/history", query), nil).want(200).list()
}

func change(from, to any) map[string]any { return map[string]any{"from": from, "to": to} }

func TestHistory(t *testing.T) {
	cases{
		"each change has an entry that tells who did what": func(t *testing.T, me *client) {
			created := me.call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).want(201)
			entries := me.history("k", "")
			same(t, "entries", len(entries), 1)
			entry := entries[0]
			members(t, "an entry", entry, "id", "action", "changes", "userId", "userName", "timestamp", "environment", "version", "actorType", "requestId", "reason")
			checkTimes(t, entry)
			same(t, "the entry's time", entry["timestamp"], created.object()["createdAt"])
			for name, want := range map[string]any{
				"action": "created", "userId": me.userID, "userName": "owner@example.com", "environment": nil, "version": 1, "actorType": "user",
				"requestId": created.header.Get("X-Request-ID"), "reason": "",
			} {
				same(t, name, entry[name], want)
			}
			if _, err := uuid.Parse(fmt.Sprint(entry["id"])); err != nil {
				t.Errorf("id: %v", err)
			}
		},
		"each action shows what changed, from what to what": func(t *testing.T, me *client) {
			project, _ := me.createProject("p")
			me.createFlag("k", map[string]any{"type": "string", "defaultValue": "d", "description": "D", "tags": []string{"t"}, "projectId": project})
			v := me.addVariation("k", `{"name":"v","value":"1","weight":1.5}`).object()
			id := v["id"].(string)
			path := flagPath("k", "/variations/", id)
			me.call("PATCH", path, `{"name":"w","value":"2","description":"E","weight":2}`).want(200)
			me.call("DELETE", path, nil).want(204)
			me.call("PATCH", flagPath("k"), `{"name":"N","defaultValue":"e","description":null,"tags":[]}`).want(200)
			me.call("PATCH", flagPath("k"), `{"status":"inactive"}`).want(200)
			me.call("POST", flagPath("k", "/enable"), nil, "X-Environment", "development").want(200)
			me.call("POST", flagPath("k", "/disable"), nil, "X-Environment", "development").want(200)
			me.call("DELETE", flagPath("k"), nil).want(204)
			variation := map[string]any{"id": id, "name": "v", "value": "1", "weight": 1.5}
			changed := map[string]any{"id": id, "name": "w", "value": "2", "description": "E", "weight": 2}
			want := []struct {
				action      string
				environment any
				changes     map[string]any
			}{
				{"deleted", nil, map[string]any{}},
				{"disabled", "development", map[string]any{"enabled": change(true, false)}},
				{"enabled", "development", map[string]any{"enabled": change(false, true)}},
				{"status_changed", nil, map[string]any{"status": change("active", "inactive")}},
				{"updated", nil, map[string]any{"name": change("k", "N"), "defaultValue": change("d", "e"), "description": change("D", ""), "tags": change([]string{"t"}, []string{})}},
				{"variation_removed", nil, map[string]any{"variations." + id: change(changed, nil)}},
				{"variation_updated", nil, map[string]any{
					"variations." + id + ".name": change("v", "w"), "variations." + id + ".value": change("1", "2"),
					"variations." + id + ".description": change("", "E"), "variations." + id + ".weight": change(1.5, 2),
				}},
				{"variation_added", nil, map[string]any{"variations." + id: change(nil, variation)}},
				{"created", nil, map[string]any{
					"name": change(nil, "k"), "type": change(nil, "string"), "defaultValue": change(nil, "d"), "description": change(nil, "D"),
					"tags": change(nil, []string{"t"}), "projectId": change(nil, project),
				}},
			}
			entries := me.history("k", "")
			same(t, "entries", len(entries), len(want))
			for i, entry := range entries {
				same(t, "action and version", []any{entry["action"], entry["version"]}, []any{want[i].action, len(want) - i})
				same(t, want[i].action+": environment", entry["environment"], want[i].environment)
				same(t, want[i].action+": changes", entry["changes"], want[i].changes)
			}
		},
		"one PATCH of fields and status makes an entry of each with one request": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			a := me.call("PATCH", flagPath("k"), `{"name":"N","status":"archived"}`).want(200)
			entries := me.history("k", "")
			same(t, "actions", column(entries, "action"), []string{"status_changed", "updated", "created"})
			id := a.header.Get("X-Request-ID")
			same(t, "requests", column(entries, "requestId")[:2], []string{id, id})
		},
		"X-Change-Reason is kept with every kind of change": func(t *testing.T, me *client) {
			reason := strings.Repeat("é", 499) + "🚀"
			me.call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`, "X-Change-Reason", reason).want(201)
			id := me.call("POST", flagPath("k", "/variations"), `{"name":"v","value":true}`, "X-Change-Reason", `"quoted" <&> \`).want(201).object()["id"].(string)
			me.call("PATCH", flagPath("k", "/variations/", id), `{"weight":1}`, "X-Change-Reason", "3").want(200)
			me.call("DELETE", flagPath("k", "/variations/", id), nil, "X-Change-Reason", "4").want(204)
			me.call("PATCH", flagPath("k"), `{"name":"n"}`, "X-Change-Reason", "5").want(200)
			me.call("POST", flagPath("k", "/enable"), nil, "X-Change-Reason", "6").want(200)
			me.call("POST", flagPath("k", "/disable"), nil, "X-Change-Reason", "7").want(200)
			me.call("DELETE", flagPath("k"), nil, "X-Change-Reason", "8").want(204)
			same(t, "reasons", column(me.history("k", ""), "reason"), []string{"8", "7", "6", "5", "4", "3", `"quoted" <&> \`, reason})
			me.call("POST", "/api/v1/projects", `{"name":"p"}`, "X-Change-Reason", reason).want(201)
		},
		"a reason over 500 characters, or one that is no text, is refused and changes nothing": func(_ *testing.T, me *client) {
			me.createFlag("k", nil)
			for _, reason := range []string{strings.Repeat("x", 501), strings.Repeat("é", 501), "\xff"} {
				me.call("PATCH", flagPath("k"), `{"name":"n"}`, "X-Change-Reason", reason).refused(422, "X-Change-Reason")
				me.call("POST", flagPath("k", "/enable"), nil, "X-Change-Reason", reason).refused(422, "X-Change-Reason")
			}
			me.call("GET", flagPath("k"), nil).want(200).shows(map[string]any{"version": 1})
		},
		"a history is read page by page, newest first": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			want := []any{float64(1)}
			for i := range 5 {
				me.call("PATCH", flagPath("k"), fmt.Sprintf(`{"name":"n%d"}`, i)).want(200)
				want = append([]any{float64(i + 2)}, want...)
				same(t, "versions right after a change", column(me.history("k", ""), "version"), want)
			}
			checkPages(t, me, flagPath("k", "/history"), "version", want)
		},
		"a history is filtered": func(t *testing.T, me *client) {
			developer := me.join("developer")
			me.createFlag("k", nil)
			me.call("POST", flagPath("k", "/enable"), nil, "X-Environment", "development").want(200)
			me.call("POST", flagPath("k", "/enable"), nil).want(200)
			developer.call("POST", flagPath("k", "/disable"), nil).want(200)
			entries := me.history("k", "")
			at := func(i int) string { return url.QueryEscape(entries[i]["timestamp"].(string)) }
			for query, want := range map[string][]int{
				"":                                          {4, 3, 2, 1},
				"?action=enabled":                           {3, 2},
				"?action=created":                           {1},
				"?action=deleted":                           {},
				"?userId=" + me.userID:                      {3, 2, 1},
				"?userId=" + developer.userID:               {4},
				"?userId=nobody":                            {},
				"?environment=production":                   {4, 3},
				"?environment=development":                  {2},
				"?environment=none":                         {},
				"?action=enabled&environment=production":    {3},
				"?from=2999-01-01T00:00:00Z":                {},
				"?to=2999-01-01T00:00:00Z":                  {4, 3, 2, 1},
				"?from=2020-01-01T00:00:00%2B02:00&limit=1": {4},
			} {
				same(t, query, column(me.history("k", query), "version"), want)
			}
			for i, entry := range entries {
				for _, found := range me.history("k", "?from="+at(i)) {
					if found["timestamp"].(string) < entry["timestamp"].(string) {
						t.Errorf("from %v finds %v", entry["timestamp"], found["timestamp"])
					}
				}
				for _, found := range me.history("k", "?to="+at(i)) {
					if found["timestamp"].(string) >= entry["timestamp"].(string) {
						t.Errorf("to %v finds %v", entry["timestamp"], found["timestamp"])
					}
				}
				if found := me.history("k", "?from="+at(i)+"&userId="+entry["userId"].(string)); len(found) == 0 {
					t.Errorf("from %v does not find the entry of that time", entry["timestamp"])
				}
			}
			for query, field := range map[string]string{"?from=yesterday": "from", "?to=1": "to", "?user=x": "user", "?action=enable": "action"} {
				me.call("GET", flagPath("k", "/history", query), nil).refused(422, field)
			}
			me.call("GET", flagPath("k", "/history?from=x&to=y&limit=0"), nil).refused(422, "from", "to", "limit")
			for _, query := range []string{"?userId=%00", "?action=%ff"} {
				me.call("GET", flagPath("k", "/history", query), nil).refused(400)
			}
		},
		"people are shown by their names where they have some": func(t *testing.T, me *client) {
			email := address()
			token := me.s.anonymous().call("POST", "/auth/signup", map[string]string{"email": email, "password": password, "displayName": "Ada Lovelace"}).want(201).object()["token"].(string)
			ada := me.with(token).newTenant("ada's")
			ada.createFlag("k", nil)
			same(t, "name", ada.history("k", "")[0]["userName"], "Ada Lovelace")
		},
		"people without a name and an address are shown by their id": func(t *testing.T, me *client) {
			account := me.account()
			nameless := me.with(account.token).newTenant("t")
			nameless.createFlag("k", nil)
			me.s.sql(`update keep.people set email = null where user_id = $1`, account.user) // somebody else has verified the address
			same(t, "name", nameless.history("k", "")[0]["userName"], account.user)
		},
		"nothing is reverted so far": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			same(t, "entries", me.history("k", "?action=reverted"), []any{})
		},
		"somebody since erased is shown as erased user": func(t *testing.T, me *client) {
			account := me.account()
			gone := me.with(account.token).newTenant("t")
			gone.createFlag("k", nil)
			pool, err := openPool(t.Context(), me.s.databaseURL)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			if _, err := pool.Exec(t.Context(), `delete from keep.people where user_id = $1`, account.user); err != nil {
				t.Fatal(err)
			}
			entry := gone.history("k", "")[0]
			same(t, "name", []any{entry["userName"], entry["userId"]}, []string{"erased user", account.user})
		},
		"a key that no flag ever had has no history": func(_ *testing.T, me *client) {
			me.call("GET", flagPath("none", "/history"), nil).refused(404)
			me.call("GET", flagPath("none", "/history?action=created"), nil).refused(404)
			me.createFlag("k", nil)
			me.call("GET", flagPath("k", "/history?action=deleted&limit=1"), nil).want(200)
		},
	}.run(t)
}
