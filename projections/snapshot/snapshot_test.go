package snapshot

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"flagledger/events"
)

// of returns a snapshot with these facts of a tenant t and its flag k.
func of(flag ...events.Fact) *Snapshot {
	s := New(Options{})
	page := events.Page{Live: true, Events: []events.Recorded{
		recorded("tenant-t", 1, events.TenantCreated{ID: "t", Name: "Acme", Plan: events.FreePlan}),
		recorded("tenant-t", 2, events.EnvironmentAdded{Environment: production}),
	}}
	for i, fact := range flag {
		page.Events = append(page.Events, recorded(events.FlagStream("t", "k"), events.Revision(i+1), fact))
	}
	s.apply(page, slog.New(slog.DiscardHandler))
	return s
}

func TestEnvironmentsAreInTheTenantsOrder(t *testing.T) {
	s, staging, late := of(), events.EnvironmentRef{ID: "e2", Name: "staging"}, events.EnvironmentRef{ID: "e3", Name: "late"}
	s.applyAll([]events.Recorded{
		recorded("tenant-t", 3, events.EnvironmentAdded{Environment: staging}),
		recorded("tenant-t", 4, events.EnvironmentsArranged{To: []events.ArrangedEnvironment{
			{Environment: staging, Color: "#000000"}, {Environment: production, Color: "#000000"},
		}}),
		recorded("tenant-t", 5, events.EnvironmentAdded{Environment: late}),
	})
	tenant, _ := s.Tenant("t")
	if got := tenant.Environments(); !slices.Equal(got, []events.EnvironmentRef{staging, production, late}) {
		t.Errorf("the environments are %v", got)
	}
}

func TestADeletedFlagIsGone(t *testing.T) {
	tenant, _ := of(made(events.BooleanFlag, "false"), events.FlagDeleted{}).Tenant("t")
	if _, ok := tenant.Flag("k"); ok {
		t.Error("the flag is still there")
	}
}

func TestASessionThatEndsIsForgottenWithItsTokens(t *testing.T) {
	s := of()
	end := func(id string, until time.Time) {
		s.apply(
			events.Page{
				Events: []events.Recorded{recorded("user-u", 1, events.SessionEnded{UserID: "u", SessionID: id, Until: until})},
			},
			slog.New(slog.DiscardHandler),
		)
	}
	now := time.Now()
	end("first", now.Add(time.Hour))
	s.ended.Store(session{"u", "expired"}, now.Add(-time.Second))
	end("second", now.Add(time.Hour))
	if n := s.ended.Size(); n != 3 {
		t.Errorf("%d sessions are known: each that ends has all looked through", n)
	}
	s.sessionsSwept = now.Add(-sessionSweepInterval)
	end("third", now.Add(time.Hour))
	if n := s.ended.Size(); n != 3 || s.SessionEnded("u", "expired", now) || !s.SessionEnded("u", "first", now) ||
		!s.SessionEnded("u", "third", now) {
		t.Errorf("%d sessions are known, want those whose tokens may live", n)
	}
}

func TestWithItsTenantAProjectIsForgotten(t *testing.T) {
	s := of()
	apply := func(e events.Recorded) {
		s.apply(events.Page{Events: []events.Recorded{e}}, slog.New(slog.DiscardHandler))
	}
	apply(recorded("project-p", 1, events.ProjectCreated{ID: "p", TenantID: "t"}))
	apply(recorded("tenant-u", 1, events.TenantCreated{ID: "u"}))
	apply(recorded("project-q", 1, events.ProjectCreated{ID: "q", TenantID: "u"}))
	apply(recorded("tenant-t", 3, events.TenantDeleted{}))
	if _, kept := s.projects["p"]; kept || len(s.projects) != 1 {
		t.Errorf("%d projects are known", len(s.projects))
	}
}

func TestTenantsOfAPersonInOrder(t *testing.T) {
	s := of()
	joined := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	apply := func(e events.Recorded) {
		s.apply(events.Page{Events: []events.Recorded{e}}, slog.New(slog.DiscardHandler))
	}
	create := func(id, creator string) {
		e := recorded("tenant-"+id, 1, events.TenantCreated{ID: id})
		e.Actor = events.Actor{Kind: events.UserActor, ID: creator}
		apply(e)
		apply(recorded("tenant-"+id, 2, events.MemberAdded{UserID: creator, Role: events.AdminRole}))
	}
	join := func(id string) {
		e := recorded("tenant-"+id, 3, events.MemberJoined{ID: "p", UserID: "u", Role: events.ViewerRole})
		e.At = joined
		apply(e)
	}
	want := func(want string) {
		t.Helper()
		if got := fmt.Sprint(s.TenantsOf("u")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	create("x", "v")
	join("x")
	want("[x]")
	create("own", "u")
	want("[own x]")
	create("second", "u")
	create("y", "v")
	join("y")
	want("[own x second y]")
	apply(recorded("tenant-own", 3, events.TenantDeleted{}))
	want("[second x y]")
	apply(recorded("tenant-y", 4, events.MemberRoleChanged{UserID: "u", From: events.ViewerRole, To: events.AdminRole}))
	for id, at := range map[string]time.Time{"second": {}, "y": joined, "own": {}, "none": {}} {
		if got := s.JoinedAt(id, "u"); !got.Equal(at) {
			t.Errorf("joined %s at %v, want %v", id, got, at)
		}
	}
	apply(recorded("tenant-second", 3, events.MemberRemoved{UserID: "u"}))
	want("[x y]")
}

func TestAccess(t *testing.T) {
	s := of()
	s.apply(events.Page{Events: []events.Recorded{
		recorded("tenant-t", 3, events.MemberAdded{UserID: "u", Role: events.AdminRole}),
		recorded("tenant-t2", 1, events.TenantCreated{ID: "t2"}),
		recorded("tenant-t2", 2, events.MemberAdded{UserID: "u", Role: events.ViewerRole}),
		recorded("user-u", 1, events.UserRegistered{ID: "u"}),
		recorded("user-u", 2, events.SessionEnded{UserID: "u", SessionID: "old", Until: time.Now().Add(-time.Hour)}),
		recorded("user-u", 3, events.SessionEnded{UserID: "u", SessionID: "s1", Until: time.Now().Add(time.Hour)}),
		recorded("project-p", 1, events.ProjectCreated{ID: "p", TenantID: "t"}),
		recorded(events.FlagStream("t", "a"), 1, events.FlagCreated{Key: "a", ProjectID: "p"}),
		recorded(events.FlagStream("t", "b"), 1, events.FlagCreated{Key: "b", ProjectID: "p"}),
		recorded(events.FlagStream("t", "b"), 2, events.FlagDeleted{}),
		{Stream: "flag-t.c", Revision: 1, Name: "flag.created", Err: errors.New("cannot be decoded")},
	}}, slog.New(slog.DiscardHandler))
	u := s.User("u")
	if !u.Registered || fmt.Sprint(u.Tenants) != "[t t2]" {
		t.Errorf("the person is %+v", u)
	}
	began := time.Now()
	if !s.SessionEnded("u", "s1", began) || s.SessionEnded("u", "s2", began) || s.SessionEnded("x", "s1", began) ||
		s.SessionEnded("u", "old", began) {
		t.Error("other sessions have ended than s1")
	}
	tenant, _ := s.Tenant("t")
	if role, ok := tenant.Role("u"); role != events.AdminRole || !ok {
		t.Errorf("the role is %q", role)
	}
	if _, ok := tenant.Role("x"); ok {
		t.Error("a stranger is a member")
	}
	if n, ok := tenant.ProjectFlags("p"); n != 1 || !ok {
		t.Errorf("the project has %d flags", n)
	}
	if _, ok := s.Tenant("none"); ok {
		t.Error("there is a tenant of no facts")
	}
	if s.Faults() != 1 {
		t.Errorf("%d faults, want 1", s.Faults())
	}
	s.apply(events.Page{Events: []events.Recorded{recorded("project-p", 2, events.ProjectDeleted{})}},
		slog.New(slog.DiscardHandler))
	if _, ok := tenant.ProjectFlags("p"); ok {
		t.Error("the project is still there")
	}
}
