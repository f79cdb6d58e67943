package events

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// rulesGen draws lists of rules with few ids, so that two lists share some rules.
var rulesGen = rapid.Custom(func(t *rapid.T) []Rule {
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), 0, 6, rapid.ID[string]).
		Draw(t, "ids")
	rules := make([]Rule, len(ids))
	for i, id := range ids {
		rules[i] = Rule{
			ID:         id,
			Name:       rapid.SampledFrom([]string{"", "n"}).Draw(t, "name"),
			Salt:       "salt of " + id,
			Conditions: []Condition{},
			Serve:      Serve{VariationID: "v"},
		}
		for range rapid.IntRange(0, 1).Draw(t, "conditions") {
			value := json.RawMessage(
				rapid.SampledFrom([]string{`"pro"`, `1.0`, `9007199254740993`, `"<\u2028"`}).Draw(t, "value"),
			)
			rules[i].Conditions = append(rules[i].Conditions,
				Condition{Attribute: "plan", Op: In, Values: []json.RawMessage{value}})
		}
	}
	return rules
})

func applied(before []Rule, c RulesChanged) []Rule {
	return ApplyRules(before, c, func(r Rule) string { return r.ID }, func(r Rule) Rule { return r })
}

func TestWhatChangedInRulesMakesTheListAfterFromTheListBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := rulesGen.Draw(t, "before"), rulesGen.Draw(t, "after")
		c := ChangeRules(EnvironmentRef{ID: "e"}, before, after)
		if diff := cmp.Diff(after, applied(before, c)); diff != "" {
			t.Fatalf("the list after differs (-want +got):\n%s", diff)
		}
		if c.Empty() != cmp.Equal(before, after) {
			t.Fatalf("empty: %t, from %v to %v", c.Empty(), before, after)
		}
		for _, changed := range c.Changed {
			if changed.From.ID != changed.To.ID || cmp.Equal(changed.From, changed.To) {
				t.Errorf("a change from %v to %v", changed.From, changed.To)
			}
		}
		back := ChangeRules(EnvironmentRef{ID: "e"}, after, before)
		if diff := cmp.Diff(c.Removed, back.Added, cmp.Transformer("sorted", sortedRules)); diff != "" {
			t.Errorf("not what would be added on the way back was removed:\n%s", diff)
		}
	})
}

func sortedRules(rules []Rule) []Rule {
	return slices.SortedFunc(slices.Values(rules),
		func(a, b Rule) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) })
}

// Any facts of other writers fold to some list without duplicate rules.
func TestAnyChangeOfRulesMakesAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := ChangeRules(EnvironmentRef{ID: "e"}, rulesGen.Draw(t, "from"), rulesGen.Draw(t, "to"))
		if rapid.Bool().Draw(t, "without order") {
			c.Order = nil
		}
		ids := ruleIDs(applied(rulesGen.Draw(t, "before"), c))
		slices.Sort(ids)
		if len(slices.Compact(slices.Clone(ids))) != len(ids) {
			t.Errorf("a rule stands twice in %v", ids)
		}
	})
}

func TestVersion1OfRulesChangedIsReadAsVersion2(t *testing.T) {
	decodeAs := func(t interface{ Fatal(...any) }, version int, data []byte) RulesChanged {
		e, err := Decode(Stored{Name: "flag.rules_changed", Version: version, Data: data, Metadata: []byte(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		return e.Fact.(RulesChanged)
	}
	t.Run("the golden file", func(t *testing.T) {
		data, err := os.ReadFile(goldenFile("flag.rules_changed", 1))
		if err != nil {
			t.Fatal(err)
		}
		var v1 struct{ To []Rule }
		if err := json.Unmarshal(data, &v1); err != nil || len(v1.To) != 2 {
			t.Fatalf("%d rules, %v", len(v1.To), err)
		}
		got := decodeAs(t, 1, data)
		want := RulesChanged{
			Environment: EnvironmentRef{ID: "e1", Name: "production"},
			Added:       v1.To,
			Order:       &Change[[]string]{[]string{}, []string{"r1", "r2"}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("it differs (-want +got):\n%s", diff)
		}
	})
	t.Run("any two lists", rapid.MakeCheck(func(t *rapid.T) {
		environment := EnvironmentRef{ID: "e", Name: "production"}
		from, to := rulesGen.Draw(t, "from"), rulesGen.Draw(t, "to")
		v1, err := Marshal(map[string]any{"environment": environment, "from": from, "to": to})
		if err != nil {
			t.Fatal(err)
		}
		v2, err := Encode(example(ChangeRules(environment, from, to)))
		if err != nil {
			t.Fatal(err)
		}
		old, today := decodeAs(t, 1, v1), decodeAs(t, v2.Version, v2.Data)
		if diff := cmp.Diff(today, old); diff != "" {
			t.Errorf("version 1 differs (-version 2 +version 1):\n%s", diff)
		}
		if diff := cmp.Diff(to, applied(from, old)); diff != "" {
			t.Errorf("version 1 makes another list (-want +got):\n%s", diff)
		}
	}))
}

// The fact of a change of one rule has that rule twice, and no others.
func TestAChangeOfOneRuleCostsThatRule(t *testing.T) {
	rules := make([]Rule, 60)
	for i := range rules {
		rules[i] = Rule{
			ID: string(rune('A' + i)),
			Conditions: []Condition{
				{
					Attribute: "plan",
					Op:        In,
					Values:    slices.Repeat([]json.RawMessage{json.RawMessage(`"a value of some length"`)}, 300),
				},
			},
		}
	}
	after := slices.Clone(rules)
	after[7].Name = "beta"
	one, err := Marshal(after[7])
	if err != nil {
		t.Fatal(err)
	}
	change, err := Marshal(ChangeRules(EnvironmentRef{ID: "e", Name: "production"}, rules, after))
	if err != nil || len(change) > 2*len(one)+200 {
		t.Errorf("the change takes %d bytes, %v; the rule %d", len(change), err, len(one))
	}
}
