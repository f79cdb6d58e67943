package main

import (
	"slices"
	"sync"
	"testing"
)

func usersPath(c *client, rest ...string) string {
	path := "/api/v1/tenants/" + c.tenant + "/users"
	for _, part := range rest {
		path += "/" + part
	}
	return path
}

func TestMembers(t *testing.T) {
	cases{
		"a person who has an account is a member at once": func(t *testing.T, me *client) {
			email := address()
			dev := me.s.signUp(email)
			a := me.call("POST", usersPath(me), map[string]any{"email": email, "role": "developer"}).want(201)
			body := a.object()
			members(t, "a member", body, "userId", "email", "displayName", "role", "pending", "lastAccessedAt", "createdAt")
			a.shows(map[string]any{"userId": dev.userID, "email": email, "role": "developer", "pending": false, "lastAccessedAt": nil})
			same(t, "Location", a.header.Get("Location"), usersPath(me, dev.userID))
			same(t, "members", column(dev.call("GET", usersPath(me), nil, "X-Tenant-ID", me.tenant).want(200).list(), "userId"), []any{me.userID, dev.userID})
			dev.tenant = me.tenant
			dev.createFlag("by-the-colleague", nil)
			me.call("POST", usersPath(me), map[string]any{"email": email, "role": "viewer"}).refused(409)
		},
		"when a member last used the tenant is shown, whichever way the tenant is named": func(t *testing.T, me *client) {
			for _, use := range []func(*client){
				func(dev *client) { dev.call("GET", "/api/v1/flags", nil).want(200) }, // by the header
				func(dev *client) {
					path := usersPath(dev)
					dev.tenant = ""
					dev.call("GET", path, nil).want(200)
				},
			} {
				dev := me.join("developer")
				shown := func() any {
					list := me.call("GET", usersPath(me), nil).want(200).list()
					return list[slices.Index(column(list, "userId"), any(dev.userID))]["lastAccessedAt"]
				}
				same(t, "before", shown(), nil)
				use(dev)
				me.s.eventually("the use is written down", func() bool { return shown() != nil })
			}
			dev := me.s.signUp(address())
			me.s.eventually("signing up uses one's own tenant", func() bool {
				return dev.call("GET", usersPath(dev), nil).want(200).list()[0]["lastAccessedAt"] != nil
			})
		},
		"an address without an account is a pending member until its owner signs in": func(t *testing.T, me *client) {
			email := address()
			pending := me.call("POST", usersPath(me), map[string]any{"email": email, "role": "developer"}).want(201).
				shows(map[string]any{"email": email, "displayName": "", "pending": true}).object()["userId"].(string)
			me.call("POST", usersPath(me), map[string]any{"email": email, "role": "viewer"}).refused(409)
			me.call("PATCH", usersPath(me, pending), `{"role":"viewer"}`).want(200).shows(map[string]any{"role": "viewer", "email": email, "pending": true})
			colleague := me.s.signUp(email)
			list := me.call("GET", usersPath(me), nil).want(200).list()
			same(t, "members", column(list, "userId"), []any{me.userID, colleague.userID})
			same(t, "the colleague", []any{list[1]["role"], list[1]["pending"], list[1]["email"]}, []any{"viewer", false, email})
			colleague.tenant = me.tenant
			colleague.call("GET", "/api/v1/flags", nil).want(200)
			colleague.call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).refused(403)
		},
		"a pending member who is removed does not join": func(t *testing.T, me *client) {
			email := address()
			pending := me.call("POST", usersPath(me), map[string]any{"email": email, "role": "viewer"}).want(201).object()["userId"].(string)
			me.call("DELETE", usersPath(me, pending), nil).want(204)
			same(t, "tenants of who signs in then", len(me.s.signUp(email).call("GET", "/api/v1/tenants", nil).list()), 1)
			me.call("DELETE", usersPath(me, pending), nil).refused(404)
		},
		"a new role counts from the next call on": func(_ *testing.T, me *client) {
			dev := me.join("developer")
			dev.createFlag("k", nil)
			me.call("PATCH", usersPath(me, dev.userID), `{"role":"viewer"}`).want(200).shows(map[string]any{"userId": dev.userID, "role": "viewer"})
			dev.call("POST", flagPath("k", "/enable"), nil).refused(403)
			me.call("PATCH", usersPath(me, dev.userID), `{"role":"admin"}`).want(200)
			dev.call("PATCH", usersPath(me, me.userID), `{"role":"viewer"}`).want(200)
			me.call("PATCH", usersPath(me, dev.userID), `{"role":"viewer"}`).refused(403)
		},
		"one who is removed is out at once, and stays in the history": func(t *testing.T, me *client) {
			dev := me.join("developer")
			dev.createFlag("k", nil)
			me.call("DELETE", usersPath(me, dev.userID), nil).want(204)
			dev.call("GET", flagPath("k"), nil).refused(403)
			dev.evaluate("k", `{}`).refused(403)
			same(t, "his tenants", len(dev.call("GET", "/api/v1/tenants", nil).want(200).list()), 1)
			same(t, "who made the flag", me.call("GET", flagPath("k", "/history"), nil).want(200).list()[0]["userId"], dev.userID)
		},
		"the last admin can be neither removed nor demoted": func(_ *testing.T, me *client) {
			me.join("developer")
			me.call("POST", usersPath(me), map[string]any{"email": address(), "role": "admin"}).want(201) // who is pending, and does not count
			me.call("DELETE", usersPath(me, me.userID), nil).refused(409)
			me.call("PATCH", usersPath(me, me.userID), `{"role":"viewer"}`).refused(409)
			me.call("PATCH", usersPath(me, me.userID), `{"role":"admin"}`).want(200)
			me.join("admin")
			me.call("DELETE", usersPath(me, me.userID), nil).want(204)
			me.call("GET", usersPath(me), nil).refused(403)
		},
		"two admins who remove each other at once leave one": func(t *testing.T, me *client) {
			other := me.join("admin")
			var statuses [2]int
			var both sync.WaitGroup
			both.Go(func() { statuses[0] = me.call("DELETE", usersPath(me, other.userID), nil).status })
			both.Go(func() { statuses[1] = other.call("DELETE", usersPath(me, me.userID), nil).status })
			both.Wait()
			if (statuses[0] == 204) == (statuses[1] == 204) {
				t.Errorf("the answers are %v, want 204 once", statuses)
			}
		},
		"what is wrong is named, all of it": func(_ *testing.T, me *client) {
			me.call("POST", usersPath(me), `{}`).refused(422, "email", "role")
			me.call("POST", usersPath(me), `{"email":"Dee <dee@example.com>","role":"owner"}`).refused(422, "email", "role")
			me.call("POST", usersPath(me), `{"email":"dee@example.com","role":"viewer","userId":"u"}`).refused(422, "userId")
			me.call("POST", usersPath(me), `{"email":"dee@example.com","ROLE":"admin","role":"viewer"}`).refused(422, "ROLE")
			me.call("PATCH", usersPath(me, me.userID), `{}`).refused(422, "role")
			me.call("PATCH", usersPath(me, "none"), `{"role":"viewer"}`).refused(404)
		},
		"members of another tenant are out of reach": func(_ *testing.T, me *client) {
			other := me.with(me.account().token)
			mine := other.call("GET", "/api/v1/tenants", nil, "X-Tenant-ID", "").list()[0]["id"].(string)
			other.tenant = mine
			for _, method := range []string{"GET", "POST"} {
				other.call(method, usersPath(me), `{"email":"x@example.com","role":"admin"}`, "X-Tenant-ID", "").refused(403)
			}
			other.call("PATCH", usersPath(other, me.userID), `{"role":"viewer"}`).refused(404)
			other.call("DELETE", usersPath(other, me.userID), nil).refused(404)
			other.call("GET", usersPath(me), nil).refused(400)
		},
		"members are paged": func(t *testing.T, me *client) {
			ids := []any{me.userID, me.join("viewer").userID, me.join("viewer").userID, me.join("admin").userID}
			checkPages(t, me, usersPath(me), "userId", ids)
		},
	}.run(t)
}

func TestEnvironments(t *testing.T) {
	cases{
		"an environment is added, and its flags are off": func(t *testing.T, me *client) {
			path := "/api/v1/tenants/" + me.tenant + "/environments"
			me.enabled("k", nil)
			a := me.call("POST", path, `{"environment":"staging"}`).want(201).shows(map[string]any{"environment": "staging"})
			same(t, "Location", a.header.Get("Location"), path+"/staging")
			var names []string
			me.call("GET", path, nil).want(200).decode(&names)
			same(t, "environments", names, []string{"production", "development", "staging"})
			me.call("GET", flagPath("k"), nil, "X-Environment", "staging").want(200).shows(map[string]any{"enabled": false})
			me.call("POST", path, `{"environment":"staging"}`).refused(409)
			me.call("POST", path, `{"environment":"Staging!"}`).refused(422, "environment")
			me.call("POST", path, `{}`).refused(422, "environment")
		},
		"one that is deleted and added again starts clean": func(t *testing.T, me *client) {
			path := "/api/v1/tenants/" + me.tenant + "/environments"
			me.createFlag("k", nil)
			me.call("POST", flagPath("k", "/enable"), nil, "X-Environment", "development").want(200)
			me.evaluate("k", `{"environment":"development"}`).want(200).shows(map[string]any{"value": true})
			me.call("DELETE", path+"/development", nil).want(204)
			me.evaluate("k", `{"environment":"development"}`).refused(404)
			me.call("GET", "/api/v1/flags", nil, "X-Environment", "development").refused(404)
			me.call("POST", path, `{"environment":"development"}`).want(201)
			me.evaluate("k", `{"environment":"development"}`).want(200).shows(map[string]any{"value": false, "reason": "OFF"})
			me.call("GET", flagPath("k"), nil, "X-Environment", "development").want(200).shows(map[string]any{"enabled": false})
			same(t, "the history", me.call("GET", flagPath("k", "/history?environment=development"), nil).want(200).list()[0]["action"], "enabled")
		},
		"production stays": func(_ *testing.T, me *client) {
			path := "/api/v1/tenants/" + me.tenant + "/environments"
			me.call("DELETE", path+"/production", nil).refused(409)
			me.call("DELETE", path+"/none", nil).refused(404)
		},
	}.run(t)
}
