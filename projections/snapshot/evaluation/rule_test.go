package evaluation

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"flagledger/events"
)

func TestRules(t *testing.T) {
	pro := &Context{TargetingKey: "u", Attributes: attributes(`{"plan":"pro","company":{"id":42},"empty":""}`)}
	elsewhere := rulesIn(events.EnvironmentRef{ID: "e2", Name: "development"}, when("r", "pro", toA))
	all := events.Rule{ID: "all", Serve: toB}
	a := Result{
		Enabled:       true,
		Value:         []byte("1"),
		Reason:        RuleMatch,
		RuleID:        "r",
		VariationID:   "a",
		VariationName: "name of a",
		HasRules:      true,
	}
	b := Result{
		Enabled:       true,
		Value:         []byte("2"),
		Reason:        RuleMatch,
		RuleID:        "r",
		VariationID:   "b",
		VariationName: "name of b",
		HasRules:      true,
	}
	with := func(r Result, change func(*Result)) Result {
		change(&r)
		return r
	}
	rest := with(b, func(r *Result) { r.Reason, r.RuleID = Fallthrough, "" })
	for name, c := range map[string]struct {
		facts []events.Fact
		want  Result
	}{
		"a rule that matches":         {[]events.Fact{three, on, ruled(when("r", "pro", toA))}, a},
		"the first one":               {[]events.Fact{three, on, ruled(when("q", "free", toB), when("r", "pro", toA), when("s", "pro", toB))}, a},
		"one without conditions":      {[]events.Fact{three, on, ruled(when("q", "free", toA), all)}, with(b, func(r *Result) { r.RuleID = "all" })},
		"one that serves a value":     {[]events.Fact{three, on, ruled(when("r", "pro", seven))}, Result{Enabled: true, Value: []byte("7"), Reason: RuleMatch, RuleID: "r", HasRules: true}},
		"rules before the switch":     {[]events.Fact{three, ruled(when("r", "pro", toA)), on}, a},
		"rules of a flag that is off": {[]events.Fact{three, ruled(when("r", "pro", toA))}, Result{Value: []byte("0"), Reason: Off}},
		"rules outlive the switch":    {[]events.Fact{three, on, ruled(when("r", "pro", toA)), events.FlagDisabled{Environment: production}, on}, a},
		"rules of an archived flag": {
			[]events.Fact{three, on, ruled(when("r", "pro", toA)), events.FlagStatusChanged{To: events.ArchivedFlag}}, Result{Value: []byte("0"), Reason: Archived},
		},
		"rules of another environment": {[]events.Fact{three, on, elsewhere}, Result{Enabled: true, Value: []byte("0"), Reason: Fallthrough}},
		"rules replaced":               {[]events.Fact{three, on, ruled(when("q", "pro", toB)), ruled(when("r", "pro", toA))}, a},
		"rules dropped":                {[]events.Fact{three, on, ruled(when("r", "pro", toA)), ruled()}, Result{Enabled: true, Value: []byte("0"), Reason: Fallthrough}},
		"no rule matches": {
			[]events.Fact{three, on, ruled(when("r", "free", toA))}, Result{Enabled: true, Value: []byte("0"), Reason: Fallthrough, HasRules: true},
		},
		"then the fallthrough":              {[]events.Fact{three, on, otherwise(toB), ruled(when("r", "free", toA))}, rest},
		"a fallthrough without rules":       {[]events.Fact{three, otherwise(toB), on}, with(rest, func(r *Result) { r.HasRules = false })},
		"a fallthrough that serves a value": {[]events.Fact{three, otherwise(seven), on}, Result{Enabled: true, Value: []byte("7"), Reason: Fallthrough}},
		"a fallthrough unset": {
			[]events.Fact{three, on, otherwise(toB), events.FallthroughChanged{Environment: production}}, Result{Enabled: true, Value: []byte("0"), Reason: Fallthrough},
		},
		"a fallthrough comes before weights": {
			[]events.Fact{made(events.NumberFlag, "0", choice("a", "1", 5), choice("b", "2", 0)), on, otherwise(toB)}, with(rest, func(r *Result) { r.HasRules = false }),
		},
		"a fallthrough unset leaves rules": {[]events.Fact{three, on, ruled(when("r", "pro", toA)), otherwise(toB), events.FallthroughChanged{Environment: production}}, a},
		"a variation updated": {
			[]events.Fact{
				three, on, ruled(when("r", "pro", toA)), otherwise(toA),
				events.VariationUpdated{ID: "a", Value: &events.Change[json.RawMessage]{To: []byte("9")}, Name: &events.Change[string]{To: "n"}},
			},
			with(a, func(r *Result) { r.Value, r.VariationName = []byte("9"), "n" }),
		},
		"a variation of a rollout updated": {
			[]events.Fact{
				three, on, ruled(when("r", "pro", rolled("", events.Share{VariationID: "b"}, events.Share{VariationID: "a", Weight: 1}))),
				events.VariationUpdated{ID: "a", Value: &events.Change[json.RawMessage]{To: []byte("9")}, Weight: &events.Change[events.Weight]{To: 7}},
			},
			with(a, func(r *Result) { r.Value, r.Split = []byte("9"), true }),
		},
		"the variation of a fallthrough updated": {
			[]events.Fact{
				three, on, ruled(when("r", "free", toA)), otherwise(rolled("company.id", events.Share{VariationID: "b", Weight: 1})),
				events.VariationUpdated{ID: "b", Value: &events.Change[json.RawMessage]{To: []byte("9")}},
			},
			with(rest, func(r *Result) { r.Value, r.Split = []byte("9"), true }),
		},
		"another variation removed": {
			[]events.Fact{three, on, ruled(when("r", "pro", toB)), events.VariationRemoved{Variation: choice("a", "1", 0)}}, b,
		},
		"a second life has no rules": {[]events.Fact{three, on, ruled(when("r", "pro", toA)), otherwise(toB), events.FlagDeleted{}, three, on}, Result{Enabled: true, Value: []byte("0"), Reason: Fallthrough}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := flagOf(t, c.facts...).Evaluate(production.ID, pro)
			c.want.Version = events.Revision(len(c.facts))
			if err != nil || shown(got) != shown(c.want) {
				t.Errorf("it serves %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

// A flag stays unchanged if a fact does not compile; later facts continue from there.
func TestTheLastGoodVersionIsKept(t *testing.T) {
	for name, fact := range map[string]events.Fact{
		"a pattern":                   ruled(events.Rule{ID: "x", Serve: toB, Conditions: []events.Condition{{Attribute: "plan", Op: events.Matches, Values: raw(`["("]`)}}}),
		"an operator":                 ruled(events.Rule{ID: "x", Serve: toB, Conditions: []events.Condition{{Attribute: "plan", Op: "like"}}}),
		"one bad rule of two":         ruled(when("x", "pro", toB), when("y", "pro", events.Serve{VariationID: "none"})),
		"an unknown variation":        otherwise(events.Serve{VariationID: "none"}),
		"an unknown one of a rollout": otherwise(rolled("", events.Share{VariationID: "a", Weight: 1}, events.Share{VariationID: "none", Weight: 1})),
		"a rollout without weight":    ruled(when("x", "pro", rolled("", events.Share{VariationID: "a"}))),
		"nothing to serve":            ruled(when("x", "pro", events.Serve{})),
	} {
		t.Run(name, func(t *testing.T) {
			f, faults := newFollower(), 0
			for _, fact := range []events.Fact{
				three, on,
				ruled(when("r", "pro", toA), when("s", "free", rolled("", events.Share{VariationID: "c", Weight: 1}))),
				otherwise(toB), fact, events.FlagUpdated{DefaultValue: &events.Change[json.RawMessage]{To: []byte("5")}},
			} {
				if f.apply(fact) != nil {
					faults++
				}
			}
			if faults != 1 {
				t.Errorf("%d faults, want 1", faults)
			}
			for plan, want := range map[string]string{"pro": "1", "free": "3", "other": "2"} {
				got, err := f.flag.Evaluate(production.ID, &Context{TargetingKey: "u", Attributes: map[string]any{"plan": plan}})
				if err != nil || string(got.Value) != want || got.Version != 6 {
					t.Errorf("%s is served %+v, %v, want %s", plan, got, err, want)
				}
			}
		})
	}
}

func TestAChangeOfRulesCompilesOnlyTheRulesThatChanged(t *testing.T) {
	matching := func(id, pattern string) events.Rule {
		return events.Rule{
			ID:         id,
			Serve:      toA,
			Conditions: []events.Condition{{Attribute: "plan", Op: events.Matches, Values: raw(`["` + pattern + `"]`)}},
		}
	}
	before := []events.Rule{matching("r1", "^a"), matching("r2", "^b"), matching("r3", "^c")}
	after := []events.Rule{matching("r3", "^c"), matching("r2", "^bb"), matching("r1", "^a"), matching("r4", "^d")}
	f := newFollower()
	apply := func(facts ...events.Fact) {
		t.Helper()
		for _, fact := range facts {
			if err := f.apply(fact); err != nil {
				t.Fatal(err)
			}
		}
	}
	apply(three, on, ruled(before...))
	was := map[string]*condition{}
	for _, r := range f.flag.environment(production.ID).targeting.rules {
		was[r.id] = &r.conditions[0]
	}
	apply(events.ChangeRules(production, before, after))
	var ids []string
	for _, r := range f.flag.environment(production.ID).targeting.rules {
		ids = append(ids, r.id)
		if kept := was[r.id] == &r.conditions[0]; kept != (r.id == "r1" || r.id == "r3") {
			t.Errorf("%s is the one that was compiled before: %t", r.id, kept)
		}
	}
	if !slices.Equal(ids, []string{"r3", "r2", "r1", "r4"}) {
		t.Errorf("the order is %v", ids)
	}
}

// A change does not repeat unchanged rules. After a change that does not compile, a later one must still lead to the
// whole list.
func TestRulesServeAgainOnceTheBadOneIsMended(t *testing.T) {
	bad := events.Rule{ID: "bad", Serve: toB, Conditions: []events.Condition{{Attribute: "plan", Op: "like"}}}
	r, q := when("r", "pro", toA), when("q", "free", toB)
	changed := when("q", "team", events.Serve{VariationID: "c"})
	first, second, third := []events.Rule{r}, []events.Rule{bad, r, q}, []events.Rule{bad, r, changed}
	mended := when("bad", "x", toB)
	facts := []events.Fact{
		three,
		on,
		ruled(first...),
		events.ChangeRules(production, first, second),
		events.ChangeRules(production, second, third),
	}
	value := func(facts []events.Fact, plan string) string {
		f := newFollower()
		for _, fact := range facts {
			_ = f.apply(fact)
		}
		got, err := f.flag.Evaluate(production.ID, &Context{Attributes: map[string]any{"plan": plan}})
		return fmt.Sprint(string(got.Value), " ", err)
	}
	for plan, want := range map[string]string{"pro": "1 <nil>", "free": "0 <nil>", "team": "0 <nil>", "x": "0 <nil>"} {
		if got := value(facts, plan); got != want {
			t.Errorf("while a rule is bad, %s is served %s, want %s", plan, got, want)
		}
	}
	for name, last := range map[string][]events.Rule{"changed": {mended, r, changed}, "removed": {r, changed}} {
		for plan, want := range map[string]string{"pro": "1 <nil>", "free": "0 <nil>", "team": "3 <nil>"} {
			if got := value(append(slices.Clip(facts), events.ChangeRules(production, third, last)), plan); got != want {
				t.Errorf("after the bad rule was %s, %s is served %s, want %s", name, plan, got, want)
			}
		}
	}
}

func TestUnitsOfARollout(t *testing.T) {
	shares := []events.Share{
		{VariationID: "a", Weight: 1_000},
		{VariationID: "b", Weight: 2_000},
		{VariationID: "c", Weight: 500},
	}
	byUnit := func(salt, unit string) string {
		at := bucketOf(salt, unit, 3_500)
		switch {
		case at < 1_000:
			return "a"
		case at < 3_000:
			return "b"
		default:
			return "c"
		}
	}
	flag := flagOf(t, three, on, ruled(
		when("key", "key", rolled("", shares...)), when("named", "named", rolled("targetingKey", shares...)),
		when("id", "id", rolled("id", shares...)), when("company", "company", rolled("company.id", shares...)),
	), otherwise(rolled("id", shares...)))
	for i := range 200 {
		unit := fmt.Sprintf("unit %d", i)
		number := fmt.Sprintf("-%d.25", i)
		for _, c := range []struct{ salt, attributes, targetingKey, unit string }{
			{"salt of key", `{"plan":"key","targetingKey":"never"}`, unit, unit},
			{"salt of named", `{"plan":"named"}`, unit, unit},
			{"salt of id", `{"plan":"id","id":"` + unit + `"}`, "", unit},
			{"salt of company", `{"plan":"company","company":{"id":"` + unit + `"}}`, "never", unit},
			{"salt of company", `{"plan":"company","company":{"id":` + number + `0}}`, "never", number},
			{"s", `{"plan":"none of the rules","id":"` + unit + `"}`, "never", unit},
		} {
			got, err := flag.Evaluate(production.ID, &Context{TargetingKey: c.targetingKey, Attributes: attributes(c.attributes)})
			if want := byUnit(c.salt, c.unit); err != nil || got.VariationID != want || !got.Split {
				t.Errorf("%s is served %+v, %v, want variation %s", c.attributes, got, err, want)
			}
		}
	}
}

func TestARolloutNeedsItsUnit(t *testing.T) {
	share := events.Share{VariationID: "a", Weight: 1}
	for bucketBy, lists := range map[string]string{
		"":             `[{},{"targetingKey":"u"}]`,
		"targetingKey": `[{},{"targetingKey":"u"}]`,
		"id":           `[{},{"id":""},{"id":null},{"id":true},{"id":["u"]},{"id":{"id":"u"}}]`,
		"company.id":   `[{},{"company":"u"},{"company":{}},{"company":{"id":null}},{"company":[{"id":"u"}]},{"company.id":""}]`,
	} {
		want := bucketBy
		if bucketBy == "" {
			want = "targetingKey"
		}
		for _, fact := range []events.Fact{ruled(events.Rule{ID: "r", Serve: rolled(bucketBy, share)}), otherwise(rolled(bucketBy, share))} {
			flag := flagOf(t, three, on, fact)
			for _, value := range raw(lists) {
				got, err := flag.Evaluate(production.ID, &Context{Attributes: attributes(string(value))})
				if missing, ok := errors.AsType[*NoUnitError](err); !ok || missing.Attribute != want ||
					fmt.Sprint(got) != fmt.Sprint(Result{}) {
					t.Errorf("by %q, %s is served %+v, %v, want that %s is missing", bucketBy, value, got, err, want)
				}
			}
		}
	}
}
