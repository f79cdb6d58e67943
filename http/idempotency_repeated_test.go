package http_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
)

// The response to a repeated request does not show changes made meanwhile.
func TestMadeAgainAfterOthers(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp("me@example.com")
	first := keyed(me, "1", "POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).Want(201)
	second := keyed(me, "2", "PATCH", nodetest.FlagPath("k"), `{"name":"second"}`, "If-Match", `"1"`).Want(200)
	me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
	me.CreateFlag("k", map[string]any{"type": "string"})
	forgetAnswers(s)
	carriedOutAgain(keyed(me, "1", "POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`), first)
	carriedOutAgain(keyed(me, "2", "PATCH", nodetest.FlagPath("k"), `{"name":"second"}`, "If-Match", `"1"`), second)
	me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"type": "string", "version": 4})
	// With another key it is a new request.
	keyed(me, "3", "PATCH", nodetest.FlagPath("k"), `{"name":"second"}`, "If-Match", `"1"`).Refused(412)
}

// An accepted invitation is found again by the request that accepted it.
func TestAcceptedOnce(t *testing.T) {
	t.Parallel()
	s := serviceOfRoot(t)
	root := s.SignUp("root@example.com")
	email := nodetest.Address()
	path := invitationsPath + "/" + root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "viewer"}).Want(201).Object()["id"].(string)
	guest := s.SignUp(email)
	first := keyed(guest, "k", "POST", invitationsPath+"/accept", nil).Want(200)
	forgetAnswers(s)
	carriedOutAgain(keyed(guest, "k", "POST", invitationsPath+"/accept", nil), first)
	replays(keyed(guest, "k", "POST", invitationsPath+"/accept", nil), first)
	keyed(guest, "l", "POST", invitationsPath+"/accept", nil).Refused(404)
	root.Call("GET", path, nil).Want(200).Shows(map[string]any{"status": "accepted"})
}

// A repeated request finds a change that took the caller's own access, if its response was lost. A request that did
// nothing never does it.
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
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{Environment: "development", SuperUsers: supers},
		nodetest.Log(t))
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
			carriedOutAgain(keyed(me, "key", c.method, c.path, c.sent()), first)
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

// An invitation by a node that died, recorded or not, is completed by the retry, whatever has happened to it since.
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
			carriedOutAgain(invite(s, "key", email), first)
			nodetest.Same(t, "the invitation", root.Call("GET", path, nil).Want(200).Object(), before)
			sql(s, `delete from keep.idempotency`)
		})
	}
	t.Run("only noted", func(t *testing.T) {
		s := s.In(t)
		email := nodetest.Address()
		sql(s, `alter table events.head rename to away`)
		failed := invite(s, "key", email)
		sql(s, `alter table events.away rename to head`)
		if failed.Status < 500 {
			t.Fatalf("%s: %d", failed.Call, failed.Status)
		}
		made := notReplayed(invite(s, "key", email).Want(201))
		replays(invite(s, "key", email), made)
		root.Call("GET", made.Header.Get("Location"), nil).
			Want(200).
			Shows(map[string]any{"email": email, "status": "pending"})
	})
}

// A secret that was lost with its response is replaced.
func TestTheSecretOfAClientMadeOnce(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp("me@example.com")
	key, body := uuid.NewString(), `{"name":"c","scopes":["flags:read"]}`
	works := func(a *nodetest.Answer) *nodetest.Answer {
		t.Helper()
		o := a.Object()
		me.Trade("grant_type", "client_credentials", "client_id", o["clientId"].(string), "client_secret", o["clientSecret"].(string)).
			Want(200)
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
	if secret := created.Object()["clientSecret"].(string); bytes.Contains(kept, []byte(secret)) ||
		bytes.Contains(kept, []byte("clientSecret")) {
		t.Error("the secret is in the database")
	}
	forgetAnswers(s)
	repeated := works(notReplayed(keyed(me, key, "POST", "/api/v1/oauth/clients", body).Want(201)))
	id := created.Object()["clientId"]
	nodetest.Same(t, "the client that the request makes again", repeated.Object()["clientId"], id)
	if repeated.Raw("clientSecret") == created.Raw("clientSecret") {
		t.Error("the secret could be found again")
	}
	replays(keyed(me, key, "POST", "/api/v1/oauth/clients", body), repeated)
	rotate := "/api/v1/oauth/clients/" + id.(string) + "/rotate"
	rotated := works(keyed(me, key, "POST", rotate, nil).Want(200))
	replays(keyed(me, key, "POST", rotate, nil), rotated)
	forgetAnswers(s)
	works(notReplayed(keyed(me, key, "POST", rotate, nil).Want(200)))
	nodetest.Same(t, "clients", len(me.Call("GET", "/api/v1/oauth/clients", nil).Want(200).List()), 1)
}
