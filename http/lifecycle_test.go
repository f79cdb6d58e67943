package http_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
)

const staleTime = 30 * 24 * time.Hour

// lifecycles is a tenant of a service with a test clock and usage written by the test.
type lifecycles struct {
	t     *testing.T
	me    *nodetest.Client
	db    *pgx.Conn
	later *atomic.Int64 // how far the service's clock is ahead
}

func newLifecycles(t *testing.T) lifecycles {
	later := &atomic.Int64{}
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{Environment: "development", Now: now}, nodetest.Log(t))
	db, err := pgx.Connect(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(t.Context()) })
	return lifecycles{t, s.SignUp("me@example.com"), db, later}
}

// now returns the service's time.
func (l lifecycles) now() time.Time { return l.me.Service.Config.Now().UTC() }

func (l lifecycles) environmentID(name string) (id string) {
	l.t.Helper()
	if err := l.db.QueryRow(l.t.Context(), `select id from read.environments where tenant_id = $1 and name = $2`, l.me.Tenant, name).
		Scan(&id); err != nil {
		l.t.Fatal(err)
	}
	return id
}

// use describes a flag's usage by the age of each time.
type use struct {
	environmentID         string // production if empty
	evaluated, prefetched time.Duration
	required              time.Duration // on behalf of another flag
	varied                time.Duration // since the start of the hour
	outcome               string
}

// given replaces the usage of the flag that has a key now.
func (l lifecycles) given(key string, u use) {
	l.t.Helper()
	if u.environmentID == "" {
		u.environmentID = l.environmentID("production")
	}
	ago := func(d time.Duration) *time.Time {
		if d == 0 {
			return nil
		}
		return new(l.now().Add(-d))
	}
	var varied *time.Time
	if u.varied != 0 {
		varied = new(l.now().Add(-u.varied).Truncate(time.Hour))
	}
	_, err := l.db.Exec(
		l.t.Context(),
		`insert into keep.flag_uses (tenant_id, flag_key, life, environment_id, last_evaluated, last_prefetched, last_required, outcome, outcome_hour, varied_hour)
		select tenant_id, key, created_version, $3, $4::timestamptz, $5, $8::timestamptz, nullif($6, ''), coalesce($4, $8), $7 from read.flags where tenant_id = $1 and key = $2
		on conflict (tenant_id, flag_key, life, environment_id) do update set last_evaluated = excluded.last_evaluated, last_prefetched = excluded.last_prefetched,
			last_required = excluded.last_required, outcome = excluded.outcome, outcome_hour = excluded.outcome_hour, varied_hour = excluded.varied_hour`,
		l.me.Tenant,
		key,
		u.environmentID,
		ago(u.evaluated),
		ago(u.prefetched),
		u.outcome,
		varied,
		ago(u.required),
	)
	if err != nil {
		l.t.Fatal(err)
	}
}

// wait moves all recorded usage of the tenant's flags further into the past.
func (l lifecycles) wait(d time.Duration) {
	l.t.Helper()
	for _, statement := range []string{
		`update read.flags set created_at = created_at - $2::interval, updated_at = updated_at - $2::interval where tenant_id = $1`,
		`update keep.flag_uses set last_evaluated = last_evaluated - $2::interval, last_prefetched = last_prefetched - $2::interval, last_required = last_required - $2::interval, varied_hour = varied_hour - $2::interval where tenant_id = $1`,
	} {
		if _, err := l.db.Exec(l.t.Context(), statement, l.me.Tenant, d); err != nil {
			l.t.Fatal(err)
		}
	}
}

// then checks the lifecycle of a flag by itself, in the list, and with the filter of lists.
func (l lifecycles) then(key, want string) {
	l.t.Helper()
	one := l.me.Call("GET", nodetest.FlagPath(key), nil).Want(200).Object()
	nodetest.Same(l.t, key, one["lifecycle"], want)
	l.later.Add(int64(61 * time.Second)) // lists are not cached longer
	for _, lifecycle := range []string{"archived", "new", "unused", "settled", "live"} {
		listed := slices.Contains(l.me.FlagKeys("?lifecycle="+lifecycle), any(key))
		nodetest.Same(l.t, fmt.Sprintf("%s is listed as %s", key, lifecycle), listed, lifecycle == want)
	}
}

func TestLifecycles(t *testing.T) {
	t.Parallel()
	const little = 10 * time.Minute // longer than any list is cached
	for what, test := range map[string]func(l lifecycles){
		"a flag is new until the stale time has passed": func(l lifecycles) {
			l.me.CreateFlag("k", nil)
			l.then("k", "new")
			l.wait(staleTime - little)
			l.then("k", "new")
			l.wait(2 * little)
			l.then("k", "unused")
		},
		"one that is prefetched alone stays new, and is live then": func(l lifecycles) {
			l.me.CreateFlag("k", nil)
			l.given("k", use{prefetched: little})
			l.then("k", "new")
			l.wait(staleTime)
			l.given("k", use{prefetched: little})
			l.then("k", "live")
			l.given("k", use{prefetched: staleTime - little})
			l.then("k", "live")
			l.given("k", use{prefetched: staleTime + little})
			l.then("k", "unused")
		},
		"one that others require counts as evaluated": func(l lifecycles) {
			l.me.CreateFlag("k", nil)
			l.given("k", use{required: little, outcome: "a"})
			l.then("k", "live")
			l.wait(staleTime)
			l.given("k", use{required: little, outcome: "a"})
			l.then("k", "settled")
			l.given("k", use{required: little, outcome: "a", varied: little})
			l.then("k", "live")
			l.given("k", use{required: staleTime + little})
			l.then("k", "unused")
		},
		"one that is evaluated is live, settled once nothing has changed for the stale time, and unused later": func(l lifecycles) {
			l.me.CreateFlag("k", nil)
			l.given("k", use{evaluated: little, outcome: "a"})
			l.then("k", "live")
			l.wait(staleTime - 2*little)
			l.given("k", use{evaluated: little, outcome: "a"})
			l.then("k", "live")
			l.wait(3 * little)
			l.given("k", use{evaluated: little, outcome: "a"})
			l.then("k", "settled")
			l.given("k", use{evaluated: staleTime - little, outcome: "a"})
			l.then("k", "settled")
			l.given("k", use{evaluated: staleTime + little, outcome: "a"})
			l.then("k", "unused")
			l.given("k", use{evaluated: staleTime + little, prefetched: little, outcome: "a"})
			l.then("k", "live")
		},
		"a change ends settled": func(l lifecycles) {
			l.me.CreateFlag("k", nil)
			l.wait(staleTime + little)
			l.given("k", use{evaluated: little, outcome: "a"})
			l.then("k", "settled")
			l.me.Call("PATCH", nodetest.FlagPath("k"), `{"description":"changed"}`).Want(200).Shows(map[string]any{"lifecycle": "live"})
			l.then("k", "live")
		},
		"a change of a segment that the flag depends on ends settled": func(l lifecycles) {
			createSegment(l.me, "beta", "")
			createSegment(l.me, "outer", ofSegment("beta"))
			flagFor(l.me, "k", "outer")
			l.me.CreateFlag("other", nil)
			l.wait(2 * staleTime) // of the flags alone
			for _, key := range []string{"k", "other"} {
				l.given(key, use{evaluated: little, outcome: "a"})
			}
			l.then("k", "live")
			l.then("other", "settled")
			nodetest.Same(l.t, "the cleanup", nodetest.Column(l.me.Call("GET", "/api/v1/cleanup", nil).Want(200).List(), "flagKey"),
				[]any{"other"})
		},
		"two outcomes within the stale time, in whole hours, are not settled": func(l lifecycles) {
			l.me.CreateFlag("k", nil)
			l.wait(2 * staleTime)
			l.given("k", use{evaluated: little, outcome: "a", varied: little})
			l.then("k", "live")
			l.given("k", use{evaluated: little, outcome: "a", varied: staleTime})
			l.then("k", "live")
			l.given("k", use{evaluated: little, outcome: "a", varied: staleTime + 2*time.Hour})
			l.then("k", "settled")
		},
		"environments may differ, each must be the same": func(l lifecycles) {
			l.me.CreateFlag("k", nil)
			l.wait(2 * staleTime)
			development := l.environmentID("development")
			l.given("k", use{evaluated: little, outcome: "a"})
			l.given("k", use{environmentID: development, evaluated: little, outcome: "b"})
			l.then("k", "settled")
			l.given("k", use{environmentID: development, evaluated: little, outcome: "b", varied: little})
			l.then("k", "live")
		},
		"an archived flag is archived, whatever its use": func(l lifecycles) {
			l.me.CreateFlag("k", nil)
			l.me.Call("PATCH", nodetest.FlagPath("k"), `{"status":"archived"}`).Want(200).Shows(map[string]any{"lifecycle": "archived"})
			l.then("k", "archived")
			l.wait(2 * staleTime)
			l.given("k", use{evaluated: little, outcome: "a"})
			l.then("k", "archived")
		},
		"a permanent flag is neither settled nor unused": func(l lifecycles) {
			l.me.CreateFlag("k", map[string]any{"permanent": true})
			l.then("k", "new")
			l.wait(2 * staleTime)
			l.then("k", "live")
			l.given("k", use{evaluated: little, outcome: "a"})
			l.then("k", "live")
		},
		"a flag that is made again starts from nothing": func(l lifecycles) {
			l.me.CreateFlag("k", nil)
			l.wait(2 * staleTime)
			l.given("k", use{evaluated: little, outcome: "a"})
			l.me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			l.me.CreateFlag("k", nil)
			l.me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"lastEvaluatedAt": nil, "lifecycle": "new"})
			l.then("k", "new")
		},
		"the use in an environment that is deleted counts no longer": func(l lifecycles) {
			environments := "/api/v1/tenants/" + l.me.Tenant + "/environments"
			l.me.Call("POST", environments, `{"environment":"qa"}`).Want(201)
			l.me.CreateFlag("k", nil)
			l.wait(2 * staleTime)
			l.given("k", use{environmentID: l.environmentID("qa"), evaluated: little, outcome: "a"})
			l.then("k", "settled")
			l.me.Call("DELETE", environments+"/qa", nil).Want(204)
			l.then("k", "unused")
			l.me.Call("POST", environments, `{"environment":"qa"}`).Want(201)
			l.then("k", "unused")
		},
	} {
		t.Run(what, func(t *testing.T) {
			test(newLifecycles(t)) // facts have the store's time, so no other test may move this clock
		})
	}
}

// Usage times appear with flags, sort and filter them, and are not part of history.
func TestUseInLists(t *testing.T) {
	t.Parallel()
	l := newLifecycles(t)
	project, _ := l.me.CreateProject("p")
	for _, key := range []string{"a", "b", "c", "d"} {
		l.me.CreateFlag(key, map[string]any{"projectId": project})
	}
	l.given("c", use{evaluated: 3 * time.Hour, prefetched: time.Hour})
	l.given("a", use{evaluated: 2 * time.Hour})
	l.given("a", use{environmentID: l.environmentID("development"), evaluated: 4 * time.Hour})
	flags := "/api/v1/flags"
	checkPages(t, l.me, flags+"?sort=lastEvaluatedAt", "key", []any{"b", "d", "c", "a"})
	checkPages(t, l.me, flags+"?sort=-lastEvaluatedAt", "key", []any{"a", "c", "b", "d"})
	before := "evaluatedBefore=" + l.now().Add(-150*time.Minute).Format(time.RFC3339)
	checkPages(t, l.me, flags+"?"+before, "key", []any{"b", "c", "d"})
	checkPages(t, l.me, flags+"?evaluatedBefore=0001-01-01T00:00:00Z", "key", []any{"b", "d"})
	checkPages(t, l.me, nodetest.ProjectFlagsPath(project)+"?"+before+"&sort=-lastEvaluatedAt&lifecycle=new", "key",
		[]any{"b", "d"})

	one := l.me.Call("GET", nodetest.FlagPath("c"), nil).Want(200)
	for name, ago := range map[string]time.Duration{"lastEvaluatedAt": 3 * time.Hour, "lastPrefetchedAt": time.Hour} {
		at, err := time.Parse(time.RFC3339, one.Object()[name].(string))
		if err != nil || l.now().Sub(at)-ago > time.Minute {
			t.Errorf("%s is %v", name, one.Object()[name])
		}
	}
	nodetest.Same(t, "the ETag", one.Header.Get("ETag"), `"1"`)
	shownAs(l.me, t, l.me.Call("PATCH", nodetest.FlagPath("c"), `{"name":"C"}`).Want(200))

	for query, field := range map[string]string{"lifecycle=none": "lifecycle", "lifecycle=Live": "lifecycle", "evaluatedBefore=yesterday": "evaluatedBefore", "evaluatedBefore=2026-03-14T10:00:00,5Z": "evaluatedBefore", "sort=lastPrefetchedAt": "sort"} {
		l.me.Call("GET", flags+"?"+query, nil).Refused(422, field)
	}
	at := atNow()
	l.me.Call("GET", flags+"?lifecycle=live&sort=-lastEvaluatedAt&evaluatedBefore=2026-01-01T00:00:00Z&"+at, nil).
		Refused(422, "lifecycle", "sort", "evaluatedBefore")
	for what, flag := range map[string]map[string]any{
		"the list at a time": l.me.Call("GET", flags+"?"+at, nil).Want(200).List()[0], "a flag at a time": l.me.Call("GET", nodetest.FlagPath("c", "?"+at), nil).Want(200).Object(),
		"a version": l.me.Call("GET", nodetest.FlagPath("c", "/versions/1"), nil).Want(200).Object()["flag"].(map[string]any),
	} {
		for _, name := range []string{"lastEvaluatedAt", "lastPrefetchedAt", "lastRequiredAt", "lifecycle", "inProcess"} {
			if _, shown := flag[name]; shown {
				t.Errorf("%s shows %s", what, name)
			}
		}
		nodetest.Same(t, "permanent in "+what, flag["permanent"], false)
	}
}
