package http_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/mail/mailtest"
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

// superUsers holds the super user of each shared service, who signs up once.
var superUsers = struct {
	sync.Mutex
	by map[string]nodetest.Client // by URL
}{by: map[string]nodetest.Client{}}

// superUser returns root@example.com, a super user of the shared service.
func superUser(t *testing.T) *nodetest.Client {
	t.Helper()
	s := nodetest.Shared(t)
	superUsers.Lock()
	defer superUsers.Unlock()
	root, known := superUsers.by[s.URL]
	if !known {
		root = *s.SignUp("root@example.com")
		superUsers.by[s.URL] = root
	}
	root.Service = s
	return &root
}

// platformCases are subtests on the shared service, each as its super user root@example.com.
type platformCases map[string]func(t *testing.T, root *nodetest.Client)

func (c platformCases) run(t *testing.T) {
	t.Parallel()
	for name, test := range c {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, superUser(t))
		})
	}
}

// In production, only a person who has verified an address gets its platform role.
func TestRolesOfThePlatformTakeAVerifiedAddress(t *testing.T) {
	t.Parallel()
	server := mailtest.New(t, mailtest.Options{})
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "production",
		SuperUsers:  []string{"root@example.com"},
		Mail:        settings.Mail{URL: "smtp://" + server.Addr + "?from=flags@example.com"},
	}, nodetest.Log(t))
	signIn := func(email string) *nodetest.Client {
		session := s.Anonymous().
			Call("POST", "/auth/signin", map[string]string{"email": email, "password": nodetest.Password}).
			Want(200).
			Object()
		return &nodetest.Client{Service: s, Token: session["token"].(string)}
	}
	verified := func(email string, mail int) *nodetest.Client {
		_, token := linkTo(t, server, email, mail)
		s.Anonymous().
			Call("POST", "/api/v1/auth/verify-email", map[string]string{"token": token, "password": nodetest.Password}).
			Want(200)
		return signIn(email)
	}
	s.SignUp("root@example.com").Call("GET", usersOfPlatform, nil).Refused(403)
	signIn("root@example.com").Call("GET", usersOfPlatform, nil).Refused(403)
	root := verified("root@example.com", 1)
	root.Call("GET", usersOfPlatform, nil).Want(200)

	email := nodetest.Address()
	root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "admin"}).Want(201)
	server.Wait(t, email, 1) // the invitation
	s.SignUp(email).Call("POST", invitationsPath+"/accept", nil).Refused(403)
	unverified := signIn(email)
	unverified.Call("POST", invitationsPath+"/accept", nil).Refused(403)
	unverified.Call("GET", usersOfPlatform, nil).Refused(403)
	invited := verified(email, 2)
	unverified.Call("POST", invitationsPath+"/accept", nil).Refused(403) // with an older token
	invited.Call("POST", invitationsPath+"/accept", nil).
		Want(200).
		Shows(map[string]any{"status": "accepted", "role": "admin"})
	invited.Call("GET", usersOfPlatform, nil).Want(200)
}

func TestListsOfThePlatform(t *testing.T) { nodetest.BothEngines(t, testListsOfThePlatform) }

func testListsOfThePlatform(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t),
		settings.Config{Environment: "development", SuperUsers: []string{"root@example.com"}}, nodetest.Log(t))
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
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development",
		SuperUsers:  []string{"root@example.com"},
		Mail:        settings.Mail{URL: "smtp://" + server.Addr + "?from=flags@example.com"},
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
	if text := server.Wait(t, member, 1).Text; !strings.Contains(text, `"Personal workspace"`) ||
		!strings.Contains(text, "as viewer") {
		t.Errorf("the mail says %q", text)
	}
	// A person gets few mails, however often they are invited, and a tenant's name is one short line.
	victim := nodetest.Address()
	for range 8 {
		pest := root.NewTenant("You have won!\n\nClaim it\u2028at\r\nhttp://example.com " + strings.Repeat("x", 150))
		pest.Call("POST", usersPath(pest), map[string]string{"email": victim, "role": "viewer"}).Want(201)
	}
	last := nodetest.Address()
	root.Call("POST", usersPath(root), map[string]string{"email": last, "role": "viewer"}).Want(201)
	server.Wait(t, last, 1)
	pool, err := node.OpenPool(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s.Eventually("the mails that are too many wait", func() (wait bool) {
		err := pool.QueryRow(t.Context(), `select count(*) = 3 and bool_and(state = 'scheduled') from jobs.river_job where queue = 'mails' and finalized_at is null`).
			Scan(&wait)
		return err == nil && wait
	})
	sent := map[string]int{}
	for _, m := range server.Mails() {
		sent[m.To]++
		if m.To == victim &&
			(!strings.HasPrefix(m.Text, `You have been invited to "You have won! Claim it at … xxx`) || strings.Contains(m.Text, strings.Repeat("x", 60))) {
			t.Errorf("the mail says %q", m.Text)
		}
	}
	nodetest.Same(t, "mails", []int{sent[victim], sent[last]}, []int{5, 1})
}

// erase runs the command over the service's database, and waits until the read models show it.
func erase(t *testing.T, s *nodetest.Service, userID string) {
	t.Helper()
	if err := node.EraseUser(
		context.Background(), s.Config, s.DatabaseURL, s.Store(), userID, nodetest.Log(t),
	); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(context.Background(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	s.Eventually("the read models show that somebody is erased", func() (erased bool) {
		err := conn.QueryRow(context.Background(), `select not exists (select from read.users where id = $1 and not erased)`, userID).
			Scan(&erased)
		return err == nil && erased
	})
}

func TestRolesOfThePlatform(t *testing.T) {
	platformCases{
		"an address on the list makes a super user at sign-in": func(t *testing.T, root *nodetest.Client) {
			list := root.Call("GET", usersOfPlatform, nil).Want(200).List()
			me := entry(list, "userId", root.UserID)
			nodetest.Members(t, "a platform user", me, "userId", "email", "displayName", "role", "active", "createdAt",
				"lastAccessedAt", "tenants")
			nodetest.Same(t, "the super user", []any{me["role"], me["email"], me["active"]},
				[]any{"super_user", "root@example.com", true})
			nodetest.Members(t, "a tenant of theirs", me["tenants"].([]any)[0], "tenant_id", "tenant_name", "role")
			other := root.Service.SignUp(nodetest.Address())
			for _, path := range []string{usersOfPlatform, usersOfPlatform + "/system", "/admin/users"} {
				nodetest.Same(t, "the role of somebody else",
					entry(root.Call("GET", path, nil).Want(200).List(), "userId", other.UserID)["role"], nil)
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
				root.Call("PATCH", path, map[string]string{"role": step.role}).
					Want(200).
					Shows(map[string]any{"role": step.role, "userId": staff.UserID})
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
			session := other.Service.Anonymous().
				Call("POST", "/auth/signin", map[string]string{"email": email, "password": nodetest.Password}).
				Want(200).
				Object()
			refresh := func() *nodetest.Answer {
				return other.Service.Anonymous().
					Call("POST", "/api/v1/auth/refresh", map[string]any{"refreshToken": session["refreshToken"]})
			}
			root.Call("PATCH", path+"/deactivate", nil).Want(200).Shows(map[string]any{"active": false})
			root.Call("PATCH", path+"/deactivate", nil).Want(200).Shows(map[string]any{"active": false})
			other.Evaluate("k", `{}`).Refused(403)
			refresh().Refused(401)
			refresh().Refused(401)
			other.Call("GET", "/api/v1/tenants", nil).Refused(403)
			other.Service.Anonymous().
				Call("POST", "/auth/signin", map[string]string{"email": email, "password": nodetest.Password}).
				Refused(403)
			other.Service.Anonymous().Call("POST", "/api/v1/auth/login", map[string]string{"idToken": other.Token}).Refused(403)
			second.Service.Eventually("the other node refuses", func() bool { return second.Evaluate("k", `{}`).Status == 403 })
			nodetest.Same(t, "they are not active",
				entry(root.Call("GET", usersOfPlatform, nil).List(), "userId", other.UserID)["active"], false)
			root.Call("PATCH", path+"/reactivate", nil).Want(200).Shows(map[string]any{"active": true})
			other.Evaluate("k", `{}`).Refused(401)
			refresh().Refused(401)
			account{email: email}.signIn(other)
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
			second.Token = account{email: second.Email}.signIn(second).token
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
			nodetest.Members(t, "a tenant", found, "id", "name", "primaryEmail", "contactName", "isSandbox", "subscription",
				"createdAt", "usage", "active")
			usage := found["usage"].(map[string]any)
			nodetest.Same(t, "the tenant", []any{found["active"], usage["flags"], usage["users"]}, []any{true, 2, 2})
			nodetest.Same(t, "one that was deleted", entry(list, "id", gone.Tenant)["active"], false)
		},
	}.run(t)
}
