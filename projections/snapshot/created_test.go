package snapshot

import (
	"log/slog"
	"testing"
	"time"

	"flagledger/events"
)

// A tenant counts for its creator until another person ousts them: then for that one, who takes it over.
func TestWhoOustsTheCreatorTakesTheTenantOver(t *testing.T) {
	person := func(id string) events.Actor { return events.Actor{Kind: events.UserActor, ID: id} }
	changed := func(id string, to events.Role) events.Fact {
		return events.MemberRoleChanged{UserID: id, From: events.AdminRole, To: to}
	}
	for name, c := range map[string]struct {
		by   events.Actor
		fact events.Fact
		want string
	}{
		"removed by another":               {person("b"), events.MemberRemoved{UserID: "a"}, "b"},
		"no admin any more by another":     {person("b"), changed("a", events.ViewerRole), "b"},
		"an admin as before":               {person("b"), changed("a", events.AdminRole), "a"},
		"left":                             {person("a"), events.MemberRemoved{UserID: "a"}, "a"},
		"removed by the service":           {events.Actor{Kind: events.SystemActor, ID: "system"}, events.MemberRemoved{UserID: "a"}, "a"},
		"another one removed":              {person("b"), events.MemberRemoved{UserID: "c"}, "a"},
		"another one is no admin any more": {person("b"), changed("c", events.ViewerRole), "a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := New()
			var revision events.Revision
			apply := func(by events.Actor, fact events.Fact) {
				revision++
				e := recorded("tenant-t", revision, fact)
				e.Actor = by
				s.apply(events.Page{Events: []events.Recorded{e}}, slog.New(slog.DiscardHandler))
			}
			apply(person("a"), events.TenantCreated{ID: "t", Name: "Acme", Plan: events.FreePlan})
			for _, id := range []string{"a", "b", "c"} {
				apply(person("a"), events.MemberAdded{UserID: id, Role: events.AdminRole})
			}
			tenant, _ := s.Tenant("t")
			tenant.flagBytes.Store(1000)
			apply(c.by, c.fact)
			if got := tenant.Creator(); got != c.want {
				t.Errorf("it counts for %s, want %s", got, c.want)
			}
			for _, id := range []string{"a", "b", "c"} {
				want := 0
				if id == c.want {
					want = 1000
				}
				if got := s.UnpaidFlagBytes(id, 1<<20, time.Now()); got != want {
					t.Errorf("%d bytes count for %s, want %d", got, id, want)
				}
			}
			apply(person("b"), events.TenantDeleted{})
			if len(s.created.by) != 0 {
				t.Errorf("%v stays of a tenant that is deleted", s.created.by)
			}
		})
	}
}
