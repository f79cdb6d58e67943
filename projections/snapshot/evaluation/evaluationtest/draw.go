package evaluationtest

import (
	"encoding/json"
	"strings"

	"pgregory.net/rapid"

	"flagledger/events"
	"flagledger/events/rules"
	"flagledger/events/state"
)

// All draws use few names and values, so that they often match.

// Environments are the environments of drawn flags.
var Environments = []events.EnvironmentRef{Production, {ID: "e2", Name: "development"}}

// Keys are targeting keys.
var Keys = []string{"", "u", "pro", "probe", "größer", "1.0.0", theTimes[0]}

var (
	theAttributes = []string{"targetingKey", "plan", "n", "at", "version", "a", "a.b", "a.b.c", "none", "targetingKey.b"}
	theTexts      = []string{"", "pro", "Pro", "probe", "team", "a.b", "größer", "1", "true", "(", "^p", "o$", "[gt]"}
	theTimes      = []string{
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

// Sample draws an element of a list.
func Sample[T any](t *rapid.T, from []T) T { return rapid.SampledFrom(from).Draw(t, "one of") }

// OneIn draws true once in n times.
func OneIn(t *rapid.T, n int) bool { return rapid.IntRange(1, n).Draw(t, "one in") == n }

// drawScalar draws the JSON of a value for conditions.
func drawScalar(t *rapid.T) string {
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return quoted(Sample(t, theTimes))
	case 1:
		return quoted(Sample(t, theVersions))
	case 2:
		return Sample(t, []string{"true", "false"})
	case 3:
		return DrawNumber(t)
	default:
		return quoted(Sample(t, theTexts))
	}
}

// drawOperand draws a value that usually suits an operator.
func drawOperand(t *rapid.T, op events.Operator) json.RawMessage {
	operator, _ := rules.Find(op)
	for {
		value := json.RawMessage(drawScalar(t))
		err := rules.CheckValue(operator.Values, value)
		if err == nil && operator.Values == rules.Pattern {
			pattern, _ := rules.ReadText(value)
			_, err = rules.RegexpSize(pattern)
		}
		if err == nil || OneIn(t, 500) {
			return value
		}
	}
}

// DrawAttributes draws the JSON of a context's attributes, nested up to a depth.
func DrawAttributes(t *rapid.T, depth int) string {
	var members []string
	some := rapid.SampledFrom([]string{
		"targetingKey", "plan", "n", "at", "version", "a", "b", "c", "a.b", "targetingKey.b",
	})
	for _, name := range rapid.SliceOfNDistinct(some, 0, 6, rapid.ID).Draw(t, "names") {
		members = append(members, quoted(name)+":"+drawAttribute(t, depth))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func drawAttribute(t *rapid.T, depth int) string {
	switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
	case kind == 0:
		return "null"
	case kind <= 2 && depth > 0:
		return DrawAttributes(t, depth-1)
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
	if OneIn(t, 100) {
		ids = append(ids, "unknown")
	}
	if len(ids) == 0 || OneIn(t, 4) {
		return events.Serve{Value: drawFlagValue(t)}
	}
	if OneIn(t, 2) {
		return events.Serve{VariationID: Sample(t, ids)}
	}
	s := events.Serve{BucketBy: Sample(t, append([]string{"", ""}, theAttributes...))}
	for range rapid.IntRange(1, 4).Draw(t, "shares") {
		s.Rollout = append(s.Rollout, events.Share{VariationID: Sample(t, ids), Weight: drawWeight(t)})
	}
	s.Rollout[0].Weight++ // not all weights are zero
	return s
}

func drawWeight(t *rapid.T) events.Weight {
	return events.Weight(Sample(t, []int64{0, 0, 1, 500, 33_333, 50_000, 9_999_999}))
}

func drawFlagValue(t *rapid.T) json.RawMessage {
	return json.RawMessage(Sample(t, []string{"true", "false", `"text"`, "9007199254740993", "1.50", `{"a":[1]}`, "null"}))
}

// drawRules draws new rules after earlier ones: some stay, change or are removed, others are new.
func drawRules(t *rapid.T, before []events.Rule, variations []events.Variation) []events.Rule {
	list := make([]events.Rule, rapid.IntRange(0, 5).Draw(t, "rules"))
	kept := rapid.Permutation(before).Draw(t, "order")
	for i := range list {
		list[i] = events.Rule{
			ID:    rapid.StringMatching(`r[0-9]{9}`).Draw(t, "id"),
			Salt:  Sample(t, theTexts),
			Serve: drawServe(t, variations),
		}
		if len(kept) > 0 && OneIn(t, 2) {
			list[i].ID = kept[0].ID
			if OneIn(t, 2) {
				list[i] = kept[0]
			}
			kept = kept[1:]
		}
		if list[i].Conditions != nil {
			continue
		}
		list[i].Conditions = []events.Condition{}
		for range rapid.SampledFrom([]int{0, 1, 1, 1, 2, 3}).Draw(t, "conditions") {
			c := events.Condition{Attribute: Sample(t, theAttributes), Op: Sample(t, theOperators), Negate: OneIn(t, 3)}
			for n := rapid.SampledFrom([]int{1, 1, 2, 3, 12}).Draw(t, "values"); n > 0 && c.Op != events.Exists; n-- {
				c.Values = append(c.Values, drawOperand(t, c.Op))
			}
			list[i].Conditions = append(list[i].Conditions, c)
		}
	}
	return list
}

// drawFact draws a change of a flag.
func drawFact(t *rapid.T, s *state.Flag) events.Fact {
	environment, variations := Sample(t, Environments), s.Variations
	switch kind := rapid.IntRange(0, 15).Draw(t, "fact"); {
	case kind == 0:
		return events.FlagEnabled{Environment: environment}
	case kind == 1:
		return events.FlagDisabled{Environment: environment}
	case kind == 2:
		return events.FlagStatusChanged{
			To: Sample(
				t,
				[]events.FlagStatus{
					events.ActiveFlag,
					events.ActiveFlag,
					events.ActiveFlag,
					events.InactiveFlag,
					events.ArchivedFlag,
				},
			),
		}
	case kind == 3:
		return events.FlagUpdated{DefaultValue: &events.Change[json.RawMessage]{To: drawFlagValue(t)}}
	case kind == 4 && len(variations) < 5:
		return events.VariationAdded{Variation: drawVariation(t)}
	case kind <= 6 && len(variations) > 0:
		fact := events.VariationUpdated{
			ID:     Sample(t, variations).ID,
			Weight: &events.Change[events.Weight]{To: drawWeight(t)},
		}
		if OneIn(t, 2) {
			fact.Value, fact.Weight = &events.Change[json.RawMessage]{To: drawFlagValue(t)}, nil
		}
		return fact
	case kind == 7 && len(variations) > 0:
		return events.VariationRemoved{Variation: Sample(t, variations)}
	case kind <= 13:
		before := s.Rules[environment.ID]
		return events.ChangeRules(environment, before, drawRules(t, before, variations))
	case kind == 14:
		return events.FallthroughChanged{Environment: environment}
	case OneIn(t, 5):
		return events.FlagDeleted{}
	case OneIn(t, 4):
		var ids []string
		for _, v := range rapid.Permutation(variations).Draw(t, "order") {
			ids = append(ids, v.ID)
		}
		return events.FlagReverted{Version: 1, Variations: &events.Change[[]string]{To: ids}}
	default:
		to := drawServe(t, variations)
		return events.FallthroughChanged{Environment: environment, To: &to}
	}
}

func drawVariation(t *rapid.T) events.Variation {
	return events.Variation{
		ID:     rapid.StringMatching(`v[0-9]{9}`).Draw(t, "id"),
		Name:   Sample(t, theTexts),
		Value:  drawFlagValue(t),
		Weight: Sample(t, []events.Weight{0, 0, 1, 20_000}),
	}
}

// DrawFlag draws a flag's events as a store returns them, and calls after with each event and the state after it.
func DrawFlag(t *rapid.T, after func(events.Recorded, *state.Flag)) {
	var s state.Flag
	var next []events.Fact
	for i := range rapid.IntRange(3, 18).Draw(t, "facts") {
		var fact events.Fact
		switch {
		case !s.Exists:
			var variations []events.Variation
			for range rapid.IntRange(0, 3).Draw(t, "variations") {
				variations = append(variations, drawVariation(t))
			}
			fact = events.FlagCreated{
				Key:          "k",
				Type:         Sample(t, []events.FlagType{events.BooleanFlag, events.JSONFlag}),
				DefaultValue: drawFlagValue(t),
				Salt:         Sample(t, theTexts),
				Variations:   variations,
			}
			next = []events.Fact{
				events.FlagEnabled{Environment: Environments[0]},
				events.FlagEnabled{Environment: Environments[1]},
			}
		case len(next) > 0:
			fact, next = next[0], next[1:]
		default:
			fact = drawFact(t, &s)
		}
		e := Stored(events.Revision(i+1), fact)
		s = s.Clone()
		s.Apply(e)
		after(e, &s)
	}
}

// Stored returns a fact as a store returns it.
func Stored(revision events.Revision, fact events.Fact) events.Recorded {
	stored, err := events.Encode(events.Event{Fact: fact})
	if err != nil {
		panic(err)
	}
	event, err := events.Decode(stored)
	if err != nil {
		panic(err)
	}
	return events.Recorded{
		Event:    event,
		Stream:   events.FlagStream("t", "k"),
		Revision: revision,
		Name:     stored.Name,
	}
}

// DrawNumber draws JSON numbers, many of them equal or close to each other.
func DrawNumber(t *rapid.T) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"0",
			"-0",
			"0.0",
			"0e9",
			"1",
			"1.0",
			"10e-1",
			"0.1e1",
			"-1",
			"42",
			"4.2e1",
			"9007199254740992",
			"9007199254740993",
			"1e400",
			"10e399",
			"2e400",
			"-1e400",
			"1e-400",
			"0.1",
			"0.10000000000000001",
			"0.1000000000000000055511151231257827",
			"12345678901234567890",
			"123456789012345678901",
			"12345678901234567890.0",
			"1e19",
			"1e20",
			"1e21",
			"9999999999999999999",
			"99999999999999999999",
			"18446744073709551616",
			"1e-6",
			"1e-7",
			"0.0000010",
			"100000000000000000000000000000000000000000.5",
		}),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?`),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?`),
	).Draw(t, "number")
}

// quoted returns a text as a JSON string.
func quoted(text string) string {
	b, err := events.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}
