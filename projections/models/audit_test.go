package models

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"flagledger/events"
)

// An entry of the trail names every rule that was added, removed or changed, and their order where it is another.
func TestAnEntryNamesEveryRuleThatChanged(t *testing.T) {
	list := rapid.Custom(func(t *rapid.T) []events.Rule {
		var rules []events.Rule
		for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 0, 5, rapid.ID).Draw(t, "ids") {
			rules = append(
				rules,
				events.Rule{
					ID:    id,
					Name:  rapid.SampledFrom([]string{"", "n"}).Draw(t, "name"),
					Serve: events.Serve{VariationID: "v"},
				},
			)
		}
		return rules
	})
	rapid.Check(t, func(t *rapid.T) {
		before, after := list.Draw(t, "before"), list.Draw(t, "after")
		fact := events.ChangeRules(events.EnvironmentRef{ID: "e1", Name: "production"}, before, after)
		entry, err := auditFlag(
			events.Recorded{Event: events.Event{Fact: fact}, Stream: events.FlagStream("t", "k"), Name: fact.StoredName()},
		)
		if err != nil {
			t.Fatal(err)
		}
		text, err := events.Marshal(entry.changes)
		if err != nil {
			t.Fatal(err)
		}
		var changes map[string]struct {
			From, To json.RawMessage
		}
		if err := json.Unmarshal(text, &changes); err != nil {
			t.Fatal(err)
		}
		was, is := map[string]string{}, map[string]string{}
		var order [2][]string
		for i, rules := range [][]events.Rule{before, after} {
			for _, r := range rules {
				order[i] = append(order[i], r.ID)
				[]map[string]string{was, is}[i][r.ID] = r.Name
			}
		}
		var want []string
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			oldName, had := was[id]
			newName, has := is[id]
			if had != has || oldName != newName {
				want = append(want, "rules."+id)
				if c := changes["rules."+id]; (string(c.From) == "null") == had || (string(c.To) == "null") == has {
					t.Errorf("%s is shown from %s to %s", id, c.From, c.To)
				}
			}
		}
		if !slices.Equal(order[0], order[1]) {
			want = append(want, "rules.order")
		}
		if got := slices.Sorted(maps.Keys(changes)); !slices.Equal(got, want) {
			t.Errorf("the entry names %v, want %v", got, want)
		}
	})
}
