package http_test

import (
	"testing"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

func TestEnvironmentSettings(t *testing.T) { nodetest.BothEngines(t, testEnvironmentSettings) }

func testEnvironmentSettings(t *testing.T) {
	environments := func(c *nodetest.Client) string { return "/api/v1/tenants/" + c.Tenant + "/environments" }
	settings := func(list ...any) map[string]any {
		all := []any{}
		for i := 0; i < len(list); i += 2 {
			all = append(all, map[string]any{"name": list[i], "color": list[i+1]})
		}
		return map[string]any{"environments": all}
	}
	isNow := func(t *testing.T, c *nodetest.Client, query string, want map[string]any) {
		t.Helper()
		nodetest.Same(t, "settings", c.Call("GET", environments(c)+"/settings"+query, nil).Want(200).Object(), want)
		var names []any
		for _, e := range want["environments"].([]any) {
			names = append(names, e.(map[string]any)["name"])
		}
		nodetest.Same(t, "names", c.Call("GET", environments(c)+query, nil).Want(200).JSON(), any(names))
	}
	blue := events.EnvironmentRef{Name: "development"}.DefaultColor()
	red := events.EnvironmentRef{Name: "production"}.DefaultColor()
	nodetest.Cases{
		"admins set them, all members read them, now and at a time": func(t *testing.T, me *nodetest.Client) {
			first := settings("production", red, "development", blue)
			isNow(t, me, "", first)
			before := atNow()
			set := settings("development", "#112233", "production", "#AABBCC")
			me.Call("PUT", environments(me)+"/settings", set).Want(200).Shows(set)
			isNow(t, me.Join(events.ViewerRole), "", set)
			isNow(t, me, "?"+before, first)
			me.Join(events.DeveloperRole).Call("PUT", environments(me)+"/settings", first).Refused(403)

			after := atNow()
			me.Call("POST", environments(me), `{"environment":"qa"}`).Want(201)
			isNow(t, me, "", settings("development", "#112233", "production", "#AABBCC", "qa",
				events.EnvironmentRef{Name: "qa"}.DefaultColor()))
			me.Call("DELETE", environments(me)+"/development", nil).Want(204)
			me.Call("POST", environments(me), `{"environment":"development"}`).Want(201)
			isNow(t, me, "", settings("production", "#AABBCC", "qa", events.EnvironmentRef{Name: "qa"}.DefaultColor(),
				"development", blue))
			isNow(t, me, "?"+after, set)
		},
		"each environment is named exactly once": func(_ *testing.T, me *nodetest.Client) {
			for body, fields := range map[string][]string{
				`{}`: {"environments"},
				`{"environments":[{"name":"production","color":"#000000"}]}`:                                                                            {"environments"},
				`{"environments":[{"name":"production","color":"red"},{"name":"development","color":"#00000"}]}`:                                        {"environments[0].color", "environments[1].color"},
				`{"environments":[{"name":"production","color":"#000000"},{"name":"production","color":"#000000"}]}`:                                    {"environments", "environments[1].name"},
				`{"environments":[{"name":"production","color":"#000000"},{"name":"development","color":"#000000"},{"name":"none","color":"#000000"}]}`: {"environments[2].name"},
			} {
				me.Call("PUT", environments(me)+"/settings", body).Refused(422, fields...)
			}
		},
		"other tenants and machines neither read nor set them": func(_ *testing.T, me *nodetest.Client) {
			stranger := me.Service.SignUp(nodetest.Address())
			stranger.Call("GET", environments(me)+"/settings", nil, "X-Tenant-ID", me.Tenant).Refused(403)
			me.Machine("flags:read", "flags:write").Call("GET", environments(me)+"/settings", nil).Refused(403)
		},
	}.Run(t)
}
