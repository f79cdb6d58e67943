package commands

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"flagledger/events"
	"flagledger/events/state"
)

// later is a time after all facts of a test.
var later = time.Now().AddDate(100, 0, 0)

func resetDemo(key string, isNew bool) ResetDemoFlag {
	return ResetDemoFlag{
		TenantID:     "t",
		Key:          key,
		ID:           NewID(),
		Environments: []events.EnvironmentRef{production, development},
		DemoReset:    DemoReset{OnlyMissing: isNew, Asked: later},
	}
}

func TestDemoFlags(t *testing.T) {
	types, rules, rollouts, split := map[events.FlagType]int{}, 0, 0, 0
	for _, key := range DemoFlags() {
		facts, err := resetDemo(key, true).Decide(state.Flag{})
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		f := stateOf[state.Flag](facts)
		types[f.Type]++
		for _, r := range f.Rules[production.ID] {
			if rules++; r.Serve.Rollout != nil {
				rollouts++
			}
		}
		if slices.ContainsFunc(f.Variations, func(v events.Variation) bool { return v.Weight > 0 }) {
			split++
		}
		second := when[state.Flag](t, facts, resetDemo(key, false))
		second.then()
		when[state.Flag](t, facts, resetDemo(key, true)).then()
	}
	if len(DemoFlags()) != 10 || len(types) != 4 || rules < 5 || rollouts < 2 || split < 2 ||
		len(DemoProjects("t")) != 2 ||
		len(DemoPeople("t")) != 3 {
		t.Errorf("there are %d flags of the types %v, with %d rules, %d rollouts and %d splits", len(DemoFlags()), types,
			rules, rollouts, split)
	}
	if mine, yours := DemoPeople("t")[0], DemoPeople("u")[0]; mine.UserID == yours.UserID || mine.Email == yours.Email {
		t.Errorf("%v and %v are of two sandboxes", mine, yours)
	}
}

// A reset demo flag has its old ids and salts, which decide what it serves to each person, whatever was done to it.
func TestResettingADemoFlag(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SampledFrom(DemoFlags()).Draw(t, "key")
		ref := FlagRef{TenantID: "t", Key: key}
		facts, err := resetDemo(key, true).Decide(state.Flag{})
		if err != nil {
			t.Fatal(err)
		}
		first := stateOf[state.Flag](facts)
		for range rapid.IntRange(1, 5).Draw(t, "changes") {
			environment := rapid.SampledFrom([]events.EnvironmentRef{production, development}).Draw(t, "environment")
			var change Command[state.Flag]
			switch rapid.IntRange(0, 6).Draw(t, "change") {
			case 0:
				change = DeleteFlag{FlagRef: ref}
			case 1:
				change = SwitchFlag{FlagRef: ref, Environment: environment, On: rapid.Bool().Draw(t, "on")}
			case 2:
				change = SetRules{FlagRef: ref, Environment: environment, Rules: []NewRule{}}
			case 3:
				change = SetFallthrough{FlagRef: ref, Environment: environment, Unset: true}
			case 4:
				change = UpdateFlag{FlagRef: ref, Name: new("other"), Tags: &[]string{"x"}, Status: new(events.InactiveFlag)}
			case 5:
				change = AddVariation{FlagRef: ref, Variation: NewVariation{ID: NewID(), Name: NewID(), Value: first.DefaultValue}}
			case 6:
				change = CreateFlag{TenantID: "t", Key: key, ID: NewID(), Type: events.StringFlag, Salt: "s"}
			}
			more, err := change.Decide(stateOf[state.Flag](facts))
			if err == nil {
				facts = append(facts, more...)
			}
		}
		changed := len(facts)
		reset, err := resetDemo(key, false).Decide(stateOf[state.Flag](facts))
		if err != nil {
			t.Fatal(err)
		}
		last := stateOf[state.Flag](append(facts, reset...))
		ignored := cmp.FilterPath(func(p cmp.Path) bool {
			return slices.Contains([]string{"ID", "Version", "CreatedAt", "UpdatedAt"}, p.Last().String()) && len(p) <= 4
		}, cmp.Ignore())
		first.ID, first.Version, first.CreatedAt, first.UpdatedAt = last.ID, last.Version, last.CreatedAt, last.UpdatedAt
		if !sameDemoFlag(last, first, []events.EnvironmentRef{production, development}) {
			t.Errorf("after %d facts it is not what it was:\n%s", changed, cmp.Diff(first, last, ignored))
		}
		if more, err := resetDemo(key, false).Decide(last); err != nil || len(more) > 0 {
			t.Errorf("resetting it once more gives %v, %v", more, err)
		}
		if len(facts) > 1 {
			if more, err := resetDemo(key, true).Decide(stateOf[state.Flag](facts)); err != nil || len(more) > 0 {
				t.Errorf("one that was there gives %v, %v", more, err)
			}
		}
	})
}

func TestResettingDemoProjectsAndPeople(t *testing.T) {
	shop := Demo().Projects[0]
	id := demoID("t", "project", shop.Name)
	created := events.ProjectCreated{
		ID:          id,
		TenantID:    "t",
		Name:        shop.Name,
		Description: shop.Description,
		Color:       shop.Color,
	}
	reset, add := ResetDemoProject{
		TenantID:  "t",
		Name:      shop.Name,
		DemoReset: DemoReset{Asked: later},
	}, ResetDemoProject{
		TenantID:  "t",
		Name:      shop.Name,
		DemoReset: DemoReset{OnlyMissing: true},
	}
	renamed := events.ProjectUpdated{Name: &events.Change[string]{From: shop.Name, To: "other"}}
	when[state.Project](t, nil, add).then(created)
	when[state.Project](t, []events.Fact{created}, reset).then()
	when[state.Project](t, []events.Fact{created, renamed}, add).then()
	when[state.Project](
		t,
		[]events.Fact{created, renamed},
		reset,
	).then(events.ProjectUpdated{Name: &events.Change[string]{From: "other", To: shop.Name}})
	for i := range reflect.TypeFor[events.ProjectUpdated]().NumField() { // each field that users can change
		name, changed := reflect.TypeFor[events.ProjectUpdated]().Field(i).Name, created
		reflect.ValueOf(&changed).Elem().FieldByName(name).SetString("changed")
		p := stateOf[state.Project]([]events.Fact{changed})
		facts, err := reset.Decide(p)
		if err != nil {
			t.Fatal(err)
		}
		if p = stateOf[state.Project](append([]events.Fact{changed}, facts...)); p.ProjectCreated != created {
			t.Errorf("a reset does not restore %s", name)
		}
	}
	when[state.Project](t, []events.Fact{created, events.ProjectDeleted{}}, add).then()
	when[state.Project](t, []events.Fact{created, events.ProjectDeleted{}}, reset).then(created)

	people := DemoPeople("t")
	sandbox := []events.Fact{
		events.TenantCreated{
			ID:      "t",
			Name:    "n",
			Sandbox: true,
			Plan:    events.SandboxPlan,
		},
		events.MemberAdded{UserID: "u", Role: events.AdminRole},
		events.EnvironmentAdded{Environment: production},
		events.EnvironmentAdded{Environment: development},
	}
	fill := ResetDemoPeople{
		TenantRef:    TenantRef{"t"},
		Environments: []events.EnvironmentRef{{ID: "n1", Name: "production"}, {ID: "n2", Name: "development"}},
		DemoReset:    DemoReset{OnlyMissing: true},
	}
	clean := fill
	clean.OnlyMissing, clean.Asked = false, later
	var added []events.Fact
	for _, p := range people {
		added = append(added, events.MemberAdded{UserID: p.UserID, Role: p.Role})
	}
	when[state.Tenant](t, sandbox, fill).then(added...)
	filled := slices.Concat(sandbox, added)
	when[state.Tenant](t, filled, clean).then()
	staging := events.EnvironmentRef{ID: "e3", Name: "staging"}
	changed := slices.Concat(filled, []events.Fact{
		events.EnvironmentDeleted{
			Environment: development,
		},
		events.EnvironmentAdded{Environment: staging},
		events.MemberRemoved{UserID: people[0].UserID},
		events.MemberRoleChanged{UserID: people[1].UserID, From: people[1].Role, To: events.AdminRole},
	})
	when[state.Tenant](t, changed, fill).then()
	when[state.Tenant](t, changed, clean).then(
		events.EnvironmentDeleted{
			Environment: staging,
		}, events.EnvironmentAdded{Environment: clean.Environments[1]}, events.MemberAdded{UserID: people[0].UserID, Role: people[0].Role},
		events.MemberRoleChanged{UserID: people[1].UserID, From: events.AdminRole, To: people[1].Role},
	)
	arranged := func(list ...events.EnvironmentRef) (all []events.ArrangedEnvironment) {
		for _, e := range list {
			all = append(all, events.ArrangedEnvironment{Environment: e, Color: e.DefaultColor()})
		}
		return all
	}
	usual, swapped := arranged(production, development), arranged(development, production)
	when[state.Tenant](t, append(slices.Clip(filled), events.EnvironmentsArranged{From: usual, To: swapped}), clean).
		then(events.EnvironmentsArranged{From: swapped, To: usual})
	when[state.Tenant](t, []events.Fact{events.TenantCreated{ID: "t", Name: "n", Plan: events.FreePlan}}, clean).refused(Conflict)
	has := func(s events.Subscription) []events.Fact {
		return append(slices.Clip(filled), events.SubscriptionChanged{To: s})
	}
	when[state.Tenant](t, has(events.Subscription{Plan: events.EnterprisePlan, Status: events.NoSubscription}), clean).refused(Conflict)
	when[state.Tenant](t, has(events.Subscription{ID: "s", Plan: events.StandardPlan, Status: events.Canceled}), clean).then()
	long := time.Date(2020, 4, 1, 0, 0, 0, 0, time.UTC) // long ago: its renewal was missed
	when[state.Tenant](t, has(events.Subscription{ID: "s", Plan: events.StandardPlan, Status: events.Active, PeriodEnd: long}),
		clean).refused(Conflict)
	when[state.Tenant](t, append(sandbox, events.TenantDeleted{}), clean).refused(NotFound)
}

func TestDeletingSandboxesThatEnded(t *testing.T) {
	end := time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)
	sandbox := events.TenantCreated{ID: "t", Name: "n", Sandbox: true, Plan: events.SandboxPlan, SandboxEndsAt: end}
	remove := func(at time.Time) DeleteEndedSandbox { return DeleteEndedSandbox{TenantRef{"t"}, end, at} }
	paid := events.SubscriptionChanged{
		From: sandbox.FirstSubscription(),
		To:   events.Subscription{ID: "s", Plan: events.StandardPlan, Status: events.Active},
	}
	when[state.Tenant](t, []events.Fact{sandbox}, remove(end.Add(SandboxKeptAfterEnd-1))).then()
	when[state.Tenant](t, []events.Fact{sandbox}, remove(end.Add(SandboxKeptAfterEnd))).then(events.TenantDeleted{})
	when[state.Tenant](t, []events.Fact{sandbox}, DeleteEndedSandbox{TenantRef{"t"}, end.Add(-1), end.Add(SandboxKeptAfterEnd)}).then()
	when[state.Tenant](t, []events.Fact{sandbox, paid}, remove(end.Add(SandboxKeptAfterEnd))).then()
	over := paid
	over.To.PeriodEnd = end.Add(-time.Hour) // its renewal was missed
	when[state.Tenant](t, []events.Fact{sandbox, over}, remove(end.Add(2*SandboxKeptAfterEnd))).then()
	unpaid := over
	unpaid.To.Status = events.Unpaid
	when[state.Tenant](t, []events.Fact{sandbox, unpaid}, remove(end.Add(2*SandboxKeptAfterEnd))).then(events.TenantDeleted{})
	unknown := paid
	unknown.To.Plan = events.SandboxPlan // at a price without a plan
	when[state.Tenant](t, []events.Fact{sandbox, unknown}, remove(end.Add(2*SandboxKeptAfterEnd))).then()
	when[state.Tenant](t, []events.Fact{sandbox, events.TenantDeleted{}}, remove(end.Add(SandboxKeptAfterEnd))).then()
	when[state.Tenant](t, []events.Fact{events.TenantCreated{ID: "t", Name: "n", Plan: events.FreePlan}},
		remove(end.Add(10*SandboxKeptAfterEnd))).then()
}

// A cleanup deletes only what was there when it was requested, however late it runs.
func TestACleanupHasAMoment(t *testing.T) {
	before := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	asked, after := before.Add(time.Minute), before.Add(time.Hour)
	at := func(time time.Time, facts ...events.Fact) (list []events.Recorded) {
		for _, f := range facts {
			list = append(list, events.Recorded{Event: events.Event{Fact: f, Metadata: events.Metadata{Time: time}}, Revision: 1})
		}
		return list
	}
	decided := func(facts []events.Fact, err error) int {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		return len(facts)
	}
	for changed, touched := range map[time.Time]bool{before: true, asked: true, after: false} {
		var f state.Flag
		for _, r := range at(changed, events.FlagCreated{ID: "f", Key: "k", Type: events.BooleanFlag}) {
			f.Apply(r)
		}
		if n := decided(CleanUpFlag{FlagRef{TenantID: "t", Key: "k"}, asked}.Decide(f)); (n > 0) != touched {
			t.Errorf("a flag of %v: %d facts", changed, n)
		}
		f.Key = DemoFlags()[0]
		reset := resetDemo(f.Key, false)
		reset.Asked = asked
		if n := decided(reset.Decide(f)); (n > 0) != touched {
			t.Errorf("a demo flag of %v: %d facts", changed, n)
		}
		shop := Demo().Projects[0]
		var p state.Project
		for _, r := range at(changed, events.ProjectCreated{ID: demoID("t", "project", shop.Name), TenantID: "t", Name: "other", Color: shop.Color}) {
			p.Apply(r)
		}
		if n := decided(CleanUpProject{ProjectRef{"t", p.ID}, asked}.Decide(p)); (n > 0) != touched {
			t.Errorf("a project of %v: %d facts", changed, n)
		}
		if n := decided(
			ResetDemoProject{TenantID: "t", Name: shop.Name, DemoReset: DemoReset{Asked: asked}}.Decide(p),
		); (n > 0) != touched {
			t.Errorf("a demo project of %v: %d facts", changed, n)
		}
		people := DemoPeople("t")
		var tenant state.Tenant
		for _, r := range slices.Concat(
			at(before, events.TenantCreated{ID: "t", Sandbox: true, Plan: events.SandboxPlan}, events.EnvironmentAdded{Environment: production}, events.EnvironmentAdded{Environment: development}),
			at(before, events.MemberAdded{UserID: people[0].UserID, Role: people[0].Role}, events.MemberAdded{UserID: people[1].UserID, Role: people[1].Role}, events.MemberAdded{UserID: people[2].UserID, Role: people[2].Role}),
			at(changed, events.EnvironmentAdded{Environment: events.EnvironmentRef{ID: "e3", Name: "staging"}}, events.EnvironmentDeleted{Environment: development}),
			at(changed, events.MemberRemoved{UserID: people[0].UserID}, events.MemberRoleChanged{UserID: people[1].UserID, From: people[1].Role, To: events.ViewerRole}),
		) {
			tenant.Apply(r)
		}
		clean := ResetDemoPeople{
			TenantRef:    TenantRef{"t"},
			Environments: FirstEnvironments(),
			DemoReset:    DemoReset{Asked: asked},
		}
		if n := decided(clean.Decide(tenant)); n != map[bool]int{true: 4, false: 0}[touched] {
			t.Errorf("environments and people of %v: %d facts", changed, n)
		}
	}
}
