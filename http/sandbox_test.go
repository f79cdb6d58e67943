package http_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/mail/mailtest"
	"flagledger/events"
)

const sandboxPath = "/api/v1/sandbox"

func newSandbox(c *nodetest.Client) *nodetest.Client {
	c.Service.T.Helper()
	s := *c
	s.Tenant = c.Call("POST", "/api/v1/tenants", `{"name":"sandbox","isSandbox":true}`).Want(201).Object()["id"].(string)
	return &s
}

// demoState returns the content of a sandbox's demo data, without the ids and times of its flags.
func demoState(t *testing.T, c *nodetest.Client) any {
	t.Helper()
	get := func(path string, drop ...string) any {
		answer := c.Call("GET", path, nil).Want(200).JSON()
		list, isList := answer.([]any)
		if !isList {
			list = []any{answer}
		}
		for _, entry := range list {
			if o, ok := entry.(map[string]any); ok {
				for _, name := range append(drop, "createdAt", "updatedAt") {
					delete(o, name)
				}
			}
		}
		return list
	}
	state := []any{get("/api/v1/tenants/" + c.Tenant + "/environments"), get("/api/v1/projects")}
	for _, environment := range []string{"production", "development"} {
		for _, flag := range c.Call("GET", "/api/v1/flags", nil, "X-Environment", environment).Want(200).List() {
			path := nodetest.FlagPath(flag["key"].(string))
			in := *c
			whole := in.Call("GET", path, nil, "X-Environment", environment).Want(200).Object()
			for _, name := range []string{"id", "version", "createdAt", "updatedAt"} {
				delete(whole, name)
			}
			state = append(state, whole, in.Call("GET", path+"/rules", nil, "X-Environment", environment).Want(200).JSON())
		}
	}
	members := entriesOf(c.Call("GET", usersPath(c), nil).Want(200).List(), "email", "role")
	return append(state, members)
}

// entriesOf has some members of each entry that is a demo person, sorted.
func entriesOf(list []map[string]any, names ...string) (lines []string) {
	for _, entry := range list {
		if strings.Count(entry["email"].(string), ".") == 2 {
			lines = append(
				lines,
				fmt.Sprint(nodetest.Column([]map[string]any{entry}, names[0])[0],
					nodetest.Column([]map[string]any{entry}, names[1])[0]),
			)
		}
	}
	slices.Sort(lines)
	return lines
}

func TestSandbox(t *testing.T) {
	nodetest.Cases{
		"a tenant that is none": func(_ *testing.T, me *nodetest.Client) {
			me.Call("GET", sandboxPath+"/status", nil).Want(200).Shows(map[string]any{"active": false, "expiresAt": nil})
			me.Call("GET", "/api/sandbox/status", nil).Want(200).Shows(map[string]any{"active": false, "expiresAt": nil})
			me.Call("GET", sandboxPath+"/status", nil, "X-Tenant-ID", "").Refused(400)
			me.Call("GET", sandboxPath+"/indicators", nil).Refused(409)
			me.Call("GET", sandboxPath+"/demo-data", nil).Refused(409)
			me.Call("POST", sandboxPath+"/cleanup/tenant", nil).Refused(409)
		},
		"a new one has its demo data": func(t *testing.T, me *nodetest.Client) {
			s := newSandbox(me)
			status := s.Call("GET", sandboxPath+"/status", nil).Want(200).Shows(map[string]any{"active": true}).Object()
			end, err := time.Parse(time.RFC3339, status["expiresAt"].(string))
			if left := time.Until(end); err != nil || left < 14*24*time.Hour-time.Hour || left > 14*24*time.Hour {
				t.Errorf("it ends at %v: %v", status["expiresAt"], err)
			}
			data := s.Call("GET", sandboxPath+"/demo-data", nil).Want(200)
			nodetest.Same(t, "the same by its old path", s.Call("GET", "/api/sandbox/demo-data", nil).Want(200).JSON(),
				data.JSON())
			flags, users := data.Object()["flags"].([]any), data.Object()["users"].([]any)
			if len(flags) != 10 || len(users) != 3 || len(s.Call("GET", "/api/v1/projects", nil).Want(200).List()) != 2 {
				t.Errorf("the demo data are %s", data.Body)
			}
			for _, address := range users {
				s.Service.Anonymous().
					Call("POST", "/auth/signin", map[string]any{"email": address, "password": nodetest.Password}).
					Refused(401)
			}
			nodetest.Same(t, "the flags", len(s.Call("GET", "/api/v1/flags", nil).Want(200).List()), 10)
			s.Call("POST", nodetest.FlagPath("new-checkout", "/evaluate"), `{"targetingKey":"u","attributes":{"plan":"pro"}}`).
				Want(200).
				Shows(map[string]any{"value": true, "reason": "RULE_MATCH"})
			s.Call("GET", sandboxPath+"/indicators", nil).Want(200).Shows(map[string]any{"flagsUsed": 10, "evaluations": 1})
			viewer := s.Join("viewer")
			viewer.Call("GET", "/api/sandbox/indicators", nil).Want(200)
			viewer.Call("POST", sandboxPath+"/cleanup/tenant", nil).Refused(403)
			s.Service.JobsDone()
			nodetest.Same(t, "the flags when the job is done", len(s.Call("GET", "/api/v1/flags", nil).Want(200).List()), 10)
		},
		"no demo person is the last admin": func(_ *testing.T, me *nodetest.Client) {
			s := newSandbox(me)
			dana := entry(s.Call("GET", usersPath(s), nil).Want(200).List(), "displayName", "Dana Demo")["userId"].(string)
			s.Call("PATCH", usersPath(s, dana), `{"role":"admin"}`).Refused(409)
			s.Call("PATCH", usersPath(s, dana), `{"role":"viewer"}`).Want(200)
			s.Call("DELETE", usersPath(s, s.UserID), nil).Refused(409)
		},
		"one whose node died before it had its demo data gets them by a job": func(_ *testing.T, me *nodetest.Client) {
			s := *me
			s.Tenant = uuid.NewString()
			var batch []events.Event
			for _, fact := range []events.Fact{
				events.TenantCreated{ID: s.Tenant, Name: "sandbox", Sandbox: true, Plan: events.SandboxPlan, SandboxEndsAt: time.Now().Add(time.Hour)},
				events.MemberAdded{UserID: s.UserID, Role: events.AdminRole},
				events.EnvironmentAdded{Environment: events.EnvironmentRef{ID: uuid.NewString(), Name: "production"}},
			} {
				batch = append(
					batch,
					events.Event{
						ID:       uuid.New(),
						Metadata: events.Metadata{Time: time.Now(), Actor: events.Actor{Kind: events.UserActor, ID: s.UserID}},
						Fact:     fact,
					},
				)
			}
			if _, err := s.Service.Store().Append(s.Service.T.Context(), events.TenantStream(s.Tenant), 0, batch); err != nil {
				s.Service.T.Fatal(err)
			}
			s.Service.Eventually("the flags are there", func() bool {
				a := s.Call("GET", sandboxPath+"/demo-data", nil)
				return a.Status == 200 && len(a.Object()["flags"].([]any)) == 10 && len(a.Object()["users"].([]any)) == 3
			})
		},
	}.Run(t)
}

func TestSandboxCleanup(t *testing.T) {
	nodetest.Cases{
		"it is cleaned up, whatever was done to it": func(t *testing.T, me *nodetest.Client) {
			s := newSandbox(me)
			first := demoState(t, s)
			served := func() any {
				var values []any
				for i := range 30 {
					values = append(
						values,
						s.Call("POST", nodetest.FlagPath("button-color", "/evaluate"), map[string]any{"targetingKey": fmt.Sprint("user-", i)}).Want(200).Object()["value"],
					)
				}
				return values
			}
			before, status := served(), s.Call("GET", sandboxPath+"/status", nil).Want(200).JSON()
			developer, machine := s.Join("developer"), s.Machine("flags:read")
			s.Call("DELETE", nodetest.FlagPath("dark-mode"), nil).Want(204)
			s.Call("DELETE", nodetest.FlagPath("button-color"), nil).Want(204)
			s.Call("POST", "/api/v1/flags", `{"key":"button-color","type":"json"}`).Want(201)
			s.Call("PUT", nodetest.FlagPath("new-checkout", "/rules"), `{"rules":[]}`).Want(200)
			s.Call("PATCH", nodetest.FlagPath("upload-limit"), `{"name":"x","tags":[]}`).Want(200)
			_, project := s.CreateProject("mine")
			s.Call("POST", strings.Replace(project, "/api/v1/projects", "/api/v1/flags/projects", 1)+"/flags", `{"key":"mine","type":"boolean"}`).
				Want(201)
			for _, p := range s.Call("GET", "/api/v1/projects", nil).Want(200).List()[:2] {
				s.Call("PATCH", "/api/v1/projects/"+p["id"].(string), `{"name":"x"}`).Want(200)
			}
			s.Call("DELETE", "/api/v1/tenants/"+s.Tenant+"/environments/development", nil).Want(204)
			s.Call("POST", "/api/v1/tenants/"+s.Tenant+"/environments", `{"environment":"staging"}`).Want(201)
			dana := entry(s.Call("GET", usersPath(s), nil).Want(200).List(), "displayName", "Dana Demo")["userId"].(string)
			s.Call("DELETE", usersPath(s, dana), nil).Want(204)

			s.Call("POST", sandboxPath+"/cleanup/tenant", nil, "X-Change-Reason", "for the next demo").
				Want(200).
				Shows(map[string]any{"success": true})
			nodetest.Same(t, "what is there", demoState(t, s), first)
			nodetest.Same(t, "its end", s.Call("GET", sandboxPath+"/status", nil).Want(200).JSON(), status)
			s.Call("GET", sandboxPath+"/indicators", nil).Want(200).Shows(map[string]any{"flagsUsed": 10, "evaluations": 0})
			nodetest.Same(t, "what is served to whom", served(), before)
			s.Call("GET", sandboxPath+"/indicators", nil).Want(200).Shows(map[string]any{"evaluations": 30})
			developer.Call("GET", "/api/v1/flags", nil).Want(200)
			machine.Call("GET", "/api/v1/flags", nil).Want(200)
			history := s.Call("GET", nodetest.FlagPath("upload-limit", "/history"), nil).Want(200).List()
			nodetest.Same(t, "who cleaned up and why", []any{history[0]["userId"], history[0]["reason"]},
				[]any{s.UserID, "for the next demo"})
		},
		"a cleanup whose node died is finished by a job": func(t *testing.T, me *nodetest.Client) {
			s := newSandbox(me)
			s.Call("DELETE", nodetest.FlagPath("dark-mode"), nil).Want(204)
			db, err := pgx.Connect(t.Context(), s.Service.DatabaseURL)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close(t.Context()) }()
			_, err = db.Exec(
				t.Context(),
				`insert into jobs.river_job (kind, args, queue, max_attempts, state, scheduled_at) values
				('sandbox.cleanup', jsonb_build_object('tenantId', $1::text, 'userId', $2::text, 'requestId', $3::text), 'sandboxes', 8, 'available', now())`,
				s.Tenant,
				s.UserID,
				uuid.NewString(),
			)
			if err != nil {
				t.Fatal(err)
			}
			s.Service.Eventually("the flag is back",
				func() bool { return s.Call("GET", nodetest.FlagPath("dark-mode"), nil).Status == 200 })
		},
		"a cleanup that comes late takes nothing that was made after it was asked for": func(t *testing.T, me *nodetest.Client) {
			s := newSandbox(me)
			s.CreateFlag("before", nil)
			s.Call("DELETE", nodetest.FlagPath("dark-mode"), nil).Want(204)
			_, old := s.CreateProject("before")
			_, used := s.CreateProject("used")
			developer := s.Join("developer")
			s.Service.JobsDone()
			asked := time.Now()
			s.Service.Eventually("the next millisecond", func() bool { return time.Since(asked) > 2*time.Millisecond })
			s.CreateFlag("mine", nil)
			s.Call("POST", strings.Replace(used, "/api/v1/projects", "/api/v1/flags/projects", 1)+"/flags", `{"key":"in-project","type":"boolean"}`).
				Want(201)
			s.Call("PATCH", nodetest.FlagPath("upload-limit"), `{"name":"mine"}`).Want(200)
			s.Call("POST", "/api/v1/tenants/"+s.Tenant+"/environments", `{"environment":"staging"}`).Want(201)
			db, err := pgx.Connect(t.Context(), s.Service.DatabaseURL)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close(t.Context()) }()
			late := func(user string) {
				t.Helper()
				_, err = db.Exec(
					t.Context(),
					`insert into jobs.river_job (kind, args, queue, max_attempts, state, scheduled_at) values ('sandbox.cleanup', jsonb_build_object(
					'tenantId', $1::text, 'userId', $2::text, 'requestId', $3::text, 'asked', $4::text), 'sandboxes', 8, 'available', now())`,
					s.Tenant,
					user,
					uuid.NewString(),
					asked.UTC().Format(time.RFC3339Nano),
				)
				if err != nil {
					t.Fatal(err)
				}
				s.Service.JobsDone()
			}
			late(developer.UserID) // an admin at that time
			s.Call("GET", nodetest.FlagPath("before"), nil).Want(200)
			late(s.UserID)
			s.Call("GET", nodetest.FlagPath("before"), nil).Refused(404)
			s.Call("GET", nodetest.FlagPath("dark-mode"), nil).Want(200)
			s.Call("GET", old, nil).Refused(404)
			s.Call("GET", nodetest.FlagPath("mine"), nil).Want(200)
			s.Call("GET", nodetest.FlagPath("in-project"), nil).Want(200)
			s.Call("GET", used, nil).Want(200)
			s.Call("GET", nodetest.FlagPath("upload-limit"), nil).Want(200).Shows(map[string]any{"name": "mine"})
			nodetest.Same(t, "environments", s.Call("GET", "/api/v1/tenants/"+s.Tenant+"/environments", nil).Want(200).JSON(),
				[]any{"production", "development", "staging"})
		},
		"a job that a cleanup left behind does nothing after the next": func(t *testing.T, me *nodetest.Client) {
			s := newSandbox(me)
			s.Service.JobsDone()
			db, err := pgx.Connect(t.Context(), s.Service.DatabaseURL)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close(t.Context()) }()
			leave := func(state string) {
				t.Helper()
				_, err := db.Exec(
					t.Context(),
					`insert into jobs.river_job (kind, args, queue, max_attempts, state, created_at, scheduled_at) values ('sandbox.cleanup',
					jsonb_build_object('tenantId', $1::text, 'userId', $2::text, 'requestId', $3::text), 'sandboxes', 8, $4::text::jobs.river_job_state, now() - interval '1 hour',
					case $4 when 'scheduled' then now() + interval '1 hour' else now() end)`,
					s.Tenant,
					s.UserID,
					uuid.NewString(),
					state,
				)
				if err != nil {
					t.Fatal(err)
				}
			}
			leave("scheduled")
			s.Call("POST", sandboxPath+"/cleanup/tenant", nil).Want(200)
			var left int
			err = db.QueryRow(t.Context(), `select count(*) from jobs.river_job where kind = 'sandbox.cleanup' and args ->> 'tenantId' = $1`, s.Tenant).
				Scan(&left)
			if err != nil || left != 0 {
				t.Errorf("%d cleanups wait: %v", left, err)
			}
			s.CreateFlag("mine", nil)
			s.Evaluate("mine", `{}`).Want(200)
			leave("available")
			s.Service.JobsDone()
			s.Call("GET", nodetest.FlagPath("mine"), nil).Want(200)
			s.Call("GET", sandboxPath+"/indicators", nil).Want(200).Shows(map[string]any{"evaluations": 1})
		},
	}.Run(t)
}

func TestASandboxEnds(t *testing.T) {
	t.Parallel()
	var later atomic.Int64
	database := nodetest.Database(t)
	c := settings.Config{
		Environment: "development",
		SandboxFor:  48 * time.Hour,
		Now:         func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
	}
	service := nodetest.Start(t, database, c, nodetest.Log(t))
	email := nodetest.Address()
	me := service.SignUp(email)
	s := newSandbox(me)
	status := s.Call("GET", sandboxPath+"/status", nil).Want(200).Shows(map[string]any{"active": true}).Object()

	longer := service.Config
	longer.SandboxFor = 1000 * time.Hour
	other := nodetest.Start(t, database, longer, nodetest.Log(t))
	there := *s
	there.Service = other
	there.Call("GET", sandboxPath+"/status", nil).Want(200).Shows(status)

	later.Store(int64(48 * time.Hour))
	s.Token = s.Service.Anonymous().Call("POST", "/auth/signin", map[string]string{"email": email, "password": nodetest.Password}).Want(200).Object()["token"].(string)
	s.Call("GET", sandboxPath+"/status", nil).
		Want(200).
		Shows(map[string]any{"active": false, "expiresAt": status["expiresAt"]})
	tenant := "/api/v1/tenants/" + s.Tenant
	for _, change := range [][3]string{
		{"POST", "/api/v1/flags", `{"key":"new","type":"boolean"}`},
		{"PATCH", nodetest.FlagPath("dark-mode"), `{"name":"x"}`},
		{"POST", nodetest.FlagPath("dark-mode", "/disable"), ""},
		{"PUT", nodetest.FlagPath("dark-mode", "/rules"), `{"rules":[]}`},
		{"DELETE", nodetest.FlagPath("dark-mode"), ""},
		{"POST", "/api/v1/projects", `{"name":"p"}`},
		{"PATCH", tenant, `{"name":"x"}`},
		{"POST", tenant + "/environments", `{"environment":"staging"}`},
		{"POST", tenant + "/users", `{"email":"a@example.com","role":"viewer"}`},
		{"POST", "/api/v1/oauth/clients", `{"name":"m","scopes":["flags:read"]}`},
		{"POST", sandboxPath + "/cleanup/tenant", ""},
		{"POST", "/api/v1/notifications/send", `{"userId":"` + s.UserID + `","tenantId":"` + s.Tenant + `","type":"t","title":"x"}`},
	} {
		var body any
		if change[2] != "" {
			body = change[2]
		}
		a := s.Call(change[0], change[1], body).Refused(403)
		if !strings.Contains(a.Object()["detail"].(string), "sandbox ended at") {
			t.Errorf("%s: %s", a.Call, a.Body)
		}
	}
	s.Call("GET", "/api/v1/flags", nil).Want(200)
	s.Evaluate("dark-mode", `{"targetingKey":"u"}`).Want(200).Shows(map[string]any{"value": true})
	s.Call("GET", sandboxPath+"/indicators", nil).Want(200)
	s.NewTenant("another").CreateFlag("k", nil)
	s.Call("DELETE", tenant, nil).Want(204)
}

func TestSubscribing(t *testing.T) {
	t.Parallel()
	s, server := mailed(t, "production")
	subscribe := func(email string) *nodetest.Answer {
		t.Helper()
		return s.Anonymous().
			Call("POST", sandboxPath+"/subscribe", map[string]string{"email": email, "name": "Ada"}).
			Want(202)
	}
	known := s.SignUp(nodetest.Address())
	server.Wait(t, known.Email, 1) // the verification link
	email := nodetest.Address()
	mine, theirs := subscribe(email), subscribe(strings.ToUpper(known.Email))
	nodetest.Same(t, "the answers", []string{string(mine.Body), string(theirs.Body)},
		[]string{`{"success":true}`, `{"success":true}`})
	s.Anonymous().Call("POST", sandboxPath+"/subscribe", `{}`).Refused(422, "email")
	s.Anonymous().Call("POST", sandboxPath+"/subscribe", `{"email":"nobody","name":1}`).Refused(422, "email", "name")

	link, token := linkTo(t, server, email, 1)
	nodetest.Same(t, "the link", link, s.URL+"/sandbox?token="+token)
	if page := postForm(s, link, url.Values{"newPassword": {"short"}}, 422); !strings.Contains(page, email) ||
		strings.Contains(page, `name="name"`) {
		t.Errorf("the page says %s", page)
	}
	if page := postForm(s, link, url.Values{"newPassword": {"another horse"}}, 200); !strings.Contains(page, "Sign in as "+email) {
		t.Errorf("the page says %s", page)
	}
	for _, path := range []string{strings.TrimPrefix(link, s.URL), "/sandbox", "/sandbox?token=other"} {
		if used := s.Anonymous().
			Call("GET", path, nil).
			Want(422); !strings.Contains(string(used.Body), "has been used or has expired") {
			t.Errorf("the page says %s", used.Body)
		}
		s.Anonymous().
			Call("POST", path, "newPassword=another+horse", "Content-Type", "application/x-www-form-urlencoded").
			Want(422)
	}
	me := &nodetest.Client{Service: s, Email: email}
	session := s.Anonymous().
		Call("POST", "/auth/signin", map[string]string{"email": email, "password": "another horse"}).
		Want(200).
		Object()
	me.Token = session["token"].(string)
	nodetest.Same(t, "the name", session["user"].(map[string]any)["displayName"], "Ada")
	sandbox := entry(me.Call("GET", "/api/v1/tenants", nil).Want(200).List(), "name", "Sandbox")
	me.Tenant = sandbox["id"].(string)
	nodetest.Same(t, "the tenant", sandbox["isSandbox"], true)
	nodetest.Same(t, "its flags", len(me.Call("GET", "/api/v1/flags", nil).Want(200).List()), 10)

	unnamed := nodetest.Address() // requested without a name
	s.Anonymous().Call("POST", sandboxPath+"/subscribe", map[string]string{"email": unnamed}).Want(202)
	link, _ = linkTo(t, server, unnamed, 1)
	for name, problem := range map[string]string{strings.Repeat("x", 201): "The name must have at most 200 characters.", "\xff": "The name must be UTF-8."} {
		if page := postForm(
			s, link, url.Values{"newPassword": {"another horse"}, "name": {name}}, 422,
		); !strings.Contains(page, problem) ||
			!strings.Contains(page, `name="name"`) {
			t.Errorf("the page says %s", page)
		}
	}
	postForm(s, link, url.Values{"newPassword": {"another horse"}, "name": {"Grace"}}, 200)
	session = s.Anonymous().
		Call("POST", "/auth/signin", map[string]string{"email": unnamed, "password": "another horse"}).
		Want(200).
		Object()
	nodetest.Same(t, "the name of who gave it on the page", session["user"].(map[string]any)["displayName"], "Grace")

	link, _ = linkTo(t, server, known.Email, 2)
	if page := postForm(s, link, url.Values{"newPassword": {"another horse"}}, 422); !strings.Contains(page, "The password is not the password of the account") {
		t.Errorf("the page says %s", page)
	}
	sql(s, `insert into read.tenants (id, name, is_sandbox, subscription, created_by, created_at, deleted_at)
		select gen_random_uuid(), 'gone', false, '{}', $1, now(), now() from generate_series(1, 199)`, known.UserID)
	if page := postForm(
		s, link, url.Values{"newPassword": {nodetest.Password}}, 429,
	); !strings.Contains(page, "200 tenants today") ||
		!strings.Contains(page, "the next day begins at") {
		t.Errorf("the page says %s", page)
	}
	sql(s, `delete from read.tenants where created_by = $1 and deleted_at is not null`, known.UserID)
	postForm(s, link, url.Values{"newPassword": {nodetest.Password}}, 200)
	nodetest.Same(t, "the tenants of somebody who had an account",
		len(known.Call("GET", "/api/v1/tenants", nil).Want(200).List()), 2)

	var kept int
	db, err := pgx.Connect(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	err = db.QueryRow(t.Context(), `select (select count(*) from keep.sandbox_requests) + (select count(*) from jobs.river_job where args::text like '%@%')`).
		Scan(&kept)
	if err != nil || kept != 0 {
		t.Errorf("%d requests are kept: %v", kept, err)
	}
}

// The admins of a sandbox are notified before it ends and when it is deleted, once each and in time, even if the
// service was down then.
func TestSandboxesThatEndedAreDeleted(t *testing.T) {
	t.Parallel()
	var later atomic.Int64
	server := mailtest.New(t, mailtest.Options{})
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development", Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
		Mail: settings.Mail{URL: "smtp://" + server.Addr + "?from=flags@example.com"},
	}, nodetest.Log(t))
	db, err := pgx.Connect(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	me := s.SignUp(nodetest.Address())
	at := func(days int) { // moves the clock, and runs the hourly tasks twice
		t.Helper()
		later.Store(int64(time.Duration(days)*24*time.Hour + time.Hour))
		me.Token = s.Anonymous().Call("POST", "/auth/signin", map[string]string{"email": me.Email, "password": nodetest.Password}).Want(200).Object()["token"].(string)
		for range 2 {
			if _, err := db.Exec(
				t.Context(),
				`insert into jobs.river_job (kind, args, queue, max_attempts) values ('upkeep', '{"task":"end sandboxes"}', 'upkeep', 3)`,
			); err != nil {
				t.Fatal(err)
			}
			s.JobsDone()
		}
	}
	told := func() (types []any) {
		list := me.Call("GET", "/api/v1/notifications", nil).Want(200).Object()["notifications"].([]any)
		for _, n := range list {
			types = append(types, object(n)["type"])
		}
		slices.Reverse(types)
		return types
	}
	exists := func(c *nodetest.Client) bool { return c.Call("GET", sandboxPath+"/status", nil).Status == 200 }

	first := newSandbox(me)
	at(10)
	nodetest.Same(t, "what is told four days before", told(), nil)
	at(11)
	nodetest.Same(t, "what is told three days before", told(), []any{"sandbox.ending"})
	nodetest.Same(t, "the mail", server.Wait(t, me.Email, 1).Subject, "Your sandbox ends soon")
	at(40)
	nodetest.Same(t, "what is told 26 days after", told(), []any{"sandbox.ending"})
	at(41)
	nodetest.Same(t, "what is told 27 days after", told(), []any{"sandbox.ending", "sandbox.deletion"})
	nodetest.Same(t, "the mail", server.Wait(t, me.Email, 2).Subject, "Your sandbox will be deleted")
	at(43)
	first.Token = me.Token
	nodetest.Same(t, "it is there 29 days after", exists(first), true)
	at(44)
	first.Token = me.Token
	nodetest.Same(t, "it is there 30 days after", exists(first), false)

	second := newSandbox(me)
	at(200)
	second.Token = me.Token
	nodetest.Same(t, "one whose end nobody was told of is there", exists(second), true)
	nodetest.Same(t, "what is told", told(), []any{"sandbox.deletion"})
	at(203)
	second.Token = me.Token
	nodetest.Same(t, "it is there three days later", exists(second), false)
	nodetest.Same(t, "the mails", len(server.Mails()), 3)

	var left int
	err = db.QueryRow(t.Context(), `select (select count(*) from keep.sandbox_notices) + (select count(*) from keep.people where user_id <> $1)`, me.UserID).
		Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d rows are left of them: %v", left, err)
	}

	third := newSandbox(me)
	notices := func() (n int) {
		t.Helper()
		if err := db.QueryRow(t.Context(), `select count(*) from keep.sandbox_notices`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	at(215)
	nodetest.Same(t, "the notices given", notices(), 1)
	third.Token = me.Token
	third.Subscribe(events.Subscription{ID: "sub_" + third.Tenant, Plan: events.StandardPlan, Status: events.Active})
	third.Call("POST", sandboxPath+"/cleanup/tenant", nil).Refused(409)
	at(216)
	nodetest.Same(t, "those of one that is paid for", notices(), 0)
}
