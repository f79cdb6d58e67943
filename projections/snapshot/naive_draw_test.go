package snapshot

import (
	"encoding/json"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"flagledger/events"
)

// What is drawn comes from few names and values, so that it often meets.

var (
	theEnvironments = []events.EnvironmentRef{production, {ID: "e2", Name: "development"}}
	theAttributes   = []string{"targetingKey", "plan", "n", "at", "version", "a", "a.b", "a.b.c", "none", "targetingKey.b"}
	theTexts        = []string{"", "pro", "Pro", "probe", "team", "a.b", "größer", "1", "true", "(", "^p", "o$", "[gt]"}
	theTimes        = []string{
		"2026-03-14T15:09:26Z",
		"2026-03-14t15:09:26z",
		"2026-03-14T17:09:26+02:00",
		"2026-03-14T15:09:26.001Z",
		"2026-03-14T15:09:26+00:01",
		"2027-01-01T00:00:00Z",
		"2026-02-30T00:00:00Z",
		"2026-03-14",
	}
	theVersions = []string{
		"1.0.0",
		"1.0.0+b",
		"1.0.0-rc.1",
		"1.0.0-rc.2",
		"1.0.0-rc.10",
		"1.0.0-beta",
		"1.10.0",
		"1.9.0",
		"v1.0.0",
		"1.0",
		"1.0.0-01",
	}
	theOperators = []events.Operator{
		events.In,
		events.In,
		events.In,
		events.Contains,
		events.StartsWith,
		events.EndsWith,
		events.Matches,
		events.Greater,
		events.GreaterEqual,
		events.Less,
		events.LessEqual,
		events.Before,
		events.After,
		events.SemverEqual,
		events.SemverGreater,
		events.SemverAtLeast,
		events.SemverLess,
		events.SemverAtMost,
		events.Exists,
	}
)

func sample[T any](t *rapid.T, from []T) T { return rapid.SampledFrom(from).Draw(t, "one of") }

func oneIn(t *rapid.T, n int) bool { return rapid.IntRange(1, n).Draw(t, "one in") == n }

// drawScalar draws the JSON of a value that conditions compare.
func drawScalar(t *rapid.T) string {
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return spelt(sample(t, theTimes))
	case 1:
		return spelt(sample(t, theVersions))
	case 2:
		return sample(t, []string{"true", "false"})
	case 3:
		return drawNumber(t)
	default:
		return spelt(sample(t, theTexts))
	}
}

// drawOperand draws a value that mostly suits an operator.
func drawOperand(t *rapid.T, op events.Operator) json.RawMessage {
	for {
		value := drawScalar(t)
		if takes(string(op), parse([]byte(`{"v":` + value + `}`))["v"]) || oneIn(t, 500) {
			return json.RawMessage(value)
		}
	}
}

func drawAttributes(t *rapid.T, depth int) string {
	var members []string
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"targetingKey", "plan", "n", "at", "version", "a", "b", "c", "a.b", "targetingKey.b"}), 0, 6, rapid.ID).Draw(t, "names") {
		members = append(members, spelt(name)+":"+drawAttribute(t, depth))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func drawAttribute(t *rapid.T, depth int) string {
	switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
	case kind == 0:
		return "null"
	case kind <= 2 && depth > 0:
		return drawAttributes(t, depth-1)
	case kind == 3 && depth > 0:
		var elements []string
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			elements = append(elements, drawAttribute(t, depth-1))
		}
		return "[" + strings.Join(elements, ",") + "]"
	default:
		return drawScalar(t)
	}
}

func drawServe(t *rapid.T, variations []events.Variation) events.Serve {
	var ids []string
	for _, v := range variations {
		ids = append(ids, v.ID)
	}
	if oneIn(t, 100) {
		ids = append(ids, "unknown")
	}
	if len(ids) == 0 || oneIn(t, 4) {
		return events.Serve{Value: drawFlagValue(t)}
	}
	if oneIn(t, 2) {
		return events.Serve{VariationID: sample(t, ids)}
	}
	s := events.Serve{BucketBy: sample(t, append([]string{"", ""}, theAttributes...))}
	for range rapid.IntRange(1, 4).Draw(t, "shares") {
		s.Rollout = append(s.Rollout, events.Share{VariationID: sample(t, ids), Weight: drawAWeight(t)})
	}
	s.Rollout[0].Weight++ // not all are nothing
	return s
}

func drawAWeight(t *rapid.T) events.Weight {
	return events.Weight(sample(t, []int64{0, 0, 1, 500, 33_333, 50_000, 9_999_999}))
}

func drawFlagValue(t *rapid.T) json.RawMessage {
	return json.RawMessage(sample(t, []string{"true", "false", `"text"`, "9007199254740993", "1.50", `{"a":[1]}`, "null"}))
}

// drawRules draws the rules that come after others: some of these stay, some change, some go, and some are new.
func drawRules(t *rapid.T, before []events.Rule, variations []events.Variation) []events.Rule {
	list := make([]events.Rule, rapid.IntRange(0, 5).Draw(t, "rules"))
	kept := rapid.Permutation(before).Draw(t, "order")
	for i := range list {
		list[i] = events.Rule{
			ID:    rapid.StringMatching(`r[0-9]{9}`).Draw(t, "id"),
			Salt:  sample(t, theTexts),
			Serve: drawServe(t, variations),
		}
		if len(kept) > 0 && oneIn(t, 2) {
			list[i].ID = kept[0].ID
			if oneIn(t, 2) {
				list[i] = kept[0]
			}
			kept = kept[1:]
		}
		if list[i].Conditions != nil {
			continue
		}
		list[i].Conditions = []events.Condition{}
		for range rapid.SampledFrom([]int{0, 1, 1, 1, 2, 3}).Draw(t, "conditions") {
			c := events.Condition{Attribute: sample(t, theAttributes), Op: sample(t, theOperators), Negate: oneIn(t, 3)}
			for n := rapid.SampledFrom([]int{1, 1, 2, 3, 12}).Draw(t, "values"); n > 0 && c.Op != events.Exists; n-- {
				c.Values = append(c.Values, drawOperand(t, c.Op))
			}
			list[i].Conditions = append(list[i].Conditions, c)
		}
	}
	return list
}

// drawFact draws what can happen to a flag of some variations, and what is left of these.
func (b *both) drawFact(t *rapid.T, variations []events.Variation) (events.Fact, []events.Variation) {
	environment := sample(t, theEnvironments)
	switch kind := rapid.IntRange(0, 15).Draw(t, "fact"); {
	case kind == 0:
		return events.FlagEnabled{Environment: environment}, variations
	case kind == 1:
		return events.FlagDisabled{Environment: environment}, variations
	case kind == 2:
		return events.FlagStatusChanged{
			To: sample(
				t,
				[]events.FlagStatus{
					events.ActiveFlag,
					events.ActiveFlag,
					events.ActiveFlag,
					events.InactiveFlag,
					events.ArchivedFlag,
				},
			),
		}, variations
	case kind == 3:
		return events.FlagUpdated{DefaultValue: &events.Change[json.RawMessage]{To: drawFlagValue(t)}}, variations
	case kind == 4 && len(variations) < 5:
		v := drawAVariation(t)
		return events.VariationAdded{Variation: v}, append(slices.Clip(variations), v)
	case kind <= 6 && len(variations) > 0:
		fact := events.VariationUpdated{
			ID:     sample(t, variations).ID,
			Weight: &events.Change[events.Weight]{To: drawAWeight(t)},
		}
		if oneIn(t, 2) {
			fact.Value, fact.Weight = &events.Change[json.RawMessage]{To: drawFlagValue(t)}, nil
		}
		return fact, variations
	case kind == 7 && len(variations) > 0:
		v := sample(t, variations)
		return events.VariationRemoved{Variation: v}, variations
	case kind <= 13:
		before := b.rules[environment.ID]
		return events.ChangeRules(environment, before, drawRules(t, before, variations)), variations
	case kind == 14:
		return events.FallthroughChanged{Environment: environment}, variations
	case oneIn(t, 5):
		return events.FlagDeleted{}, nil
	default:
		to := drawServe(t, variations)
		return events.FallthroughChanged{Environment: environment, To: &to}, variations
	}
}

func drawAVariation(t *rapid.T) events.Variation {
	return events.Variation{
		ID: rapid.StringMatching(`v[0-9]{9}`).
			Draw(t, "id"),
		Name:   sample(t, theTexts),
		Value:  drawFlagValue(t),
		Weight: sample(t, []events.Weight{0, 0, 1, 20_000}),
	}
}

// drawFlag draws a flag's facts, and calls after each of them.
func drawFlag(t *rapid.T, after func(*both)) *both {
	b := newBoth()
	var variations []events.Variation
	var next []events.Fact
	for range rapid.IntRange(3, 18).Draw(t, "facts") {
		var fact events.Fact
		switch {
		case !b.naive.exists:
			variations = nil
			for range rapid.IntRange(0, 3).Draw(t, "variations") {
				variations = append(variations, drawAVariation(t))
			}
			fact = events.FlagCreated{
				Key:          "k",
				Type:         sample(t, []events.FlagType{events.BooleanFlag, events.JSONFlag}),
				DefaultValue: drawFlagValue(t),
				Salt:         sample(t, theTexts),
				Variations:   variations,
			}
			next = []events.Fact{
				events.FlagEnabled{Environment: theEnvironments[0]},
				events.FlagEnabled{Environment: theEnvironments[1]},
			}
		case len(next) > 0:
			fact, next = next[0], next[1:]
		default:
			fact, variations = b.drawFact(t, variations)
		}
		b.apply(fact)
		variations = slices.DeleteFunc(slices.Clone(variations),
			func(v events.Variation) bool { return b.naive.exists && b.naive.variation(v.ID) == nil })
		after(b)
	}
	return b
}

var theKeys = []string{"", "u", "pro", "probe", "größer", "1.0.0", theTimes[0]}
