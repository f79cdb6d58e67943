package commands

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

func TestMembers(t *testing.T) {
	ref := TenantRef{"t"}
	given := []events.Fact{
		events.TenantCreated{ID: "t", Name: "Acme"},
		events.MemberAdded{UserID: "boss", Role: events.AdminRole},
	}
	and := func(more ...events.Fact) []events.Fact { return append(given[:len(given):len(given)], more...) }
	second := events.MemberAdded{UserID: "second", Role: events.AdminRole}
	pending := events.MemberInvited{ID: "p", Role: events.AdminRole}
	t.Run("add", func(t *testing.T) {
		when(t, given, InviteMember{TenantRef: ref, ID: "p", Role: events.AdminRole, Person: ""}).then(pending)
		when(t, given, InviteMember{TenantRef: ref, ID: "p", Role: events.AdminRole, Person: "u"}).then(pending)
		when(t, and(pending), InviteMember{TenantRef: ref, ID: "p", Role: events.ViewerRole, Person: ""}).refused(Conflict)
		when(t, and(pending), InviteMember{TenantRef: ref, ID: "p", Role: events.ViewerRole, Person: "u"}).refused(Conflict)
		when(t, given, InviteMember{TenantRef: ref, ID: "p", Role: events.ViewerRole, Person: "boss"}).refused(Conflict)
		when(t, given, InviteMember{TenantRef: ref, ID: "p", Role: "owner", Person: ""}).refused(Invalid, "role")
		when(t, given, InviteMember{TenantRef: ref, ID: "p", Role: "", Person: ""}).refused(Invalid, "role")
		when(t, nil, InviteMember{TenantRef: ref, ID: "p", Role: events.ViewerRole, Person: ""}).refused(NotFound)
		when(
			t,
			and(events.TenantDeleted{}),
			InviteMember{TenantRef: ref, ID: "p", Role: events.ViewerRole, Person: ""},
		).refused(NotFound)
	})
	t.Run("join", func(t *testing.T) {
		join, joined := JoinTenant{
			TenantRef: ref,
			ID:        "p",
			UserID:    "u",
		}, events.MemberJoined{
			ID:     "p",
			UserID: "u",
			Role:   events.AdminRole,
		}
		when(t, and(pending), join).then(joined)
		when(t, and(pending, joined), join).then()
		when(t, and(pending, events.MemberRemoved{UserID: "p"}), join).then()
		when(t, and(pending, events.TenantDeleted{}), join).then()
		when(t, given, JoinTenant{TenantRef: ref, ID: "boss", UserID: "u"}).then()
		when(t, and(pending, events.MemberJoined{ID: "p", UserID: "boss", Role: events.ViewerRole}),
			ChangeRole{TenantRef: ref, UserID: "boss", Role: events.AdminRole}).then()
	})
	t.Run("declined", func(t *testing.T) {
		asked := and(events.MemberInvited{ID: "q", Role: events.ViewerRole, MustAccept: true})
		decline := DeclineInvitation{RemoveMember{TenantRef: ref, UserID: "q"}}
		when(t, asked, decline).then(events.MemberRemoved{UserID: "q"})
		add := InviteMember{TenantRef: ref, ID: "p", Role: events.AdminRole, Person: "u", Declined: true}
		when(t, given, add).refused(Conflict)
		add.MustAccept = true
		when(t, given, add).then(events.MemberInvited{ID: "p", Role: events.AdminRole, MustAccept: true})
		join := JoinTenant{TenantRef: ref, ID: "p", UserID: "u", Declined: true}
		when(t, and(pending), join).then()
		join.Accepted = true
		when(t, and(pending), join).then(events.MemberJoined{ID: "p", UserID: "u", Role: events.AdminRole})
	})
	t.Run("left by themselves", func(t *testing.T) {
		joined, left := events.MemberJoined{ID: "p", UserID: "u", Role: events.AdminRole}, events.MemberRemoved{UserID: "u"}
		then := func(s state.Tenant, actor string, facts ...events.Fact) state.Tenant {
			s = s.Clone()
			for _, fact := range facts {
				by := events.Metadata{Actor: events.Actor{Kind: events.UserActor, ID: actor}}
				s.Apply(events.Recorded{Event: events.Event{Fact: fact, Metadata: by}})
			}
			return s
		}
		hasJoined := then(stateOf[state.Tenant](given), "u", pending, joined)
		hasLeft := then(hasJoined, "u", left)
		add := InviteMember{TenantRef: ref, ID: "q", Role: events.ViewerRole, Person: "u"}
		invite := add
		invite.MustAccept = true
		for _, c := range []struct {
			tenant  state.Tenant
			refused bool
		}{
			{hasLeft, true},
			{then(hasJoined, "boss", left), false}, // an admin removed them
			{then(stateOf[state.Tenant](given), "boss", pending, events.MemberRemoved{UserID: "p"}), false},
			{then(then(hasLeft, "u", pending, joined), "boss", left), false}, // they accepted after they left
			{then(hasLeft, "u", pending, joined, left), true},
		} {
			_, err := add.Decide(c.tenant)
			refusal, _ := errors.AsType[*Error](err)
			if (refusal != nil && refusal.Problem == MemberLeft) != c.refused || !c.refused && err != nil {
				t.Errorf("added again: %v, want a refusal: %v", err, c.refused)
			}
			if !c.refused {
				continue
			}
			if facts, err := invite.Decide(c.tenant); err != nil ||
				facts[0] != (events.MemberInvited{ID: "q", Role: events.ViewerRole, MustAccept: true}) {
				t.Errorf("invited: %v, %v", facts, err)
			}
		}
		waiting := then(hasLeft, "boss", events.MemberInvited{ID: "q", Role: events.ViewerRole})
		for accepted, want := range map[bool]int{false: 0, true: 1} {
			if facts, _ := (JoinTenant{TenantRef: ref, ID: "q", UserID: "u", Accepted: accepted}).Decide(waiting); len(facts) != want {
				t.Errorf("joined when accepted is %v: %v", accepted, facts)
			}
		}
		asked := and(events.MemberInvited{ID: "q", Role: events.ViewerRole, MustAccept: true})
		join := JoinTenant{TenantRef: ref, ID: "q", UserID: "new"}
		when(t, asked, join).then()
		join.Accepted = true
		when(t, asked, join).then(events.MemberJoined{ID: "q", UserID: "new", Role: events.ViewerRole})
	})
	t.Run("whom the tenant does not wait for any longer", func(t *testing.T) {
		for _, c := range []struct {
			facts []events.Fact
			left  bool
		}{
			{given, false}, {and(pending), false}, {and(pending, events.MemberRemoved{UserID: "p"}), true},
			{and(pending, events.MemberJoined{ID: "p", UserID: "u", Role: events.AdminRole}), true},
		} {
			if left := stateOf[state.Tenant](c.facts).FormerMembers["p"]; left != c.left {
				t.Errorf("after %v: %v", c.facts, left)
			}
		}
	})
	change := func(userID string, role events.Role, shutOut ...string) ChangeRole {
		return ChangeRole{ref, userID, role, shutOut}
	}
	remove := func(userID string, shutOut ...string) RemoveMember {
		return RemoveMember{ref, userID, shutOut}
	}
	t.Run("change a role", func(t *testing.T) {
		when(
			t,
			and(second),
			change("boss", events.ViewerRole),
		).then(events.MemberRoleChanged{UserID: "boss", From: events.AdminRole, To: events.ViewerRole})
		when(t, given, change("boss", events.AdminRole)).then()
		when(t, given, change("boss", events.ViewerRole)).refused(Conflict)
		when(t, and(pending), change("boss", events.ViewerRole)).refused(Conflict)
		when(
			t,
			and(pending),
			change("p", events.ViewerRole),
		).then(events.MemberRoleChanged{UserID: "p", From: events.AdminRole, To: events.ViewerRole})
		when(t, and(second), change("boss", events.ViewerRole, "second")).refused(Conflict)
		when(
			t,
			and(second),
			change("second", events.ViewerRole, "second"),
		).then(events.MemberRoleChanged{UserID: "second", From: events.AdminRole, To: events.ViewerRole})
		when(t, and(second), change("boss", events.ViewerRole, "boss", "second")).refused(Conflict)
		when(t, given, change("none", events.ViewerRole)).refused(NotFound)
		when(t, given, change("boss", "root")).refused(Invalid, "role")
	})
	t.Run("remove", func(t *testing.T) {
		gone := events.MemberRemoved{UserID: "boss"}
		when(t, and(second), remove("boss")).then(gone)
		when(t, and(second), remove("boss", "boss")).then(gone)
		when(t, and(second), remove("boss", "second")).refused(Conflict)
		when(t, and(second), remove("second", "second")).then(events.MemberRemoved{UserID: "second"})
		when(t, and(second, gone), remove("second")).refused(Conflict)
		when(t, and(second, gone), remove("boss")).refused(NotFound)
		when(t, and(pending), remove("boss")).refused(Conflict)
		when(t, and(pending), remove("p")).then(events.MemberRemoved{UserID: "p"})
	})
}

// Demo people cannot sign in, so they are no admins of a sandbox.
func TestADemoPersonIsNoAdmin(t *testing.T) {
	dana := DemoPeople("t")[0]
	given := []events.Fact{
		events.TenantCreated{
			ID:      "t",
			Sandbox: true,
		},
		events.MemberAdded{UserID: "boss", Role: events.AdminRole},
		events.MemberAdded{UserID: dana.UserID, Role: dana.Role},
	}
	ref := TenantRef{"t"}
	when(t, given, ChangeRole{ref, dana.UserID, events.AdminRole, nil}).refused(Conflict)
	when(
		t,
		given,
		ChangeRole{ref, dana.UserID, events.ViewerRole, nil},
	).then(events.MemberRoleChanged{UserID: dana.UserID, From: dana.Role, To: events.ViewerRole})
	promoted := append(given, events.MemberRoleChanged{UserID: dana.UserID, From: dana.Role, To: events.AdminRole})
	when(t, promoted, RemoveMember{ref, "boss", nil}).refused(Conflict)
	when(t, promoted, ChangeRole{ref, "boss", events.ViewerRole, nil}).refused(Conflict)
	when(t, promoted, RemoveMember{ref, dana.UserID, nil}).then(events.MemberRemoved{UserID: dana.UserID})
	tenant := stateOf[state.Tenant](promoted)
	if admins := Admins(&tenant); len(admins) != 1 || admins[0] != "boss" {
		t.Errorf("the admins are %v", admins)
	}
}

func TestTenantChanges(t *testing.T) {
	ref := TenantRef{"t"}
	staging := events.EnvironmentRef{ID: "e2", Name: "staging"}
	given := []events.Fact{
		events.TenantCreated{ID: "t", Name: "Acme"},
		events.EnvironmentAdded{Environment: production},
		events.EnvironmentAdded{Environment: staging},
	}
	gone := append(given[:len(given):len(given)], events.TenantDeleted{})
	t.Run("update", func(t *testing.T) {
		when(
			t,
			given,
			UpdateTenant{TenantRef: ref, Name: new("Acme Inc.")},
		).then(events.TenantUpdated{Name: &events.Change[string]{From: "Acme", To: "Acme Inc."}})
		when(t, given, UpdateTenant{TenantRef: ref, Name: new("Acme")}).then()
		when(t, given, UpdateTenant{TenantRef: ref}).then()
		contact := []events.ContactField{events.ContactName}
		when(t, given, UpdateTenant{TenantRef: ref, Contact: contact}).then(events.TenantUpdated{Contact: contact})
		when(t, given, UpdateTenant{TenantRef: ref, Name: new("")}).refused(Invalid, "name")
		when(t, gone, UpdateTenant{TenantRef: ref, Name: new("x")}).refused(NotFound)
	})
	t.Run("delete", func(t *testing.T) {
		when(t, given, DeleteTenant{ref}).then(events.TenantDeleted{})
		when(t, gone, DeleteTenant{ref}).refused(NotFound)
		when(t, gone, CreateTenant{ID: "t", Name: "Acme", Creator: "u"}).refused(Conflict)
	})
	t.Run("add an environment", func(t *testing.T) {
		qa := events.EnvironmentRef{ID: "e3", Name: "qa-1"}
		when(t, given, AddEnvironment{TenantRef: ref, Environment: qa}).then(events.EnvironmentAdded{Environment: qa})
		when(
			t,
			given,
			AddEnvironment{TenantRef: ref, Environment: events.EnvironmentRef{ID: "e3", Name: "staging"}},
		).refused(Conflict)
		for _, name := range []string{"", "QA", "-a", "a b", "ä", "a/b"} {
			when(
				t,
				given,
				AddEnvironment{TenantRef: ref, Environment: events.EnvironmentRef{ID: "e3", Name: name}},
			).refused(Invalid, "environment")
		}
		when(t, gone, AddEnvironment{TenantRef: ref, Environment: qa}).refused(NotFound)
	})
	t.Run("add and delete environments all day", func(t *testing.T) {
		given, now := given[:1:1], time.Date(2026, 1, 1, 23, 0, 0, 0, time.UTC)
		add := AddEnvironment{TenantRef: ref, Environment: staging, Now: now}
		for i := range maxEnvironmentsDay {
			when(t, given, add).then(events.EnvironmentAdded{Environment: staging})
			e := events.EnvironmentRef{ID: fmt.Sprint(i), Name: "preview"}
			given = append(given, events.EnvironmentAdded{Environment: e}, events.EnvironmentDeleted{Environment: e})
		}
		when(t, given, add).refused(TooMany)
		add.Now = now.Add(time.Hour)
		when(t, given, add).then(events.EnvironmentAdded{Environment: staging})
	})
	t.Run("delete an environment", func(t *testing.T) {
		deleted := events.EnvironmentDeleted{Environment: staging}
		when(t, given, DeleteEnvironment{ref, "staging"}).then(deleted)
		when(t, append(given[:3:3], deleted), DeleteEnvironment{ref, "staging"}).refused(NotFound)
		when(t, given, DeleteEnvironment{ref, "production"}).refused(Conflict)
		when(t, given, DeleteEnvironment{ref, "none"}).refused(NotFound)
	})
}
