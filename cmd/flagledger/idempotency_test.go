package main

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

	"flagledger/events"
	"flagledger/migrations/pgtest"
)

// keyed makes a call with an Idempotency-Key.
func (c *client) keyed(key, method, path string, body any, headers ...string) *answer {
	c.s.t.Helper()
	return c.call(method, path, body, append(headers, "Idempotency-Key", key)...)
}

// replays checks that the answer is the one that a call had before.
func (a *answer) replays(first *answer) *answer {
	a.t.Helper()
	if a.header.Get("Idempotent-Replayed") != "true" {
		a.t.Errorf("%s: not marked as replayed", a.call)
	}
	return a.is(first)
}

// accessed is what moves on while somebody uses the service.
var accessed = regexp.MustCompile(`"lastAccessedAt":("[^"]*"|null)`)

// is checks that an answer is as another one.
func (a *answer) is(first *answer) *answer {
	a.t.Helper()
	type shown struct {
		status  int
		body    string
		headers [5]string
	}
	show := func(a *answer) shown {
		s := shown{status: a.status, body: accessed.ReplaceAllString(string(a.body), "")}
		for i, name := range []string{"Content-Type", "Location", "ETag", "Preference-Applied", "Link"} {
			s.headers[i] = strings.Join(a.header.Values(name), ", ")
		}
		return s
	}
	if got, want := show(a), show(first); got != want {
		a.t.Errorf("%s: answered with\n%+v, the first time with\n%+v", a.call, got, want)
	}
	return a
}

// notReplayed checks that the call was carried out.
func (a *answer) notReplayed() *answer {
	a.t.Helper()
	if a.header.Get("Idempotent-Replayed") != "" {
		a.t.Errorf("%s: replayed", a.call)
	}
	return a
}

// sql changes the database of the service.
func (s *service) sql(statement string, arguments ...any) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.databaseURL)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(s.t.Context())) }()
	if _, err := conn.Exec(s.t.Context(), statement, arguments...); err != nil {
		s.t.Fatal(err)
	}
}

// forgetAnswers makes it as if a node had died each time between what it did and its answer, half a minute ago.
func (s *service) forgetAnswers() {
	s.t.Helper()
	s.sql(`update keep.idempotency set answer = null, claimed_until = now() - interval '1 second'`)
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
	stream             func(*answer) string // that the fact goes to
}

// acts are calls that change something, each in a tenant of its own that setting it up makes ready.
var acts = map[string]func(me *client) act{
	"create a flag": func(me *client) act {
		return act{"POST", "/api/v1/flags", `{"key":"k","type":"string","flag_variations":[{"name":"a","value":"A"}]}`, 201, me.flagStream}
	},
	"create a flag under an old path": func(me *client) act {
		return act{"POST", "/api/flags", `{"key":"k","type":"boolean"}`, 201, me.flagStream}
	},
	"create a flag in a project": func(me *client) act {
		id, _ := me.createProject("p")
		return act{"POST", "/api/v1/flags/projects/" + id + "/flags", `{"key":"k","type":"boolean"}`, 201, me.flagStream}
	},
	"update a flag": func(me *client) act {
		me.createFlag("k", nil)
		return act{"PATCH", flagPath("k"), `{"name":"N","status":"inactive"}`, 200, me.flagStream}
	},
	"enable a flag": func(me *client) act {
		me.createFlag("k", nil)
		return act{"POST", flagPath("k", "/enable"), ``, 200, me.flagStream}
	},
	"disable a flag": func(me *client) act {
		me.enabled("k", nil)
		return act{"POST", flagPath("k", "/disable"), ``, 200, me.flagStream}
	},
	"delete a flag": func(me *client) act {
		me.createFlag("k", nil)
		return act{"DELETE", flagPath("k"), ``, 204, me.flagStream}
	},
	"add a variation": func(me *client) act {
		me.createFlag("k", nil)
		return act{"POST", flagPath("k", "/variations"), `{"name":"v","value":true}`, 201, me.flagStream}
	},
	"update a variation": func(me *client) act {
		me.createFlag("k", nil)
		v := me.addVariation("k", `{"name":"v","value":true}`).object()["id"].(string)
		return act{"PATCH", flagPath("k", "/variations/", v), `{"weight":5}`, 200, me.flagStream}
	},
	"remove a variation": func(me *client) act {
		me.createFlag("k", nil)
		v := me.addVariation("k", `{"name":"v","value":true}`).object()["id"].(string)
		return act{"DELETE", flagPath("k", "/variations/", v), ``, 204, me.flagStream}
	},
	"set rules": func(me *client) act {
		me.createFlag("k", nil)
		return act{"PUT", flagPath("k", "/rules"), `{"rules":[{"conditions":[],"serve":{"value":true}}]}`, 200, me.flagStream}
	},
	"set a fallthrough": func(me *client) act {
		me.createFlag("k", nil)
		return act{"PUT", flagPath("k", "/fallthrough"), `{"serve":{"value":true}}`, 200, me.flagStream}
	},
	"create a project": func(*client) act {
		return act{"POST", "/api/v1/projects", `{"name":"p"}`, 201, func(a *answer) string { return events.ProjectStream(a.object()["id"].(string)) }}
	},
	"update a project": func(me *client) act {
		id, path := me.createProject("p")
		return act{"PATCH", path, `{"color":"#000000"}`, 200, func(*answer) string { return events.ProjectStream(id) }}
	},
	"delete a project": func(me *client) act {
		id, path := me.createProject("p")
		return act{"DELETE", path, ``, 204, func(*answer) string { return events.ProjectStream(id) }}
	},
	"create a tenant": func(*client) act {
		return act{"POST", "/api/v1/tenants", `{"name":"t","contactName":"c"}`, 201, func(a *answer) string { return events.TenantStream(a.object()["id"].(string)) }}
	},
	"update a tenant": func(me *client) act {
		return act{"PATCH", "/api/v1/tenants/" + me.tenant, `{"name":"t","contactName":"c"}`, 200, me.tenantStream}
	},
	"add an environment": func(me *client) act {
		return act{"POST", "/api/v1/tenants/" + me.tenant + "/environments", `{"environment":"qa"}`, 201, me.tenantStream}
	},
	"delete an environment": func(me *client) act {
		return act{"DELETE", "/api/v1/tenants/" + me.tenant + "/environments/development", ``, 204, me.tenantStream}
	},
	"add a member": func(me *client) act {
		member := me.s.signUp(address())
		email := member.call("GET", "/api/v1/tenants", nil).list()[0]["primaryEmail"]
		return act{"POST", "/api/v1/tenants/" + me.tenant + "/users", fmt.Sprintf(`{"email":%q,"role":"viewer"}`, email), 201, me.tenantStream}
	},
	"add a pending member": func(me *client) act {
		return act{"POST", "/api/v1/tenants/" + me.tenant + "/users", fmt.Sprintf(`{"email":%q,"role":"viewer"}`, address()), 201, me.tenantStream}
	},
	"change a role": func(me *client) act {
		return act{"PATCH", "/api/v1/tenants/" + me.tenant + "/users/" + me.join("viewer").userID, `{"role":"admin"}`, 200, me.tenantStream}
	},
	"delete an OAuth client": func(me *client) act {
		id, _ := me.oauthClient("c", "flags:read")
		return act{"DELETE", "/api/v1/oauth/clients/" + id, ``, 204, me.tenantStream}
	},
	"create an invitation": func(*client) act {
		return act{"POST", invitationsPath, fmt.Sprintf(`{"email":%q,"role":"viewer"}`, address()), 201, func(a *answer) string { return events.InvitationStream(a.object()["id"].(string)) }}
	},
	"revoke an invitation": func(me *client) act {
		id := me.invitation()
		return act{"DELETE", invitationsPath + "/" + id, ``, 204, func(*answer) string { return events.InvitationStream(id) }}
	},
	"send an invitation again": func(me *client) act {
		id := me.invitation()
		return act{"POST", invitationsPath + "/" + id + "/resend", ``, 200, func(*answer) string { return events.InvitationStream(id) }}
	},
	"deactivate a person": func(me *client) act {
		id := me.s.signUp(address()).userID
		return act{"PATCH", usersOfPlatform + "/" + id + "/deactivate", ``, 200, func(*answer) string { return events.UserStream(id) }}
	},
	"give a platform role": func(me *client) act {
		id := me.s.signUp(address()).userID
		return act{"PATCH", usersOfPlatform + "/" + id + "/role", `{"role":"viewer"}`, 200, func(*answer) string { return events.UserStream(id) }}
	},
	"remove a member": func(me *client) act {
		return act{"DELETE", "/api/v1/tenants/" + me.tenant + "/users/" + me.join("viewer").userID, ``, 204, me.tenantStream}
	},
}

func (c *client) invitation() (id string) {
	c.s.t.Helper()
	return c.call("POST", invitationsPath, map[string]string{"email": address(), "role": "viewer"}).want(201).object()["id"].(string)
}

func (c *client) flagStream(*answer) string   { return events.FlagStream(c.tenant, "k") }
func (c *client) userStream(*answer) string   { return events.UserStream(c.userID) }
func (c *client) tenantStream(*answer) string { return events.TenantStream(c.tenant) }

func (c act) sent() any {
	if c.body == "" {
		return nil
	}
	return c.body
}

// serviceOfRoot is a service on which root@example.com is a super user.
func serviceOfRoot(t *testing.T) *service {
	t.Helper()
	return serviceWith(t, pgtest.URL(t), config{EventStoreURL: engineURL(t), Environment: "development", SuperUsers: []string{"root@example.com"}}, testLog(t))
}

func TestAChangeIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := serviceOfRoot(t)
	owner := s.signUp("root@example.com")
	ready := map[string]act{}
	clients := map[string]*client{}
	firsts := map[string]*answer{}
	done := map[string]int{}
	store := s.store()
	for name, setUp := range acts {
		me := owner.newTenant(name)
		c := setUp(me)
		clients[name], ready[name] = me, c
		firsts[name] = me.keyed("key", c.method, c.path, c.sent()).want(c.status).notReplayed()
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
			me.s = s.in(t)
			for range 2 {
				me.keyed("key", c.method, c.path, c.sent()).replays(first)
			}
			me.keyed("key", c.method, c.path+"?x=y", c.sent()).refused(422, "Idempotency-Key")
			me.keyed("key", c.method, c.path, c.sent(), "X-Environment", "development").refused(422, "Idempotency-Key")
			if c.body != "" {
				me.keyed("key", c.method, c.path, c.body+" ").refused(422, "Idempotency-Key")
			}
			check(t, name)
		})
	}
	s.forgetAnswers()
	for _, name := range slices.Sorted(maps.Keys(ready)) {
		t.Run(name+", whose node died", func(t *testing.T) {
			c, me, first := ready[name], clients[name], firsts[name]
			me.s = s.in(t)
			if c.body != "" {
				me.keyed("key", c.method, c.path, c.body+" ").refused(422, "Idempotency-Key")
			}
			me.keyed("key", c.method, c.path, c.sent()).is(first).notReplayed()
			check(t, name)
			me.keyed("key", c.method, c.path, c.sent()).replays(first)
			check(t, name)
		})
	}
}

// What others did meanwhile does not show in the answer to a request that is made again.
func TestMadeAgainAfterOthers(t *testing.T) {
	t.Parallel()
	s := newService(t)
	me := s.signUp("me@example.com")
	first := me.keyed("1", "POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).want(201)
	second := me.keyed("2", "PATCH", flagPath("k"), `{"name":"second"}`, "If-Match", `"1"`).want(200)
	me.call("DELETE", flagPath("k"), nil).want(204)
	me.createFlag("k", map[string]any{"type": "string"})
	s.forgetAnswers()
	me.keyed("1", "POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).is(first).notReplayed()
	me.keyed("2", "PATCH", flagPath("k"), `{"name":"second"}`, "If-Match", `"1"`).is(second).notReplayed()
	me.call("GET", flagPath("k"), nil).want(200).shows(map[string]any{"type": "string", "version": 4})
	// With another key it is another request.
	me.keyed("3", "PATCH", flagPath("k"), `{"name":"second"}`, "If-Match", `"1"`).refused(412)
}

// An invitation is found again by who accepted it with this request.
func TestAcceptedOnce(t *testing.T) {
	t.Parallel()
	s := serviceOfRoot(t)
	root := s.signUp("root@example.com")
	email := address()
	path := invitationsPath + "/" + root.call("POST", invitationsPath, map[string]string{"email": email, "role": "viewer"}).want(201).object()["id"].(string)
	guest := s.signUp(email)
	first := guest.keyed("k", "POST", invitationsPath+"/accept", nil).want(200)
	s.forgetAnswers()
	guest.keyed("k", "POST", invitationsPath+"/accept", nil).is(first).notReplayed()
	guest.keyed("k", "POST", invitationsPath+"/accept", nil).replays(first)
	guest.keyed("l", "POST", invitationsPath+"/accept", nil).refused(404)
	root.call("GET", path, nil).want(200).shows(map[string]any{"status": "accepted"})
}

// What takes the caller's own access is found again as well by a request whose answer was lost, and never done by one that did nothing.
func TestTheLastThingThatSomebodyMayDo(t *testing.T) {
	t.Parallel()
	setUps := map[string]func(me *client) act{
		"leave a tenant": func(me *client) act {
			me.join("admin")
			return act{"DELETE", usersPath(me, me.userID), ``, 204, me.tenantStream}
		},
		"become a viewer": func(me *client) act {
			me.join("admin")
			return act{"PATCH", usersPath(me, me.userID), `{"role":"viewer"}`, 200, me.tenantStream}
		},
		"become a viewer under the old path": func(me *client) act {
			me.join("admin")
			return act{"PATCH", "/api/tenants/" + me.tenant + "/users/" + me.userID, `{"role":"viewer"}`, 200, me.tenantStream}
		},
		"delete a tenant": func(me *client) act {
			return act{"DELETE", "/api/v1/tenants/" + me.tenant, ``, 204, me.tenantStream}
		},
		"become nobody": func(me *client) act {
			return act{"PATCH", usersOfPlatform + "/" + me.userID + "/role", `{"role":null}`, 200, me.userStream}
		},
		"become less under the old path": func(me *client) act {
			return act{"PATCH", "/admin/users/" + me.userID + "/role", `{"role":"vendor_support"}`, 200, me.userStream}
		},
		"log out": func(me *client) act {
			return act{"POST", "/api/v1/auth/logout", ``, 200, me.userStream}
		},
	}
	var supers []string
	for range setUps {
		supers = append(supers, address())
	}
	s := serviceWith(t, pgtest.URL(t), config{EventStoreURL: engineURL(t), Environment: "development", SuperUsers: supers}, testLog(t))
	store := s.store()
	for name, setUp := range setUps {
		email := supers[0]
		supers = supers[1:]
		t.Run(name, func(t *testing.T) {
			me := s.in(t).signUp(email)
			c := setUp(me)
			if s.config.EventStoreURL == "" {
				s.sql(`alter table events.head rename to away`)
				if failed := me.keyed("failed", c.method, c.path, c.sent()); failed.status < 500 {
					t.Errorf("without the log it is answered with %d", failed.status)
				}
				s.sql(`alter table events.away rename to head`)
			}
			first := me.keyed("key", c.method, c.path, c.sent()).want(c.status)
			done := facts(t, store, c.stream(first))
			me.keyed("key", c.method, c.path, c.sent()).replays(first)
			s.forgetAnswers()
			me.keyed("key", c.method, c.path, c.sent()).is(first).notReplayed()
			me.keyed("key", c.method, c.path, c.sent()).replays(first)
			refusal := me.call(c.method, c.path, c.sent()).status
			for range 2 {
				for _, key := range []string{"other", "failed"} {
					me.keyed(key, c.method, c.path, c.sent()).refused(refusal)
				}
				me.keyed("key", c.method, c.path+"?x=y", c.sent()).refused(refusal)
			}
			if refusal != 401 && refusal != 403 {
				t.Errorf("another request is answered with %d", refusal)
			}
			same(t, "facts", facts(t, store, c.stream(first)), done)
		})
	}
}

// An invitation that was made, or only noted, by a node that died is made again, whatever has become of it since.
func TestInvitedOnce(t *testing.T) {
	t.Parallel()
	s := serviceOfRoot(t)
	root := s.signUp("root@example.com")
	invite := func(s *service, key, email string) *answer {
		me := *root
		me.s = s
		return me.keyed(key, "POST", invitationsPath, map[string]string{"email": email, "role": "viewer"})
	}
	for name, meanwhile := range map[string]func(email, path string){
		"nothing":  func(_, _ string) {},
		"accepted": func(email, _ string) { s.signUp(email).call("POST", invitationsPath+"/accept", nil).want(200) },
		"revoked":  func(_, path string) { root.call("DELETE", path, nil).want(204) },
		"resent":   func(_, path string) { root.call("POST", path+"/resend", nil).want(200) },
		"invited again": func(email, path string) {
			root.call("DELETE", path, nil).want(204)
			invite(s, "another", email).want(201)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.in(t)
			email := address()
			first := invite(s, "key", email).want(201)
			path := first.header.Get("Location")
			meanwhile(email, path)
			before := root.call("GET", path, nil).want(200).object()
			s.forgetAnswers()
			invite(s, "key", email).is(first).notReplayed()
			same(t, "the invitation", root.call("GET", path, nil).want(200).object(), before)
			s.sql(`delete from keep.idempotency`)
		})
	}
	t.Run("only noted", func(t *testing.T) {
		s := s.in(t)
		if s.config.EventStoreURL != "" {
			t.Skip("it takes the log of the Postgres engine away")
		}
		email := address()
		s.sql(`alter table events.head rename to away`)
		failed := invite(s, "key", email)
		s.sql(`alter table events.away rename to head`)
		if failed.status < 500 {
			t.Fatalf("%s: %d", failed.call, failed.status)
		}
		made := invite(s, "key", email).want(201).notReplayed()
		invite(s, "key", email).replays(made)
		root.call("GET", made.header.Get("Location"), nil).want(200).shows(map[string]any{"email": email, "status": "pending"})
	})
}

// A secret that was lost with its answer is replaced.
func TestTheSecretOfAClientMadeOnce(t *testing.T) {
	t.Parallel()
	s := newService(t)
	me := s.signUp("me@example.com")
	key, body := uuid.NewString(), `{"name":"c","scopes":["flags:read"]}`
	works := func(a *answer) *answer {
		t.Helper()
		o := a.object()
		me.trade("grant_type", "client_credentials", "client_id", o["clientId"].(string), "client_secret", o["clientSecret"].(string)).want(200)
		return a
	}
	created := works(me.keyed(key, "POST", "/api/v1/oauth/clients", body).want(201))
	me.keyed(key, "POST", "/api/v1/oauth/clients", body).replays(created)
	var kept []byte
	conn, err := pgx.Connect(t.Context(), s.databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if err := conn.QueryRow(t.Context(), `select answer from keep.idempotency`).Scan(&kept); err != nil {
		t.Fatal(err)
	}
	if secret := created.object()["clientSecret"].(string); bytes.Contains(kept, []byte(secret)) || bytes.Contains(kept, []byte("clientSecret")) {
		t.Error("the secret is in the database")
	}
	s.forgetAnswers()
	again := works(me.keyed(key, "POST", "/api/v1/oauth/clients", body).want(201).notReplayed())
	id := created.object()["clientId"]
	same(t, "the client that the request makes again", again.object()["clientId"], id)
	if again.raw("clientSecret") == created.raw("clientSecret") {
		t.Error("the secret could be found again")
	}
	me.keyed(key, "POST", "/api/v1/oauth/clients", body).replays(again)
	rotate := "/api/v1/oauth/clients/" + id.(string) + "/rotate"
	rotated := works(me.keyed(key, "POST", rotate, nil).want(200))
	me.keyed(key, "POST", rotate, nil).replays(rotated)
	s.forgetAnswers()
	works(me.keyed(key, "POST", rotate, nil).want(200).notReplayed())
	same(t, "clients", len(me.call("GET", "/api/v1/oauth/clients", nil).want(200).list()), 1)
}

func TestIdempotencyKeys(t *testing.T) {
	create := func(me *client, key, flag string) *answer {
		me.s.t.Helper()
		return me.keyed(key, "POST", "/api/v1/flags", fmt.Sprintf(`{"key":%q,"type":"boolean"}`, flag))
	}
	cases{
		"refusals are replayed as well": func(_ *testing.T, me *client) {
			me.createFlag("f", nil)
			first := create(me, "k", "f").refused(409)
			me.call("DELETE", flagPath("f"), nil).want(204)
			create(me, "k", "f").want(409).replays(first)
			invalid := me.keyed("l", "POST", "/api/v1/flags", `{"type":"x"}`).refused(422, "key", "type")
			me.keyed("l", "POST", "/api/v1/flags", `{"type":"x"}`).want(422).replays(invalid)
			malformed := me.keyed("m", "POST", "/api/v1/flags", `{`).refused(400)
			me.keyed("m", "POST", "/api/v1/flags", `{`).want(400).replays(malformed)
		},
		"a key is for one person, tenant and route": func(_ *testing.T, me *client) {
			create(me, "k", "f").want(201).notReplayed()
			create(me.newTenant("other"), "k", "f").want(201).notReplayed()
			create(me.join("developer"), "k", "f").refused(409).notReplayed()
			me.keyed("k", "POST", "/api/v1/projects", `{"name":"f"}`).want(201).notReplayed()
			me.keyed("k", "POST", flagPath("f", "/enable"), nil).want(200).notReplayed()
			me.keyed("k", "POST", flagPath("f", "/disable"), nil).want(200).notReplayed()
			me.keyed("k", "DELETE", flagPath("f"), nil).want(204).notReplayed()
			me.keyed("k", "DELETE", flagPath("f"), nil).want(204)
		},
		"a key for an invitation by the old path is for one tenant": func(t *testing.T, me *client) {
			other, body := me.newTenant("other"), map[string]string{"email": address(), "role": "user"}
			for _, c := range []*client{me, other} {
				c.keyed("k", "POST", "/admin/invite", body).want(200).notReplayed()
				c.keyed("k", "POST", "/admin/invite", body).want(200)
				same(t, "members", len(c.call("GET", usersPath(c), nil).want(200).list()), 2)
			}
		},
		"a key has 1 to 255 printable characters": func(_ *testing.T, me *client) {
			for i, bad := range []string{" ", strings.Repeat("x", 256), "ü", "a\tb"} {
				create(me, bad, fmt.Sprint("bad", i)).refused(422, "Idempotency-Key")
			}
			for i, good := range []string{strings.Repeat("x", 255), "!", "~", `"a b"`, uuid.NewString()} {
				flag := fmt.Sprint("good", i)
				first := create(me, good, flag).want(201)
				create(me, good, flag).replays(first)
			}
		},
		"no body is too large to be told so": func(_ *testing.T, me *client) {
			me.keyed("k", "POST", "/api/v1/flags", `{"key":"f","description":"`+strings.Repeat("x", 1<<20)+`"}`).refused(400)
			create(me, "k", "f").want(201)
		},
		"reads, evaluation and sign-in ignore it": func(_ *testing.T, me *client) {
			me.createFlag("f", nil)
			for _, key := range []string{"k", strings.Repeat("x", 256)} {
				for range 2 {
					me.keyed(key, "GET", flagPath("f"), nil).want(200).notReplayed()
					me.keyed(key, "POST", flagPath("f", "/evaluate"), `{}`).want(200).notReplayed()
					me.keyed(key, "POST", "/api/v1/flags/evaluate", `{}`).want(200).notReplayed()
				}
			}
			who := map[string]string{"email": address(), "password": password}
			nobody := me.s.anonymous()
			nobody.keyed("k", "POST", "/auth/signup", who).want(201)
			nobody.keyed("k", "POST", "/auth/signup", who).refused(409).notReplayed()
			one, two := nobody.keyed("k", "POST", "/auth/signin", who).want(200), nobody.keyed("k", "POST", "/auth/signin", who).want(200)
			if one.raw("refreshToken") == two.raw("refreshToken") {
				t.Error("a sign-in is replayed")
			}
		},
		"who may not make a change is not told how it was answered": func(_ *testing.T, me *client) {
			member := me.join("developer")
			create(member, "k", "f").want(201)
			me.call("PATCH", "/api/v1/tenants/"+me.tenant+"/users/"+member.userID, `{"role":"viewer"}`).want(200)
			create(member, "k", "f").refused(403)
			me.call("DELETE", "/api/v1/tenants/"+me.tenant+"/users/"+member.userID, nil).want(204)
			create(member, "k", "f").refused(403)
			nobody := *member
			nobody.token = ""
			create(&nobody, "k", "f").refused(401)
		},
		"what takes the caller's own access is replayed": func(_ *testing.T, me *client) {
			other := me.join("admin")
			leave := "/api/v1/tenants/" + me.tenant + "/users/" + other.userID
			first := other.keyed("k", "DELETE", leave, nil).want(204)
			other.keyed("k", "DELETE", leave, nil).want(204).replays(first)
			other.keyed("l", "DELETE", leave, nil).refused(403)
			demoted := me.join("admin")
			path := "/api/v1/tenants/" + me.tenant + "/users/" + demoted.userID
			first = demoted.keyed("k", "PATCH", path, `{"role":"viewer"}`).want(200)
			demoted.keyed("k", "PATCH", path, `{"role":"viewer"}`).replays(first)
			demoted.keyed("k", "PATCH", path, `{"role":"admin"}`).refused(403)
			demoted.keyed("l", "PATCH", path, `{"role":"viewer"}`).refused(403)
			first = me.keyed("k", "DELETE", "/api/v1/tenants/"+me.tenant, nil).want(204)
			me.keyed("k", "DELETE", "/api/v1/tenants/"+me.tenant, nil).want(204).replays(first)
			me.keyed("l", "DELETE", "/api/v1/tenants/"+me.tenant, nil).refused(403)
		},
		"calls at once make one change": func(t *testing.T, me *client) {
			var callers sync.WaitGroup
			var mu sync.Mutex
			statuses := map[int]int{}
			for range 8 {
				callers.Go(func() {
					a := create(me, "k", "f")
					mu.Lock()
					defer mu.Unlock()
					statuses[a.status]++
				})
			}
			callers.Wait()
			if statuses[201] == 0 || statuses[201]+statuses[409] != 8 {
				t.Errorf("answered with %v", statuses)
			}
			create(me, "k", "f").want(201)
			same(t, "facts", facts(t, me.s.store(), events.FlagStream(me.tenant, "f")), 1)
		},
		"other nodes know the key": func(_ *testing.T, me *client) {
			first := create(me, "k", "f").want(201)
			there := *me
			there.s = me.s.secondNode()
			create(&there, "k", "f").replays(first)
			create(&there, "k", "g").refused(422, "Idempotency-Key")
		},
	}.run(t)
}

func TestAKeyOutlivesARestart(t *testing.T) {
	t.Parallel()
	s := newService(t)
	me := s.signUp("me@example.com")
	first := me.keyed("k", "POST", "/api/v1/projects", `{"name":"p"}`).want(201)
	s.node.stop()
	after := *me
	after.s = s.secondNode()
	after.keyed("k", "POST", "/api/v1/projects", `{"name":"p"}`).replays(first)
	same(t, "projects", len(after.call("GET", "/api/v1/projects", nil).want(200).list()), 1)
}

func TestAKeyWithoutItsDatabase(t *testing.T) {
	t.Parallel()
	s := newService(t)
	me := s.signUp("me@example.com")
	s.sql(`alter table keep.idempotency rename to away`)
	me.keyed("k", "POST", "/api/v1/projects", `{"name":"p"}`).refused(503)
	me.call("POST", "/api/v1/projects", `{"name":"q"}`).want(201)
	s.sql(`alter table keep.away rename to idempotency`)
	me.keyed("k", "POST", "/api/v1/projects", `{"name":"p"}`).want(201)
	same(t, "projects", column(me.call("GET", "/api/v1/projects", nil).want(200).list(), "name"), []any{"q", "p"})
}

// While nothing can be appended, a request is under way; then it fails, and may be made again.
func TestARequestUnderWayOnPostgres(t *testing.T) {
	t.Parallel()
	s := newService(t)
	if s.config.EventStoreURL != "" {
		t.Skip("it holds the log of the Postgres engine")
	}
	me := s.signUp("me@example.com")
	pool, err := pgxpool.New(t.Context(), s.databaseURL)
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
	create := func(body string) *answer { return me.keyed("k", "POST", "/api/v1/projects", body) }
	failed := make(chan *answer)
	go func() { failed <- create(`{"name":"p"}`) }()
	s.eventually("the request is under way", func() (begun bool) {
		if err := pool.QueryRow(t.Context(), `select exists (select from keep.idempotency)`).Scan(&begun); err != nil {
			t.Fatal(err)
		}
		return begun
	})
	create(`{"name":"p"}`).refused(409)
	create(`{"name":"q"}`).refused(422, "Idempotency-Key")
	if a := <-failed; a.status != 503 {
		t.Fatalf("%s: %d", a.call, a.status)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	create(`{"name":"q"}`).refused(422, "Idempotency-Key")
	first := create(`{"name":"p"}`).want(201)
	create(`{"name":"p"}`).replays(first)
	same(t, "projects", len(me.call("GET", "/api/v1/projects", nil).want(200).list()), 1)
}

// Whatever changes something honours a key: here, on things that do not exist.
func TestEveryChangeHonoursAKey(t *testing.T) {
	t.Parallel()
	s := serviceOfRoot(t)
	me := s.signUp("root@example.com")
	_, operations := me.document()
	missing := strings.NewReplacer("{tenantId}", me.tenant, "{flagKey}", "none", "{environment}", "none")
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
		first := me.keyed("k", method, path, body).notReplayed()
		if first.status >= 500 {
			t.Errorf("%s: %d", name, first.status)
			continue
		}
		me.keyed("k", method, path, body).replays(first)
	}
}
