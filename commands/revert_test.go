package commands

import (
	"slices"
	"testing"

	"flagledger/events"
	"flagledger/events/state"
)

// asOf returns the state after the first facts of a list.
func asOf(facts []events.Fact, version int) state.Flag {
	return stateOf[state.Flag](facts[:version])
}

func TestRevertFlag(t *testing.T) {
	staging := events.EnvironmentRef{ID: "e9", Name: "staging"}
	both := []events.EnvironmentRef{production, staging}
	created := events.FlagCreated{
		TenantID:     "t",
		Key:          "k",
		ID:           "f",
		Name:         "K",
		Type:         events.StringFlag,
		DefaultValue: raw(`"d"`),
		Tags:         []string{"b", "a"},
		Salt:         "s",
		Variations: []events.Variation{
			{ID: "v1", Name: "one", Value: raw(`"1"`), Weight: 1000},
			{ID: "v2", Name: "two", Value: raw(`"2"`), Weight: 2000},
		},
	}
	rule := events.Rule{ID: "r1", Salt: "rs", Conditions: []events.Condition{}, Serve: events.Serve{VariationID: "v2"}}
	facts := []events.Fact{
		created, // 1
		events.FlagEnabled{Environment: production}, // 2
		// 3
		events.RulesChanged{
			Environment: production,
			Added:       []events.Rule{rule},
			Order:       &events.Change[[]string]{To: []string{"r1"}},
		},
		// 4
		events.FallthroughChanged{Environment: staging, To: &events.Serve{Value: raw(`"x"`)}},
		// 5
		events.FlagUpdated{
			Name:      &events.Change[string]{From: "K", To: "N"},
			Tags:      &events.Change[[]string]{From: []string{"b", "a"}, To: nil},
			Permanent: &events.Change[bool]{From: false, To: true},
		},
		// 6
		events.FlagStatusChanged{From: events.ActiveFlag, To: events.ArchivedFlag},
		// 7
		events.RulesChanged{
			Environment: production,
			Removed:     []events.Rule{rule},
			Order:       &events.Change[[]string]{From: []string{"r1"}, To: nil},
		},
		// 8
		events.VariationRemoved{Variation: created.Variations[1]},
		// 9
		events.VariationUpdated{ID: "v1", Weight: &events.Change[events.Weight]{From: 1000, To: 5000}},
		// 10
		events.VariationAdded{Variation: events.Variation{ID: "v3", Name: "three", Value: raw(`"3"`)}},
		// 11
		events.FlagDisabled{Environment: production},
	}
	ref := FlagRef{TenantID: "t", Key: "k"}
	to := func(version int) RevertFlag {
		return RevertFlag{FlagRef: ref, To: asOf(facts, version), Environments: both, EnvironmentsAt: both}
	}
	t.Run("all that differs is as it was, in an order that serves nothing that is not there", func(t *testing.T) {
		when(t, facts, to(4)).then(
			events.FlagUpdated{
				Name:      &events.Change[string]{From: "N", To: "K"},
				Tags:      &events.Change[[]string]{From: nil, To: []string{"b", "a"}},
				Permanent: &events.Change[bool]{From: true, To: false},
			},
			events.VariationUpdated{ID: "v1", Weight: &events.Change[events.Weight]{From: 5000, To: 1000}},
			events.VariationAdded{Variation: created.Variations[1]},
			events.RulesChanged{
				Environment: production,
				Added:       []events.Rule{rule},
				Order:       &events.Change[[]string]{From: []string{}, To: []string{"r1"}},
			},
			events.VariationRemoved{Variation: events.Variation{ID: "v3", Name: "three", Value: raw(`"3"`)}},
			events.FlagStatusChanged{From: events.ArchivedFlag, To: events.ActiveFlag},
			events.FlagEnabled{Environment: production},
			events.FlagReverted{Version: 4},
		)
	})
	t.Run("the order of the variations comes back, since it decides the split", func(t *testing.T) {
		facts := []events.Fact{
			created,
			events.VariationRemoved{Variation: created.Variations[0]},
			events.VariationAdded{Variation: created.Variations[0]},
		}
		when(t, facts, RevertFlag{FlagRef: ref, To: asOf(facts, 1), Environments: both, EnvironmentsAt: both}).then(
			events.FlagReverted{
				Version:    1,
				Variations: &events.Change[[]string]{From: []string{"v2", "v1"}, To: []string{"v1", "v2"}},
			})
	})
	t.Run("a flag that is like that stays", func(t *testing.T) {
		when(t, facts, to(len(facts))).then()
	})
	t.Run("a deleted flag begins a new life with the ids and salts of then", func(t *testing.T) {
		deleted := append(slices.Clone(facts[:4]), events.FlagDeleted{})
		then := asOf(facts, 4)
		when(t, deleted, to(4)).then(
			then.FlagCreated,
			events.RulesChanged{
				Environment: production,
				Added:       []events.Rule{rule},
				Order:       &events.Change[[]string]{From: []string{}, To: []string{"r1"}},
			},
			events.FallthroughChanged{Environment: staging, To: &events.Serve{Value: raw(`"x"`)}},
			events.FlagEnabled{Environment: production},
			events.FlagReverted{Version: 4},
		)
		full := to(4)
		full.FlagCount = MaxFlags
		when(t, deleted, full).refused(Conflict)
	})
	t.Run("another flag of the key makes way for the one of then", func(t *testing.T) {
		again := append(
			slices.Clone(facts[:1]),
			events.FlagDeleted{},
			events.FlagCreated{
				TenantID:     "t",
				Key:          "k",
				ID:           "other",
				Name:         "K",
				Type:         events.BooleanFlag,
				DefaultValue: raw(`true`),
				Salt:         "o",
			},
		)
		when(t, again, to(1)).then(events.FlagDeleted{}, created, events.FlagReverted{Version: 1})
		keeping := to(1)
		keeping.KeepOther = true
		when(t, again, keeping).refused(Conflict)
		when(t, again[:2], keeping).then(created, events.FlagReverted{Version: 1})
	})
	t.Run("a flag that was inactive goes off before it is active", func(t *testing.T) {
		inactive := append(
			slices.Clone(facts[:6]),
			events.RulesChanged{
				Environment: production,
				Removed:     []events.Rule{rule},
				Order:       &events.Change[[]string]{From: []string{"r1"}, To: nil},
			},
		)
		when(t, inactive, to(1)).then(
			events.FlagDisabled{Environment: production},
			events.FlagUpdated{
				Name:      &events.Change[string]{From: "N", To: "K"},
				Tags:      &events.Change[[]string]{From: nil, To: []string{"b", "a"}},
				Permanent: &events.Change[bool]{From: true, To: false},
			},
			events.FallthroughChanged{Environment: staging, From: &events.Serve{Value: raw(`"x"`)}},
			events.FlagStatusChanged{From: events.ArchivedFlag, To: events.ActiveFlag},
			events.FlagReverted{Version: 1},
		)
	})
	t.Run("a flag that becomes inactive is so before its rules change", func(t *testing.T) {
		active := append(slices.Clone(facts[:7]), events.FlagStatusChanged{From: events.ArchivedFlag, To: events.ActiveFlag})
		when(t, active, to(6)).then(
			events.FlagStatusChanged{From: events.ActiveFlag, To: events.ArchivedFlag},
			events.RulesChanged{
				Environment: production,
				Added:       []events.Rule{rule},
				Order:       &events.Change[[]string]{From: []string{}, To: []string{"r1"}},
			},
			events.FlagReverted{Version: 6},
		)
	})
	t.Run("what cannot come back is named, and nothing is done", func(t *testing.T) {
		gone := to(4)
		gone.Environments = both[:1]
		when(t, facts, gone).refused(Conflict)
		now := to(len(facts))
		now.Environments, now.ProjectMissing = both[:1], true
		when(t, facts, now).then() // nothing to restore
		unused := to(3)            // staging had no settings then
		unused.Environments = both[:1]
		if s := when(t, facts, unused); s.err != nil {
			t.Error(s.err)
		}
		project := to(4)
		project.ProjectMissing = true
		when(t, facts, project).refused(Conflict)
	})
	t.Run("another version than the caller expects", func(t *testing.T) {
		stale := to(4)
		stale.IfVersions = []events.Revision{3}
		when(t, facts, stale).refused(PreconditionFailed)
	})
	t.Run("one environment alone", func(t *testing.T) {
		only := to(4)
		only.Only = &staging
		when(t, facts, only).then()
		only.Only = &production
		when(t, facts, only).refused(Conflict) // v2 no longer exists
		when(t, facts[:7], only).then(
			events.RulesChanged{
				Environment: production,
				Added:       []events.Rule{rule},
				Order:       &events.Change[[]string]{From: []string{}, To: []string{"r1"}},
			},
			events.FlagReverted{Version: 4, Environment: &production},
		)
	})
}
