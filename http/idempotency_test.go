package http_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// keyed makes a call with an Idempotency-Key.
func keyed(c *nodetest.Client, key, method, path string, body any, headers ...string) *nodetest.Answer {
	c.Service.T.Helper()
	return c.Call(method, path, body, append(headers, "Idempotency-Key", key)...)
}

// replays checks that the answer is the one that a call had before.
func replays(a *nodetest.Answer, first *nodetest.Answer) *nodetest.Answer {
	a.T.Helper()
	if a.Header.Get("Idempotent-Replayed") != "true" {
		a.T.Errorf("%s: not marked as replayed", a.Call)
	}
	return isSameAs(a, first)
}

// accessed is what moves on while somebody uses the service.
var accessed = regexp.MustCompile(`"lastAccessedAt":("[^"]*"|null)`)

// isSameAs checks that an answer is as another one.
func isSameAs(a *nodetest.Answer, first *nodetest.Answer) *nodetest.Answer {
	a.T.Helper()
	type shown struct {
		status  int
		body    string
		headers [5]string
	}
	show := func(a *nodetest.Answer) shown {
		s := shown{status: a.Status, body: accessed.ReplaceAllString(string(a.Body), "")}
		for i, name := range []string{"Content-Type", "Location", "ETag", "Preference-Applied", "Link"} {
			s.headers[i] = strings.Join(a.Header.Values(name), ", ")
		}
		return s
	}
	if got, want := show(a), show(first); got != want {
		a.T.Errorf("%s: answered with\n%+v, the first time with\n%+v", a.Call, got, want)
	}
	return a
}

// notReplayed checks that the call was carried out.
func notReplayed(a *nodetest.Answer) *nodetest.Answer {
	a.T.Helper()
	if a.Header.Get("Idempotent-Replayed") != "" {
		a.T.Errorf("%s: replayed", a.Call)
	}
	return a
}

// sql changes the database of the service.
func sql(s *nodetest.Service, statement string, arguments ...any) {
	s.T.Helper()
	conn, err := pgx.Connect(s.T.Context(), s.DatabaseURL)
	if err != nil {
		s.T.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(s.T.Context())) }()
	if _, err := conn.Exec(s.T.Context(), statement, arguments...); err != nil {
		s.T.Fatal(err)
	}
}

// forgetAnswers makes it as if a node had died each time between what it did and its answer, half a minute ago.
func forgetAnswers(s *nodetest.Service) {
	s.T.Helper()
	sql(s, `update keep.idempotency set answer = null, claimed_until = now() - interval '1 second'`)
}

// facts counts the events of a stream.
func facts(t testing.TB, store events.Store, stream string) (n int) {
	t.Helper()
	for _, err := range store.Read(t.Context(), stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// act is a call that changes something.
type act struct {
	method, path, body string
	status             int
	stream             func(*nodetest.Answer) string // that the fact goes to
}

// acts are calls that change something, each in a tenant of its own that setting it up makes ready.
var acts = map[string]func(me *nodetest.Client) act{
	"create a flag": func(me *nodetest.Client) act {
		return act{"POST", "/api/v1/flags", `{"key":"k","type":"string","flag_variations":[{"name":"a","value":"A"}]}`, 201, flagStream(me)}
	},
	"create a flag under an old path": func(me *nodetest.Client) act {
		return act{"POST", "/api/flags", `{"key":"k","type":"boolean"}`, 201, flagStream(me)}
	},
	"create a flag in a project": func(me *nodetest.Client) act {
		id, _ := me.CreateProject("p")
		return act{"POST", "/api/v1/flags/projects/" + id + "/flags", `{"key":"k","type":"boolean"}`, 201, flagStream(me)}
	},
	"update a flag": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		return act{"PATCH", nodetest.FlagPath("k"), `{"name":"N","status":"inactive"}`, 200, flagStream(me)}
	},
	"enable a flag": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		return act{"POST", nodetest.FlagPath("k", "/enable"), ``, 200, flagStream(me)}
	},
	"disable a flag": func(me *nodetest.Client) act {
		me.CreateEnabledFlag("k", nil)
		return act{"POST", nodetest.FlagPath("k", "/disable"), ``, 200, flagStream(me)}
	},
	"delete a flag": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		return act{"DELETE", nodetest.FlagPath("k"), ``, 204, flagStream(me)}
	},
	"add a variation": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		return act{"POST", nodetest.FlagPath("k", "/variations"), `{"name":"v","value":true}`, 201, flagStream(me)}
	},
	"update a variation": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		v := me.AddVariation("k", `{"name":"v","value":true}`).Object()["id"].(string)
		return act{"PATCH", nodetest.FlagPath("k", "/variations/", v), `{"weight":5}`, 200, flagStream(me)}
	},
	"remove a variation": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		v := me.AddVariation("k", `{"name":"v","value":true}`).Object()["id"].(string)
		return act{"DELETE", nodetest.FlagPath("k", "/variations/", v), ``, 204, flagStream(me)}
	},
	"set rules": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		return act{"PUT", nodetest.FlagPath("k", "/rules"), `{"rules":[{"conditions":[],"serve":{"value":true}}]}`, 200, flagStream(me)}
	},
	"set a fallthrough": func(me *nodetest.Client) act {
		me.CreateFlag("k", nil)
		return act{"PUT", nodetest.FlagPath("k", "/fallthrough"), `{"serve":{"value":true}}`, 200, flagStream(me)}
	},
	"create a project": func(*nodetest.Client) act {
		return act{"POST", "/api/v1/projects", `{"name":"p"}`, 201, func(a *nodetest.Answer) string { return events.ProjectStream(a.Object()["id"].(string)) }}
	},
	"update a project": func(me *nodetest.Client) act {
		id, path := me.CreateProject("p")
		return act{"PATCH", path, `{"color":"#000000"}`, 200, func(*nodetest.Answer) string { return events.ProjectStream(id) }}
	},
	"delete a project": func(me *nodetest.Client) act {
		id, path := me.CreateProject("p")
		return act{"DELETE", path, ``, 204, func(*nodetest.Answer) string { return events.ProjectStream(id) }}
	},
	"create a tenant": func(*nodetest.Client) act {
		return act{"POST", "/api/v1/tenants", `{"name":"t","contactName":"c"}`, 201, func(a *nodetest.Answer) string { return events.TenantStream(a.Object()["id"].(string)) }}
	},
	"update a tenant": func(me *nodetest.Client) act {
		return act{"PATCH", "/api/v1/tenants/" + me.Tenant, `{"name":"t","contactName":"c"}`, 200, tenantStream(me)}
	},
	"add an environment": func(me *nodetest.Client) act {
		return act{"POST", "/api/v1/tenants/" + me.Tenant + "/environments", `{"environment":"qa"}`, 201, tenantStream(me)}
	},
	"delete an environment": func(me *nodetest.Client) act {
		return act{"DELETE", "/api/v1/tenants/" + me.Tenant + "/environments/development", ``, 204, tenantStream(me)}
	},
	"add a member": func(me *nodetest.Client) act {
		member := me.Service.SignUp(nodetest.Address())
		email := member.Call("GET", "/api/v1/tenants", nil).List()[0]["primaryEmail"]
		return act{"POST", "/api/v1/tenants/" + me.Tenant + "/users", fmt.Sprintf(`{"email":%q,"role":"viewer"}`, email), 201, tenantStream(me)}
	},
	"add a pending member": func(me *nodetest.Client) act {
		return act{"POST", "/api/v1/tenants/" + me.Tenant + "/users", fmt.Sprintf(`{"email":%q,"role":"viewer"}`, nodetest.Address()), 201, tenantStream(me)}
	},
	"change a role": func(me *nodetest.Client) act {
		return act{"PATCH", "/api/v1/tenants/" + me.Tenant + "/users/" + me.Join("viewer").UserID, `{"role":"admin"}`, 200, tenantStream(me)}
	},
	"delete an OAuth client": func(me *nodetest.Client) act {
		id, _ := me.OAuthClient("c", "flags:read")
		return act{"DELETE", "/api/v1/oauth/clients/" + id, ``, 204, tenantStream(me)}
	},
	"create an invitation": func(*nodetest.Client) act {
		return act{"POST", invitationsPath, fmt.Sprintf(`{"email":%q,"role":"viewer"}`, nodetest.Address()), 201, func(a *nodetest.Answer) string { return events.InvitationStream(a.Object()["id"].(string)) }}
	},
	"revoke an invitation": func(me *nodetest.Client) act {
		id := invitation(me)
		return act{"DELETE", invitationsPath + "/" + id, ``, 204, func(*nodetest.Answer) string { return events.InvitationStream(id) }}
	},
	"send an invitation again": func(me *nodetest.Client) act {
		id := invitation(me)
		return act{"POST", invitationsPath + "/" + id + "/resend", ``, 200, func(*nodetest.Answer) string { return events.InvitationStream(id) }}
	},
	"deactivate a person": func(me *nodetest.Client) act {
		id := me.Service.SignUp(nodetest.Address()).UserID
		return act{"PATCH", usersOfPlatform + "/" + id + "/deactivate", ``, 200, func(*nodetest.Answer) string { return events.UserStream(id) }}
	},
	"give a platform role": func(me *nodetest.Client) act {
		id := me.Service.SignUp(nodetest.Address()).UserID
		return act{"PATCH", usersOfPlatform + "/" + id + "/role", `{"role":"viewer"}`, 200, func(*nodetest.Answer) string { return events.UserStream(id) }}
	},
	"remove a member": func(me *nodetest.Client) act {
		return act{"DELETE", "/api/v1/tenants/" + me.Tenant + "/users/" + me.Join("viewer").UserID, ``, 204, tenantStream(me)}
	},
}

func invitation(c *nodetest.Client) (id string) {
	c.Service.T.Helper()
	return c.Call("POST", invitationsPath, map[string]string{"email": nodetest.Address(), "role": "viewer"}).Want(201).Object()["id"].(string)
}

func flagStream(c *nodetest.Client) func(*nodetest.Answer) string {
	return func(*nodetest.Answer) string { return events.FlagStream(c.Tenant, "k") }
}

func userStream(c *nodetest.Client) func(*nodetest.Answer) string {
	return func(*nodetest.Answer) string { return events.UserStream(c.UserID) }
}

func tenantStream(c *nodetest.Client) func(*nodetest.Answer) string {
	return func(*nodetest.Answer) string { return events.TenantStream(c.Tenant) }
}

func (c act) sent() any {
	if c.body == "" {
		return nil
	}
	return c.body
}

// serviceOfRoot is a service on which root@example.com is a super user.
func serviceOfRoot(t *testing.T) *nodetest.Service {
	t.Helper()
	return nodetest.Start(t, nodetest.Database(t), node.Config{EventStoreURL: nodetest.EngineURL(t), Environment: "development", SuperUsers: []string{"root@example.com"}}, nodetest.Log(t))
}

func TestAChangeIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := serviceOfRoot(t)
	owner := s.SignUp("root@example.com")
	ready := map[string]act{}
	clients := map[string]*nodetest.Client{}
	firsts := map[string]*nodetest.Answer{}
	done := map[string]int{}
	store := s.Store()
	for name, setUp := range acts {
		me := owner.NewTenant(name)
		c := setUp(me)
		clients[name], ready[name] = me, c
		firsts[name] = notReplayed(keyed(me, "key", c.method, c.path, c.sent()).Want(c.status))
		done[name] = facts(t, store, c.stream(firsts[name]))
		if done[name] == 0 {
			t.Errorf("%s: no facts", name)
		}
	}
	check := func(t *testing.T, name string) {
		t.Helper()
		if n := facts(t, store, ready[name].stream(firsts[name])); n != done[name] {
			t.Errorf("there are %d facts, want %d", n, done[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ready)) {
		t.Run(name, func(t *testing.T) {
			c, me, first := ready[name], clients[name], firsts[name]
			me.Service = s.In(t)
			for range 2 {
				replays(keyed(me, "key", c.method, c.path, c.sent()), first)
			}
			keyed(me, "key", c.method, c.path+"?x=y", c.sent()).Refused(422, "Idempotency-Key")
			keyed(me, "key", c.method, c.path, c.sent(), "X-Environment", "development").Refused(422, "Idempotency-Key")
			if c.body != "" {
				keyed(me, "key", c.method, c.path, c.body+" ").Refused(422, "Idempotency-Key")
			}
			check(t, name)
		})
	}
	forgetAnswers(s)
	for _, name := range slices.Sorted(maps.Keys(ready)) {
		t.Run(name+", whose node died", func(t *testing.T) {
			c, me, first := ready[name], clients[name], firsts[name]
			me.Service = s.In(t)
			if c.body != "" {
				keyed(me, "key", c.method, c.path, c.body+" ").Refused(422, "Idempotency-Key")
			}
			notReplayed(isSameAs(keyed(me, "key", c.method, c.path, c.sent()), first))
			check(t, name)
			replays(keyed(me, "key", c.method, c.path, c.sent()), first)
			check(t, name)
		})
	}
}

// What others did meanwhile does not show in the answer to a request that is made again.
func TestMadeAgainAfterOthers(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp("me@example.com")
	first := keyed(me, "1", "POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).Want(201)
	second := keyed(me, "2", "PATCH", nodetest.FlagPath("k"), `{"name":"second"}`, "If-Match", `"1"`).Want(200)
	me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
	me.CreateFlag("k", map[string]any{"type": "string"})
	forgetAnswers(s)
	notReplayed(isSameAs(keyed(me, "1", "POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`), first))
	notReplayed(isSameAs(keyed(me, "2", "PATCH", nodetest.FlagPath("k"), `{"name":"second"}`, "If-Match", `"1"`), second))
	me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"type": "string", "version": 4})
	// With another key it is another request.
	keyed(me, "3", "PATCH", nodetest.FlagPath("k"), `{"name":"second"}`, "If-Match", `"1"`).Refused(412)
}

// An invitation is found again by who accepted it with this request.
func TestAcceptedOnce(t *testing.T) {
	t.Parallel()
	s := serviceOfRoot(t)
	root := s.SignUp("root@example.com")
	email := nodetest.Address()
	path := invitationsPath + "/" + root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "viewer"}).Want(201).Object()["id"].(string)
	guest := s.SignUp(email)
	first := keyed(guest, "k", "POST", invitationsPath+"/accept", nil).Want(200)
	forgetAnswers(s)
	notReplayed(isSameAs(keyed(guest, "k", "POST", invitationsPath+"/accept", nil), first))
	replays(keyed(guest, "k", "POST", invitationsPath+"/accept", nil), first)
	keyed(guest, "l", "POST", invitationsPath+"/accept", nil).Refused(404)
	root.Call("GET", path, nil).Want(200).Shows(map[string]any{"status": "accepted"})
}

// What takes the caller's own access is found again as well by a request whose answer was lost, and never done by one that did nothing.
func TestTheLastThingThatSomebodyMayDo(t *testing.T) {
	t.Parallel()
	setUps := map[string]func(me *nodetest.Client) act{
		"leave a tenant": func(me *nodetest.Client) act {
			me.Join("admin")
			return act{"DELETE", usersPath(me, me.UserID), ``, 204, tenantStream(me)}
		},
		"become a viewer": func(me *nodetest.Client) act {
			me.Join("admin")
			return act{"PATCH", usersPath(me, me.UserID), `{"role":"viewer"}`, 200, tenantStream(me)}
		},
		"become a viewer under the old path": func(me *nodetest.Client) act {
			me.Join("admin")
			return act{"PATCH", "/api/tenants/" + me.Tenant + "/users/" + me.UserID, `{"role":"viewer"}`, 200, tenantStream(me)}
		},
		"delete a tenant": func(me *nodetest.Client) act {
			return act{"DELETE", "/api/v1/tenants/" + me.Tenant, ``, 204, tenantStream(me)}
		},
		"become nobody": func(me *nodetest.Client) act {
			return act{"PATCH", usersOfPlatform + "/" + me.UserID + "/role", `{"role":null}`, 200, userStream(me)}
		},
		"become less under the old path": func(me *nodetest.Client) act {
			return act{"PATCH", "/admin/users/" + me.UserID + "/role", `{"role":"vendor_support"}`, 200, userStream(me)}
		},
		"log out": func(me *nodetest.Client) act {
			return act{"POST", "/api/v1/auth/logout", ``, 200, userStream(me)}
		},
	}
	var supers []string
	for range setUps {
		supers = append(supers, nodetest.Address())
	}
	s := nodetest.Start(t, nodetest.Database(t), node.Config{EventStoreURL: nodetest.EngineURL(t), Environment: "development", SuperUsers: supers}, nodetest.Log(t))
	store := s.Store()
	for name, setUp := range setUps {
		email := supers[0]
		supers = supers[1:]
		t.Run(name, func(t *testing.T) {
			me := s.In(t).SignUp(email)
			c := setUp(me)
			if s.Config.EventStoreURL == "" {
				sql(s, `alter table events.head rename to away`)
				if failed := keyed(me, "failed", c.method, c.path, c.sent()); failed.Status < 500 {
					t.Errorf("without the log it is answered with %d", failed.Status)
				}
				sql(s, `alter table events.away rename to head`)
			}
			first := keyed(me, "key", c.method, c.path, c.sent()).Want(c.status)
			done := facts(t, store, c.stream(first))
			replays(keyed(me, "key", c.method, c.path, c.sent()), first)
			forgetAnswers(s)
			notReplayed(isSameAs(keyed(me, "key", c.method, c.path, c.sent()), first))
			replays(keyed(me, "key", c.method, c.path, c.sent()), first)
			refusal := me.Call(c.method, c.path, c.sent()).Status
			for range 2 {
				for _, key := range []string{"other", "failed"} {
					keyed(me, key, c.method, c.path, c.sent()).Refused(refusal)
				}
				keyed(me, "key", c.method, c.path+"?x=y", c.sent()).Refused(refusal)
			}
			if refusal != 401 && refusal != 403 {
				t.Errorf("another request is answered with %d", refusal)
			}
			nodetest.Same(t, "facts", facts(t, store, c.stream(first)), done)
		})
	}
}

// An invitation that was made, or only noted, by a node that died is made again, whatever has become of it since.
func TestInvitedOnce(t *testing.T) {
	t.Parallel()
	s := serviceOfRoot(t)
	root := s.SignUp("root@example.com")
	invite := func(s *nodetest.Service, key, email string) *nodetest.Answer {
		me := *root
		me.Service = s
		return keyed(&me, key, "POST", invitationsPath, map[string]string{"email": email, "role": "viewer"})
	}
	for name, meanwhile := range map[string]func(email, path string){
		"nothing":  func(_, _ string) {},
		"accepted": func(email, _ string) { s.SignUp(email).Call("POST", invitationsPath+"/accept", nil).Want(200) },
		"revoked":  func(_, path string) { root.Call("DELETE", path, nil).Want(204) },
		"resent":   func(_, path string) { root.Call("POST", path+"/resend", nil).Want(200) },
		"invited again": func(email, path string) {
			root.Call("DELETE", path, nil).Want(204)
			invite(s, "another", email).Want(201)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.In(t)
			email := nodetest.Address()
			first := invite(s, "key", email).Want(201)
			path := first.Header.Get("Location")
			meanwhile(email, path)
			before := root.Call("GET", path, nil).Want(200).Object()
			forgetAnswers(s)
			notReplayed(isSameAs(invite(s, "key", email), first))
			nodetest.Same(t, "the invitation", root.Call("GET", path, nil).Want(200).Object(), before)
			sql(s, `delete from keep.idempotency`)
		})
	}
	t.Run("only noted", func(t *testing.T) {
		s := s.In(t)
		if s.Config.EventStoreURL != "" {
			t.Skip("it takes the log of the Postgres engine away")
		}
		email := nodetest.Address()
		sql(s, `alter table events.head rename to away`)
		failed := invite(s, "key", email)
		sql(s, `alter table events.away rename to head`)
		if failed.Status < 500 {
			t.Fatalf("%s: %d", failed.Call, failed.Status)
		}
		made := notReplayed(invite(s, "key", email).Want(201))
		replays(invite(s, "key", email), made)
		root.Call("GET", made.Header.Get("Location"), nil).Want(200).Shows(map[string]any{"email": email, "status": "pending"})
	})
}

// A secret that was lost with its answer is replaced.
func TestTheSecretOfAClientMadeOnce(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp("me@example.com")
	key, body := uuid.NewString(), `{"name":"c","scopes":["flags:read"]}`
	works := func(a *nodetest.Answer) *nodetest.Answer {
		t.Helper()
		o := a.Object()
		me.Trade("grant_type", "client_credentials", "client_id", o["clientId"].(string), "client_secret", o["clientSecret"].(string)).Want(200)
		return a
	}
	created := works(keyed(me, key, "POST", "/api/v1/oauth/clients", body).Want(201))
	replays(keyed(me, key, "POST", "/api/v1/oauth/clients", body), created)
	var kept []byte
	conn, err := pgx.Connect(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if err := conn.QueryRow(t.Context(), `select answer from keep.idempotency`).Scan(&kept); err != nil {
		t.Fatal(err)
	}
	if secret := created.Object()["clientSecret"].(string); bytes.Contains(kept, []byte(secret)) || bytes.Contains(kept, []byte("clientSecret")) {
		t.Error("the secret is in the database")
	}
	forgetAnswers(s)
	again := works(notReplayed(keyed(me, key, "POST", "/api/v1/oauth/clients", body).Want(201)))
	id := created.Object()["clientId"]
	nodetest.Same(t, "the client that the request makes again", again.Object()["clientId"], id)
	if again.Raw("clientSecret") == created.Raw("clientSecret") {
		t.Error("the secret could be found again")
	}
	replays(keyed(me, key, "POST", "/api/v1/oauth/clients", body), again)
	rotate := "/api/v1/oauth/clients/" + id.(string) + "/rotate"
	rotated := works(keyed(me, key, "POST", rotate, nil).Want(200))
	replays(keyed(me, key, "POST", rotate, nil), rotated)
	forgetAnswers(s)
	works(notReplayed(keyed(me, key, "POST", rotate, nil).Want(200)))
	nodetest.Same(t, "clients", len(me.Call("GET", "/api/v1/oauth/clients", nil).Want(200).List()), 1)
}

func TestIdempotencyKeys(t *testing.T) {
	create := func(me *nodetest.Client, key, flag string) *nodetest.Answer {
		me.Service.T.Helper()
		return keyed(me, key, "POST", "/api/v1/flags", fmt.Sprintf(`{"key":%q,"type":"boolean"}`, flag))
	}
	nodetest.Cases{
		"refusals are replayed as well": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("f", nil)
			first := create(me, "k", "f").Refused(409)
			me.Call("DELETE", nodetest.FlagPath("f"), nil).Want(204)
			replays(create(me, "k", "f").Want(409), first)
			invalid := keyed(me, "l", "POST", "/api/v1/flags", `{"type":"x"}`).Refused(422, "key", "type")
			replays(keyed(me, "l", "POST", "/api/v1/flags", `{"type":"x"}`).Want(422), invalid)
			malformed := keyed(me, "m", "POST", "/api/v1/flags", `{`).Refused(400)
			replays(keyed(me, "m", "POST", "/api/v1/flags", `{`).Want(400), malformed)
		},
		"a key is for one version, environment and body": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("f", nil)
			enable := func(headers ...string) *nodetest.Answer {
				return keyed(me, "k", "POST", nodetest.FlagPath("f", "/enable"), nil, headers...)
			}
			first := enable("If-Match", `"1"`, "X-Environment", "production").Want(200)
			enable("If-Match", `"2"`, "X-Environment", "production").Refused(422, "Idempotency-Key")
			enable("X-Environment", "production").Refused(422, "Idempotency-Key")
			enable("If-Match", `"1"`, "X-Environment", "development").Refused(422, "Idempotency-Key")
			replays(enable("If-Match", `"1"`, "X-Environment", "production"), first)
			change := func(body string) *nodetest.Answer { return keyed(me, "k", "PATCH", nodetest.FlagPath("f"), body) }
			change(`{"name":"n"}`).Want(200)
			change(`{"name":"m"}`).Refused(422, "Idempotency-Key")
		},
		"a key is for one person, tenant and route": func(_ *testing.T, me *nodetest.Client) {
			notReplayed(create(me, "k", "f").Want(201))
			notReplayed(create(me.NewTenant("other"), "k", "f").Want(201))
			notReplayed(create(me.Join("developer"), "k", "f").Refused(409))
			notReplayed(keyed(me, "k", "POST", "/api/v1/projects", `{"name":"f"}`).Want(201))
			notReplayed(keyed(me, "k", "POST", nodetest.FlagPath("f", "/enable"), nil).Want(200))
			notReplayed(keyed(me, "k", "POST", nodetest.FlagPath("f", "/disable"), nil).Want(200))
			notReplayed(keyed(me, "k", "DELETE", nodetest.FlagPath("f"), nil).Want(204))
			keyed(me, "k", "DELETE", nodetest.FlagPath("f"), nil).Want(204)
		},
		"a key for an invitation by the old path is for one tenant": func(t *testing.T, me *nodetest.Client) {
			other, body := me.NewTenant("other"), map[string]string{"email": nodetest.Address(), "role": "user"}
			for _, c := range []*nodetest.Client{me, other} {
				notReplayed(keyed(c, "k", "POST", "/admin/invite", body).Want(200))
				keyed(c, "k", "POST", "/admin/invite", body).Want(200)
				nodetest.Same(t, "members", len(c.Call("GET", usersPath(c), nil).Want(200).List()), 2)
			}
		},
		"a key has 1 to 255 printable characters": func(_ *testing.T, me *nodetest.Client) {
			for i, bad := range []string{" ", strings.Repeat("x", 256), "ü", "a\tb"} {
				create(me, bad, fmt.Sprint("bad", i)).Refused(422, "Idempotency-Key")
			}
			for i, good := range []string{strings.Repeat("x", 255), "!", "~", `"a b"`, uuid.NewString()} {
				flag := fmt.Sprint("good", i)
				first := create(me, good, flag).Want(201)
				replays(create(me, good, flag), first)
			}
		},
		"no body is too large to be told so": func(_ *testing.T, me *nodetest.Client) {
			keyed(me, "k", "POST", "/api/v1/flags", `{"key":"f","description":"`+strings.Repeat("x", 1<<20)+`"}`).Refused(400)
			create(me, "k", "f").Want(201)
		},
		"reads, evaluation and sign-in ignore it": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("f", nil)
			for _, key := range []string{"k", strings.Repeat("x", 256)} {
				for range 2 {
					notReplayed(keyed(me, key, "GET", nodetest.FlagPath("f"), nil).Want(200))
					notReplayed(keyed(me, key, "POST", nodetest.FlagPath("f", "/evaluate"), `{}`).Want(200))
					notReplayed(keyed(me, key, "POST", "/api/v1/flags/evaluate", `{}`).Want(200))
				}
			}
			who := map[string]string{"email": nodetest.Address(), "password": nodetest.Password}
			nobody := me.Service.Anonymous()
			keyed(nobody, "k", "POST", "/auth/signup", who).Want(201)
			notReplayed(keyed(nobody, "k", "POST", "/auth/signup", who).Refused(409))
			one, two := keyed(nobody, "k", "POST", "/auth/signin", who).Want(200), keyed(nobody, "k", "POST", "/auth/signin", who).Want(200)
			if one.Raw("refreshToken") == two.Raw("refreshToken") {
				t.Error("a sign-in is replayed")
			}
		},
		"who may not make a change is not told how it was answered": func(_ *testing.T, me *nodetest.Client) {
			member := me.Join("developer")
			create(member, "k", "f").Want(201)
			me.Call("PATCH", "/api/v1/tenants/"+me.Tenant+"/users/"+member.UserID, `{"role":"viewer"}`).Want(200)
			create(member, "k", "f").Refused(403)
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant+"/users/"+member.UserID, nil).Want(204)
			create(member, "k", "f").Refused(403)
			nobody := *member
			nobody.Token = ""
			create(&nobody, "k", "f").Refused(401)
		},
		"what takes the caller's own access is replayed": func(_ *testing.T, me *nodetest.Client) {
			other := me.Join("admin")
			leave := "/api/v1/tenants/" + me.Tenant + "/users/" + other.UserID
			first := keyed(other, "k", "DELETE", leave, nil).Want(204)
			replays(keyed(other, "k", "DELETE", leave, nil).Want(204), first)
			keyed(other, "l", "DELETE", leave, nil).Refused(403)
			demoted := me.Join("admin")
			path := "/api/v1/tenants/" + me.Tenant + "/users/" + demoted.UserID
			first = keyed(demoted, "k", "PATCH", path, `{"role":"viewer"}`).Want(200)
			replays(keyed(demoted, "k", "PATCH", path, `{"role":"viewer"}`), first)
			keyed(demoted, "k", "PATCH", path, `{"role":"admin"}`).Refused(403)
			keyed(demoted, "l", "PATCH", path, `{"role":"viewer"}`).Refused(403)
			first = keyed(me, "k", "DELETE", "/api/v1/tenants/"+me.Tenant, nil).Want(204)
			replays(keyed(me, "k", "DELETE", "/api/v1/tenants/"+me.Tenant, nil).Want(204), first)
			keyed(me, "l", "DELETE", "/api/v1/tenants/"+me.Tenant, nil).Refused(403)
		},
		"calls at once make one change": func(t *testing.T, me *nodetest.Client) {
			var callers sync.WaitGroup
			var mu sync.Mutex
			statuses := map[int]int{}
			for range 8 {
				callers.Go(func() {
					a := create(me, "k", "f")
					mu.Lock()
					defer mu.Unlock()
					statuses[a.Status]++
				})
			}
			callers.Wait()
			if statuses[201] == 0 || statuses[201]+statuses[409] != 8 {
				t.Errorf("answered with %v", statuses)
			}
			create(me, "k", "f").Want(201)
			nodetest.Same(t, "facts", facts(t, me.Service.Store(), events.FlagStream(me.Tenant, "f")), 1)
		},
		"other nodes know the key": func(_ *testing.T, me *nodetest.Client) {
			first := create(me, "k", "f").Want(201)
			there := *me
			there.Service = me.Service.SecondNode()
			replays(create(&there, "k", "f"), first)
			create(&there, "k", "g").Refused(422, "Idempotency-Key")
		},
	}.Run(t)
}

func TestAKeyOutlivesARestart(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp("me@example.com")
	first := keyed(me, "k", "POST", "/api/v1/projects", `{"name":"p"}`).Want(201)
	s.Node.Stop()
	after := *me
	after.Service = s.SecondNode()
	replays(keyed(&after, "k", "POST", "/api/v1/projects", `{"name":"p"}`), first)
	nodetest.Same(t, "projects", len(after.Call("GET", "/api/v1/projects", nil).Want(200).List()), 1)
}

func TestAKeyWithoutItsDatabase(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp("me@example.com")
	sql(s, `alter table keep.idempotency rename to away`)
	keyed(me, "k", "POST", "/api/v1/projects", `{"name":"p"}`).Refused(503)
	me.Call("POST", "/api/v1/projects", `{"name":"q"}`).Want(201)
	sql(s, `alter table keep.away rename to idempotency`)
	keyed(me, "k", "POST", "/api/v1/projects", `{"name":"p"}`).Want(201)
	nodetest.Same(t, "projects", nodetest.Column(me.Call("GET", "/api/v1/projects", nil).Want(200).List(), "name"), []any{"q", "p"})
}

// While nothing can be appended, a request is under way; then it fails, and may be made again.
func TestARequestUnderWayOnPostgres(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	if s.Config.EventStoreURL != "" {
		t.Skip("it holds the log of the Postgres engine")
	}
	me := s.SignUp("me@example.com")
	pool, err := pgxpool.New(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select position from events.head for update`); err != nil {
		t.Fatal(err)
	}
	create := func(body string) *nodetest.Answer { return keyed(me, "k", "POST", "/api/v1/projects", body) }
	failed := make(chan *nodetest.Answer)
	go func() { failed <- create(`{"name":"p"}`) }()
	s.Eventually("the request is under way", func() (begun bool) {
		if err := pool.QueryRow(t.Context(), `select exists (select from keep.idempotency)`).Scan(&begun); err != nil {
			t.Fatal(err)
		}
		return begun
	})
	create(`{"name":"p"}`).Refused(409)
	create(`{"name":"q"}`).Refused(422, "Idempotency-Key")
	if a := <-failed; a.Status != 503 {
		t.Fatalf("%s: %d", a.Call, a.Status)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	create(`{"name":"q"}`).Refused(422, "Idempotency-Key")
	first := create(`{"name":"p"}`).Want(201)
	replays(create(`{"name":"p"}`), first)
	nodetest.Same(t, "projects", len(me.Call("GET", "/api/v1/projects", nil).Want(200).List()), 1)
}

// Whatever changes something honours a key: here, on things that do not exist.
func TestEveryChangeHonoursAKey(t *testing.T) {
	t.Parallel()
	s := serviceOfRoot(t)
	me := s.SignUp("root@example.com")
	_, operations := me.Document()
	missing := strings.NewReplacer("{tenantId}", me.Tenant, "{flagKey}", "none", "{environment}", "none")
	for name, operation := range operations {
		method, path, _ := strings.Cut(name, " ")
		parameters, _ := operation["parameters"].([]any)
		takes := slices.ContainsFunc(parameters, func(p any) bool { return p.(map[string]any)["name"] == "Idempotency-Key" })
		reads := method == "GET" || strings.Contains(path, "/evaluate") || strings.HasPrefix(path, "/ofrep/")
		if takes == (reads || leastRole(name) == "anyone") {
			t.Errorf("the document says of %s that it takes a key: %v", name, takes)
		}
		if !takes || strings.HasSuffix(path, "/logout") || method == "DELETE" && strings.HasSuffix(path, "{tenantId}") {
			continue
		}
		path = missing.Replace(path)
		for before, rest, found := strings.Cut(path, "{"); found; before, rest, found = strings.Cut(path, "{") {
			_, after, _ := strings.Cut(rest, "}")
			path = before + uuid.NewString() + after
		}
		var body any
		if operation["requestBody"] != nil {
			body = `{}`
		}
		first := notReplayed(keyed(me, "k", method, path, body))
		if first.Status >= 500 {
			t.Errorf("%s: %d", name, first.Status)
			continue
		}
		replays(keyed(me, "k", method, path, body), first)
	}
}
