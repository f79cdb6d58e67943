package commands

import (
	"testing"
	"time"

	"flagledger/events"
)

func TestInvitations(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	created := events.InvitationCreated{ID: "i", Role: events.PlatformAdmin, ExpiresAt: now.Add(InvitationLife)}
	given := []events.Fact{created}
	at, late := InvitationRef{"i", now}, InvitationRef{"i", now.Add(InvitationLife)}
	revoked, accepted := events.InvitationRevoked{}, events.InvitationAccepted{UserID: "u"}
	t.Run("create", func(t *testing.T) {
		when(t, nil, CreateInvitation{ID: "i", Role: events.PlatformAdmin, Now: now}).then(created)
		when(t, nil, CreateInvitation{ID: "i", Role: events.PlatformAdmin, Now: now, AlreadyPending: true}).refused(Conflict)
		when(t, nil, CreateInvitation{ID: "i", Now: now}).refused(Invalid, "role")
		when(t, nil, CreateInvitation{ID: "i", Role: events.SuperUser, Listed: true, Now: now}).refused(Invalid, "role")
		when(t, nil, CreateInvitation{ID: "i", Role: events.SuperUser, Legacy: true, Now: now}).refused(Invalid, "role")
		when(t, nil, CreateInvitation{ID: "i", Role: events.SuperUser, Legacy: true, Listed: true, Now: now}).
			then(events.InvitationCreated{ID: "i", Role: events.SuperUser, ExpiresAt: now.Add(InvitationLife)})
	})
	t.Run("resend", func(t *testing.T) {
		when(t, given, ResendInvitation{late}).then(events.InvitationResent{ExpiresAt: late.Now.Add(InvitationLife)})
		when(t, append(given[:1:1], revoked), ResendInvitation{at}).refused(Conflict)
		when(t, append(given[:1:1], accepted), ResendInvitation{at}).refused(Conflict)
		when(t, nil, ResendInvitation{at}).refused(NotFound)
	})
	t.Run("revoke", func(t *testing.T) {
		when(t, given, RevokeInvitation{at}).then(revoked)
		when(t, given, RevokeInvitation{late}).then(revoked)
		when(t, append(given[:1:1], revoked), RevokeInvitation{at}).then()
		when(t, append(given[:1:1], accepted), RevokeInvitation{at}).refused(Conflict)
		when(t, nil, RevokeInvitation{at}).refused(NotFound)
	})
	t.Run("accept", func(t *testing.T) {
		when(t, given, AcceptInvitation{at, "u"}).then(accepted)
		when(t, given, AcceptInvitation{late, "u"}).refused(Conflict)
		when(
			t,
			append(given[:1:1], events.InvitationResent{ExpiresAt: late.Now.Add(time.Hour)}),
			AcceptInvitation{late, "u"},
		).then(accepted)
		when(t, append(given[:1:1], revoked), AcceptInvitation{at, "u"}).refused(Conflict)
		when(t, append(given[:1:1], accepted), AcceptInvitation{at, "u"}).refused(Conflict)
		when(t, nil, AcceptInvitation{at, "u"}).refused(NotFound)
	})
}

func TestPlatformUsers(t *testing.T) {
	given, ref := []events.Fact{events.UserRegistered{ID: "u"}}, UserRef{"u"}
	erased := append(given[:1:1], events.UserErased{})
	t.Run("change a role", func(t *testing.T) {
		admin := events.PlatformRoleChanged{To: events.PlatformAdmin}
		when(t, given, ChangePlatformRole{ref, events.PlatformAdmin, false}).then(admin)
		when(t, append(given[:1:1], admin), ChangePlatformRole{ref, events.PlatformAdmin, false}).then()
		when(
			t,
			append(given[:1:1], admin),
			ChangePlatformRole{ref, "", false},
		).then(events.PlatformRoleChanged{From: events.PlatformAdmin})
		when(t, given, ChangePlatformRole{ref, events.SuperUser, true}).then(events.PlatformRoleChanged{To: events.SuperUser})
		when(t, given, ChangePlatformRole{ref, events.SuperUser, false}).refused(Invalid, "role")
		when(t, given, ChangePlatformRole{ref, "owner", true}).refused(Invalid, "role")
		when(t, nil, ChangePlatformRole{ref, events.PlatformAdmin, false}).refused(NotFound)
		when(t, erased, ChangePlatformRole{ref, events.PlatformAdmin, false}).refused(NotFound)
	})
	t.Run("shut out and let in", func(t *testing.T) {
		out := append(given[:1:1], events.UserDeactivated{})
		when(t, given, DeactivateUser{ref}).then(events.UserDeactivated{})
		when(t, out, DeactivateUser{ref}).then()
		when(t, out, ReactivateUser{ref}).then(events.UserReactivated{})
		when(t, given, ReactivateUser{ref}).then()
		when(t, nil, DeactivateUser{ref}).refused(NotFound)
		when(t, erased, ReactivateUser{ref}).refused(NotFound)
	})
	t.Run("register", func(t *testing.T) {
		when(t, nil, RegisterUser{ID: "u"}).then(events.UserRegistered{ID: "u"})
		when(t, given, RegisterUser{ID: "u"}).then()
		when(t, erased, RegisterUser{ID: "u"}).refused(Forbidden)
		when(t, []events.Fact{events.UserErased{}}, RegisterUser{ID: "u"}).refused(Forbidden)
	})
	t.Run("erase", func(t *testing.T) {
		when(t, given, EraseUser{UserRef: ref}).then(events.UserErased{})
		when(t, erased, EraseUser{UserRef: ref}).then()
		when(t, nil, EraseUser{UserRef: ref}).refused(NotFound)
		when(t, nil, EraseUser{UserRef: ref, Known: true}).then(events.UserErased{})
		when(t, []events.Fact{events.UserErased{}}, EraseUser{UserRef: ref}).then()
	})
}
