package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/mail/mailtest"
	"flagledger/events"
	"flagledger/migrations/pgtest"
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
	s := serviceWith(t, pgtest.URL(t), config{
		EventStoreURL: engineURL(t), Environment: "development", SuperUsers: []string{"Root@example.com", "second@example.com"},
	}, testLog(t))
	super := s.signUp("root@example.com")
	for name, test := range map[string]func(t *testing.T, root *client){
		"an address on the list makes a super user at sign-in": func(t *testing.T, root *client) {
			list := root.call("GET", usersOfPlatform, nil).want(200).list()
			me := entry(list, "userId", root.userID)
			members(t, "a platform user", me, "userId", "email", "displayName", "role", "active", "createdAt", "lastAccessedAt", "tenants")
			same(t, "the super user", []any{me["role"], me["email"], me["active"]}, []any{"super_user", "root@example.com", true})
			members(t, "a tenant of his", me["tenants"].([]any)[0], "tenant_id", "tenant_name", "role")
			other := root.s.signUp(address())
			for _, path := range []string{usersOfPlatform, usersOfPlatform + "/system", "/admin/users"} {
				same(t, "the role of somebody else", entry(root.call("GET", path, nil).want(200).list(), "userId", other.userID)["role"], nil)
				other.call("GET", path, nil).refused(403)
			}
			other.call("GET", "/api/v1/admin/tenants", nil).refused(403)
		},
		"each role may do what it may": func(_ *testing.T, root *client) {
			staff := root.s.signUp(address())
			path := usersOfPlatform + "/" + staff.userID + "/role"
			for _, step := range []struct {
				role                   string
				users, system, tenants int
			}{{"viewer", 403, 403, 200}, {"admin", 200, 403, 200}} {
				root.call("PATCH", path, map[string]string{"role": step.role}).want(200).shows(map[string]any{"role": step.role, "userId": staff.userID})
				staff.call("GET", usersOfPlatform, nil).want(step.users)
				staff.call("GET", usersOfPlatform+"/system", nil).want(step.system)
				staff.call("GET", "/api/v1/admin/tenants", nil).want(step.tenants)
				staff.call("PATCH", path, `{"role":"super_user"}`).refused(403)
				staff.call("PATCH", usersOfPlatform+"/"+root.userID+"/deactivate", nil).refused(403)
				staff.call("POST", invitationsPath, `{"email":"x@example.com","role":"viewer"}`).refused(403)
				staff.call("GET", invitationsPath, nil).refused(403)
			}
			root.call("PATCH", path, `{"role":null}`).want(200).shows(map[string]any{"role": nil})
			staff.call("GET", "/api/v1/admin/tenants", nil).refused(403)
			root.call("PATCH", path, `{"role":"super_user"}`).refused(422, "role")
			root.call("PATCH", path, `{"role":"owner"}`).refused(422, "role")
			root.call("PATCH", path, `{"role":""}`).refused(422, "role")
			root.call("PATCH", path, `{}`).refused(422, "role")
			root.call("PATCH", usersOfPlatform+"/none/role", `{"role":"viewer"}`).refused(404)
		},
		"a role on the platform opens no tenant": func(_ *testing.T, root *client) {
			other := root.s.signUp(address())
			other.createFlag("k", nil)
			root.call("GET", flagPath("k"), nil, "X-Tenant-ID", other.tenant).refused(403)
			root.call("GET", usersPath(other), nil, "X-Tenant-ID", "").refused(403)
		},
		"whoever is deactivated is out at once, on every node": func(t *testing.T, root *client) {
			email := address()
			other := root.s.signUp(email)
			other.enabled("k", nil)
			second := *other
			second.s = root.s.secondNode()
			second.evaluate("k", `{}`).want(200)
			path := usersOfPlatform + "/" + other.userID
			session := other.s.anonymous().call("POST", "/auth/signin", map[string]string{"email": email, "password": password}).want(200).object()
			refresh := func() *answer {
				return other.s.anonymous().call("POST", "/api/v1/auth/refresh", map[string]any{"refreshToken": session["refreshToken"]})
			}
			root.call("PATCH", path+"/deactivate", nil).want(200).shows(map[string]any{"active": false})
			root.call("PATCH", path+"/deactivate", nil).want(200).shows(map[string]any{"active": false})
			other.evaluate("k", `{}`).refused(403)
			refresh().refused(403)
			refresh().refused(403)
			other.call("GET", "/api/v1/tenants", nil).refused(403)
			other.s.anonymous().call("POST", "/auth/signin", map[string]string{"email": email, "password": password}).refused(403)
			other.s.anonymous().call("POST", "/api/v1/auth/login", map[string]string{"idToken": other.token}).refused(403)
			second.s.eventually("the other node refuses", func() bool { return second.evaluate("k", `{}`).status == 403 })
			same(t, "he is not active", entry(root.call("GET", usersOfPlatform, nil).list(), "userId", other.userID)["active"], false)
			root.call("PATCH", path+"/reactivate", nil).want(200).shows(map[string]any{"active": true})
			other.evaluate("k", `{}`).want(200)
			refresh().want(200)
			root.call("PATCH", usersOfPlatform+"/none/deactivate", nil).refused(404)
			root.call("PATCH", usersOfPlatform+"/"+root.userID+"/deactivate", nil).refused(409)
		},
		"an admin who is shut out does not stand in for the last one": func(t *testing.T, root *client) {
			me := root.newTenant("with two admins")
			second := me.join("admin")
			out := usersOfPlatform + "/" + second.userID
			root.call("PATCH", out+"/deactivate", nil).want(200)
			me.call("DELETE", usersPath(me, me.userID), nil).refused(409)
			me.call("PATCH", usersPath(me, me.userID), `{"role":"viewer"}`).refused(409)
			root.call("PATCH", out+"/reactivate", nil).want(200)
			me.call("PATCH", usersPath(me, me.userID), `{"role":"viewer"}`).want(200)
			second.call("PATCH", usersPath(me, me.userID), `{"role":"admin"}`).want(200)
			erase(t, me.s, second.userID)
			me.s.eventually("the other is out", func() bool { return second.call("GET", usersPath(me), nil).status == 403 })
			me.call("DELETE", usersPath(me, me.userID), nil).refused(409)
			me.call("DELETE", usersPath(me, second.userID), nil).want(204)
		},
		"all tenants are listed with what they use": func(t *testing.T, root *client) {
			other := root.s.signUp(address())
			other.createFlag("a", nil)
			other.createFlag("b", nil)
			other.join("viewer")
			gone := other.newTenant("gone")
			gone.call("DELETE", "/api/v1/tenants/"+gone.tenant, nil).want(204)
			list := root.call("GET", "/api/v1/admin/tenants", nil).want(200).list()
			found := entry(list, "id", other.tenant)
			members(t, "a tenant", found, "id", "name", "primaryEmail", "contactName", "isSandbox", "subscription", "createdAt", "usage", "active")
			usage := found["usage"].(map[string]any)
			same(t, "the tenant", []any{found["active"], usage["flags"], usage["users"]}, []any{true, 2, 2})
			same(t, "one that was deleted", entry(list, "id", gone.tenant)["active"], false)
		},
		"an invitation is made, seen, sent again and accepted": func(t *testing.T, root *client) {
			email := address()
			a := root.call("POST", invitationsPath, map[string]string{"email": email, "role": "admin"}).want(201)
			body := a.object()
			members(t, "an invitation", body, "id", "email", "role", "status", "invitedBy", "createdAt", "expiresAt")
			a.shows(map[string]any{"email": email, "role": "admin", "status": "pending", "invitedBy": root.userID})
			path := invitationsPath + "/" + body["id"].(string)
			same(t, "Location", a.header.Get("Location"), path)
			same(t, "the invitation", root.call("GET", path, nil).want(200).object(), body)
			same(t, "the list's", entry(root.call("GET", invitationsPath, nil).want(200).list(), "id", body["id"]), body)
			created, _ := time.Parse(time.RFC3339, body["createdAt"].(string))
			expires, _ := time.Parse(time.RFC3339, body["expiresAt"].(string))
			if life := expires.Sub(created).Round(time.Minute); life != 7*24*time.Hour {
				t.Errorf("it lives for %v, want 7 days", life)
			}
			root.call("POST", invitationsPath, map[string]string{"email": strings.ToUpper(email), "role": "viewer"}).refused(409)
			root.call("POST", path+"/resend", nil).want(200).shows(map[string]any{"success": true})
			if again := root.call("GET", path, nil).object()["expiresAt"].(string); again <= body["expiresAt"].(string) {
				t.Errorf("sent again it expires at %s", again)
			}
			invited := root.s.signUp(email)
			invited.call("GET", usersOfPlatform, nil).refused(403)
			accepted := invited.call("POST", invitationsPath+"/accept", nil).want(200).shows(map[string]any{"success": true, "status": "accepted", "role": "admin"})
			members(t, "the answer to who accepts", accepted.object(), append(slices.Collect(maps.Keys(body)), "success")...)
			invited.call("GET", usersOfPlatform, nil).want(200)
			invited.call("POST", invitationsPath+"/accept", nil).refused(404)
			root.call("GET", path, nil).want(200).shows(map[string]any{"status": "accepted"})
			root.call("DELETE", path, nil).refused(409)
			root.call("POST", path+"/resend", nil).refused(409)
		},
		"a revoked invitation cannot be accepted": func(_ *testing.T, root *client) {
			email := address()
			path := invitationsPath + "/" + root.call("POST", invitationsPath, map[string]string{"email": email, "role": "viewer"}).want(201).object()["id"].(string)
			root.call("DELETE", path, nil).want(204)
			root.call("DELETE", path, nil).want(204)
			root.call("GET", path, nil).want(200).shows(map[string]any{"status": "revoked"})
			root.call("POST", path+"/resend", nil).refused(409)
			root.s.signUp(email).call("POST", invitationsPath+"/accept", nil).refused(404)
			root.call("GET", invitationsPath+"/none", nil).refused(404)
			root.call("DELETE", invitationsPath+"/none", nil).refused(404)
		},
		"an invitation that has expired cannot be accepted, and can be sent again": func(t *testing.T, root *client) {
			email, id := address(), uuid.NewString()
			pool, err := openPool(t.Context(), root.s.databaseURL)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			if _, err := pool.Exec(t.Context(), `insert into keep.invitations values ($1, $2)`, id, email); err != nil {
				t.Fatal(err)
			}
			_, err = root.s.store().Append(t.Context(), events.InvitationStream(id), 0, []events.Event{{
				ID: uuid.New(), Metadata: events.Metadata{Time: time.Now().Add(-8 * 24 * time.Hour), Actor: events.Actor{Kind: events.UserActor, ID: root.userID}},
				Fact: events.InvitationCreated{ID: id, Role: events.PlatformViewer, ExpiresAt: time.Now().Add(-24 * time.Hour)},
			}})
			if err != nil {
				t.Fatal(err)
			}
			root.s.eventually("the invitation is there", func() bool { return root.call("GET", invitationsPath+"/"+id, nil).status == 200 })
			root.call("GET", invitationsPath+"/"+id, nil).shows(map[string]any{"status": "expired"})
			late := root.s.signUp(email)
			late.call("POST", invitationsPath+"/accept", nil).refused(404)
			root.call("POST", invitationsPath+"/"+id+"/resend", nil).want(200)
			late.call("POST", invitationsPath+"/accept", nil).want(200)
		},
		"an invitation to less takes nothing away": func(_ *testing.T, root *client) {
			email := address()
			staff := root.s.signUp(email)
			root.call("PATCH", usersOfPlatform+"/"+staff.userID+"/role", `{"role":"admin"}`).want(200)
			root.call("POST", invitationsPath, map[string]string{"email": email, "role": "viewer"}).want(201)
			staff.call("POST", invitationsPath+"/accept", nil).want(200)
			staff.call("GET", usersOfPlatform, nil).want(200)
		},
		"a role that a node which died did not give is given at the next attempt, and once it is taken away no more": func(t *testing.T, root *client) {
			email := address()
			id := root.call("POST", invitationsPath, map[string]string{"email": email, "role": "admin"}).want(201).object()["id"].(string)
			staff := root.s.signUp(email)
			_, err := root.s.store().Append(t.Context(), events.InvitationStream(id), 1, []events.Event{{
				ID: uuid.New(), Metadata: events.Metadata{Time: time.Now().UTC(), Actor: events.Actor{Kind: events.UserActor, ID: staff.userID}},
				Fact: events.InvitationAccepted{UserID: staff.userID},
			}})
			if err != nil {
				t.Fatal(err)
			}
			staff.call("GET", usersOfPlatform, nil).refused(403)
			staff.call("POST", invitationsPath+"/accept", nil).want(200).shows(map[string]any{"id": id, "status": "accepted"})
			staff.call("GET", usersOfPlatform, nil).want(200)
			root.call("PATCH", usersOfPlatform+"/"+staff.userID+"/role", `{"role":null}`).want(200)
			staff.call("POST", invitationsPath+"/accept", nil).refused(404)
			staff.call("GET", usersOfPlatform, nil).refused(403)
		},
		"what is wrong with an invitation is named": func(_ *testing.T, root *client) {
			root.call("POST", invitationsPath, `{}`).refused(422, "email", "role")
			root.call("POST", invitationsPath, `{"email":"nobody","role":"super_user"}`).refused(422, "email", "role")
			root.call("POST", invitationsPath, `{"email":"a@example.com","role":"viewer","status":"accepted"}`).refused(422, "status")
			root.call("POST", "/admin/invitations", `{"email":"nobody","role":"admin"}`).refused(422, "email", "role")
		},
		"the old paths have other words for the roles": func(t *testing.T, root *client) {
			staff := root.s.signUp(address())
			a := root.call("PATCH", "/admin/users/"+staff.userID+"/role", `{"role":"vendor_support"}`).want(200).shows(map[string]any{"role": "vendor_support"})
			if a.header.Get("Deprecation") == "" || !strings.Contains(a.header.Get("Link"), usersOfPlatform+"/"+staff.userID+"/role") {
				t.Errorf("the headers are %v", a.header)
			}
			same(t, "the role", entry(root.call("GET", usersOfPlatform, nil).list(), "userId", staff.userID)["role"], "admin")
			same(t, "the role in old words", entry(root.call("GET", "/admin/users", nil).list(), "userId", staff.userID)["role"], "vendor_support")
			root.call("PATCH", "/admin/users/"+staff.userID+"/role", `{"role":"admin"}`).refused(422, "role")
			root.call("PATCH", "/admin/users/"+staff.userID+"/role", `{"role":"super_admin"}`).refused(422, "role")
			email := address()
			root.call("POST", "/admin/invitations", map[string]string{"email": email, "role": "super_admin"}).refused(422, "role")
			root.call("POST", "/admin/invitations", map[string]string{"email": email, "role": "vendor_support"}).want(201).shows(map[string]any{"role": "vendor_support"})
			second := root.s.signUp("second@example.com")
			second.call("GET", usersOfPlatform+"/system", nil).want(200)
		},
		"the old invitation does what stands for it today": func(t *testing.T, root *client) {
			email, colleague := address(), address()
			root.call("POST", "/admin/invite", map[string]string{"email": email, "role": "admin"}).want(200).shows(map[string]any{"success": true})
			same(t, "the invitation", entry(root.call("GET", invitationsPath, nil).list(), "email", email)["role"], "admin")
			root.call("POST", "/admin/invite", map[string]string{"email": colleague, "role": "user"}).want(200)
			same(t, "the member", entry(root.call("GET", usersPath(root), nil).list(), "email", colleague)["role"], "viewer")
			owner := root.s.signUp(address())
			owner.call("POST", "/admin/invite", map[string]string{"email": email, "role": "admin"}).refused(403)
			owner.call("POST", "/admin/invite", map[string]string{"email": email, "role": "user"}).want(200)
			owner.join("developer").call("POST", "/admin/invite", map[string]string{"email": email, "role": "user"}).refused(403)
			owner.call("POST", "/admin/invite", map[string]string{"email": "nobody", "role": "owner"}).refused(422, "email", "role")
		},
		"whoever signed up and never began to use the service is erased": func(t *testing.T, root *client) {
			session := root.outside()
			known := func() (rows int) {
				pool, err := openPool(t.Context(), root.s.databaseURL)
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
			same(t, "what is kept of him", known(), 3)
			erase(t, root.s, session.UserID)
			erase(t, root.s, session.UserID)
			same(t, "what is kept of him", known(), 0)
			login := map[string]string{"idToken": session.IDToken}
			root.s.eventually("his token is refused", func() bool { return root.s.anonymous().call("POST", "/api/v1/auth/login", login).status == 403 })
			err := eraseUser(t.Context(), root.s.config, root.s.databaseURL, root.s.store(), uuid.NewString(), testLog(t))
			if commands.KindOf(err) != commands.NotFound {
				t.Errorf("nobody is erased: %v", err)
			}
		},
		"a person is erased, and the history stays": func(t *testing.T, root *client) {
			email := address()
			gone := root.s.signUp(email)
			root.call("POST", usersPath(root), map[string]string{"email": email, "role": "developer"}).want(201)
			gone.tenant = root.tenant
			key := "by-" + strings.ToLower(uuid.NewString())
			gone.createFlag(key, nil)
			contact := func(who *client, tenant string, body map[string]string) string {
				who.call("PATCH", "/api/v1/tenants/"+tenant, body, "X-Tenant-ID", tenant).want(200)
				return tenant
			}
			unnamed := contact(gone, gone.newTenant("unnamed").tenant, map[string]string{"contactName": "Ada Lovelace"})
			named := contact(gone, gone.newTenant("named").tenant, map[string]string{"contactName": "Ada Lovelace", "primaryEmail": strings.ToUpper(email)})
			shared := contact(gone, gone.newTenant("shared").tenant, map[string]string{"contactName": "Ada Lovelace", "primaryEmail": "ops@example.com"})
			others := contact(root, root.newTenant("others").tenant, map[string]string{"contactName": "Ada Lovelace", "primaryEmail": email})
			untouched := contact(root, root.newTenant("untouched").tenant, map[string]string{"contactName": "Rita Root", "primaryEmail": "root@example.com"})
			erase(t, root.s, gone.userID)
			erase(t, root.s, gone.userID)
			root.s.eventually("his token is refused", func() bool { return gone.call("GET", "/api/v1/tenants", nil).status == 403 })
			history := root.call("GET", flagPath(key, "/history"), nil).want(200).list()
			same(t, "who made the flag", []any{history[0]["userId"], history[0]["userName"]}, []any{gone.userID, "erased user"})
			member := entry(root.call("GET", usersPath(root), nil).want(200).list(), "userId", gone.userID)
			same(t, "the member", []any{member["email"], member["displayName"]}, []any{"", "erased user"})
			user := entry(root.call("GET", usersOfPlatform, nil).want(200).list(), "userId", gone.userID)
			same(t, "the user", []any{user["email"], user["displayName"], user["active"]}, []any{"", "erased user", false})
			root.s.anonymous().call("POST", "/auth/signin", map[string]string{"email": email, "password": password}).refused(401)
			root.call("PATCH", usersOfPlatform+"/"+gone.userID+"/reactivate", nil).refused(404)
			for _, c := range []struct{ tenant, primaryEmail, contactName string }{
				{unnamed, "", ""}, {named, "", ""}, {shared, "ops@example.com", ""}, {others, "root@example.com", ""}, {untouched, "root@example.com", "Rita Root"},
			} {
				shown := entry(root.call("GET", "/api/v1/admin/tenants", nil).want(200).list(), "id", c.tenant)
				same(t, "a contact", []any{shown["primaryEmail"], shown["contactName"]}, []any{c.primaryEmail, c.contactName})
			}
			if again := root.s.signUp(email); again.userID == gone.userID {
				t.Error("the address signs up as the person that was erased")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := *super
			root.s = s.in(t)
			test(t, &root)
		})
	}
}

// In production a role is for who has verified the address that it is meant for, not for who signed up with it.
func TestRolesOfThePlatformTakeAVerifiedAddress(t *testing.T) {
	t.Parallel()
	server := mailtest.New(t, mailtest.Options{})
	s := serviceWith(t, pgtest.URL(t), config{
		EventStoreURL: engineURL(t), Environment: "production", SuperUsers: []string{"root@example.com"}, Mail: mailSettings{URL: "smtp://" + server.Addr + "?from=flags@example.com"},
	}, testLog(t))
	signIn := func(email string) *client {
		session := s.anonymous().call("POST", "/auth/signin", map[string]string{"email": email, "password": password}).want(200).object()
		return &client{s: s, token: session["token"].(string)}
	}
	verified := func(email string, mail int) *client {
		_, token := linkTo(t, server, email, mail)
		s.anonymous().call("POST", "/api/v1/auth/verify-email", map[string]string{"token": token, "password": password}).want(200)
		return signIn(email)
	}
	s.signUp("root@example.com").call("GET", usersOfPlatform, nil).refused(403)
	signIn("root@example.com").call("GET", usersOfPlatform, nil).refused(403)
	root := verified("root@example.com", 1)
	root.call("GET", usersOfPlatform, nil).want(200)

	email := address()
	root.call("POST", invitationsPath, map[string]string{"email": email, "role": "admin"}).want(201)
	server.Wait(t, email, 1) // the invitation
	s.signUp(email).call("POST", invitationsPath+"/accept", nil).refused(404)
	unverified := signIn(email)
	unverified.call("POST", invitationsPath+"/accept", nil).refused(404)
	unverified.call("GET", usersOfPlatform, nil).refused(403)
	invited := verified(email, 2)
	unverified.call("POST", invitationsPath+"/accept", nil).refused(404) // with a token from before
	invited.call("POST", invitationsPath+"/accept", nil).want(200).shows(map[string]any{"status": "accepted", "role": "admin"})
	invited.call("GET", usersOfPlatform, nil).want(200)
}

func TestListsOfThePlatform(t *testing.T) {
	t.Parallel()
	s := serviceOfRoot(t)
	root := s.signUp("root@example.com")
	people, tenants, invited := []any{root.userID}, []any{root.tenant}, []any{}
	for range 3 {
		person := s.signUp(address())
		people, tenants = append(people, person.userID), append(tenants, person.tenant)
		tenants = append(tenants, person.newTenant("t").tenant)
		email := address()
		root.call("POST", invitationsPath, map[string]string{"email": email, "role": "viewer"}).want(201)
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
	s := serviceWith(t, pgtest.URL(t), config{
		EventStoreURL: engineURL(t), Environment: "development", SuperUsers: []string{"root@example.com"}, Mail: mailSettings{URL: "smtp://" + server.Addr + "?from=flags@example.com"},
	}, testLog(t))
	root := s.signUp("root@example.com")
	email := address()
	id := root.call("POST", invitationsPath, map[string]string{"email": email, "role": "admin"}).want(201).object()["id"].(string)
	for n := 1; n <= 2; n++ {
		if text := server.Wait(t, email, n).Text; !strings.Contains(text, s.url) || !strings.Contains(text, "as admin") {
			t.Errorf("mail %d says %q", n, text)
		}
		if n == 1 {
			root.call("POST", invitationsPath+"/"+id+"/resend", nil).want(200)
		}
	}
	member := address()
	root.call("POST", usersPath(root), map[string]string{"email": member, "role": "viewer"}).want(201)
	if text := server.Wait(t, member, 1).Text; !strings.Contains(text, `"Personal workspace"`) || !strings.Contains(text, "as viewer") {
		t.Errorf("the mail says %q", text)
	}
	// However often somebody is invited, he gets few mails, and whatever the tenant is called, its name is one short line.
	pest := root.newTenant("You have won!\n\nClaim it\u2028at\r\nhttp://example.com " + strings.Repeat("x", 150))
	victim := address()
	for range 8 {
		member := pest.call("POST", usersPath(pest), map[string]string{"email": victim, "role": "viewer"}).want(201).object()["userId"].(string)
		pest.call("DELETE", usersPath(pest, member), nil).want(204)
	}
	last := address()
	root.call("POST", usersPath(root), map[string]string{"email": last, "role": "viewer"}).want(201)
	s.node.stop() // which waits for mails
	sent := map[string]int{}
	for _, m := range server.Mails() {
		sent[m.To]++
		if m.To == victim && (!strings.HasPrefix(m.Text, `You have been invited to "You have won!\n\nClaim it\u2028at\r\nhttp://example.com `) || strings.Contains(m.Text, strings.Repeat("x", 60))) {
			t.Errorf("the mail says %q", m.Text)
		}
	}
	same(t, "mails", []int{sent[victim], sent[last]}, []int{5, 1})
}

// erase runs the command over the service's database.
func erase(t *testing.T, s *service, userID string) {
	t.Helper()
	if err := eraseUser(context.Background(), s.config, s.databaseURL, s.store(), userID, testLog(t)); err != nil {
		t.Fatal(err)
	}
}
