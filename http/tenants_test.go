package http_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/nodetest"
)

func TestTenants(t *testing.T) {
	nodetest.Cases{
		"a tenant is created with its defaults, and reads show the same": func(t *testing.T, me *nodetest.Client) {
			a := me.Call("POST", "/api/v1/tenants", `{"name":"Acme"}`).Want(201)
			body := a.Object()
			nodetest.Members(t, "a tenant", body, "id", "name", "primaryEmail", "contactName", "isSandbox", "subscription",
				"createdAt")
			a.Shows(map[string]any{
				"name": "Acme", "primaryEmail": me.Email, "contactName": "", "isSandbox": false,
				"subscription": map[string]string{"plan": "free", "status": "active"},
			})
			checkTimes(t, body)
			id := body["id"].(string)
			nodetest.Same(t, "Location", a.Header.Get("Location"), "/api/v1/tenants/"+id)
			nodetest.Same(t, "the tenant", me.Call("GET", "/api/v1/tenants/"+id, nil, "X-Tenant-ID", id).Want(200).Object(), body)
			body["role"] = "admin" // of the caller, in the list of their tenants
			list := me.Call("GET", "/api/v1/tenants?limit=1000", nil).Want(200).List()
			if i := len(list) - 1; len(list) == 0 || !contains(list, body) {
				t.Errorf("the list, whose last is %v, does not hold %v", list[i], body)
			}
		},
		"a tenant keeps what was sent": func(t *testing.T, me *nodetest.Client) {
			a := me.Call("POST", "/api/v1/tenants", `{"name":"Räume & <Zeiten>","primaryEmail":"ops@example.org","contactName":"Zoë","isSandbox":true}`).
				Want(201)
			a.Shows(map[string]any{
				"name": "Räume & <Zeiten>", "primaryEmail": "ops@example.org", "contactName": "Zoë", "isSandbox": true,
				"subscription": map[string]string{"plan": "sandbox", "status": "active"},
			})
			id := a.Object()["id"].(string)
			nodetest.Same(t, "the tenant", me.Call("GET", "/api/v1/tenants/"+id, nil, "X-Tenant-ID", id).Want(200).Object(),
				a.Object())
		},
		"all that is wrong with a tenant is named at once": func(_ *testing.T, me *nodetest.Client) {
			long := strings.Repeat("é", 201)
			me.Call("POST", "/api/v1/tenants", `{}`).Refused(422, "name")
			me.Call("POST", "/api/v1/tenants", `{"name":""}`).Refused(422, "name")
			me.Call("POST", "/api/v1/tenants", `{"name":"t","primaryEmail":""}`).Refused(422, "primaryEmail")
			me.Call("POST", "/api/v1/tenants", `{"name":"t","primaryEmail":null}`).
				Want(201).
				Shows(map[string]any{"primaryEmail": me.Email})
			me.Call("POST", "/api/v1/tenants", map[string]any{"name": long, "primaryEmail": "nobody", "contactName": long}).
				Refused(422, "name", "primaryEmail", "contactName")
			me.Call("POST", "/api/v1/tenants", map[string]any{"name": strings.Repeat("é", 200), "contactName": strings.Repeat("é", 200)}).
				Want(201)
			me.Call("POST", "/api/v1/tenants", `{"name":1,"isSandbox":"yes","plan":"free"}`).
				Refused(422, "name", "isSandbox", "plan")
		},
		"whoever has created 100 tenants creates no more, and others cannot use up what they may create": func(_ *testing.T, me *nodetest.Client) {
			email := nodetest.Address()
			me.Call("POST", usersPath(me), map[string]string{"email": email, "role": "admin"}).Want(201)
			many := me.Service.SignUp(email)
			var last *nodetest.Client
			for range 99 {
				last = many.NewTenant("one of many")
			}
			a := many.Call("POST", "/api/v1/tenants", `{"name":"one more","contactName":"Zoë"}`).Refused(409)
			if detail, _ := a.Object()["detail"].(string); !strings.Contains(detail, "100") {
				me.Service.T.Errorf("it does not name the limit: %s", a.Body)
			}
			last.Call("DELETE", "/api/v1/tenants/"+last.Tenant, nil).Want(204)
			many.NewTenant("in its place")
		},
		"a person creates 200 tenants on a day, those included that are deleted since": func(t *testing.T, me *nodetest.Client) {
			many := me.Service.SignUp(nodetest.Address())
			sql(me.Service, `insert into read.tenants (id, name, is_sandbox, subscription, created_by, created_at, deleted_at)
				select gen_random_uuid(), 'gone', false, '{}', $1, now(), now() from generate_series(1, 198)`, many.UserID)
			many.NewTenant("the last one of the day") // their first was made when they signed up
			a := many.Call("POST", "/api/v1/tenants", `{"name":"one more"}`).Refused(429)
			nodetest.Same(t, "Retry-After", a.Header.Get("Retry-After"), a.Header.Get("RateLimit-Reset"))
			nodetest.Same(t, "the limit", a.Header.Get("RateLimit-Limit"), "200")
			if detail, _ := a.Object()["detail"].(string); !strings.Contains(detail, "200 tenants today") {
				t.Errorf("it does not name the limit: %s", a.Body)
			}
			many.Call("POST", "/api/v1/tenants", `{"name":"one more","primaryEmail":"nobody"}`).Refused(422, "primaryEmail")
			sql(me.Service, `update read.tenants set created_at = created_at - interval '1 day' where created_by = $1`,
				many.UserID)
			many.NewTenant("the first one of another day")
		},
		"a tenant is changed in part": func(_ *testing.T, me *nodetest.Client) {
			path := "/api/v1/tenants/" + me.Tenant
			me.Call("PATCH", path, `{"name":"Acme Inc."}`).
				Want(200).
				Shows(map[string]any{"name": "Acme Inc.", "primaryEmail": me.Email, "contactName": ""})
			me.Call("PATCH", path, `{"primaryEmail":"ops@example.org"}`).
				Want(200).
				Shows(map[string]any{"name": "Acme Inc.", "primaryEmail": "ops@example.org"})
			me.Call("PATCH", path, `{"contactName":"Zoë"}`).
				Want(200).
				Shows(map[string]any{"primaryEmail": "ops@example.org", "contactName": "Zoë"})
			me.Call("PATCH", path, `{"primaryEmail":null,"contactName":null}`).
				Want(200).
				Shows(map[string]any{"primaryEmail": me.Email, "contactName": ""})
			me.Call("PATCH", path, `{}`).Want(200).Shows(map[string]any{"name": "Acme Inc."})
			me.Call("PATCH", path, `{"name":"","primaryEmail":"nobody"}`).Refused(422, "name", "primaryEmail")
			me.Call("PATCH", path, `{"name":null}`).Refused(422, "name")
			me.Call("PATCH", path, `{"primaryEmail":""}`).Refused(422, "primaryEmail")
			me.Call("PATCH", path, `{"contactName":""}`).Want(200)
			me.Call("PATCH", path, `{"plan":"enterprise","isSandbox":true}`).Refused(422, "plan", "isSandbox")
			me.Call("GET", path, nil).Want(200).Shows(map[string]any{"name": "Acme Inc."})
		},
		"a tenant that is deleted ends for all its members at once": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			viewer := me.Join("viewer")
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant, nil).Want(204)
			for _, member := range []*nodetest.Client{me, viewer} {
				member.Evaluate("k", `{}`).Refused(403)
				member.Call("GET", "/api/v1/flags", nil).Refused(403)
				member.Call("GET", "/api/v1/tenants/"+me.Tenant, nil).Refused(403)
				for _, id := range nodetest.Column(member.Call("GET", "/api/v1/tenants", nil).Want(200).List(), "id") {
					if id == me.Tenant {
						t.Error("the list still has the tenant")
					}
				}
			}
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant, nil).Refused(403)
		},
		"who changes the address and who changes the name at once both do": func(_ *testing.T, me *nodetest.Client) {
			path := "/api/v1/tenants/" + me.Tenant
			for i := range 20 {
				email, name := nodetest.Address(), fmt.Sprint("Contact ", i)
				var both sync.WaitGroup
				both.Go(func() { me.Call("PATCH", path, map[string]string{"primaryEmail": email}) })
				both.Go(func() { me.Call("PATCH", path, map[string]string{"contactName": name}) })
				both.Wait()
				me.Call("GET", path, nil).Want(200).Shows(map[string]any{"primaryEmail": email, "contactName": name})
			}
		},
		"people see their own tenants in the order of creation": func(t *testing.T, me *nodetest.Client) {
			other := withToken(me, newAccount(me).token)
			names := []string{"Personal workspace"}
			for _, name := range []string{"b", "a", "c"} {
				other.NewTenant(name)
				names = append(names, name)
				nodetest.Same(t, "tenants right after a creation",
					nodetest.Column(other.Call("GET", "/api/v1/tenants", nil).Want(200).List(), "name"), names)
			}
			checkPages(t, other, "/api/v1/tenants", "name", []any{names[0], names[1], names[2], names[3]})
		},
		"a member sees the tenant in the list, with the address of its creator": func(t *testing.T, me *nodetest.Client) {
			viewer := me.Join("viewer")
			list := viewer.Call("GET", "/api/v1/tenants", nil).Want(200).List()
			nodetest.Same(t, "tenants", []any{len(list), list[0]["id"], list[0]["primaryEmail"]}, []any{2, me.Tenant, me.Email})
		},
		"a tenant begins with production and development": func(t *testing.T, me *nodetest.Client) {
			path := "/api/v1/tenants/" + me.Tenant + "/environments"
			var names []string
			me.Call("GET", path, nil).Want(200).Decode(&names)
			nodetest.Same(t, "environments", names, []string{"production", "development"})
			me.Call("GET", path, nil, "X-Tenant-ID", "").Want(200)
			page := me.Call("GET", path+"?limit=1&offset=1", nil).Want(200)
			nodetest.Same(t, "a page", []string{string(page.Body), page.Header.Get("X-Total-Count"), page.Header.Get("Link")},
				[]string{`["development"]`, "2", ""})
		},
		"who is no member is told the same of a tenant that exists and of one that does not": func(t *testing.T, me *nodetest.Client) {
			stranger := withToken(me, newAccount(me).token)
			for _, path := range []string{"/api/v1/tenants/{tenant}", "/api/v1/tenants/{tenant}/environments", "/api/v1/flags", "/api/v1/projects", nodetest.FlagPath("any"), nodetest.FlagPath("any", "/history")} {
				var told []*nodetest.Answer
				for _, tenant := range []string{me.Tenant, uuid.NewString(), "nonsense"} {
					told = append(told,
						stranger.Call("GET", strings.ReplaceAll(path, "{tenant}", tenant), nil, "X-Tenant-ID", tenant).Refused(403))
				}
				sameProblem(t, told[0], told[1])
				sameProblem(t, told[0], told[2])
			}
			exists := stranger.Call("POST", nodetest.FlagPath("any", "/evaluate"), `{}`, "X-Tenant-ID", me.Tenant).Refused(403)
			sameProblem(t, exists,
				stranger.Call("POST", nodetest.FlagPath("any", "/evaluate"), `{}`, "X-Tenant-ID", uuid.NewString()).Refused(403))
			stranger.Call("GET", "/api/v1/tenants/"+me.Tenant+"/environments", nil).Refused(403)
		},
		"the path and X-Tenant-ID must agree": func(_ *testing.T, me *nodetest.Client) {
			other := me.NewTenant("other")
			me.Call("GET", "/api/v1/tenants/"+other.Tenant, nil).Refused(400)
			me.Call("GET", "/api/v1/tenants/"+other.Tenant+"/environments", nil).Refused(400)
			me.Call("GET", "/api/v1/tenants/"+uuid.NewString()+"/environments", nil).Refused(400)
		},
		"X-Tenant-ID is required where the interface lists it": func(_ *testing.T, me *nodetest.Client) {
			for _, call := range []struct{ method, path, body string }{
				{"GET", "/api/v1/flags", ""},
				{"POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`},
				{"GET", "/api/v1/flags/any", ""},
				{"POST", "/api/v1/flags/any/evaluate", `{}`},
				{"GET", "/api/v1/projects", ""},
				{"GET", "/api/v1/tenants/" + me.Tenant, ""},
			} {
				var body any
				if call.body != "" {
					body = call.body
				}
				me.Call(call.method, call.path, body, "X-Tenant-ID", "").Refused(400)
			}
		},
	}.Run(t)
}

func contains(list []map[string]any, entry map[string]any) bool {
	for _, e := range list {
		if e["id"] == entry["id"] {
			return len(e) == len(entry) && e["name"] == entry["name"]
		}
	}
	return false
}

func TestNobodysNameOrAddressStaysOfATenantThatIsDeleted(t *testing.T) {
	nodetest.BothEngines(t, testNobodysNameOrAddressStaysOfATenantThatIsDeleted)
}

func testNobodysNameOrAddressStaysOfATenantThatIsDeleted(t *testing.T) {
	t.Parallel()
	me := nodetest.New(t).SignUp(nodetest.Address())
	path := "/api/v1/tenants/" + me.Tenant
	invited, contact := nodetest.Address(), nodetest.Address()
	me.Call("POST", usersPath(me), map[string]string{"email": invited, "role": "viewer"}).Want(201)
	me.Call("PATCH", path, map[string]string{"contactName": "Ada Lovelace", "primaryEmail": contact}).Want(200)
	kept := func() (n int) {
		conn, err := pgx.Connect(t.Context(), me.Service.DatabaseURL)
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
	nodetest.Same(t, "what is kept", kept(), 2)
	first := keyed(me, "k", "DELETE", path, nil).Want(204)
	nodetest.Same(t, "what is kept after the end", kept(), 0)
	sql(me.Service, `insert into keep.tenant_contacts values ($1, $2)`, me.Tenant, contact) // simulates a dead node
	forgetAnswers(me.Service)
	isSameAs(keyed(me, "k", "DELETE", path, nil), first)
	nodetest.Same(t, "what is kept after the end of a second attempt", kept(), 0)
}
