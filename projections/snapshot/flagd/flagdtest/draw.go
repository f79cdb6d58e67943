// Package flagdtest draws flags of every construct and contexts that are hard to compare, for tests of exactness.
package flagdtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"flagledger/events"
	"flagledger/events/rules"
	"flagledger/events/state"
)

// EnvironmentID is the id of the environment that the drawn flags are enabled in.
const EnvironmentID = "e1"

var (
	attributes = []string{"plan", "n", "version", "unit", "größe", "none"}
	texts      = []string{
		"", "pro", "Pro", "probe", "team", "größer", "1", "true", "(", "[object Object]", "a\"b<c>", "  x ",
	}
	numbers  = []string{"0", "1", "-1", "1.5", "5", "1e3", "42", "0.1", "-0.000001", "9007199254740991"}
	versions = []string{"1.0.0", "1.2.3", "1.0.0-rc.1", "1.0.0-rc.10", "1.0.0+b", "2.0.0", "10.0.0"}
	patterns = []string{"^pro$", "^(pro|team)$", "^gr", "o$", "be", "^[pP]ro$", "^pro(be)?$"}
	times    = []string{"2026-03-14T15:09:26Z", "2026-03-14T17:09:26.5+02:00"}
	hard     = []string{
		"null", "true", "false", `""`, `" "`, `"u "`, `" u"`, `"0"`, `"false"`, `"True"`, `"1.0"`, `"1"`, `"null"`,
		"0", "-0", "1", "-1", "1.0", "1.5", "5", "42", "1e3", "1e-7", "1e21", "9007199254740992", "-9007199254740994",
		"0.1", "0.30000000000000004",
		`"pro"`, `"Pro"`, `"probe"`, `"größer"`, `"日本"`, `"😀"`, `"v1.2.3"`, `"V1.2.3"`, `" 1.2.3"`,
		`"1.2.3\n"`, `"1.2-rc"`, `"1-rc.1.2"`, `"1.2+b"`, `"1.2"`, `"1.2.3"`,
		`"1.0.0-rc.2"`, `"1.0.0-01"`, `"1.2.3+b.01"`, `"01.2.3"`, `"10.0.0"`, `"=1.2.3"`,
		`"[object Object]"`, `"NaN"`, `"Infinity"`, "[]", "[[]]", "[null]", `["pro"]`, `[["pro"]]`,
		`[1]`, `[[5]]`, `[true]`, `[[true]]`, `["x","pro",5]`,
		`["1.2.3","0.1.0"]`, "{}", `{"a":1}`, `{"plan":"pro"}`, `{"var":"plan"}`, `{"cat":["pro"]}`, `{"===":[1,1]}`,
		`[{"cat":["pro"]}]`, `"2026-03-14T15:09:27Z"`, `"a\"b<c>"`,
		`"` + strings.Repeat("probe ", 200) + `"`, `"` + strings.Repeat("ü", 1024) + `be"`,
	}
	keys = []string{
		"", "u", "u1", "user-2", "pro", " ", "u ", " u", "größer", "日本", "😀", "1", "1.2.3", "[object Object]", "null",
		"a\"b",
	}
)

// Flags draws n flags: one for each operator, with and without negation, and others.
func Flags(r *rand.Rand, n int) []*state.Flag {
	operators := rules.Operators()
	list := make([]*state.Flag, n)
	for i := range list {
		f := flag(r, fmt.Sprintf("flag-%03d", i))
		if i < 2*len(operators) {
			f.Status, f.Enabled = events.ActiveFlag, f.Enabled.With(EnvironmentID)
			c := condition(r, operators[i/2].Name)
			c.Negate = i%2 == 1
			f.Rules = map[string][]events.Rule{EnvironmentID: {rule(r, f, 0, c)}}
		}
		list[i] = f
	}
	return list
}

func one[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func flag(r *rand.Rand, key string) *state.Flag {
	f := &state.Flag{Exists: true, Status: events.ActiveFlag, Version: 3}
	f.Key, f.Salt = key, fmt.Sprintf("salt-%d", r.Int32())
	f.Type = one(r, []events.FlagType{events.BooleanFlag, events.StringFlag, events.NumberFlag, events.JSONFlag})
	f.DefaultValue = value(r, f.Type, 0)
	for i := range r.IntN(5) {
		v := events.Variation{ID: fmt.Sprintf("id-%d", i), Value: value(r, f.Type, i+1)}
		v.Name = fmt.Sprintf("variation %d", i)
		v.Name += one(r, []string{"", "", "ö", `"<&`})
		v.Weight = one(r, []events.Weight{0, 0, 1000, 25_000, 33_333})
		f.Variations = append(f.Variations, v)
	}
	if r.IntN(8) > 0 {
		f.Enabled = f.Enabled.With(EnvironmentID)
	}
	switch r.IntN(12) {
	case 0:
		f.Status = events.InactiveFlag
	case 1:
		f.Status = events.ArchivedFlag
	}
	for i := range r.IntN(4) {
		var conditions []events.Condition
		for range 1 + r.IntN(2) {
			conditions = append(conditions, condition(r, one(r, rules.Operators()).Name))
		}
		f.SetRules(EnvironmentID, append(f.Rules[EnvironmentID], rule(r, f, i, conditions...)))
	}
	if r.IntN(3) == 0 {
		s := serve(r, f)
		f.SetFallthrough(EnvironmentID, &s)
	}
	return f
}

func value(r *rand.Rand, kind events.FlagType, i int) json.RawMessage {
	var v string
	switch kind {
	case events.BooleanFlag:
		v = []string{"false", "true"}[i%2]
	case events.NumberFlag:
		v = fmt.Sprint(float64(i) + 0.5*float64(r.IntN(2)))
	case events.JSONFlag:
		v = fmt.Sprintf(`{"n":%d}`, i)
		if r.IntN(30) == 0 {
			v = "[1]"
		}
	case events.StringFlag:
		v = fmt.Sprintf(`"value %d%s"`, i, one(r, []string{"", "<ü>", "null"}))
	}
	return json.RawMessage(v)
}

func rule(r *rand.Rand, f *state.Flag, i int, conditions ...events.Condition) events.Rule {
	id, salt := fmt.Sprintf("rule-%d", i), fmt.Sprintf("%s-%d", f.Salt, i)
	return events.Rule{ID: id, Salt: salt, Conditions: conditions, Serve: serve(r, f)}
}

func serve(r *rand.Rand, f *state.Flag) events.Serve {
	if len(f.Variations) == 0 || r.IntN(4) == 0 {
		return events.Serve{Value: value(r, f.Type, 10+r.IntN(3))}
	}
	if r.IntN(2) == 0 {
		return events.Serve{VariationID: one(r, f.Variations).ID}
	}
	s := events.Serve{BucketBy: one(r, []string{"", "", "targetingKey", "unit", "größe"})}
	for i, v := range f.Variations {
		weight := one(r, []events.Weight{0, 1, 12_500, 33_333, 50_000})
		s.Rollout = append(s.Rollout, events.Share{VariationID: v.ID, Weight: weight})
		if i == 0 {
			s.Rollout[0].Weight++
		}
	}
	return s
}

func condition(r *rand.Rand, o events.Operator) events.Condition {
	operator, _ := rules.Find(o)
	c := events.Condition{Op: o, Negate: r.IntN(4) == 0}
	c.Attribute = one(r, append([]string{"targetingKey", "plan"}, attributes...))
	switch {
	case r.IntN(30) == 0:
		c.Attribute = "a.b"
	case o == events.In && r.IntN(8) == 0:
		c.Attribute = events.EnvironmentAttribute
	case operator.Values == rules.Time && r.IntN(8) == 0:
		c.Attribute = events.NowAttribute
	}
	quoted := func(text string) json.RawMessage {
		raw, _ := json.Marshal(text)
		return raw
	}
	for range 1 + r.IntN(5) {
		var v json.RawMessage
		switch operator.Values {
		case rules.NoValue:
			return c
		case rules.Scalar:
			v = one(r, []json.RawMessage{
				quoted(one(r, texts)), quoted(one(r, texts)), json.RawMessage(one(r, numbers)), json.RawMessage("true"),
				json.RawMessage("false"),
			})
		case rules.Text:
			v = quoted(one(r, texts))
		case rules.Pattern:
			v = quoted(one(r, patterns))
		case rules.Number:
			v = json.RawMessage(one(r, numbers))
		case rules.Time:
			v = quoted(one(r, times))
		case rules.SegmentKey:
			c.Attribute, v = "", quoted("beta")
		case rules.Version:
			v = quoted(one(r, versions))
		}
		c.Values = append(c.Values, v)
	}
	return c
}

// Contexts draws n contexts as JSON: a targeting key, and the values of attributes.
func Contexts(r *rand.Rand, n int) []map[string]json.RawMessage {
	list := make([]map[string]json.RawMessage, n)
	for i := range list {
		c := map[string]json.RawMessage{}
		for _, name := range attributes[:len(attributes)-1] {
			if r.IntN(6) > 0 {
				c[name] = json.RawMessage(one(r, hard))
			}
		}
		if r.IntN(8) > 0 {
			key, _ := json.Marshal(one(r, keys))
			if r.IntN(2) == 0 {
				key = json.RawMessage(fmt.Sprintf(`"user-%d"`, r.IntN(1000)))
			}
			c[events.TargetingKey] = key
		}
		list[i] = c
	}
	return list
}

// Seed returns the seed of a run: FLAGLEDGER_FLAGD_SEED, or always the same.
func Seed() int { return setting("FLAGLEDGER_FLAGD_SEED", 1) }

// Many multiplies a number by FLAGLEDGER_FLAGD_RUNS, for a longer run.
func Many(n int) int { return n * setting("FLAGLEDGER_FLAGD_RUNS", 1) }

func setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}
