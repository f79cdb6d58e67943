package http_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands"
	"flagledger/events"
	"flagledger/migrations/pgtest"
)

func TestErasing(t *testing.T) { nodetest.BothEngines(t, testErasing) }

func testErasing(t *testing.T) {
	platformCases{
		"whoever signed up and never began to use the service is erased": func(t *testing.T, root *nodetest.Client) {
			session := outside(root)
			known := func() (rows int) {
				pool, err := node.OpenPool(t.Context(), root.Service.DatabaseURL)
				if err != nil {
					t.Fatal(err)
				}
				defer pool.Close()
				err = pool.QueryRow(t.Context(), `select (select count(*) from keep.people where user_id = $1) + (select count(*) from keep.passwords where user_id = $1)
					+ (select count(*) from keep.refresh_tokens where user_id = $1)`, session.UserID).
					Scan(&rows)
				if err != nil {
					t.Fatal(err)
				}
				return rows
			}
			nodetest.Same(t, "what is kept of them", known(), 3)
			erase(t, root.Service, session.UserID)
			erase(t, root.Service, session.UserID)
			nodetest.Same(t, "what is kept of them", known(), 0)
			login := map[string]string{"idToken": session.IDToken}
			root.Service.Eventually("their token is refused",
				func() bool { return root.Service.Anonymous().Call("POST", "/api/v1/auth/login", login).Status == 403 })
			err := node.EraseUser(t.Context(), root.Service.Config, root.Service.DatabaseURL, root.Service.Store(),
				uuid.NewString(), nodetest.Log(t))
			if commands.KindOf(err) != commands.NotFound {
				t.Errorf("nobody is erased: %v", err)
			}
		},
		"a person is erased, and the history stays": func(t *testing.T, root *nodetest.Client) {
			email := nodetest.Address()
			gone := root.Service.SignUp(email)
			root.Call("POST", usersPath(root), map[string]string{"email": email, "role": "developer"}).Want(201)
			root.Service.Anonymous().
				Call("POST", "/auth/signin", map[string]string{"email": email, "password": nodetest.Password}).
				Want(200)
			gone.Tenant = root.Tenant
			key := "by-" + strings.ToLower(uuid.NewString())
			gone.CreateFlag(key, nil)
			contact := func(who *nodetest.Client, tenant string, body map[string]string) string {
				who.Call("PATCH", "/api/v1/tenants/"+tenant, body, "X-Tenant-ID", tenant).Want(200)
				return tenant
			}
			unnamed := contact(gone, gone.NewTenant("unnamed").Tenant, map[string]string{"contactName": "Ada Lovelace"})
			named := contact(gone, gone.NewTenant("named").Tenant,
				map[string]string{"contactName": "Ada Lovelace", "primaryEmail": strings.ToUpper(email)})
			shared := contact(gone, gone.NewTenant("shared").Tenant,
				map[string]string{"contactName": "Ada Lovelace", "primaryEmail": "ops@example.com"})
			others := contact(root, root.NewTenant("others").Tenant,
				map[string]string{"contactName": "Ada Lovelace", "primaryEmail": email})
			untouched := contact(root, root.NewTenant("untouched").Tenant,
				map[string]string{"contactName": "Rita Root", "primaryEmail": "root@example.com"})
			erase(t, root.Service, gone.UserID)
			erase(t, root.Service, gone.UserID)
			root.Service.Eventually("their token is refused",
				func() bool { return gone.Call("GET", "/api/v1/tenants", nil).Status == 403 })
			history := root.Call("GET", nodetest.FlagPath(key, "/history"), nil).Want(200).List()
			nodetest.Same(t, "who made the flag", []any{history[0]["userId"], history[0]["userName"]},
				[]any{gone.UserID, "erased user"})
			joined := trail(root, "?action=tenant.member_joined&resourceId="+gone.UserID)[0]
			nodetest.Same(t, "who joined, in the trail", []any{joined["userName"], joined["resource"]},
				[]any{"erased user", map[string]any{"type": "member", "id": gone.UserID, "name": "erased user"}})
			member := entry(root.Call("GET", usersPath(root), nil).Want(200).List(), "userId", gone.UserID)
			nodetest.Same(t, "the member", []any{member["email"], member["displayName"]}, []any{"", "erased user"})
			user := entry(root.Call("GET", usersOfPlatform, nil).Want(200).List(), "userId", gone.UserID)
			nodetest.Same(t, "the user", []any{user["email"], user["displayName"], user["active"]},
				[]any{"", "erased user", false})
			root.Service.Anonymous().
				Call("POST", "/auth/signin", map[string]string{"email": email, "password": nodetest.Password}).
				Refused(401)
			root.Call("PATCH", usersOfPlatform+"/"+gone.UserID+"/reactivate", nil).Refused(404)
			for _, c := range []struct{ tenant, primaryEmail, contactName string }{
				{unnamed, "", ""}, {named, "", ""}, {shared, "ops@example.com", ""}, {others, "root@example.com", ""}, {untouched, "root@example.com", "Rita Root"},
			} {
				shown := entry(root.Call("GET", "/api/v1/admin/tenants", nil).Want(200).List(), "id", c.tenant)
				nodetest.Same(t, "a contact", []any{shown["primaryEmail"], shown["contactName"]},
					[]any{c.primaryEmail, c.contactName})
			}
			if next := root.Service.SignUp(email); next.UserID == gone.UserID {
				t.Error("the address signs up as the person that was erased")
			}
		},
	}.run(t)
}

// If a node dies between the fact and its consequences, no personal data of the tenant remains.
func TestADeletedTenantIsForgottenThoughItsNodeDied(t *testing.T) {
	nodetest.BothEngines(t, testADeletedTenantIsForgottenThoughItsNodeDied)
}

func testADeletedTenantIsForgottenThoughItsNodeDied(t *testing.T) {
	nodetest.Cases{
		"a sandbox": func(t *testing.T, me *nodetest.Client) {
			s := newSandbox(me)
			contact, pending, title := nodetest.Address(), nodetest.Address(), uuid.NewString()
			s.Call("PATCH", "/api/v1/tenants/"+s.Tenant, map[string]string{"primaryEmail": contact, "contactName": "Ada Lovelace"}).
				Want(200)
			s.Call("POST", usersPath(s), map[string]string{"email": pending, "role": "viewer"}).Want(201)
			s.Call("POST", inboxPath+"/send", map[string]any{"userId": s.UserID, "tenantId": s.Tenant, "title": title, "type": "x"}).
				Want(201)
			dana := commands.DemoPeople(s.Tenant)[0].UserID
			s.Call("PUT", tourPath(dana, "flags"), `{"completed":true}`).Want(200)
			s.Service.JobsDone()
			pool, err := node.OpenPool(t.Context(), s.Service.DatabaseURL)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			kept := func() []string { return pgtest.TablesWith(t, pool, "keep", contact, pending, title, dana) }
			// The mailed addresses are stored for an hour, for the limit of invitations.
			nodetest.Same(t, "what is kept", kept(),
				[]string{"notifications", "pending_members", "people", "product_tours", "tenant_contacts", "window_slots"})

			stream, store := events.TenantStream(s.Tenant), s.Service.Store()
			var last events.Revision
			for r, err := range store.Read(t.Context(), stream, 0) {
				if err != nil {
					t.Fatal(err)
				}
				last = r.Revision
			}
			deleted := events.Event{
				ID:       uuid.New(),
				Metadata: events.Metadata{Time: time.Now(), Actor: events.Actor{Kind: events.UserActor, ID: s.UserID}},
				Fact:     events.TenantDeleted{},
			}
			if _, err := store.Append(t.Context(), stream, last, []events.Event{deleted}); err != nil {
				t.Fatal(err)
			}
			s.Service.Eventually("it is forgotten", func() bool { return slices.Equal(kept(), []string{"window_slots"}) })
		},
	}.Run(t)
}
