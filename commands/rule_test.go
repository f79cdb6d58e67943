package commands

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"flagledger/events"
	"flagledger/events/rules"
)

var development = events.EnvironmentRef{ID: "e2", Name: "development"}

// split is a flag of numbers with the variations v1 and v2.
var split = created(func(f *events.FlagCreated) {
	f.Variations = []events.Variation{{ID: "v1", Name: "low", Value: raw("1")}, {ID: "v2", Name: "high", Value: raw("2")}}
})

func onPlan(values ...string) []events.Condition {
	c := events.Condition{Attribute: "plan", Op: events.In}
	for _, v := range values {
		c.Values = append(c.Values, raw(v))
	}
	return []events.Condition{c}
}

// storedRule is a rule of an environment, whose salt is salt-<id>.
func storedRule(id string) events.Rule {
	return events.Rule{ID: id, Name: "n", Salt: "salt-" + id, Conditions: onPlan(`"pro"`), Serve: events.Serve{VariationID: "v1"}}
}

// sentRule is what a caller sends for a storedRule; one without id is new.
func sentRule(id string, change ...func(*NewRule)) NewRule {
	r := NewRule{NewID: "new", Salt: "new salt", Name: "n", Conditions: onPlan(`"pro"`), Serve: &NewServe{VariationID: new("v1")}}
	if id != "" {
		r.ID = &id
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

// ruled gives production its first rules.
func ruled(rules ...events.Rule) events.RulesChanged {
	return events.ChangeRules(production, nil, rules)
}

func orderOf(ids ...string) []string { return append([]string{}, ids...) }

func setting(rules ...NewRule) SetRules {
	return SetRules{FlagRef: theFlag, Environment: production, Rules: append([]NewRule{}, rules...)}
}

func TestSetRules(t *testing.T) {
	r1, r2 := storedRule("r1"), storedRule("r2")
	given := []events.Fact{split, ruled(r1, r2)}
	t.Run("the first ones", func(t *testing.T) {
		fresh := events.Rule{ID: "new", Name: "n", Salt: "new salt", Conditions: onPlan(`"pro"`), Serve: events.Serve{VariationID: "v1"}}
		when(t, []events.Fact{split}, setting(sentRule(""))).then(events.RulesChanged{Environment: production, Added: []events.Rule{fresh}, Order: &events.Change[[]string]{From: orderOf(), To: orderOf("new")}})
	})
	t.Run("that are there already", func(t *testing.T) {
		when(t, given, setting(sentRule("r1"), sentRule("r2"))).then()
		when(t, []events.Fact{split}, setting()).then()
		when(t, append(given, events.ChangeRules(production, []events.Rule{r1, r2}, nil)), setting()).then()
	})
	t.Run("none", func(t *testing.T) {
		when(t, given, setting()).then(events.RulesChanged{Environment: production, Removed: []events.Rule{r1, r2}, Order: &events.Change[[]string]{From: orderOf("r1", "r2"), To: orderOf()}})
	})
	t.Run("that move keep their salt", func(t *testing.T) {
		when(t, given, setting(sentRule("r2"), sentRule("r1"))).
			then(events.RulesChanged{Environment: production, Order: &events.Change[[]string]{From: orderOf("r1", "r2"), To: orderOf("r2", "r1")}})
	})
	t.Run("that change keep their salt", func(t *testing.T) {
		changed := r2
		changed.Name, changed.Conditions, changed.Serve = "", []events.Condition{}, events.Serve{Value: raw("7.0")}
		sent := sentRule("r2", func(r *NewRule) {
			r.Name, r.Conditions, r.Serve = "", []events.Condition{}, &NewServe{Value: raw(" 7.0 ")}
		})
		changes := []events.Change[events.Rule]{{From: r2, To: changed}}
		when(t, given, setting(sentRule("r1"), sent)).then(events.RulesChanged{Environment: production, Changed: changes})
		when(t, given, setting(sent)).then(events.RulesChanged{
			Environment: production, Removed: []events.Rule{r1}, Changed: changes, Order: &events.Change[[]string]{From: orderOf("r1", "r2"), To: orderOf("r2")},
		})
	})
	t.Run("that were there once are new", func(t *testing.T) {
		when(t, append(given, events.ChangeRules(production, []events.Rule{r1, r2}, []events.Rule{r1})), setting(sentRule("r1"), sentRule("r2"))).
			refused(Invalid, "rules[1].id")
	})
	t.Run("of another environment", func(t *testing.T) {
		elsewhere := setting(sentRule("r1"))
		elsewhere.Environment = development
		when(t, given, elsewhere).refused(Invalid, "rules[0].id")
		elsewhere.Rules[0].ID = nil
		fresh := r1
		fresh.ID, fresh.Salt = "new", "new salt"
		when(t, given, elsewhere).then(events.RulesChanged{Environment: development, Added: []events.Rule{fresh}, Order: &events.Change[[]string]{From: orderOf(), To: orderOf("new")}})
	})
	t.Run("with one id twice", func(t *testing.T) {
		when(t, given, setting(sentRule("r1"), sentRule("r2"), sentRule("r1"))).refused(Invalid, "rules[2].id")
		when(t, given, setting(sentRule("none"), sentRule("none"))).refused(Invalid, "rules[0].id", "rules[1].id")
	})
	t.Run("whatever the flag's status", func(t *testing.T) {
		archived := append(given, events.FlagStatusChanged{From: events.ActiveFlag, To: events.ArchivedFlag})
		when(t, archived, setting()).then(events.RulesChanged{Environment: production, Removed: []events.Rule{r1, r2}, Order: &events.Change[[]string]{From: orderOf("r1", "r2"), To: orderOf()}})
	})
	t.Run("that are not sent", func(t *testing.T) {
		when(t, given, SetRules{FlagRef: theFlag, Environment: production}).refused(Invalid, "rules")
	})
	t.Run("of no flag", func(t *testing.T) { when(t, nil, setting(sentRule(""))).refused(NotFound) })
	t.Run("with the fallthrough, which stays", func(t *testing.T) {
		served := append(given, events.FallthroughChanged{Environment: production, To: &events.Serve{VariationID: "v1"}})
		with := func(f SetFallthrough) SetRules {
			set := setting(sentRule("r1"), sentRule("r2"))
			set.Fallthrough = &f
			return set
		}
		when(t, served, with(SetFallthrough{Serve: &NewServe{VariationID: new("v1")}})).then()
		when(t, given, with(SetFallthrough{Unset: true})).then()
		when(t, given, with(SetFallthrough{Serve: &NewServe{VariationID: new("v1")}})).refused(Invalid, "fallthrough")
		when(t, served, with(SetFallthrough{Unset: true})).refused(Invalid, "fallthrough")
		when(t, served, with(SetFallthrough{Serve: &NewServe{VariationID: new("v3")}})).refused(Invalid, "fallthrough", "fallthrough.variationId")
	})
	t.Run("so large that they could not be changed again", func(t *testing.T) {
		large := raw(`"` + strings.Repeat("x", maxServed/2) + `"`)
		fits := setting(sentRule("", func(r *NewRule) { r.Conditions[0].Values = []json.RawMessage{large} }))
		if err := when(t, []events.Fact{split}, fits).err; err != nil {
			t.Fatal(err)
		}
		fits.Rules = append(fits.Rules, fits.Rules[0])
		fits.Rules[1].NewID = "newer"
		when(t, []events.Fact{split}, fits).refused(Invalid, "rules")
	})
}

// The largest lists that are taken differ in every rule and in their order: the change must fit in one event, with the longest reason.
func TestRulesThatFitOnceCanAlwaysBeChanged(t *testing.T) {
	list := func(fill string) []events.Rule {
		rules := make([]events.Rule, maxRules)
		for i := range rules {
			id := fmt.Sprintf("0198c5a1-9c51-7f3d-8b26-%012d", i)
			rules[i] = events.Rule{ID: id, Salt: strings.Repeat("s", 26), Conditions: onPlan(`""`), Serve: events.Serve{VariationID: "v1"}}
		}
		stored, err := events.Marshal(rules)
		if err != nil {
			t.Fatal(err)
		}
		rules[0].Conditions = onPlan(`"` + strings.Repeat(fill, (maxServed-len(stored)-20*len(rules))/len(rules)) + `"`)
		for i := range rules {
			rules[i].Conditions = rules[0].Conditions
		}
		rules[0].Name = "x"
		if stored, err = events.Marshal(rules); err != nil {
			t.Fatal(err)
		}
		rules[0].Name += strings.Repeat("x", maxServed-len(stored))
		return rules
	}
	before, after := list("a"), list("b")
	slices.Reverse(after)
	for _, c := range []events.RulesChanged{
		events.ChangeRules(production, before, after), events.ChangeRules(production, nil, after), events.ChangeRules(production, before, nil),
	} {
		_, err := events.Encode(events.Event{ID: uuid.New(), Fact: c, Metadata: events.Metadata{
			Time: time.Now(), Actor: events.Actor{Kind: events.ClientActor, ID: uuid.NewString()}, RequestID: uuid.NewString(), CorrelationID: strings.Repeat("c", 200),
			Reason: strings.Repeat("\u2028", 500), // three bytes that JSON writes as six
		}})
		if err != nil {
			t.Errorf("%d changed, %d added, %d removed: %v", len(c.Changed), len(c.Added), len(c.Removed), err)
		}
	}
}

// However rules are set, the facts lead to the list that was decided.
func TestSetRulesLeavesTheListThatWasSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := []events.Fact{split}
		for step := range rapid.IntRange(1, 5).Draw(t, "steps") {
			flag := stateOf[Flag](given)
			var sent []NewRule
			var want []string
			kept := rapid.Permutation(flag.Rules[production.ID]).Draw(t, "order")
			for i := range rapid.IntRange(0, 4).Draw(t, "rules") {
				rule := sentRule("")
				rule.NewID = fmt.Sprintf("rule %d of step %d", i, step)
				if len(kept) > 0 && rapid.Bool().Draw(t, "keep") {
					rule.ID, kept = &kept[0].ID, kept[1:]
				}
				rule.Name = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
				sent, want = append(sent, rule), append(want, fmt.Sprint(cmp.Or(deref(rule.ID), rule.NewID), " ", rule.Name))
			}
			facts, err := setting(sent...).decide(flag)
			if err != nil {
				t.Fatal(err)
			}
			given = append(given, facts...)
			var got []string
			for _, r := range stateOf[Flag](given).Rules[production.ID] {
				got = append(got, r.ID+" "+r.Name)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("the rules are %q, want %q", got, want)
			}
		}
	})
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func TestWhatIsWrongWithARule(t *testing.T) {
	many := func(n int, value string) (values []json.RawMessage) {
		for range n {
			values = append(values, raw(value))
		}
		return values
	}
	for name, c := range map[string]struct {
		change func(*NewRule)
		fields []string
	}{
		"nothing":          {func(*NewRule) {}, nil},
		"no conditions":    {func(r *NewRule) { r.Conditions = nil }, []string{"conditions"}},
		"a long name":      {func(r *NewRule) { r.Name = strings.Repeat("é", 201) }, []string{"name"}},
		"50 conditions":    {func(r *NewRule) { r.Conditions = repeat(r.Conditions[0], 50) }, nil},
		"51 conditions":    {func(r *NewRule) { r.Conditions = repeat(r.Conditions[0], 51) }, []string{"conditions"}},
		"1000 values":      {func(r *NewRule) { r.Conditions[0].Values = many(1000, "1") }, nil},
		"1001 values":      {func(r *NewRule) { r.Conditions[0].Values = many(1001, "1") }, []string{"conditions[0].values"}},
		"no attribute":     {func(r *NewRule) { r.Conditions[0].Attribute = "" }, []string{"conditions[0].attribute"}},
		"a long attribute": {func(r *NewRule) { r.Conditions[0].Attribute = strings.Repeat("é", 201) }, []string{"conditions[0].attribute"}},
		"a path":           {func(r *NewRule) { r.Conditions[0].Attribute = "a.b c.é" }, nil},
		"empty parts": {func(r *NewRule) {
			r.Conditions = append(repeat(r.Conditions[0], 3), onPlan("1")...)
			r.Conditions[0].Attribute, r.Conditions[1].Attribute, r.Conditions[2].Attribute = ".a", "a.", "a..b"
		}, []string{"conditions[0].attribute", "conditions[1].attribute", "conditions[2].attribute"}},
		"no operator":                     {func(r *NewRule) { r.Conditions[0].Op = "" }, []string{"conditions[0].op"}},
		"another operator":                {func(r *NewRule) { r.Conditions[0].Op = "IN" }, []string{"conditions[0].op"}},
		"another operator without values": {func(r *NewRule) { r.Conditions[0] = events.Condition{Attribute: "a", Op: "equals"} }, []string{"conditions[0].op"}},
		"no values":                       {func(r *NewRule) { r.Conditions[0].Values = nil }, []string{"conditions[0].values"}},
		"values for exists":               {func(r *NewRule) { r.Conditions[0].Op = events.Exists }, []string{"conditions[0].values"}},
		"exists":                          {func(r *NewRule) { r.Conditions[0].Op, r.Conditions[0].Values = events.Exists, []json.RawMessage{} }, nil},
		"a long expression": {func(r *NewRule) {
			r.Conditions[0].Op, r.Conditions[0].Values = events.Matches, append(many(1, `"`+strings.Repeat("a", 1000)+`"`), many(1, `"`+strings.Repeat("a", 1001)+`"`)...)
		}, []string{"conditions[0].values[1]"}},
		"nothing to serve": {func(r *NewRule) { r.Serve = nil }, []string{"serve"}},
		"all at once": {func(r *NewRule) {
			r.ID, r.Name = new("none"), strings.Repeat("x", 201)
			r.Conditions = append(onPlan("null", "1", "[]"), events.Condition{Attribute: "a.", Op: "x"}, events.Condition{Op: events.After, Values: many(1, `"soon"`)})
			r.Serve = &NewServe{Rollout: []events.Share{{VariationID: "none", Weight: -1}, {VariationID: "v1", Weight: 1}}, BucketBy: new("")}
		}, []string{
			"id", "name", "conditions[0].values[0]", "conditions[0].values[2]", "conditions[1].attribute", "conditions[1].op", "conditions[2].attribute", "conditions[2].values[0]",
			"serve.rollout[0].variationId", "serve.rollout[0].weight", "serve.bucketBy",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var fields []string
			for _, field := range c.fields {
				fields = append(fields, "rules[1]."+field)
			}
			decided := when(t, []events.Fact{split}, setting(sentRule(""), sentRule("", func(r *NewRule) { c.change(r) })))
			if fields == nil && decided.err == nil && len(decided.facts) == 1 {
				return
			}
			decided.refused(Invalid, fields...)
		})
	}
	t.Run("expressions that are too large together", func(t *testing.T) {
		size, _ := rules.RegexpSize("a{1000}")
		fit := maxRegexps / size
		large := []events.Condition{{Attribute: "a", Op: events.Matches, Values: many(fit-1, `"a{1000}"`)}, {Attribute: "a", Op: events.Matches, Values: many(1, `"a{1000}"`)}}
		set := setting(sentRule("", func(r *NewRule) { r.Conditions = large }))
		if err := when(t, []events.Fact{split}, set).err; err != nil {
			t.Error(err)
		}
		large[1].Values = many(5, `"a{1000}"`)
		when(t, []events.Fact{split}, set).refused(Invalid, "rules[0].conditions[1].values[1]")
	})
	t.Run("too many rules", func(t *testing.T) {
		when(t, []events.Fact{split}, setting(repeat(sentRule(""), 101)...)).refused(Invalid, "rules")
		if err := when(t, []events.Fact{split}, setting(repeat(sentRule(""), 100)...)).err; err != nil {
			t.Error(err)
		}
	})
}

func repeat[T any](one T, n int) (list []T) {
	for range n {
		list = append(list, one)
	}
	return list
}

func TestValuesAreOfTheKindThatTheOperatorTakes(t *testing.T) {
	values := map[rules.Kind][]string{
		rules.Scalar:  {`""`, `"a"`, `"<&>"`, `0`, `-1.50`, `1e2`, `9007199254740993`, `true`, `false`},
		rules.Text:    {`""`, `"a"`, `"1"`, `"\u00e9"`},
		rules.Pattern: {`""`, `"^a+$"`, `"\\d{1,3}"`, `"(?i)x"`},
		rules.Number:  {`0`, `-1.50`, `1e2`, `-0`, `9007199254740993`, `1e-999`, `-1e999`},
		rules.Time:    {`"2026-03-14T15:09:26Z"`, `"2026-03-14T15:09:26.535897+05:30"`},
		rules.Version: {`"1.2.3"`, `"1.2.3-beta.1+build"`},
	}
	others := map[rules.Kind][]string{
		rules.Scalar:  {`null`, `{}`, `[]`, `[1]`},
		rules.Text:    {`null`, `1`, `true`, `{}`, `[]`},
		rules.Pattern: {`null`, `1`, `"("`, `"a{1001}"`, `"(?=a)"`, `"\\C"`, `{}`},
		rules.Number:  {`null`, `"1"`, `true`, `{}`, `[]`},
		rules.Time:    {`null`, `1`, `""`, `"2026-03-14"`, `"2026-03-14T15:09:26"`, `"14 March"`, `"2026-03-14T5:09:26Z"`, `"2026-02-30T00:00:00Z"`, `true`},
		rules.Version: {`null`, `1`, `""`, `"1.2"`, `"v1.2.3"`, `"1.2.03"`, `1.2`, `{}`},
	}
	for _, operator := range rules.Operators() {
		op := operator.Name
		for wanted, good := range map[bool][]string{true: values[operator.Values], false: others[operator.Values]} {
			for _, value := range good {
				decided := when(t, []events.Fact{split}, setting(sentRule("", func(r *NewRule) {
					r.Conditions = []events.Condition{{Attribute: "a", Op: op, Values: []json.RawMessage{raw(value)}, Negate: true}}
				})))
				if !wanted {
					decided.refused(Invalid, "rules[0].conditions[0].values[0]")
					continue
				}
				if decided.err != nil {
					t.Errorf("%s %s: %v", op, value, decided.err)
					continue
				}
				got := decided.facts[0].(events.RulesChanged).Added[0].Conditions[0]
				if !got.Negate || got.Op != op || string(got.Values[0]) != value {
					t.Errorf("%s %s is stored as %+v", op, value, got)
				}
			}
		}
	}
}

func TestWhatIsServed(t *testing.T) {
	share := func(id string, weight events.Weight) events.Share {
		return events.Share{VariationID: id, Weight: weight}
	}
	for name, c := range map[string]struct {
		sent   *NewServe
		want   *events.Serve
		fields []string
	}{
		"a variation":                  {&NewServe{VariationID: new("v2")}, &events.Serve{VariationID: "v2"}, nil},
		"a variation and null":         {&NewServe{VariationID: new("v2"), Value: raw("null")}, &events.Serve{VariationID: "v2"}, nil},
		"a value":                      {&NewServe{Value: raw(" 1.50")}, &events.Serve{Value: raw("1.50")}, nil},
		"a rollout":                    {&NewServe{Rollout: []events.Share{share("v2", 0), share("v1", 1)}}, &events.Serve{Rollout: []events.Share{share("v2", 0), share("v1", 1)}}, nil},
		"a rollout and null":           {&NewServe{Rollout: []events.Share{share("v1", 1)}, Value: raw("null")}, &events.Serve{Rollout: []events.Share{share("v1", 1)}}, nil},
		"a rollout by an attribute":    {&NewServe{Rollout: []events.Share{share("v1", 1)}, BucketBy: new("company.id")}, &events.Serve{Rollout: []events.Share{share("v1", 1)}, BucketBy: "company.id"}, nil},
		"a rollout by targetingKey":    {&NewServe{Rollout: []events.Share{share("v1", 1)}, BucketBy: new("targetingKey")}, &events.Serve{Rollout: []events.Share{share("v1", 1)}}, nil},
		"nothing":                      {nil, nil, []string{""}},
		"none of the three":            {&NewServe{}, nil, []string{""}},
		"all of the three":             {&NewServe{VariationID: new("v1"), Value: raw("1"), Rollout: []events.Share{share("v1", 1)}}, nil, []string{""}},
		"two, and both are wrong":      {&NewServe{VariationID: new("none"), Value: raw("true")}, nil, []string{"", ".variationId", ".value"}},
		"no variation of the flag":     {&NewServe{VariationID: new("v3")}, nil, []string{".variationId"}},
		"an empty id":                  {&NewServe{VariationID: new("")}, nil, []string{".variationId"}},
		"a value of another type":      {&NewServe{Value: raw(`"1"`)}, nil, []string{".value"}},
		"null":                         {&NewServe{Value: raw(`null`)}, nil, []string{".value"}},
		"an empty rollout":             {&NewServe{Rollout: []events.Share{}}, nil, []string{".rollout"}},
		"weights of 0":                 {&NewServe{Rollout: []events.Share{share("v1", 0), share("v2", 0)}}, nil, []string{".rollout"}},
		"weights out of range":         {&NewServe{Rollout: []events.Share{share("v1", -1), share("v2", events.MaxWeight+1)}}, nil, []string{".rollout[0].weight", ".rollout[1].weight"}},
		"a variation twice":            {&NewServe{Rollout: []events.Share{share("v1", 1), share("v2", 1), share("v1", 1)}}, nil, []string{".rollout[2].variationId"}},
		"unknown variations":           {&NewServe{Rollout: []events.Share{share("v3", 1), share("", 1)}}, nil, []string{".rollout[0].variationId", ".rollout[1].variationId"}},
		"too many":                     {&NewServe{Rollout: repeat(share("v1", 1), 101)}, nil, []string{".rollout"}},
		"bucketBy without a rollout":   {&NewServe{VariationID: new("v1"), BucketBy: new("a")}, nil, []string{".bucketBy"}},
		"bucketBy that is no path":     {&NewServe{Rollout: []events.Share{share("v1", 1)}, BucketBy: new("a..b")}, nil, []string{".bucketBy"}},
		"bucketBy that is empty":       {&NewServe{Rollout: []events.Share{share("v1", 1)}, BucketBy: new("")}, nil, []string{".bucketBy"}},
		"bucketBy, and nothing at all": {&NewServe{BucketBy: new("a")}, nil, []string{"", ".bucketBy"}},
	} {
		t.Run(name, func(t *testing.T) {
			byRule := when(t, []events.Fact{split}, setting(sentRule("", func(r *NewRule) { r.Serve = c.sent })))
			set := when(t, []events.Fact{split}, SetFallthrough{FlagRef: theFlag, Environment: production, Serve: c.sent})
			if c.want == nil {
				var inRule, alone []string
				for _, field := range c.fields {
					inRule, alone = append(inRule, "rules[0].serve"+field), append(alone, "serve"+field)
				}
				byRule.refused(Invalid, inRule...)
				set.refused(Invalid, alone...)
				return
			}
			byRule.then(ruled(events.Rule{ID: "new", Name: "n", Salt: "new salt", Conditions: onPlan(`"pro"`), Serve: *c.want}))
			set.then(events.FallthroughChanged{Environment: production, To: c.want})
		})
	}
	t.Run("null of a flag of JSON", func(t *testing.T) {
		ofJSON := created(func(f *events.FlagCreated) { f.Type, f.DefaultValue = events.JSONFlag, raw("{}") })
		when(t, []events.Fact{ofJSON}, SetFallthrough{FlagRef: theFlag, Environment: production, Serve: &NewServe{Value: raw("null")}}).
			then(events.FallthroughChanged{Environment: production, To: &events.Serve{Value: raw("null")}})
	})
}

func TestSetFallthrough(t *testing.T) {
	low, high := &events.Serve{VariationID: "v1"}, &events.Serve{VariationID: "v2"}
	given := []events.Fact{split, events.FallthroughChanged{Environment: production, To: low}}
	to := func(id string) SetFallthrough {
		return SetFallthrough{FlagRef: theFlag, Environment: production, Serve: &NewServe{VariationID: &id}}
	}
	unset := SetFallthrough{FlagRef: theFlag, Environment: production, Unset: true}
	when(t, given, to("v2")).then(events.FallthroughChanged{Environment: production, From: low, To: high})
	when(t, given, to("v1")).then()
	when(t, given, unset).then(events.FallthroughChanged{Environment: production, From: low})
	when(t, []events.Fact{split}, unset).then()
	when(t, append(given, events.FallthroughChanged{Environment: production, From: low}), unset).then()
	when(t, nil, unset).refused(NotFound)
	elsewhere := to("v1")
	elsewhere.Environment = development
	when(t, given, elsewhere).then(events.FallthroughChanged{Environment: development, To: low})
	large := setting(sentRule("", func(r *NewRule) { r.Serve = &NewServe{Value: raw(strings.Repeat("1", 300))} }))
	if err := when(t, []events.Fact{split}, large).err; err != nil {
		t.Error(err)
	}
	ofText := created(func(f *events.FlagCreated) { f.Type, f.DefaultValue = events.StringFlag, raw(`""`) })
	when(t, []events.Fact{ofText}, SetFallthrough{FlagRef: theFlag, Environment: production, Serve: &NewServe{Value: raw(`"` + strings.Repeat("x", maxServed) + `"`)}}).
		refused(Invalid, "serve")
}

func TestAVariationThatIsServedStays(t *testing.T) {
	rollout := storedRule("r2")
	rollout.Name, rollout.Serve = "", events.Serve{Rollout: []events.Share{{VariationID: "v2", Weight: 1}, {VariationID: "v1", Weight: 0}}}
	inProduction, inDevelopment := ruled(storedRule("r1"), rollout), events.ChangeRules(development, nil, []events.Rule{rollout})
	byFallthrough := events.FallthroughChanged{Environment: development, To: &events.Serve{VariationID: "v1"}}
	both := []events.EnvironmentRef{production, development}
	removed := events.VariationRemoved{Variation: split.Variations[0]}
	for name, c := range map[string]struct {
		given        []events.Fact
		environments []events.EnvironmentRef
		detail       string // empty where the variation goes
	}{
		"by nothing":             {nil, both, ""},
		"by rules":               {[]events.Fact{inProduction}, both, "the variation is still served by rule 1 (n) in production, rule 2 in production"},
		"by a fallthrough":       {[]events.Fact{byFallthrough}, both, "the variation is still served by the fallthrough in development"},
		"in two environments":    {[]events.Fact{byFallthrough, inProduction, inDevelopment}, both, "the variation is still served by rule 1 (n) in production, rule 2 in production, rule 1 in development, the fallthrough in development"},
		"in a deleted one":       {[]events.Fact{byFallthrough, inDevelopment}, []events.EnvironmentRef{production}, ""},
		"in one added again":     {[]events.Fact{inProduction}, []events.EnvironmentRef{{ID: "e3", Name: "production"}}, ""},
		"by rules that are gone": {[]events.Fact{inProduction, byFallthrough, events.RulesChanged{Environment: production, Order: &events.Change[[]string]{}}, events.FallthroughChanged{Environment: development}}, both, ""},
	} {
		t.Run(name, func(t *testing.T) {
			decided := when(t, append([]events.Fact{split}, c.given...), RemoveVariation{FlagRef: theFlag, ID: "v1", Environments: c.environments})
			if c.detail == "" {
				decided.then(removed)
				return
			}
			if decided.refused(Conflict); decided.err.Error() != c.detail {
				t.Errorf("it says %q", decided.err)
			}
		})
	}
	t.Run("and can be updated", func(t *testing.T) {
		when(t, []events.Fact{split, inProduction}, UpdateVariation{FlagRef: theFlag, ID: "v1", Value: raw("9")}).
			then(events.VariationUpdated{ID: "v1", Value: &events.Change[json.RawMessage]{From: raw("1"), To: raw("9")}})
	})
}

// What is accepted and sent once more changes nothing, also after it was stored and read.
func TestRulesSentAgainChangeNothing(t *testing.T) {
	for _, serve := range []*NewServe{
		{VariationID: new("v1")}, {Value: raw(`1.50`)}, {Rollout: []events.Share{{VariationID: "v1", Weight: 33_333}, {VariationID: "v2", Weight: 66_667}}, BucketBy: new("a.b")},
	} {
		sent := setting(sentRule("", func(r *NewRule) {
			r.Conditions = []events.Condition{
				{Attribute: "a", Op: events.In, Values: []json.RawMessage{raw(` "<\u00e9>"`), raw("1.0")}, Negate: true}, {Attribute: "b", Op: events.Exists, Values: []json.RawMessage{}},
			}
			r.Serve = serve
		}))
		decided := when(t, []events.Fact{split}, sent)
		if decided.err != nil {
			t.Fatal(decided.err)
		}
		stored, err := events.Encode(events.Event{Fact: decided.facts[0]})
		if err != nil {
			t.Fatal(err)
		}
		read, err := events.Decode(stored)
		if err != nil {
			t.Fatal(err)
		}
		sent.Rules[0].ID, sent.Rules[0].NewID, sent.Rules[0].Salt = new("new"), "another", "another salt"
		when(t, []events.Fact{split, read.Fact}, sent).then()
	}
}
