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

func TestArrangeEnvironments(t *testing.T) {
	staging := events.EnvironmentRef{ID: "e3", Name: "staging"}
	red, gray := production.DefaultColor(), "#808080"
	at := func(e events.EnvironmentRef, color string) events.ArrangedEnvironment {
		return events.ArrangedEnvironment{Environment: e, Color: color}
	}
	arrange := func(list ...EnvironmentSetting) ArrangeEnvironments {
		return ArrangeEnvironments{TenantRef: TenantRef{"t"}, Environments: list}
	}
	tenant := []events.Fact{
		events.TenantCreated{ID: "t"},
		events.EnvironmentAdded{Environment: production}, events.EnvironmentAdded{Environment: staging},
	}
	first := events.EnvironmentsArranged{
		From: []events.ArrangedEnvironment{at(production, red), at(staging, staging.DefaultColor())},
		To:   []events.ArrangedEnvironment{at(staging, gray), at(production, red)},
	}
	swap := arrange(EnvironmentSetting{"staging", gray}, EnvironmentSetting{"production", red})
	when(t, tenant, swap).then(first)
	when(t, append(tenant, first), swap).then()
	when(t, tenant, arrange(EnvironmentSetting{"production", red}, EnvironmentSetting{"staging", staging.DefaultColor()})).then()

	// A new environment comes last, and a deleted one leaves.
	more := append(tenant, first, events.EnvironmentAdded{Environment: development},
		events.EnvironmentDeleted{Environment: production})
	when(t, more, arrange(EnvironmentSetting{"development", gray}, EnvironmentSetting{"staging", gray})).
		then(events.EnvironmentsArranged{
			From: []events.ArrangedEnvironment{at(staging, gray), at(development, development.DefaultColor())},
			To:   []events.ArrangedEnvironment{at(development, gray), at(staging, gray)},
		})

	when(t, tenant, arrange(EnvironmentSetting{"production", "red"}, EnvironmentSetting{"none", gray})).
		refused(Invalid, "environments", "environments[0].color", "environments[1].name")
	when(t, tenant, arrange(EnvironmentSetting{"production", red}, EnvironmentSetting{"staging", gray},
		EnvironmentSetting{"staging", gray})).refused(Invalid, "environments[2].name")
	when(t, nil, swap).refused(NotFound)
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
