package commands

import (
	"errors"
	"testing"
	"time"

	"flagledger/events"
)

func TestCreateTenant(t *testing.T) {
	create := CreateTenant{ID: "t", Name: "Acme", Creator: "u", Environments: []events.EnvironmentRef{production}}
	never, end := time.Time{}, time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)
	facts := func(plan events.Plan, endsAt time.Time) []events.Fact {
		return []events.Fact{
			events.TenantCreated{ID: "t", Name: "Acme", Sandbox: !endsAt.IsZero(), Plan: plan, SandboxEndsAt: endsAt},
			events.MemberAdded{UserID: "u", Role: events.AdminRole},
			events.EnvironmentAdded{Environment: production},
		}
	}
	when(t, nil, create).then(facts(events.FreePlan, never)...)
	create.SandboxEndsAt = end
	when(t, nil, create).then(facts(events.SandboxPlan, end)...)
	when(t, facts(events.FreePlan, never), create).refused(Conflict)
	when(t, nil, CreateTenant{ID: "t"}).refused(Invalid, "name")
	create.Created = CreatedBefore{Tenants: 99, Today: 199}
	when(t, nil, create).then(facts(events.SandboxPlan, end)...)
	create.Created = CreatedBefore{Tenants: 100}
	when(t, nil, create).refused(Conflict)
	create.Created = CreatedBefore{Tenants: 1, Today: 200, At: end.Add(9 * time.Hour)}
	when(t, nil, create).refused(TooMany)
	if err, _ := errors.AsType[*Error](create.Created.Check()); err == nil || err.UntilReset != 15*time.Hour ||
		err.PerDay != 200 {
		t.Errorf("refused with %+v", err)
	}
}

func TestUsers(t *testing.T) {
	registered := events.UserRegistered{ID: "u", Provider: "password"}
	until := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ended := events.SessionEnded{UserID: "u", SessionID: "s", Until: until}
	when(t, nil, RegisterUser{ID: "u", Provider: "password"}).then(registered)
	when(t, []events.Fact{registered}, RegisterUser{ID: "u", Provider: "google.com"}).then()
	when(t, []events.Fact{registered}, EndSession{UserID: "u", SessionID: "s", Until: until}).then(ended)
	when(t, []events.Fact{registered, ended}, EndSession{UserID: "u", SessionID: "s", Until: until}).then()
}
