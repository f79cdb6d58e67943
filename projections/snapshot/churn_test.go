package snapshot

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/projections/snapshot/evaluation"
)

// churn is the number of tenants that come and go. FLAGLEDGER_CHURN=20000 takes 1.5 s of one core, and several times as
// long with the race detector.
func churn(t *testing.T) int {
	t.Helper()
	text := os.Getenv("FLAGLEDGER_CHURN")
	if text == "" {
		return 4000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal("FLAGLEDGER_CHURN:", err)
	}
	return n
}

// life returns all facts of a tenant and its only person, with flags, a project, an OAuth client and a session. Some
// facts of pending changes come after the tenant's deletion.
func life(tenant, user string) (list []events.Recorded) {
	revisions := map[string]events.Revision{}
	add := func(stream string, fact events.Fact) {
		revisions[stream]++
		r := recorded(stream, revisions[stream], fact)
		r.Time = time.Now().Add(-2 * erasedFor)
		list = append(list, r)
	}
	of, person, project := events.TenantStream(tenant), events.UserStream(user), events.ProjectStream(tenant+"-p")
	add(person, events.UserRegistered{ID: user, Provider: "password"})
	add(of, events.TenantCreated{ID: tenant, Name: "Acme", Plan: events.FreePlan})
	add(of, events.EnvironmentAdded{Environment: production})
	add(of, events.MemberAdded{UserID: user, Role: events.AdminRole})
	add(of, events.MemberAdded{UserID: user + "-demo", Role: events.ViewerRole}) // without an account
	add(
		of,
		events.OAuthClientCreated{
			ClientID:   tenant + "-c",
			Name:       "Backend",
			Scopes:     []events.Scope{events.FlagsEvaluate},
			SecretHash: make([]byte, 32),
		},
	)
	add(project, events.ProjectCreated{ID: tenant + "-p", TenantID: tenant, Name: "Web"})
	for _, key := range []string{"kept", "deleted"} {
		flag := events.FlagStream(tenant, key)
		add(
			flag,
			events.FlagCreated{
				TenantID:     tenant,
				Key:          key,
				Type:         events.BooleanFlag,
				DefaultValue: evaluation.False,
				ProjectID:    tenant + "-p",
				Salt:         tenant,
			},
		)
		add(flag, events.FlagEnabled{Environment: production})
	}
	add(events.FlagStream(tenant, "deleted"), events.FlagDeleted{})
	add(person, events.SessionEnded{UserID: user, SessionID: "s", Until: time.Now().Add(-time.Second)})
	add(of, events.TenantDeleted{})
	add(events.FlagStream(tenant, "kept"), events.FlagDisabled{Environment: production})
	add(events.FlagStream(tenant, "late"),
		events.FlagCreated{TenantID: tenant, Key: "late", Type: events.BooleanFlag, DefaultValue: evaluation.False, Salt: tenant})
	add(events.ProjectStream(tenant+"-late"), events.ProjectCreated{ID: tenant + "-late", TenantID: tenant, Name: "Late"})
	add(person, events.UserErased{})
	return list
}

func TestNothingIsKeptOfTenantsAndPeopleThatAreGone(t *testing.T) {
	s, n := New(Options{}), churn(t)
	s.changes.size = 1 // the ring of changes has its own limit
	log := slog.New(slog.DiscardHandler)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	live := func(from, to int) {
		for i := from; i < to; i++ {
			tenant := fmt.Sprintf("t%d", i)
			for _, e := range life(tenant, fmt.Sprintf("u%d", i)) {
				if c, ok := e.Fact.(events.SessionEnded); ok && s.User(c.UserID).Tenants == nil {
					t.Fatal("the facts are not applied")
				}
				s.apply(events.Page{Events: []events.Recorded{e}, Live: true}, log)
			}
		}
	}
	live(0, n/2) // until tables have their final size
	before := heap()
	live(n/2, n)
	grown := heap() - before
	t.Logf("%d tenants came and went; the heap grew by %d bytes", n-n/2, grown)
	if perTenant := grown / int64(n-n/2); perTenant > 50 {
		t.Errorf("the heap grew by %d bytes for each tenant that came and went", perTenant)
	}
	for what, size := range map[string]int{
		"tenants": s.tenants.Size(), "people": s.users.Size(), "clients": s.clients.Size(), "sessions": s.ended.Size(), "projects": len(s.projects), "creators": len(s.created.by), "faults": int(s.Faults()),
	} {
		if size > 0 {
			t.Errorf("there are %d %s", size, what)
		}
	}
}

// Tokens of a recently erased person are still refused.
func TestWhoWasErasedIsShutOutUntilTheirTokensExpire(t *testing.T) {
	s := New(Options{})
	apply := func(fact events.Fact, at time.Time) {
		e := recorded(events.UserStream("u"), 1, fact)
		e.Time = at
		s.apply(events.Page{Events: []events.Recorded{e}}, slog.New(slog.DiscardHandler))
	}
	apply(events.UserRegistered{ID: "u", Provider: "password"}, time.Now())
	apply(events.SessionEnded{UserID: "u", Until: time.Now().Add(time.Hour)}, time.Now())
	if s.ShutOut("u") {
		t.Error("somebody is shut out because a session has ended")
	}
	apply(events.UserErased{}, time.Now())
	if !s.ShutOut("u") || s.Registered("u") || s.users.Size() > 0 {
		t.Error("somebody who was erased is let in, or kept")
	}
	s.ended.DeleteMatching(func(_ session, until time.Time) (bool, bool) {
		return until.Before(time.Now().Add(erasedFor + time.Second)), false
	})
	if s.ended.Size() > 0 {
		t.Error("somebody who was erased is kept for ever")
	}
}
