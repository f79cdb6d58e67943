package http_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// keyed makes a call with an Idempotency-Key.
func keyed(c *nodetest.Client, key, method, path string, body any, headers ...string) *nodetest.Answer {
	c.Service.T.Helper()
	return c.Call(method, path, body, append(headers, "Idempotency-Key", key)...)
}

// replays checks that the response equals an earlier one.
func replays(a *nodetest.Answer, first *nodetest.Answer) *nodetest.Answer {
	a.T.Helper()
	if a.Header.Get("Idempotent-Replayed") != "true" {
		a.T.Errorf("%s: not marked as replayed", a.Call)
	}
	return isSameAs(a, first)
}

// accessed lists the members that change when a person uses the service.
var accessed = regexp.MustCompile(`"lastAccessedAt":("[^"]*"|null)`)

// isSameAs checks that a response equals another.
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

// carriedOutAgain checks that a call ran again with the response of the first time. Whether the lists show the change
// may differ: first then takes the new value.
func carriedOutAgain(a *nodetest.Answer, first *nodetest.Answer) *nodetest.Answer {
	a.T.Helper()
	first.Header["Preference-Applied"] = a.Header["Preference-Applied"]
	return isSameAs(notReplayed(a), first)
}

// sql runs SQL in the service's database.
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

// forgetAnswers simulates that a node died between each action and its response, half a minute ago.
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

// serviceOfRoot starts a service with root@example.com as a super user.
func serviceOfRoot(t *testing.T) *nodetest.Service {
	t.Helper()
	return nodetest.Start(t, nodetest.Database(t),
		settings.Config{Environment: "development", SuperUsers: []string{"root@example.com"}}, nodetest.Log(t))
}

func TestIdempotencyKeys(t *testing.T) { nodetest.BothEngines(t, testIdempotencyKeys) }

func testIdempotencyKeys(t *testing.T) {
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
					notReplayed(keyed(me.Lenient(), key, "GET", nodetest.FlagPath("f"), nil).Want(200))
					notReplayed(keyed(me.Lenient(), key, "POST", nodetest.FlagPath("f", "/evaluate"), `{}`).Want(200))
					notReplayed(keyed(me.Lenient(), key, "POST", "/api/v1/flags/evaluate", `{}`).Want(200))
				}
			}
			who := map[string]string{"email": nodetest.Address(), "password": nodetest.Password}
			nobody := me.Service.Anonymous().Lenient()
			keyed(nobody, "k", "POST", "/auth/signup", who).Want(201)
			notReplayed(keyed(nobody, "k", "POST", "/auth/signup", who).Refused(409))
			one, two := keyed(nobody, "k", "POST", "/auth/signin", who).Want(200),
				keyed(nobody, "k", "POST", "/auth/signin", who).Want(200)
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

func TestAKeyOutlivesARestart(t *testing.T) { nodetest.BothEngines(t, testAKeyOutlivesARestart) }

func testAKeyOutlivesARestart(t *testing.T) {
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

func TestAKeyThatTheDatabaseCannotTake(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp("me@example.com")
	sql(
		s,
		`create function keep.disk_full() returns trigger language plpgsql as $$ begin raise 'no space is left' using errcode = 'disk_full'; end $$`,
	)
	sql(s, `create trigger disk_full before insert on keep.idempotency execute function keep.disk_full()`)
	keyed(me, "k", "POST", "/api/v1/projects", `{"name":"p"}`).Refused(503)
	me.Call("POST", "/api/v1/projects", `{"name":"q"}`).Want(201)
	sql(s, `drop trigger disk_full on keep.idempotency`)
	keyed(me, "k", "POST", "/api/v1/projects", `{"name":"p"}`).Want(201)
	nodetest.Same(t, "projects", nodetest.Column(me.Call("GET", "/api/v1/projects", nil).Want(200).List(), "name"),
		[]any{"q", "p"})
}

// While appends block, a request is in progress; then it fails and may be repeated.
func TestARequestUnderWayOnPostgres(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
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
