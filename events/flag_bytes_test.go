package events

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// However a flag came to be what it is, it has the bytes of one that is made so at once, and at least those of its
// JSON.
func TestFlagBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "name", "\x01\x02", "größer \u2028", `"\`, "<&>"})
		value := rapid.Map(text, func(s string) json.RawMessage {
			v, _ := Marshal(s)
			return v
		})
		flag := FlagCreated{
			Key:          "k",
			Name:         text.Draw(t, "name"),
			DefaultValue: value.Draw(t, "default"),
			Description:  text.Draw(t, "description"),
			Tags:         rapid.SliceOf(text).Draw(t, "tags"),
		}
		variation := rapid.Custom(func(t *rapid.T) Variation {
			return Variation{
				ID:          "0198c5a1-5b7e-7d10-a3f2-8c4e6b0d9f31",
				Name:        text.Draw(t, "name"),
				Value:       value.Draw(t, "value"),
				Description: text.Draw(t, "description"),
			}
		})
		before, after := variation.Draw(t, "before"), variation.Draw(t, "after")
		n := FlagBytesAfter(0, flag)
		made := n
		n = FlagBytesAfter(n, VariationAdded{before})
		flag.Variations = []Variation{before}
		if n != FlagBytesAfter(17, flag) {
			t.Fatalf("%d bytes with a variation that is added, %d with one that is there from the beginning", n,
				FlagBytesAfter(0, flag))
		}
		n = FlagBytesAfter(
			n,
			VariationUpdated{
				ID:          before.ID,
				Name:        &Change[string]{before.Name, after.Name},
				Value:       &Change[json.RawMessage]{before.Value, after.Value},
				Description: &Change[string]{before.Description, after.Description},
			},
		)
		flag.Variations = []Variation{after}
		if n != FlagBytesAfter(0, flag) {
			t.Fatalf("%d bytes with a variation that is changed, want %d", n, FlagBytesAfter(0, flag))
		}
		if stored, err := Marshal(flag); err != nil || n < len(stored) {
			t.Fatalf("%d bytes, of which its JSON alone takes %d: %v", n, len(stored), err)
		}
		changed := FlagUpdated{
			Name: &Change[string]{
				flag.Name,
				"x",
			},
			Description:  &Change[string]{flag.Description, ""},
			Tags:         &Change[[]string]{flag.Tags, nil},
			DefaultValue: &Change[json.RawMessage]{flag.DefaultValue, json.RawMessage("1")},
		}
		if bare := FlagBytesAfter(FlagBytesAfter(n, VariationRemoved{after}), changed); bare != FlagBytesAfter(0, FlagCreated{Key: "k", Name: "x", DefaultValue: json.RawMessage("1")}) {
			t.Fatalf("%d bytes in the end", bare)
		}
		rule := rapid.Custom(func(t *rapid.T) Rule {
			r := Rule{
				ID:    rapid.StringN(36, 36, 36).Draw(t, "id"),
				Salt:  "ssssssssssssssssssssssssss",
				Name:  text.Draw(t, "name"),
				Serve: Serve{Value: value.Draw(t, "value"), BucketBy: text.Draw(t, "by")},
			}
			for range rapid.IntRange(0, 3).Draw(t, "conditions") {
				r.Conditions = append(
					r.Conditions,
					Condition{
						Attribute: text.Draw(t, "attribute"),
						Op:        SemverAtLeast,
						Negate:    true,
						Values:    rapid.SliceOf(value).Draw(t, "values"),
					},
				)
			}
			return r
		})
		rules := rapid.SliceOfNDistinct(rule, 0, 3, func(r Rule) string { return r.ID })
		first, second := rules.Draw(t, "rules"), rules.Draw(t, "later")
		if len(first) > 0 && len(second) > 0 {
			second[0].ID = first[0].ID
		}
		if stored, err := Marshal(first); err != nil || RulesBytes(first) < len(stored) {
			t.Fatalf("%d bytes of rules, which take %d as JSON: %v", RulesBytes(first), len(stored), err)
		}
		e := EnvironmentRef{ID: "e"}
		at, direct := FlagBytesAfter(FlagBytesAfter(made, ChangeRules(e, nil, first)), ChangeRules(e, first, second)), FlagBytesAfter(made, ChangeRules(e, nil, second))
		if at != direct {
			t.Fatalf("%d bytes with rules that were changed, %d with those set at once", at, direct)
		}
		if gone := FlagBytesAfter(at, ChangeRules(e, second, nil)); gone != made {
			t.Fatalf("%d bytes without rules, want %d", gone, made)
		}
		served := &Serve{Value: value.Draw(t, "served")}
		if set := FlagBytesAfter(
			made, FallthroughChanged{To: served},
		); set < made+len(served.Value) || FlagBytesAfter(set, FallthroughChanged{From: served}) != made ||
			FlagBytesAfter(set, FlagDeleted{}) != 0 {
			t.Fatalf("%d bytes with a fallthrough, of %d", set, made)
		}
	})
}
