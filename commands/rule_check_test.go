package commands

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"flagledger/events"
	"flagledger/events/rules"
)

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
		large := []events.Condition{
			{Attribute: "a", Op: events.Matches, Values: many(fit-1, `"a{1000}"`)},
			{Attribute: "a", Op: events.Matches, Values: many(1, `"a{1000}"`)},
		}
		set := setting(sentRule("", func(r *NewRule) { r.Conditions = large }))
		if err := when(t, []events.Fact{split}, set).err; err != nil {
			t.Error(err)
		}
		large[1].Values = many(5, `"a{1000}"`)
		when(t, []events.Fact{split}, set).refused(Invalid, "rules[0].conditions[1].values[1]")
	})
	t.Run("expressions that take too long to parse", func(t *testing.T) {
		many := func(n int, pattern string) (values []json.RawMessage) {
			for range n {
				values = append(values, json.RawMessage(`"`+pattern+`"`))
			}
			return values
		}
		var before, after runtime.MemStats
		for pattern, fit := range map[string]int{
			"[" + strings.Repeat(`\\pC\\PC`, 166) + "]":         0,
			"(?i)[" + strings.Repeat("B-\U0001e942", 160) + "]": 0,
			`[\\pC\\PC]`: 30,
			"(?i)[一-龥]":  9,
		} {
			set := setting(sentRule("", func(r *NewRule) {
				r.Conditions = []events.Condition{
					{Attribute: "a", Op: events.Matches, Values: many(max(fit, 1), pattern)},
					{Attribute: "a", Op: events.Matches, Values: many(200, pattern)},
				}
			}))
			place := "rules[0].conditions[0].values[0]"
			if fit > 0 {
				place = "rules[0].conditions[1].values[0]"
			}
			runtime.ReadMemStats(&before)
			when(t, []events.Fact{split}, set).refused(Invalid, place)
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
				t.Errorf("%.30s takes %d MB to refuse", pattern, took>>20)
			}
			if !set.Costly() {
				t.Errorf("%.30s is not costly", pattern)
			}
		}
		if setting(sentRule("")).Costly() || setting(sentRule("", func(r *NewRule) {
			r.Conditions[0].Op, r.Conditions[0].Values = events.Matches, many(300, `^[^@]+@example\\.com$`)
		})).Costly() {
			t.Error("ordinary rules are costly")
		}
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
		rules.Scalar:     {`""`, `"a"`, `"<&>"`, `0`, `-1.50`, `1e2`, `9007199254740993`, `true`, `false`},
		rules.Text:       {`""`, `"a"`, `"1"`, `"\u00e9"`},
		rules.Pattern:    {`""`, `"^a+$"`, `"\\d{1,3}"`, `"(?i)x"`},
		rules.Number:     {`0`, `-1.50`, `1e2`, `-0`, `9007199254740993`, `1e-999`, `-1e308`},
		rules.Time:       {`"2026-03-14T15:09:26Z"`, `"2026-03-14T15:09:26.535897+05:30"`},
		rules.Version:    {`"1.2.3"`, `"1.2.3-beta.1+build"`},
		rules.SegmentKey: {`"beta"`},
	}
	others := map[rules.Kind][]string{
		rules.Scalar:  {`null`, `{}`, `[]`, `[1]`, `1e999`},
		rules.Text:    {`null`, `1`, `true`, `{}`, `[]`},
		rules.Pattern: {`null`, `1`, `"("`, `"a{1001}"`, `"(?=a)"`, `"\\C"`, `{}`},
		rules.Number:  {`null`, `"1"`, `true`, `{}`, `[]`, `-1e999`},
		rules.Time: {
			`null`,
			`1`,
			`""`,
			`"2026-03-14"`,
			`"2026-03-14T15:09:26"`,
			`"14 March"`,
			`"2026-03-14T5:09:26Z"`,
			`"2026-02-30T00:00:00Z"`,
			`true`,
		},
		rules.SegmentKey: {`null`, `1`, `true`, `{}`},
		rules.Version:    {`null`, `1`, `""`, `"1.2"`, `"v1.2.3"`, `"1.2.03"`, `1.2`, `{}`},
	}
	for _, operator := range rules.Operators() {
		op := operator.Name
		for wanted, good := range map[bool][]string{true: values[operator.Values], false: others[operator.Values]} {
			for _, value := range good {
				decided := when(t, []events.Fact{split}, setting(sentRule("", func(r *NewRule) {
					attribute := "a"
					if !operator.HasAttribute() {
						attribute = ""
					}
					r.Conditions = []events.Condition{{Attribute: attribute, Op: op, Values: []json.RawMessage{raw(value)}, Negate: true}}
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
