package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

func TestTenants(t *testing.T) {
	cases{
		"a tenant is created with its defaults, and reads show the same": func(t *testing.T, me *client) {
			a := me.call("POST", "/api/v1/tenants", `{"name":"Acme"}`).want(201)
			body := a.object()
			members(t, "a tenant", body, "id", "name", "primaryEmail", "contactName", "isSandbox", "subscription", "createdAt")
			a.shows(map[string]any{
				"name": "Acme", "primaryEmail": "owner@example.com", "contactName": "", "isSandbox": false,
				"subscription": map[string]string{"plan": "free", "status": "active"},
			})
			checkTimes(t, body)
			id := body["id"].(string)
			same(t, "Location", a.header.Get("Location"), "/api/v1/tenants/"+id)
			same(t, "the tenant", me.call("GET", "/api/v1/tenants/"+id, nil, "X-Tenant-ID", id).want(200).object(), body)
			list := me.call("GET", "/api/v1/tenants?limit=1000", nil).want(200).list()
			if i := len(list) - 1; len(list) == 0 || !contains(list, body) {
				t.Errorf("the list, whose last is %v, does not hold %v", list[i], body)
			}
		},
		"a tenant keeps what was sent": func(t *testing.T, me *client) {
			a := me.call("POST", "/api/v1/tenants", `{"name":"Räume & <Zeiten>","primaryEmail":"ops@example.org","contactName":"Zoë","isSandbox":true}`).want(201)
			a.shows(map[string]any{
				"name": "Räume & <Zeiten>", "primaryEmail": "ops@example.org", "contactName": "Zoë", "isSandbox": true,
				"subscription": map[string]string{"plan": "sandbox", "status": "active"},
			})
			id := a.object()["id"].(string)
			same(t, "the tenant", me.call("GET", "/api/v1/tenants/"+id, nil, "X-Tenant-ID", id).want(200).object(), a.object())
		},
		"all that is wrong with a tenant is named at once": func(_ *testing.T, me *client) {
			long := strings.Repeat("é", 201)
			me.call("POST", "/api/v1/tenants", `{}`).refused(422, "name")
			me.call("POST", "/api/v1/tenants", `{"name":""}`).refused(422, "name")
			me.call("POST", "/api/v1/tenants", `{"name":"t","primaryEmail":""}`).refused(422, "primaryEmail")
			me.call("POST", "/api/v1/tenants", `{"name":"t","primaryEmail":null}`).want(201).shows(map[string]any{"primaryEmail": "owner@example.com"})
			me.call("POST", "/api/v1/tenants", map[string]any{"name": long, "primaryEmail": "nobody", "contactName": long}).refused(422, "name", "primaryEmail", "contactName")
			me.call("POST", "/api/v1/tenants", map[string]any{"name": strings.Repeat("é", 200), "contactName": strings.Repeat("é", 200)}).want(201)
			me.call("POST", "/api/v1/tenants", `{"name":1,"isSandbox":"yes","plan":"free"}`).refused(422, "name", "isSandbox", "plan")
		},
		"whoever is admin of 100 tenants creates no more": func(_ *testing.T, me *client) {
			many := me.s.signUp("many@example.com")
			for range 99 {
				many.newTenant("one of many")
			}
			a := many.call("POST", "/api/v1/tenants", `{"name":"one more","contactName":"Zoë"}`).refused(409)
			if detail, _ := a.object()["detail"].(string); !strings.Contains(detail, "100") {
				me.s.t.Errorf("it does not name the limit: %s", a.body)
			}
			many.call("DELETE", "/api/v1/tenants/"+many.tenant, nil).want(204)
			many.newTenant("in its place")
		},
		"a tenant is changed in part": func(_ *testing.T, me *client) {
			path := "/api/v1/tenants/" + me.tenant
			me.call("PATCH", path, `{"name":"Acme Inc."}`).want(200).shows(map[string]any{"name": "Acme Inc.", "primaryEmail": "owner@example.com", "contactName": ""})
			me.call("PATCH", path, `{"primaryEmail":"ops@example.org"}`).want(200).shows(map[string]any{"name": "Acme Inc.", "primaryEmail": "ops@example.org"})
			me.call("PATCH", path, `{"contactName":"Zoë"}`).want(200).shows(map[string]any{"primaryEmail": "ops@example.org", "contactName": "Zoë"})
			me.call("PATCH", path, `{"primaryEmail":null,"contactName":null}`).want(200).shows(map[string]any{"primaryEmail": "owner@example.com", "contactName": ""})
			me.call("PATCH", path, `{}`).want(200).shows(map[string]any{"name": "Acme Inc."})
			me.call("PATCH", path, `{"name":"","primaryEmail":"nobody"}`).refused(422, "name", "primaryEmail")
			me.call("PATCH", path, `{"name":null}`).refused(422, "name")
			me.call("PATCH", path, `{"primaryEmail":""}`).refused(422, "primaryEmail")
			me.call("PATCH", path, `{"contactName":""}`).want(200)
			me.call("PATCH", path, `{"plan":"enterprise","isSandbox":true}`).refused(422, "plan", "isSandbox")
			me.call("GET", path, nil).want(200).shows(map[string]any{"name": "Acme Inc."})
		},
		"a tenant that is deleted ends for all its members at once": func(t *testing.T, me *client) {
			me.enabled("k", nil)
			viewer := me.join("viewer")
			me.call("DELETE", "/api/v1/tenants/"+me.tenant, nil).want(204)
			for _, member := range []*client{me, viewer} {
				member.evaluate("k", `{}`).refused(403)
				member.call("GET", "/api/v1/flags", nil).refused(403)
				member.call("GET", "/api/v1/tenants/"+me.tenant, nil).refused(403)
				for _, id := range column(member.call("GET", "/api/v1/tenants", nil).want(200).list(), "id") {
					if id == me.tenant {
						t.Error("the list still has the tenant")
					}
				}
			}
			me.call("DELETE", "/api/v1/tenants/"+me.tenant, nil).refused(403)
		},
		"who changes the address and who changes the name at once both do": func(_ *testing.T, me *client) {
			path := "/api/v1/tenants/" + me.tenant
			for i := range 20 {
				email, name := address(), fmt.Sprint("Contact ", i)
				var both sync.WaitGroup
				both.Go(func() { me.call("PATCH", path, map[string]string{"primaryEmail": email}) })
				both.Go(func() { me.call("PATCH", path, map[string]string{"contactName": name}) })
				both.Wait()
				me.call("GET", path, nil).want(200).shows(map[string]any{"primaryEmail": email, "contactName": name})
			}
		},
		"nobody's name or address stays of a tenant that is deleted": func(t *testing.T, me *client) {
			path := "/api/v1/tenants/" + me.tenant
			invited, contact := address(), address()
			me.call("POST", usersPath(me), map[string]string{"email": invited, "role": "viewer"}).want(201)
			me.call("PATCH", path, map[string]string{"contactName": "Ada Lovelace", "primaryEmail": contact}).want(200)
			kept := func() (n int) {
				conn, err := pgx.Connect(t.Context(), me.s.databaseURL)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
				err = conn.QueryRow(t.Context(), `select (select count(*) from keep.tenant_contacts where primary_email = $1) +
					(select count(*) from keep.pending_members where email = $2)`, contact, invited).Scan(&n)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			same(t, "what is kept", kept(), 2)
			first := me.keyed("k", "DELETE", path, nil).want(204)
			same(t, "what is kept after the end", kept(), 0)
			me.s.sql(`insert into keep.tenant_contacts values ($1, $2)`, me.tenant, contact) // as if the node had died
			me.s.forgetAnswers()
			me.keyed("k", "DELETE", path, nil).is(first)
			same(t, "what is kept after the end of a second attempt", kept(), 0)
		},
		"people see their own tenants in the order of creation": func(t *testing.T, me *client) {
			other := me.with(me.account().token)
			names := []string{"Personal workspace"}
			for _, name := range []string{"b", "a", "c"} {
				other.newTenant(name)
				names = append(names, name)
				same(t, "tenants right after a creation", column(other.call("GET", "/api/v1/tenants", nil).want(200).list(), "name"), names)
			}
			checkPages(t, other, "/api/v1/tenants", "name", []any{names[0], names[1], names[2], names[3]})
		},
		"a member sees the tenant in the list, with the address of its creator": func(t *testing.T, me *client) {
			viewer := me.join("viewer")
			list := viewer.call("GET", "/api/v1/tenants", nil).want(200).list()
			same(t, "tenants", []any{len(list), list[0]["id"], list[0]["primaryEmail"]}, []any{2, me.tenant, "owner@example.com"})
		},
		"a tenant begins with production and development": func(t *testing.T, me *client) {
			path := "/api/v1/tenants/" + me.tenant + "/environments"
			var names []string
			me.call("GET", path, nil).want(200).decode(&names)
			same(t, "environments", names, []string{"production", "development"})
			me.call("GET", path, nil, "X-Tenant-ID", "").want(200)
			page := me.call("GET", path+"?limit=1&offset=1", nil).want(200)
			same(t, "a page", []string{string(page.body), page.header.Get("X-Total-Count"), page.header.Get("Link")}, []string{`["development"]`, "2", ""})
		},
		"who is no member is told the same of a tenant that exists and of one that does not": func(t *testing.T, me *client) {
			stranger := me.with(me.account().token)
			for _, path := range []string{"/api/v1/tenants/{tenant}", "/api/v1/tenants/{tenant}/environments", "/api/v1/flags", "/api/v1/projects", flagPath("any"), flagPath("any", "/history")} {
				var told []*answer
				for _, tenant := range []string{me.tenant, uuid.NewString(), "nonsense"} {
					told = append(told, stranger.call("GET", strings.ReplaceAll(path, "{tenant}", tenant), nil, "X-Tenant-ID", tenant).refused(403))
				}
				sameProblem(t, told[0], told[1])
				sameProblem(t, told[0], told[2])
			}
			exists := stranger.call("POST", flagPath("any", "/evaluate"), `{}`, "X-Tenant-ID", me.tenant).refused(403)
			sameProblem(t, exists, stranger.call("POST", flagPath("any", "/evaluate"), `{}`, "X-Tenant-ID", uuid.NewString()).refused(403))
			stranger.call("GET", "/api/v1/tenants/"+me.tenant+"/environments", nil).refused(403)
		},
		"the path and X-Tenant-ID must agree": func(_ *testing.T, me *client) {
			other := me.newTenant("other")
			me.call("GET", "/api/v1/tenants/"+other.tenant, nil).refused(400)
			me.call("GET", "/api/v1/tenants/"+other.tenant+"/environments", nil).refused(400)
			me.call("GET", "/api/v1/tenants/"+uuid.NewString()+"/environments", nil).refused(400)
		},
		"X-Tenant-ID is required where the interface lists it": func(_ *testing.T, me *client) {
			for _, call := range []struct{ method, path, body string }{
				{"GET", "/api/v1/flags", ""},
				{"POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`},
				{"GET", "/api/v1/flags/any", ""},
				{"POST", "/api/v1/flags/any/evaluate", `{}`},
				{"GET", "/api/v1/projects", ""},
				{"GET", "/api/v1/tenants/" + me.tenant, ""},
			} {
				var body any
				if call.body != "" {
					body = call.body
				}
				me.call(call.method, call.path, body, "X-Tenant-ID", "").refused(400)
			}
		},
	}.run(t)
}

func contains(list []map[string]any, entry map[string]any) bool {
	for _, e := range list {
		if e["id"] == entry["id"] {
			return len(e) == len(entry) && e["name"] == entry["name"]
		}
	}
	return false
}
