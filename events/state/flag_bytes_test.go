package state_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"flagledger/events"
	"flagledger/events/state"
)

// A flag's size does not depend on its history: it equals that of a new flag with the same state, and is at least that
// of its JSON.
func TestFlagBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "name", "\x01\x02", "größer \u2028", `"\`, "<&>"})
		value := rapid.Map(text, func(s string) json.RawMessage {
			v, _ := events.Marshal(s)
			return v
		})
		bytes := func(facts ...events.FlagFact) int {
			var f state.Flag
			for i, fact := range facts {
				f.Apply(events.Recorded{Event: events.Event{Fact: fact}, Revision: events.Revision(i + 1)})
			}
			return f.Bytes()
		}
		flag := events.FlagCreated{
			Key:          "k",
			Name:         text.Draw(t, "name"),
			DefaultValue: value.Draw(t, "default"),
			Description:  text.Draw(t, "description"),
			Tags:         rapid.SliceOf(text).Draw(t, "tags"),
			Links: rapid.SliceOf(rapid.Custom(func(t *rapid.T) events.Link {
				return events.Link{Title: text.Draw(t, "title"), URL: text.Draw(t, "url")}
			})).Draw(t, "links"),
		}
		made := bytes(flag)
		if stored, err := events.Marshal(flag); err != nil || made < len(stored) {
			t.Fatalf("%d bytes, of which its JSON alone takes %d: %v", made, len(stored), err)
		}
		drawn := rapid.Custom(func(t *rapid.T) events.Variation {
			return events.Variation{
				ID:          "0198c5a1-5b7e-7d10-a3f2-8c4e6b0d9f31",
				Name:        text.Draw(t, "name"),
				Value:       value.Draw(t, "value"),
				Description: text.Draw(t, "description"),
			}
		})
		before, after := drawn.Draw(t, "before"), drawn.Draw(t, "after")
		update := events.VariationUpdated{
			ID:          before.ID,
			Name:        &events.Change[string]{From: before.Name, To: after.Name},
			Value:       &events.Change[json.RawMessage]{From: before.Value, To: after.Value},
			Description: &events.Change[string]{From: before.Description, To: after.Description},
		}
		whole := flag
		whole.Variations = []events.Variation{after}
		added := events.VariationAdded{Variation: before}
		if step, once := bytes(flag, added, update), bytes(whole); step != once {
			t.Fatalf("%d bytes with a variation that is added and changed, %d with one from the beginning", step, once)
		}
		stored, err := events.Marshal(whole)
		if n := bytes(whole); err != nil || n < len(stored) {
			t.Fatalf("%d bytes, of which its JSON alone takes %d: %v", n, len(stored), err)
		}
		if n := bytes(whole, events.VariationRemoved{Variation: after}); n != made {
			t.Fatalf("%d bytes without the variation, want %d", n, made)
		}
		renamed := events.FlagUpdated{Name: &events.Change[string]{From: flag.Name, To: "another name"}}
		other := flag
		other.Name = "another name"
		if n := bytes(flag, renamed); n != bytes(other) {
			t.Fatalf("%d bytes with another name, want %d", n, bytes(other))
		}

		rule := rapid.Custom(func(t *rapid.T) events.Rule {
			r := events.Rule{
				ID:    rapid.StringOfN(rapid.RuneFrom([]rune("0123456789abcdef")), 36, 36, 36).Draw(t, "id"),
				Salt:  "ssssssssssssssssssssssssss",
				Name:  text.Draw(t, "name"),
				Serve: events.Serve{Value: value.Draw(t, "value"), BucketBy: text.Draw(t, "by")},
			}
			for range rapid.IntRange(0, 3).Draw(t, "conditions") {
				r.Conditions = append(r.Conditions, events.Condition{
					Attribute: text.Draw(t, "attribute"),
					Op:        events.SemverAtLeast,
					Negate:    true,
					Values:    rapid.SliceOf(value).Draw(t, "values"),
				})
			}
			return r
		})
		rules := rapid.SliceOfNDistinct(rule, 0, 3, func(r events.Rule) string { return r.ID })
		first, second := rules.Draw(t, "rules"), rules.Draw(t, "later")
		if len(first) > 0 && len(second) > 0 {
			second[0].ID = first[0].ID
		}
		if stored, err := events.Marshal(first); err != nil || state.RulesBytes(first) < len(stored) {
			t.Fatalf("%d bytes of rules, which take %d as JSON: %v", state.RulesBytes(first), len(stored), err)
		}
		e := events.EnvironmentRef{ID: "e"}
		once, twice, gone := bytes(flag, events.ChangeRules(e, nil, second)),
			bytes(flag, events.ChangeRules(e, nil, first), events.ChangeRules(e, first, second)),
			bytes(flag, events.ChangeRules(e, nil, first), events.ChangeRules(e, first, nil))
		if once != twice || gone != made {
			t.Fatalf("%d bytes with rules set at once, %d with changed ones, %d without, of %d", once, twice, gone, made)
		}
		served := &events.Serve{Value: value.Draw(t, "served")}
		set := events.FallthroughChanged{Environment: e, To: served}
		unset := events.FallthroughChanged{Environment: e, From: served}
		if n := bytes(flag, set); n < made+len(served.Value) || bytes(flag, set, unset) != made ||
			bytes(flag, set, events.FlagDeleted{}) != 0 {
			t.Fatalf("%d bytes with a fallthrough, of %d", n, made)
		}
		list := rapid.SliceOf(rapid.Custom(func(t *rapid.T) events.Prerequisite {
			return events.Prerequisite{
				FlagKey: text.Draw(t, "key"), Off: rapid.Bool().Draw(t, "off"),
				Serves: rapid.SliceOf(rapid.Custom(func(t *rapid.T) events.ServedValue {
					return events.ServedValue{VariationID: text.Draw(t, "variation"), Value: value.Draw(t, "value")}
				})).Draw(t, "serves"),
			}
		})).Draw(t, "prerequisites")
		require, drop := events.PrerequisitesChanged{Environment: e, To: list}, events.PrerequisitesChanged{Environment: e}
		stored, err = events.Marshal(list)
		if n := bytes(flag, require); err != nil || n < made+len(stored)-len("[]") && len(list) > 0 ||
			state.PrerequisitesBytes(list) < len(stored) || bytes(flag, require, drop) != made {
			t.Fatalf("%d bytes with prerequisites of %d, of %d: %v", n, len(stored), made, err)
		}
	})
}
