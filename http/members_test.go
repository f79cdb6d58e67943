package http_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

func usersPath(c *nodetest.Client, rest ...string) string {
	path := "/api/v1/tenants/" + c.Tenant + "/users"
	for _, part := range rest {
		path += "/" + part
	}
	return path
}

func TestMembers(t *testing.T) {
	nodetest.Cases{
		"whether or not an address has an account, it makes a pending member, who joins at the next sign-in": func(t *testing.T, me *nodetest.Client) {
			dev := me.Service.SignUp(nodetest.Address())
			token := dev.Token
			var answers []map[string]any
			for _, email := range []string{dev.Email, nodetest.Address()} {
				a := me.Call("POST", usersPath(me), map[string]any{"email": email, "role": "developer"}).Want(201)
				body := a.Object()
				nodetest.Members(t, "a member", body, "userId", "email", "displayName", "role", "pending", "lastAccessedAt",
					"createdAt")
				a.Shows(
					map[string]any{"email": email, "displayName": "", "role": "developer", "pending": true, "lastAccessedAt": nil},
				)
				nodetest.Same(t, "Location", a.Header.Get("Location"), usersPath(me, body["userId"].(string)))
				list := me.Call("GET", usersPath(me), nil).Want(200).List()
				nodetest.Same(t, "the list", list[len(list)-1], body)
				me.Call("POST", usersPath(me), map[string]any{"email": strings.ToUpper(email[:5]) + email[5:], "role": "viewer"}).
					Refused(409)
				answers = append(answers, body)
			}
			pending := answers[0]["userId"].(string)
			if pending == dev.UserID {
				t.Error("the answer tells whose the address is")
			}
			dev.Call("GET", "/api/v1/flags", nil, "X-Tenant-ID", me.Tenant).Refused(403)
			me.Call("PATCH", usersPath(me, dev.UserID), `{"role":"viewer"}`).Refused(404)
			me.Call("PATCH", usersPath(me, pending), `{"role":"viewer"}`).
				Want(200).
				Shows(map[string]any{"userId": pending, "role": "viewer", "pending": true})
			gone := answers[1]["userId"].(string)
			me.Call("DELETE", usersPath(me, gone), nil).Want(204)

			dev.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": token}).Want(200)
			nodetest.Same(t, "members",
				nodetest.Column(dev.Call("GET", usersPath(me), nil, "X-Tenant-ID", me.Tenant).Want(200).List(), "userId"),
				[]any{me.UserID, dev.UserID})
			me.Call("PATCH", usersPath(me, dev.UserID), `{"role":"developer"}`).Want(200)
			dev.Tenant = me.Tenant
			dev.CreateFlag("by-the-colleague", nil)
			me.Call("POST", usersPath(me), map[string]any{"email": dev.Email, "role": "viewer"}).Refused(409)
			nodetest.Same(t, "nothing is kept of who is a member already", noted(me.Service, dev.Email), 0)
		},
		"whoever was added is a member after a refresh": func(t *testing.T, me *nodetest.Client) {
			dev := newAccount(me)
			me.Call("POST", usersPath(me), map[string]any{"email": dev.email, "role": "viewer"}).Want(201)
			me.Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": dev.refresh}).Want(200)
			nodetest.Same(t, "members", nodetest.Column(me.Call("GET", usersPath(me), nil).Want(200).List(), "userId"),
				[]any{me.UserID, dev.user})
		},
		"the last visit of a member is shown, whichever way the tenant is named": func(t *testing.T, me *nodetest.Client) {
			for _, use := range []func(*nodetest.Client){
				func(dev *nodetest.Client) { dev.Call("GET", "/api/v1/flags", nil).Want(200) }, // by the header
				func(dev *nodetest.Client) {
					path := usersPath(dev)
					dev.Tenant = ""
					dev.Call("GET", path, nil).Want(200)
				},
			} {
				dev := me.Join("developer")
				shown := func() any {
					list := me.Call("GET", usersPath(me), nil).Want(200).List()
					return list[slices.Index(nodetest.Column(list, "userId"), any(dev.UserID))]["lastAccessedAt"]
				}
				nodetest.Same(t, "before", shown(), nil)
				use(dev)
				me.Service.Eventually("the use is written down", func() bool { return shown() != nil })
			}
			dev := me.Service.SignUp(nodetest.Address())
			me.Service.Eventually("signing up uses one's own tenant", func() bool {
				return dev.Call("GET", usersPath(dev), nil).Want(200).List()[0]["lastAccessedAt"] != nil
			})
		},
		"an address without an account is a pending member until its owner signs in": func(t *testing.T, me *nodetest.Client) {
			email := nodetest.Address()
			pending := me.Call("POST", usersPath(me), map[string]any{"email": email, "role": "developer"}).Want(201).
				Shows(map[string]any{"email": email, "displayName": "", "pending": true}).Object()["userId"].(string)
			me.Call("POST", usersPath(me), map[string]any{"email": email, "role": "viewer"}).Refused(409)
			me.Call("PATCH", usersPath(me, pending), `{"role":"viewer"}`).
				Want(200).
				Shows(map[string]any{"role": "viewer", "email": email, "pending": true})
			colleague := me.Service.SignUp(email)
			list := me.Call("GET", usersPath(me), nil).Want(200).List()
			nodetest.Same(t, "members", nodetest.Column(list, "userId"), []any{me.UserID, colleague.UserID})
			nodetest.Same(t, "the colleague", []any{list[1]["role"], list[1]["pending"], list[1]["email"]},
				[]any{"viewer", false, email})
			colleague.Tenant = me.Tenant
			colleague.Call("GET", "/api/v1/flags", nil).Want(200)
			colleague.Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).Refused(403)
		},
		"a pending member who is removed does not join": func(t *testing.T, me *nodetest.Client) {
			email := nodetest.Address()
			pending := me.Call("POST", usersPath(me), map[string]any{"email": email, "role": "viewer"}).Want(201).Object()["userId"].(string)
			me.Call("DELETE", usersPath(me, pending), nil).Want(204)
			nodetest.Same(t, "tenants of who signs in then",
				len(me.Service.SignUp(email).Call("GET", "/api/v1/tenants", nil).List()), 1)
			me.Call("DELETE", usersPath(me, pending), nil).Refused(404)
		},
		"a new role counts from the next call on": func(_ *testing.T, me *nodetest.Client) {
			dev := me.Join("developer")
			dev.CreateFlag("k", nil)
			me.Call("PATCH", usersPath(me, dev.UserID), `{"role":"viewer"}`).
				Want(200).
				Shows(map[string]any{"userId": dev.UserID, "role": "viewer"})
			dev.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Refused(403)
			me.Call("PATCH", usersPath(me, dev.UserID), `{"role":"admin"}`).Want(200)
			dev.Call("PATCH", usersPath(me, me.UserID), `{"role":"viewer"}`).Want(200)
			me.Call("PATCH", usersPath(me, dev.UserID), `{"role":"viewer"}`).Refused(403)
		},
		"one who is removed is out at once, and stays in the history": func(t *testing.T, me *nodetest.Client) {
			dev := me.Join("developer")
			dev.CreateFlag("k", nil)
			me.Call("DELETE", usersPath(me, dev.UserID), nil).Want(204)
			dev.Call("GET", nodetest.FlagPath("k"), nil).Refused(403)
			dev.Evaluate("k", `{}`).Refused(403)
			nodetest.Same(t, "their tenants", len(dev.Call("GET", "/api/v1/tenants", nil).Want(200).List()), 1)
			nodetest.Same(t, "who made the flag",
				me.Call("GET", nodetest.FlagPath("k", "/history"), nil).Want(200).List()[0]["userId"], dev.UserID)
		},
		"every member may leave, and remove nobody else": func(_ *testing.T, me *nodetest.Client) {
			for _, role := range []events.Role{events.ViewerRole, events.DeveloperRole} {
				member := me.Join(role)
				member.Call("DELETE", usersPath(me, me.UserID), nil).Refused(403)
				member.Call("DELETE", usersPath(me, "nobody"), nil).Refused(403)
				member.Call("DELETE", usersPath(me, member.UserID), nil).Want(204)
				member.Call("GET", usersPath(me), nil).Refused(403)
				me.Call("DELETE", usersPath(me, member.UserID), nil).Refused(404)
			}
		},
		"the last admin can be neither removed nor demoted": func(_ *testing.T, me *nodetest.Client) {
			me.Join("developer")
			// they are pending and do not count
			me.Call("POST", usersPath(me), map[string]any{"email": nodetest.Address(), "role": "admin"}).Want(201)
			me.Call("DELETE", usersPath(me, me.UserID), nil).Refused(409)
			me.Call("PATCH", usersPath(me, me.UserID), `{"role":"viewer"}`).Refused(409)
			me.Call("PATCH", usersPath(me, me.UserID), `{"role":"admin"}`).Want(200)
			me.Join("admin")
			me.Call("DELETE", usersPath(me, me.UserID), nil).Want(204)
			me.Call("GET", usersPath(me), nil).Refused(403)
		},
		"two admins who remove each other at once leave one": func(t *testing.T, me *nodetest.Client) {
			other := me.Join("admin")
			var statuses [2]int
			var both sync.WaitGroup
			both.Go(func() { statuses[0] = me.Call("DELETE", usersPath(me, other.UserID), nil).Status })
			both.Go(func() { statuses[1] = other.Call("DELETE", usersPath(me, me.UserID), nil).Status })
			both.Wait()
			if (statuses[0] == 204) == (statuses[1] == 204) {
				t.Errorf("the answers are %v, want 204 once", statuses)
			}
		},
		"what is wrong is named, all of it": func(_ *testing.T, me *nodetest.Client) {
			me.Call("POST", usersPath(me), `{}`).Refused(422, "email", "role")
			me.Call("POST", usersPath(me), `{"email":"Dee <dee@example.com>","role":"owner"}`).Refused(422, "email", "role")
			me.Call("POST", usersPath(me), `{"email":"dee@example.com","role":"viewer","userId":"u"}`).Refused(422, "userId")
			me.Call("POST", usersPath(me), `{"email":"dee@example.com","ROLE":"admin","role":"viewer"}`).Refused(422, "ROLE")
			me.Call("PATCH", usersPath(me, me.UserID), `{}`).Refused(422, "role")
			me.Call("PATCH", usersPath(me, "none"), `{"role":"viewer"}`).Refused(404)
		},
		"members of another tenant are out of reach": func(_ *testing.T, me *nodetest.Client) {
			other := withToken(me, newAccount(me).token)
			mine := other.Call("GET", "/api/v1/tenants", nil, "X-Tenant-ID", "").List()[0]["id"].(string)
			other.Tenant = mine
			for _, method := range []string{"GET", "POST"} {
				other.Call(method, usersPath(me), `{"email":"x@example.com","role":"admin"}`, "X-Tenant-ID", "").Refused(403)
			}
			other.Call("PATCH", usersPath(other, me.UserID), `{"role":"viewer"}`).Refused(404)
			other.Call("DELETE", usersPath(other, me.UserID), nil).Refused(404)
			other.Call("GET", usersPath(me), nil).Refused(400)
		},
		"members are paged": func(t *testing.T, me *nodetest.Client) {
			ids := []any{me.UserID, me.Join("viewer").UserID, me.Join("viewer").UserID, me.Join("admin").UserID}
			checkPages(t, me, usersPath(me), "userId", ids)
		},
	}.Run(t)
}

func TestEnvironments(t *testing.T) {
	nodetest.Cases{
		"an environment is added, and its flags are off": func(t *testing.T, me *nodetest.Client) {
			path := "/api/v1/tenants/" + me.Tenant + "/environments"
			me.CreateEnabledFlag("k", nil)
			a := me.Call("POST", path, `{"environment":"staging"}`).Want(201).Shows(map[string]any{"environment": "staging"})
			nodetest.Same(t, "Location", a.Header.Get("Location"), path+"/staging")
			var names []string
			me.Call("GET", path, nil).Want(200).Decode(&names)
			nodetest.Same(t, "environments", names, []string{"production", "development", "staging"})
			me.Call("GET", nodetest.FlagPath("k"), nil, "X-Environment", "staging").
				Want(200).
				Shows(map[string]any{"enabled": false})
			me.Call("POST", path, `{"environment":"staging"}`).Refused(409)
			me.Call("POST", path, `{"environment":"Staging!"}`).Refused(422, "environment")
			me.Call("POST", path, `{}`).Refused(422, "environment")
		},
		"one that is deleted and added again starts clean": func(t *testing.T, me *nodetest.Client) {
			path := "/api/v1/tenants/" + me.Tenant + "/environments"
			me.CreateFlag("k", nil)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "development").Want(200)
			me.Evaluate("k", `{"environment":"development"}`).Want(200).Shows(map[string]any{"value": true})
			me.Call("DELETE", path+"/development", nil).Want(204)
			me.Evaluate("k", `{"environment":"development"}`).Refused(404)
			me.Call("GET", "/api/v1/flags", nil, "X-Environment", "development").Refused(404)
			me.Call("POST", path, `{"environment":"development"}`).Want(201)
			me.Evaluate("k", `{"environment":"development"}`).Want(200).Shows(map[string]any{"value": false, "reason": "OFF"})
			me.Call("GET", nodetest.FlagPath("k"), nil, "X-Environment", "development").
				Want(200).
				Shows(map[string]any{"enabled": false})
			nodetest.Same(t, "the history",
				me.Call("GET", nodetest.FlagPath("k", "/history?environment=development"), nil).Want(200).List()[0]["action"],
				"enabled")
		},
		"production stays": func(_ *testing.T, me *nodetest.Client) {
			path := "/api/v1/tenants/" + me.Tenant + "/environments"
			me.Call("DELETE", path+"/production", nil).Refused(409)
			me.Call("DELETE", path+"/none", nil).Refused(404)
		},
	}.Run(t)
}

// The visit of a person whom no one added is shown, even if their node's clock is behind the event store's.
func TestLastVisitIsShownIfTheClockIsBehind(t *testing.T) {
	t.Parallel()
	behind := func() time.Time { return time.Now().Add(-time.Hour) }
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{Environment: "development", Now: behind}, nodetest.Log(t))
	me := s.SignUp(nodetest.Address())
	s.Eventually("the last visit is listed", func() bool {
		return me.Call("GET", usersPath(me), nil).Want(200).List()[0]["lastAccessedAt"] != nil
	})
	changed := me.Call("PATCH", usersPath(me, me.UserID), `{"role":"admin"}`).Want(200).Object()
	if changed["lastAccessedAt"] == nil {
		t.Errorf("the answer to a change does not show the last visit: %v", changed)
	}
}
