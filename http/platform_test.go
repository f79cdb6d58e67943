package http_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands"
	"flagledger/commands/mail/mailtest"
	"flagledger/events"
)

const usersOfPlatform, invitationsPath = "/api/v1/admin/users", "/api/v1/admin/invitations"

// entry finds an entry of a list by one of its members.
func entry(list []map[string]any, name string, value any) map[string]any {
	for _, e := range list {
		if e[name] == value {
			return e
		}
	}
	return nil
}

func TestPlatform(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t), node.Config{
		EventStoreURL: nodetest.EngineURL(t), Environment: "development", SuperUsers: []string{"Root@example.com", "second@example.com"},
	}, nodetest.Log(t))
	super := s.SignUp("root@example.com")
	for name, test := range map[string]func(t *testing.T, root *nodetest.Client){
		"an address on the list makes a super user at sign-in": func(t *testing.T, root *nodetest.Client) {
			list := root.Call("GET", usersOfPlatform, nil).Want(200).List()
			me := entry(list, "userId", root.UserID)
			nodetest.Members(t, "a platform user", me, "userId", "email", "displayName", "role", "active", "createdAt", "lastAccessedAt", "tenants")
			nodetest.Same(t, "the super user", []any{me["role"], me["email"], me["active"]}, []any{"super_user", "root@example.com", true})
			nodetest.Members(t, "a tenant of theirs", me["tenants"].([]any)[0], "tenant_id", "tenant_name", "role")
			other := root.Service.SignUp(nodetest.Address())
			for _, path := range []string{usersOfPlatform, usersOfPlatform + "/system", "/admin/users"} {
				nodetest.Same(t, "the role of somebody else", entry(root.Call("GET", path, nil).Want(200).List(), "userId", other.UserID)["role"], nil)
				other.Call("GET", path, nil).Refused(403)
			}
			other.Call("GET", "/api/v1/admin/tenants", nil).Refused(403)
		},
		"each role may do what it may": func(_ *testing.T, root *nodetest.Client) {
			staff := root.Service.SignUp(nodetest.Address())
			path := usersOfPlatform + "/" + staff.UserID + "/role"
			for _, step := range []struct {
				role                   string
				users, system, tenants int
			}{{"viewer", 403, 403, 200}, {"admin", 200, 403, 200}} {
				root.Call("PATCH", path, map[string]string{"role": step.role}).Want(200).Shows(map[string]any{"role": step.role, "userId": staff.UserID})
				staff.Call("GET", usersOfPlatform, nil).Want(step.users)
				staff.Call("GET", usersOfPlatform+"/system", nil).Want(step.system)
				staff.Call("GET", "/api/v1/admin/tenants", nil).Want(step.tenants)
				staff.Call("PATCH", path, `{"role":"super_user"}`).Refused(403)
				staff.Call("PATCH", usersOfPlatform+"/"+root.UserID+"/deactivate", nil).Refused(403)
				staff.Call("POST", invitationsPath, `{"email":"x@example.com","role":"viewer"}`).Refused(403)
				staff.Call("GET", invitationsPath, nil).Refused(403)
			}
			root.Call("PATCH", path, `{"role":null}`).Want(200).Shows(map[string]any{"role": nil})
			staff.Call("GET", "/api/v1/admin/tenants", nil).Refused(403)
			root.Call("PATCH", path, `{"role":"super_user"}`).Refused(422, "role")
			root.Call("PATCH", path, `{"role":"owner"}`).Refused(422, "role")
			root.Call("PATCH", path, `{"role":""}`).Refused(422, "role")
			root.Call("PATCH", path, `{}`).Refused(422, "role")
			root.Call("PATCH", usersOfPlatform+"/none/role", `{"role":"viewer"}`).Refused(404)
		},
		"a role on the platform opens no tenant": func(_ *testing.T, root *nodetest.Client) {
			other := root.Service.SignUp(nodetest.Address())
			other.CreateFlag("k", nil)
			root.Call("GET", nodetest.FlagPath("k"), nil, "X-Tenant-ID", other.Tenant).Refused(403)
			root.Call("GET", usersPath(other), nil, "X-Tenant-ID", "").Refused(403)
		},
		"whoever is deactivated is out at once, on every node": func(t *testing.T, root *nodetest.Client) {
			email := nodetest.Address()
			other := root.Service.SignUp(email)
			other.CreateEnabledFlag("k", nil)
			second := *other
			second.Service = root.Service.SecondNode()
			second.Evaluate("k", `{}`).Want(200)
			path := usersOfPlatform + "/" + other.UserID
			session := other.Service.Anonymous().Call("POST", "/auth/signin", map[string]string{"email": email, "password": nodetest.Password}).Want(200).Object()
			refresh := func() *nodetest.Answer {
				return other.Service.Anonymous().Call("POST", "/api/v1/auth/refresh", map[string]any{"refreshToken": session["refreshToken"]})
			}
			root.Call("PATCH", path+"/deactivate", nil).Want(200).Shows(map[string]any{"active": false})
			root.Call("PATCH", path+"/deactivate", nil).Want(200).Shows(map[string]any{"active": false})
			other.Evaluate("k", `{}`).Refused(403)
			refresh().Refused(403)
			refresh().Refused(403)
			other.Call("GET", "/api/v1/tenants", nil).Refused(403)
			other.Service.Anonymous().Call("POST", "/auth/signin", map[string]string{"email": email, "password": nodetest.Password}).Refused(403)
			other.Service.Anonymous().Call("POST", "/api/v1/auth/login", map[string]string{"idToken": other.Token}).Refused(403)
			second.Service.Eventually("the other node refuses", func() bool { return second.Evaluate("k", `{}`).Status == 403 })
			nodetest.Same(t, "they are not active", entry(root.Call("GET", usersOfPlatform, nil).List(), "userId", other.UserID)["active"], false)
			root.Call("PATCH", path+"/reactivate", nil).Want(200).Shows(map[string]any{"active": true})
			other.Evaluate("k", `{}`).Want(200)
			refresh().Want(200)
			root.Call("PATCH", usersOfPlatform+"/none/deactivate", nil).Refused(404)
			root.Call("PATCH", usersOfPlatform+"/"+root.UserID+"/deactivate", nil).Refused(409)
		},
		"an admin who is shut out does not stand in for the last one": func(t *testing.T, root *nodetest.Client) {
			me := root.NewTenant("with two admins")
			second := me.Join("admin")
			out := usersOfPlatform + "/" + second.UserID
			root.Call("PATCH", out+"/deactivate", nil).Want(200)
			me.Call("DELETE", usersPath(me, me.UserID), nil).Refused(409)
			me.Call("PATCH", usersPath(me, me.UserID), `{"role":"viewer"}`).Refused(409)
			root.Call("PATCH", out+"/reactivate", nil).Want(200)
			me.Call("PATCH", usersPath(me, me.UserID), `{"role":"viewer"}`).Want(200)
			second.Call("PATCH", usersPath(me, me.UserID), `{"role":"admin"}`).Want(200)
			erase(t, me.Service, second.UserID)
			me.Service.Eventually("the other is out", func() bool { return second.Call("GET", usersPath(me), nil).Status == 403 })
			me.Call("DELETE", usersPath(me, me.UserID), nil).Refused(409)
			me.Call("DELETE", usersPath(me, second.UserID), nil).Want(204)
		},
		"all tenants are listed with what they use": func(t *testing.T, root *nodetest.Client) {
			other := root.Service.SignUp(nodetest.Address())
			other.CreateFlag("a", nil)
			other.CreateFlag("b", nil)
			other.Join("viewer")
			gone := other.NewTenant("gone")
			gone.Call("DELETE", "/api/v1/tenants/"+gone.Tenant, nil).Want(204)
			list := root.Call("GET", "/api/v1/admin/tenants", nil).Want(200).List()
			found := entry(list, "id", other.Tenant)
			nodetest.Members(t, "a tenant", found, "id", "name", "primaryEmail", "contactName", "isSandbox", "subscription", "createdAt", "usage", "active")
			usage := found["usage"].(map[string]any)
			nodetest.Same(t, "the tenant", []any{found["active"], usage["flags"], usage["users"]}, []any{true, 2, 2})
			nodetest.Same(t, "one that was deleted", entry(list, "id", gone.Tenant)["active"], false)
		},
		"an invitation is made, seen, sent again and accepted": func(t *testing.T, root *nodetest.Client) {
			email := nodetest.Address()
			a := root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "admin"}).Want(201)
			body := a.Object()
			nodetest.Members(t, "an invitation", body, "id", "email", "role", "status", "invitedBy", "createdAt", "expiresAt")
			a.Shows(map[string]any{"email": email, "role": "admin", "status": "pending", "invitedBy": root.UserID})
			path := invitationsPath + "/" + body["id"].(string)
			nodetest.Same(t, "Location", a.Header.Get("Location"), path)
			nodetest.Same(t, "the invitation", root.Call("GET", path, nil).Want(200).Object(), body)
			nodetest.Same(t, "the list's", entry(root.Call("GET", invitationsPath, nil).Want(200).List(), "id", body["id"]), body)
			created, _ := time.Parse(time.RFC3339, body["createdAt"].(string))
			expires, _ := time.Parse(time.RFC3339, body["expiresAt"].(string))
			if life := expires.Sub(created).Round(time.Minute); life != 7*24*time.Hour {
				t.Errorf("it lives for %v, want 7 days", life)
			}
			root.Call("POST", invitationsPath, map[string]string{"email": strings.ToUpper(email), "role": "viewer"}).Refused(409)
			root.Call("POST", path+"/resend", nil).Want(200).Shows(map[string]any{"success": true})
			if again := root.Call("GET", path, nil).Object()["expiresAt"].(string); again <= body["expiresAt"].(string) {
				t.Errorf("sent again it expires at %s", again)
			}
			invited := root.Service.SignUp(email)
			invited.Call("GET", usersOfPlatform, nil).Refused(403)
			accepted := invited.Call("POST", invitationsPath+"/accept", nil).Want(200).Shows(map[string]any{"success": true, "status": "accepted", "role": "admin"})
			nodetest.Members(t, "the answer to who accepts", accepted.Object(), append(slices.Collect(maps.Keys(body)), "success")...)
			invited.Call("GET", usersOfPlatform, nil).Want(200)
			invited.Call("POST", invitationsPath+"/accept", nil).Refused(404)
			root.Call("GET", path, nil).Want(200).Shows(map[string]any{"status": "accepted"})
			root.Call("DELETE", path, nil).Refused(409)
			root.Call("POST", path+"/resend", nil).Refused(409)
		},
		"a revoked invitation cannot be accepted": func(_ *testing.T, root *nodetest.Client) {
			email := nodetest.Address()
			path := invitationsPath + "/" + root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "viewer"}).Want(201).Object()["id"].(string)
			root.Call("DELETE", path, nil).Want(204)
			root.Call("DELETE", path, nil).Want(204)
			root.Call("GET", path, nil).Want(200).Shows(map[string]any{"status": "revoked"})
			root.Call("POST", path+"/resend", nil).Refused(409)
			root.Service.SignUp(email).Call("POST", invitationsPath+"/accept", nil).Refused(404)
			root.Call("GET", invitationsPath+"/none", nil).Refused(404)
			root.Call("DELETE", invitationsPath+"/none", nil).Refused(404)
		},
		"an invitation that has expired cannot be accepted, and can be sent again": func(t *testing.T, root *nodetest.Client) {
			email, id := nodetest.Address(), uuid.NewString()
			pool, err := node.OpenPool(t.Context(), root.Service.DatabaseURL)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			if _, err := pool.Exec(t.Context(), `insert into keep.invitations values ($1, $2)`, id, email); err != nil {
				t.Fatal(err)
			}
			_, err = root.Service.Store().Append(t.Context(), events.InvitationStream(id), 0, []events.Event{{
				ID: uuid.New(), Metadata: events.Metadata{Time: time.Now().Add(-8 * 24 * time.Hour), Actor: events.Actor{Kind: events.UserActor, ID: root.UserID}},
				Fact: events.InvitationCreated{ID: id, Role: events.PlatformViewer, ExpiresAt: time.Now().Add(-24 * time.Hour)},
			}})
			if err != nil {
				t.Fatal(err)
			}
			root.Service.Eventually("the invitation is there", func() bool { return root.Call("GET", invitationsPath+"/"+id, nil).Status == 200 })
			root.Call("GET", invitationsPath+"/"+id, nil).Shows(map[string]any{"status": "expired"})
			late := root.Service.SignUp(email)
			late.Call("POST", invitationsPath+"/accept", nil).Refused(404)
			root.Call("POST", invitationsPath+"/"+id+"/resend", nil).Want(200)
			late.Call("POST", invitationsPath+"/accept", nil).Want(200)
		},
		"an invitation to less takes nothing away": func(_ *testing.T, root *nodetest.Client) {
			email := nodetest.Address()
			staff := root.Service.SignUp(email)
			root.Call("PATCH", usersOfPlatform+"/"+staff.UserID+"/role", `{"role":"admin"}`).Want(200)
			root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "viewer"}).Want(201)
			staff.Call("POST", invitationsPath+"/accept", nil).Want(200)
			staff.Call("GET", usersOfPlatform, nil).Want(200)
		},
		"a role that a node which died did not give is given at the next attempt, and once it is taken away no more": func(t *testing.T, root *nodetest.Client) {
			email := nodetest.Address()
			id := root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "admin"}).Want(201).Object()["id"].(string)
			staff := root.Service.SignUp(email)
			_, err := root.Service.Store().Append(t.Context(), events.InvitationStream(id), 1, []events.Event{{
				ID: uuid.New(), Metadata: events.Metadata{Time: time.Now().UTC(), Actor: events.Actor{Kind: events.UserActor, ID: staff.UserID}},
				Fact: events.InvitationAccepted{UserID: staff.UserID},
			}})
			if err != nil {
				t.Fatal(err)
			}
			staff.Call("GET", usersOfPlatform, nil).Refused(403)
			staff.Call("POST", invitationsPath+"/accept", nil).Want(200).Shows(map[string]any{"id": id, "status": "accepted"})
			staff.Call("GET", usersOfPlatform, nil).Want(200)
			root.Call("PATCH", usersOfPlatform+"/"+staff.UserID+"/role", `{"role":null}`).Want(200)
			staff.Call("POST", invitationsPath+"/accept", nil).Refused(404)
			staff.Call("GET", usersOfPlatform, nil).Refused(403)
		},
		"what is wrong with an invitation is named": func(_ *testing.T, root *nodetest.Client) {
			root.Call("POST", invitationsPath, `{}`).Refused(422, "email", "role")
			root.Call("POST", invitationsPath, `{"email":"nobody","role":"super_user"}`).Refused(422, "email", "role")
			root.Call("POST", invitationsPath, `{"email":"a@example.com","role":"viewer","status":"accepted"}`).Refused(422, "status")
			root.Call("POST", "/admin/invitations", `{"email":"nobody","role":"admin"}`).Refused(422, "email", "role")
		},
		"the old paths have other words for the roles": func(t *testing.T, root *nodetest.Client) {
			staff := root.Service.SignUp(nodetest.Address())
			a := root.Call("PATCH", "/admin/users/"+staff.UserID+"/role", `{"role":"vendor_support"}`).Want(200).Shows(map[string]any{"role": "vendor_support"})
			if a.Header.Get("Deprecation") == "" || !strings.Contains(a.Header.Get("Link"), usersOfPlatform+"/"+staff.UserID+"/role") {
				t.Errorf("the headers are %v", a.Header)
			}
			nodetest.Same(t, "the role", entry(root.Call("GET", usersOfPlatform, nil).List(), "userId", staff.UserID)["role"], "admin")
			nodetest.Same(t, "the role in old words", entry(root.Call("GET", "/admin/users", nil).List(), "userId", staff.UserID)["role"], "vendor_support")
			root.Call("PATCH", "/admin/users/"+staff.UserID+"/role", `{"role":"admin"}`).Refused(422, "role")
			root.Call("PATCH", "/admin/users/"+staff.UserID+"/role", `{"role":"super_admin"}`).Refused(422, "role")
			email := nodetest.Address()
			root.Call("POST", "/admin/invitations", map[string]string{"email": email, "role": "super_admin"}).Refused(422, "role")
			root.Call("POST", "/admin/invitations", map[string]string{"email": email, "role": "vendor_support"}).Want(201).Shows(map[string]any{"role": "vendor_support"})
			second := root.Service.SignUp("second@example.com")
			second.Call("GET", usersOfPlatform+"/system", nil).Want(200)
		},
		"the old invitation does what stands for it today": func(t *testing.T, root *nodetest.Client) {
			email, colleague := nodetest.Address(), nodetest.Address()
			root.Call("POST", "/admin/invite", map[string]string{"email": email, "role": "admin"}).Want(200).Shows(map[string]any{"success": true})
			nodetest.Same(t, "the invitation", entry(root.Call("GET", invitationsPath, nil).List(), "email", email)["role"], "admin")
			root.Call("POST", "/admin/invite", map[string]string{"email": colleague, "role": "user"}).Want(200)
			nodetest.Same(t, "the member", entry(root.Call("GET", usersPath(root), nil).List(), "email", colleague)["role"], "viewer")
			owner := root.Service.SignUp(nodetest.Address())
			owner.Call("POST", "/admin/invite", map[string]string{"email": email, "role": "admin"}).Refused(403)
			owner.Call("POST", "/admin/invite", map[string]string{"email": email, "role": "user"}).Want(200)
			owner.Join("developer").Call("POST", "/admin/invite", map[string]string{"email": email, "role": "user"}).Refused(403)
			owner.Call("POST", "/admin/invite", map[string]string{"email": "nobody", "role": "owner"}).Refused(422, "email", "role")
		},
		"whoever signed up and never began to use the service is erased": func(t *testing.T, root *nodetest.Client) {
			session := outside(root)
			known := func() (rows int) {
				pool, err := node.OpenPool(t.Context(), root.Service.DatabaseURL)
				if err != nil {
					t.Fatal(err)
				}
				defer pool.Close()
				err = pool.QueryRow(t.Context(), `select (select count(*) from keep.people where user_id = $1) + (select count(*) from keep.passwords where user_id = $1)
					+ (select count(*) from keep.refresh_tokens where user_id = $1)`, session.UserID).Scan(&rows)
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
			root.Service.Eventually("their token is refused", func() bool { return root.Service.Anonymous().Call("POST", "/api/v1/auth/login", login).Status == 403 })
			err := node.EraseUser(t.Context(), root.Service.Config, root.Service.DatabaseURL, root.Service.Store(), uuid.NewString(), nodetest.Log(t))
			if commands.KindOf(err) != commands.NotFound {
				t.Errorf("nobody is erased: %v", err)
			}
		},
		"a person is erased, and the history stays": func(t *testing.T, root *nodetest.Client) {
			email := nodetest.Address()
			gone := root.Service.SignUp(email)
			root.Call("POST", usersPath(root), map[string]string{"email": email, "role": "developer"}).Want(201)
			gone.Tenant = root.Tenant
			key := "by-" + strings.ToLower(uuid.NewString())
			gone.CreateFlag(key, nil)
			contact := func(who *nodetest.Client, tenant string, body map[string]string) string {
				who.Call("PATCH", "/api/v1/tenants/"+tenant, body, "X-Tenant-ID", tenant).Want(200)
				return tenant
			}
			unnamed := contact(gone, gone.NewTenant("unnamed").Tenant, map[string]string{"contactName": "Ada Lovelace"})
			named := contact(gone, gone.NewTenant("named").Tenant, map[string]string{"contactName": "Ada Lovelace", "primaryEmail": strings.ToUpper(email)})
			shared := contact(gone, gone.NewTenant("shared").Tenant, map[string]string{"contactName": "Ada Lovelace", "primaryEmail": "ops@example.com"})
			others := contact(root, root.NewTenant("others").Tenant, map[string]string{"contactName": "Ada Lovelace", "primaryEmail": email})
			untouched := contact(root, root.NewTenant("untouched").Tenant, map[string]string{"contactName": "Rita Root", "primaryEmail": "root@example.com"})
			erase(t, root.Service, gone.UserID)
			erase(t, root.Service, gone.UserID)
			root.Service.Eventually("their token is refused", func() bool { return gone.Call("GET", "/api/v1/tenants", nil).Status == 403 })
			history := root.Call("GET", nodetest.FlagPath(key, "/history"), nil).Want(200).List()
			nodetest.Same(t, "who made the flag", []any{history[0]["userId"], history[0]["userName"]}, []any{gone.UserID, "erased user"})
			member := entry(root.Call("GET", usersPath(root), nil).Want(200).List(), "userId", gone.UserID)
			nodetest.Same(t, "the member", []any{member["email"], member["displayName"]}, []any{"", "erased user"})
			user := entry(root.Call("GET", usersOfPlatform, nil).Want(200).List(), "userId", gone.UserID)
			nodetest.Same(t, "the user", []any{user["email"], user["displayName"], user["active"]}, []any{"", "erased user", false})
			root.Service.Anonymous().Call("POST", "/auth/signin", map[string]string{"email": email, "password": nodetest.Password}).Refused(401)
			root.Call("PATCH", usersOfPlatform+"/"+gone.UserID+"/reactivate", nil).Refused(404)
			for _, c := range []struct{ tenant, primaryEmail, contactName string }{
				{unnamed, "", ""}, {named, "", ""}, {shared, "ops@example.com", ""}, {others, "root@example.com", ""}, {untouched, "root@example.com", "Rita Root"},
			} {
				shown := entry(root.Call("GET", "/api/v1/admin/tenants", nil).Want(200).List(), "id", c.tenant)
				nodetest.Same(t, "a contact", []any{shown["primaryEmail"], shown["contactName"]}, []any{c.primaryEmail, c.contactName})
			}
			if next := root.Service.SignUp(email); next.UserID == gone.UserID {
				t.Error("the address signs up as the person that was erased")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := *super
			root.Service = s.In(t)
			test(t, &root)
		})
	}
}

// In production a role is for who has verified the address that it is meant for, not for who signed up with it.
func TestRolesOfThePlatformTakeAVerifiedAddress(t *testing.T) {
	t.Parallel()
	server := mailtest.New(t, mailtest.Options{})
	s := nodetest.Start(t, nodetest.Database(t), node.Config{
		EventStoreURL: nodetest.EngineURL(t), Environment: "production", SuperUsers: []string{"root@example.com"}, Mail: node.MailSettings{URL: "smtp://" + server.Addr + "?from=flags@example.com"},
	}, nodetest.Log(t))
	signIn := func(email string) *nodetest.Client {
		session := s.Anonymous().Call("POST", "/auth/signin", map[string]string{"email": email, "password": nodetest.Password}).Want(200).Object()
		return &nodetest.Client{Service: s, Token: session["token"].(string)}
	}
	verified := func(email string, mail int) *nodetest.Client {
		_, token := linkTo(t, server, email, mail)
		s.Anonymous().Call("POST", "/api/v1/auth/verify-email", map[string]string{"token": token, "password": nodetest.Password}).Want(200)
		return signIn(email)
	}
	s.SignUp("root@example.com").Call("GET", usersOfPlatform, nil).Refused(403)
	signIn("root@example.com").Call("GET", usersOfPlatform, nil).Refused(403)
	root := verified("root@example.com", 1)
	root.Call("GET", usersOfPlatform, nil).Want(200)

	email := nodetest.Address()
	root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "admin"}).Want(201)
	server.Wait(t, email, 1) // the invitation
	s.SignUp(email).Call("POST", invitationsPath+"/accept", nil).Refused(404)
	unverified := signIn(email)
	unverified.Call("POST", invitationsPath+"/accept", nil).Refused(404)
	unverified.Call("GET", usersOfPlatform, nil).Refused(403)
	invited := verified(email, 2)
	unverified.Call("POST", invitationsPath+"/accept", nil).Refused(404) // with a token from before
	invited.Call("POST", invitationsPath+"/accept", nil).Want(200).Shows(map[string]any{"status": "accepted", "role": "admin"})
	invited.Call("GET", usersOfPlatform, nil).Want(200)
}

func TestListsOfThePlatform(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t), node.Config{EventStoreURL: nodetest.OwnEngineURL(t), Environment: "development", SuperUsers: []string{"root@example.com"}}, nodetest.Log(t))
	root := s.SignUp("root@example.com")
	people, tenants, invited := []any{root.UserID}, []any{root.Tenant}, []any{}
	for range 3 {
		person := s.SignUp(nodetest.Address())
		people, tenants = append(people, person.UserID), append(tenants, person.Tenant)
		tenants = append(tenants, person.NewTenant("t").Tenant)
		email := nodetest.Address()
		root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "viewer"}).Want(201)
		invited = append(invited, email)
	}
	for _, path := range []string{usersOfPlatform, usersOfPlatform + "/system", "/admin/users"} {
		checkPages(t, root, path, "userId", people)
	}
	checkPages(t, root, "/api/v1/admin/tenants", "id", tenants)
	checkPages(t, root, invitationsPath, "email", invited)
}

func TestInvitationsAreMailed(t *testing.T) {
	t.Parallel()
	server := mailtest.New(t, mailtest.Options{})
	s := nodetest.Start(t, nodetest.Database(t), node.Config{
		EventStoreURL: nodetest.EngineURL(t), Environment: "development", SuperUsers: []string{"root@example.com"}, Mail: node.MailSettings{URL: "smtp://" + server.Addr + "?from=flags@example.com"},
	}, nodetest.Log(t))
	root := s.SignUp("root@example.com")
	email := nodetest.Address()
	id := root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "admin"}).Want(201).Object()["id"].(string)
	for n := 1; n <= 2; n++ {
		if text := server.Wait(t, email, n).Text; !strings.Contains(text, s.URL) || !strings.Contains(text, "as admin") {
			t.Errorf("mail %d says %q", n, text)
		}
		if n == 1 {
			root.Call("POST", invitationsPath+"/"+id+"/resend", nil).Want(200)
		}
	}
	member := nodetest.Address()
	root.Call("POST", usersPath(root), map[string]string{"email": member, "role": "viewer"}).Want(201)
	if text := server.Wait(t, member, 1).Text; !strings.Contains(text, `"Personal workspace"`) || !strings.Contains(text, "as viewer") {
		t.Errorf("the mail says %q", text)
	}
	// However often somebody is invited, they get few mails, and whatever a tenant is called, its name is one short line.
	victim := nodetest.Address()
	for range 8 {
		pest := root.NewTenant("You have won!\n\nClaim it\u2028at\r\nhttp://example.com " + strings.Repeat("x", 150))
		pest.Call("POST", usersPath(pest), map[string]string{"email": victim, "role": "viewer"}).Want(201)
	}
	last := nodetest.Address()
	root.Call("POST", usersPath(root), map[string]string{"email": last, "role": "viewer"}).Want(201)
	s.JobsDone()
	sent := map[string]int{}
	for _, m := range server.Mails() {
		sent[m.To]++
		if m.To == victim && (!strings.HasPrefix(m.Text, `You have been invited to "You have won!\n\nClaim it\u2028at\r\nhttp://example.com `) || strings.Contains(m.Text, strings.Repeat("x", 60))) {
			t.Errorf("the mail says %q", m.Text)
		}
	}
	nodetest.Same(t, "mails", []int{sent[victim], sent[last]}, []int{5, 1})
}

// erase runs the command over the service's database.
func erase(t *testing.T, s *nodetest.Service, userID string) {
	t.Helper()
	if err := node.EraseUser(context.Background(), s.Config, s.DatabaseURL, s.Store(), userID, nodetest.Log(t)); err != nil {
		t.Fatal(err)
	}
}
