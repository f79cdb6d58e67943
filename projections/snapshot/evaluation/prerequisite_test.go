package evaluation

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

// flagAt folds and compiles a flag, whose facts were recorded one second after the other.
func flagAt(t testing.TB, key string, from int, facts ...events.Fact) *Flag {
	t.Helper()
	var s state.Flag
	for i, fact := range facts {
		if made, ok := fact.(events.FlagCreated); ok {
			made.Key = key
			fact = made
		}
		s.Apply(events.Recorded{Event: events.Event{Fact: fact}, Revision: events.Revision(i + 1), At: at(from + i)})
	}
	if !s.Exists {
		return Deleted(&s)
	}
	f, err := Compile(&s, theEnvironments, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &f
}

// requires demands of other flags that they are on and serve true, or are off if their keys begin with a dash.
func requires(keys ...string) events.PrerequisitesChanged {
	change := events.PrerequisitesChanged{Environment: production}
	for _, key := range keys {
		p := events.Prerequisite{FlagKey: key, Serves: []events.ServedValue{{Value: True}}}
		if key[0] == '-' {
			p = events.Prerequisite{FlagKey: key[1:], Off: true}
		}
		change.To = append(change.To, p)
	}
	return change
}

// evaluated returns the keys of the required flags that the last evaluation evaluated.
func evaluated(x *Context) (keys []string) {
	for key := range x.RequiredFlags() {
		keys = append(keys, key)
	}
	return keys
}

var boolean = made(events.BooleanFlag, "false")

// enabled returns a flag that is on and requires others.
func enabled(t testing.TB, key string, from int, others ...string) *Flag {
	return flagAt(t, key, from, boolean, on, requires(others...))
}

func TestPrerequisites(t *testing.T) {
	d := NewDependencies(nil,
		flagAt(t, "on", 0, boolean, on),
		flagAt(t, "disabled", 10, boolean),
		flagAt(t, "inactive", 20, boolean, on, events.FlagStatusChanged{To: events.InactiveFlag}),
		flagAt(t, "archived", 30, boolean, on, events.FlagStatusChanged{To: events.ArchivedFlag}),
		flagAt(t, "deleted", 40, boolean, on, events.FlagDeleted{}),
		flagAt(t, "b", 50, three, on, otherwise(toB)),
		enabled(t, "chained", 60, "on"),
		enabled(t, "broken", 70, "disabled"),
		flagAt(t, "list", 80, made(events.JSONFlag, `{"a":1.0,"b":[2]}`), on),
		flagAt(t, "number", 90, made(events.NumberFlag, `1.50`), on),
	)
	value := func(key, value string) events.Prerequisite {
		return events.Prerequisite{FlagKey: key, Serves: []events.ServedValue{{Value: []byte(value)}}}
	}
	variation := func(key string, ids ...string) events.Prerequisite {
		p := events.Prerequisite{FlagKey: key}
		for _, id := range ids {
			p.Serves = append(p.Serves, events.ServedValue{VariationID: id})
		}
		return p
	}
	off := func(key string) events.Prerequisite { return events.Prerequisite{FlagKey: key, Off: true} }
	for _, c := range []struct {
		demands events.Prerequisite
		met     bool
		at      time.Time
	}{
		{value("on", "true"), true, at(1)},
		{value("on", "false"), false, at(1)},
		{value("disabled", "false"), false, at(10)},
		{value("inactive", "true"), false, at(22)},
		{value("archived", "true"), false, at(32)},
		{value("deleted", "true"), false, at(42)},
		{value("never", "true"), false, time.Time{}},
		{off("on"), false, at(1)},
		{off("disabled"), true, at(10)},
		{off("inactive"), true, at(22)},
		{off("archived"), true, at(32)},
		{off("deleted"), true, at(42)},
		{off("never"), true, time.Time{}},
		{variation("b", "b"), true, at(52)},
		{variation("b", "a", "b"), true, at(52)},
		{variation("b", "a"), false, at(52)},
		{value("b", "2"), true, at(52)},
		{value("b", "2.0"), true, at(52)},
		{value("b", "3"), false, at(52)},
		{variation("b"), false, at(52)},
		{value("chained", "true"), true, at(62)},
		{off("chained"), false, at(62)},
		{value("broken", "true"), false, at(72)},
		{value("broken", "false"), false, at(72)},
		{off("broken"), true, at(72)},
		{value("list", `{"b":[2],"a":1}`), true, at(81)},
		{value("list", `{"b":[2]}`), false, at(81)},
		{value("number", `1.5`), true, at(91)},
		{value("number", `"1.5"`), false, at(91)},
	} {
		f := flagAt(t, "f", 0, boolean, on, events.PrerequisitesChanged{Environment: production, To: []events.Prerequisite{c.demands}})
		x := Context{Dependencies: d}
		r, err := f.Evaluate(production.ID, &x)
		if err != nil || r.Enabled != c.met || !r.Asked || !r.AskedAt.Equal(c.at) {
			t.Errorf("%+v: %+v, %v; want %v depending on %v", c.demands, r, err, c.met, c.at)
		}
		if !c.met && (r.Reason != PrerequisiteFailed || r.Prerequisite != c.demands.FlagKey || string(r.Value) != "false") {
			t.Errorf("%+v: %+v", c.demands, r)
		}
	}
}

// Comparing values counts as effort, and a served value is decoded once for all flags that require it.
func TestComparingServedValuesIsBounded(t *testing.T) {
	list := func(n int, spelt string) string { return "[" + strings.Repeat(spelt+",", n) + "0]" }
	// asking returns a flag that requires ten others, which all require a list to serve one of 49 values, and these flags.
	asking := func(serves string, values func(i int) string) (*Flag, *Dependencies) {
		demands := events.Prerequisite{FlagKey: "list"}
		for i := range 49 {
			demands.Serves = append(demands.Serves, events.ServedValue{Value: json.RawMessage(values(i))})
		}
		flags := []*Flag{flagAt(t, "list", 0, made(events.JSONFlag, serves), on)}
		var keys []string
		for i := range 10 {
			keys = append(keys, fmt.Sprint("f", i))
			flags = append(flags, flagAt(t, keys[i], 10, boolean, on,
				events.PrerequisitesChanged{Environment: production, To: []events.Prerequisite{demands}}))
		}
		return enabled(t, "root", 20, keys...), NewDependencies(nil, flags...)
	}
	last := func(n int, spelt string) func(int) string {
		return func(i int) string { return list(n-48+i, spelt) }
	}
	long := strings.Repeat("1", 60_000)
	for name, c := range map[string]struct {
		serves  string
		values  func(i int) string
		most    effort
		met     bool
		refused bool
	}{
		"once for ten":      {list(1000, "1.0"), last(1000, "1"), 100_000, true, false},
		"the same spelling": {list(1000, "1"), last(1000, "1"), 20_000, true, false},
		"none":              {list(1000, "1.0"), last(999, "1"), 100_000, false, false},
		"long numbers": {
			long + ".50", func(i int) string { return long + fmt.Sprint(".", 48-i+5) }, 1_000_000, true, false,
		},
		"too large":       {list(60_000, "1.0"), last(100, "1"), maxEffort, false, true},
		"of another kind": {`"` + strings.Repeat(`\\`, 300_000) + `"`, last(100, "1"), 2000, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			root, d := asking(c.serves, c.values)
			x := Context{Dependencies: d}
			var r Result
			err := root.evaluate(&r, production.ID, &x, c.most)
			if c.refused {
				if err != ErrTooLarge {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil || r.Enabled != c.met {
				t.Errorf("it is on: %v, %v", r.Enabled, err)
			}
			allocs := testing.AllocsPerRun(5, func() { _, _ = root.Evaluate(production.ID, &x) })
			if name == "the same spelling" && allocs > 0 {
				t.Errorf("%v allocations", allocs)
			}
		})
	}
}

// Values are equal whatever their spelling, and nothing else is.
func TestPlainValues(t *testing.T) {
	groups := [][]string{
		{"true"}, {"false"}, {"null"}, {`"true"`}, {`""`}, {"[]", "[ ]"}, {"{}"}, {"[{}]"}, {"[[]]"},
		{"0", "-0", "0.0", "0e5"},
		{"1", "1.0", "10e-1"}, {"-1"}, {`"1"`, `"\u0031"`}, {"9007199254740993"}, {"9007199254740992", "9007199254740992.0"},
		{"[1,2]", "[1.0, 2e0]"}, {"[2,1]"}, {`[9007199254740993]`}, {"[9007199254740992]"}, {`["1",2]`},
		{`{"a\\":"1","b":"2\"3"}`, `{"b":"2\u00223","a\u005c":"1"}`},
		{`{"a":1,"b":[{"c":"x"}]}`, `{"b":[{"\u0063":"\u0078"}],"a":1.0}`}, {`{"a":1}`}, {`{"a":"1"}`},
		{`"é<"`, `"\u00e9\u003c"`}, {`["é<"]`, `["\u00e9\u003c"]`}, {`"\\"`, `"\u005c"`}, {"1e400"},
		{"[1e400]", "[10e399]"}, {"[1e401]"},
	}
	for i, group := range groups {
		for _, value := range group {
			for j, others := range groups {
				for _, other := range others {
					v := newPlainValue(json.RawMessage(other))
					a, left := answered{Result: Result{Value: json.RawMessage(value)}}, maxEffort
					if got := a.serves(&v, &left); got != (i == j) {
						t.Errorf("%s equals %s: %v", value, other, got)
					}
				}
			}
		}
	}
}

func BenchmarkPlainValue(b *testing.B) {
	for name, value := range map[string]string{
		"numbers": "[" + strings.Repeat("1,", 30_000) + "1]",
		"lists":   "[" + strings.Repeat("[],", 20_000) + "1]",
		"objects": "[" + strings.Repeat(`{"":1},`, 8_000) + "1]",
		"texts":   "[" + strings.Repeat(`"abcdefgh",`, 5_000) + "1]",
		"text":    `"` + strings.Repeat(`\n`, 30_000) + `"`,
		"number":  strings.Repeat("1", 60_000),
		"signs":   `["` + strings.Repeat(`<`, 60_000) + `"]`,
		"places":  "[" + strings.Repeat("1e20,", 12_000) + "1]",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				newPlainValue(json.RawMessage(value))
			}
			each := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			b.ReportMetric(each/float64(plainEffort(json.RawMessage(value))), "ns/unit")
			b.ReportMetric(each/float64(len(value)), "ns/byte")
		})
	}
}

// The first prerequisite that is not met decides, and the others are not asked.
func TestPrerequisitesAreAskedInOrder(t *testing.T) {
	d := NewDependencies(nil, flagAt(t, "on", 0, boolean, on), flagAt(t, "off", 10, boolean), flagAt(t, "late", 20, boolean))
	x := Context{Dependencies: d}
	r, _ := enabled(t, "f", 0, "on", "off", "late").Evaluate(production.ID, &x)
	if r.Prerequisite != "off" || !r.AskedAt.Equal(at(10)) || !slices.Equal(evaluated(&x), []string{"on", "off"}) {
		t.Errorf("%+v", r)
	}
	f := flagAt(t, "f", 0, boolean, requires("off"))
	if r, _ := f.Evaluate(production.ID, &x); r.Reason != Off || r.Asked || len(evaluated(&x)) > 0 {
		t.Errorf("a flag that is off has asked: %+v", r)
	}
}

// A flag that several others require is evaluated once.
func TestRequiredFlagIsEvaluatedOnce(t *testing.T) {
	d := NewDependencies(nil, flagAt(t, "base", 0, boolean, on), enabled(t, "a", 10, "base"), enabled(t, "b", 20, "base", "a"))
	x := Context{Dependencies: d}
	r, _ := enabled(t, "f", 0, "b", "a", "base").Evaluate(production.ID, &x)
	if got := evaluated(&x); !r.Enabled || !slices.Equal(got, []string{"b", "base", "a"}) {
		t.Errorf("%+v, evaluated %v", r, got)
	}
}

func TestSplitOfRequiredFlagNeedsItsUnit(t *testing.T) {
	split := flagAt(t, "split", 0, made(events.BooleanFlag, "false", choice("a", "true", 50_000), choice("b", "false", 50_000)), on)
	d := NewDependencies(nil, split, enabled(t, "middle", 10, "split"))
	_, err := enabled(t, "f", 0, "middle").Evaluate(production.ID, &Context{Dependencies: d})
	missing, ok := errors.AsType[*NoUnitError](err)
	if !ok || *missing != (NoUnitError{events.TargetingKey, "split"}) {
		t.Errorf("the error is %v", err)
	}
}

// Of the prerequisites that form a cycle the latest is unmet, whatever is asked first.
func TestLatestPrerequisiteOfCycleIsUnmet(t *testing.T) {
	for _, n := range []int{1, 2, 10} {
		key := func(i int) string { return fmt.Sprint("k", i%n) }
		var flags []*Flag
		for i := range n {
			flags = append(flags, enabled(t, key(i), 10*i, "-"+key(i+1)))
		}
		d := NewDependencies(nil, flags...)
		// The last is off, as it requires the first one; from there on every second is.
		for i, f := range flags {
			x := Context{Dependencies: d}
			r, err := f.Evaluate(production.ID, &x)
			if want := (n-i)%2 == 0; err != nil || r.Enabled != want {
				t.Errorf("of %d, %d is %v, %v", n, i, r.Enabled, err)
			}
			if !r.AskedAt.Equal(at(10*(n-1)+2)) && n-i > 1 {
				t.Errorf("of %d, %d depends on %v", n, i, r.AskedAt)
			}
			problems := d.Problems(f, production.ID)
			if !slices.Equal(problems, []Problem{{PrerequisiteCycle, "k0"}}) {
				t.Errorf("of %d, %d has the problems %v", n, i, problems)
			}
		}
		if n == 1 {
			continue
		}
		free := d.WithRequired(flagAt(t, key(n-1), 200, boolean, on))
		if x := (Context{Dependencies: free}); len(free.Problems(flags[0], production.ID)) > 0 || len(free.graphs) == 0 && n > 2 {
			t.Errorf("%d: the cycle is still there: %+v", n, x.Dependencies.graphs)
		}
	}
}

func TestPrerequisiteLimits(t *testing.T) {
	var chain, wide []*Flag
	for i := range 12 {
		var next []string
		if i > 0 {
			next = []string{fmt.Sprint("c", i-1)}
		}
		chain = append(chain, enabled(t, fmt.Sprint("c", i), i, next...))
	}
	d := NewDependencies(nil, chain...)
	for i, want := range map[int]bool{8: true, 9: true, 10: false, 11: false} {
		r, err := chain[i].Evaluate(production.ID, &Context{Dependencies: d})
		limit := slices.ContainsFunc(d.Problems(chain[i], production.ID), func(p Problem) bool { return p.Code == PrerequisiteLimit })
		if err != nil || r.Enabled != want || limit == want {
			t.Errorf("a chain of %d is on: %v, %v, beyond the limit: %v", i+1, r.Enabled, err, limit)
		}
	}
	for i := range maxRequired + 20 {
		wide = append(wide, flagAt(t, fmt.Sprintf("w%03d", i), 0, boolean, on))
	}
	groups := func(n int) (keys []string, flags []*Flag) {
		var requiredBy [20][]string
		for i := range n {
			requiredBy[i%20] = append(requiredBy[i%20], wide[i].state.Key)
		}
		for i, keys := range requiredBy {
			flags = append(flags, enabled(t, fmt.Sprint("g", i), 0, keys...))
		}
		for _, f := range flags {
			keys = append(keys, f.state.Key)
		}
		return keys, append(flags, wide...)
	}
	for n, want := range map[int]bool{maxRequired - 20: true, maxRequired - 19: false} {
		keys, flags := groups(n)
		d, f := NewDependencies(nil, flags...), enabled(t, "f", 0, keys...)
		r, err := f.Evaluate(production.ID, &Context{Dependencies: d})
		if problems := d.Problems(f, production.ID); err != nil || r.Enabled != want || len(problems) == 0 != want {
			t.Errorf("with %d others: %v, %v, problems %v", n+20, r.Enabled, err, problems)
		}
	}
}

// An answer depends on the flags that it asked, and on which flags these require; not on a toggle of a flag that was
// not asked.
func TestAnswerDependsOnAskedFlagsAndEdges(t *testing.T) {
	d := NewDependencies(nil,
		flagAt(t, "disabled", 10, boolean, requires("deep")),
		enabled(t, "deep", 20, "leaf"),
		flagAt(t, "leaf", 60, boolean, on),
	)
	f := enabled(t, "f", 0, "disabled")
	asked := func(d *Dependencies) time.Time {
		r, _ := f.Evaluate(production.ID, &Context{Dependencies: d})
		return r.AskedAt
	}
	if got := asked(d); !got.Equal(at(60)) {
		t.Errorf("it depends on %v, want the creation of the leaf", got)
	}
	before := d.graphs[production.ID]
	toggled := d.WithRequired(flagAt(t, "deep", 20, boolean, on, requires("leaf"), events.FlagDisabled{Environment: production}))
	if got := asked(toggled); !got.Equal(at(60)) || toggled.graphs[production.ID] != before {
		t.Errorf("after a toggle it depends on %v", got)
	}
	free := toggled.WithRequired(flagAt(t, "deep", 76, boolean, on, requires("leaf"), requires()))
	if got := asked(free); !got.Equal(at(79)) {
		t.Errorf("after the end of an edge it depends on %v", got)
	}
}

func TestUnusablePrerequisites(t *testing.T) {
	edges := map[string][]string{"a": {"b"}, "b": {"c"}, "c": nil, "d": nil}
	for i := range 9 {
		edges[fmt.Sprint("n", i)] = []string{fmt.Sprint("n", i+1)}
	}
	edges["n9"] = nil
	flags := FlagsIn{
		Exists:   func(key string) bool { _, ok := edges[key]; return ok },
		Requires: func(key string) []string { return edges[key] },
		Dependents: func(of string) (keys []string) {
			for key, list := range edges {
				if slices.Contains(list, of) {
					keys = append(keys, key)
				}
			}
			return keys
		},
	}
	for _, c := range []struct {
		from string
		keys []string
		want map[string]string
	}{
		{"d", []string{"a", "b"}, map[string]string{}},
		{"d", []string{"never"}, map[string]string{"never": "must be the key of a flag"}},
		{"d", []string{"d"}, map[string]string{"d": "closes a cycle: d → d"}},
		{"c", []string{"a"}, map[string]string{"a": "closes a cycle: c → a → b → c"}},
		{"d", []string{"n1"}, map[string]string{}},
		{"d", []string{"n0"}, map[string]string{
			"n0": "makes a chain of 11 flags, at most 10: d → n0 → n1 → n2 → n3 → n4 → n5 → n6 → n7 → n8 → n9",
		}},
	} {
		if got := flags.Unusable(c.from, c.keys); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s → %v: %v, want %v", c.from, c.keys, got, c.want)
		}
	}
}

// Checking prerequisites asks a few times for what each flag requires, however many flags lead to the one that changes.
func TestCheckingPrerequisitesAsksFewTimes(t *testing.T) {
	requires, dependents := map[string][]string{}, map[string][]string{}
	add := func(from string, to ...string) {
		requires[from] = append(requires[from], to...)
		for _, key := range to {
			dependents[key] = append(dependents[key], from)
		}
	}
	var middle []string
	for i := range 19 {
		middle = append(middle, fmt.Sprint("middle", i))
		for j := range 4 {
			add(middle[i], fmt.Sprint("leaf", 4*i+j))
		}
	}
	const count = 1000
	for i := range count {
		add(fmt.Sprint("root", i), "base")
		add(fmt.Sprint("root", i), middle...) // leads to 1+19+76 others
	}
	for i := range 5 {
		add("deep", fmt.Sprint("new", i))
	}
	add("extra", "new0", "new1")
	asked := 0
	flags := FlagsIn{
		Exists:     func(string) bool { return true },
		Requires:   func(key string) []string { asked++; return requires[key] },
		Dependents: func(key string) []string { asked++; return dependents[key] },
	}
	for _, c := range []struct {
		keys []string
		want map[string]string
	}{
		{[]string{"extra"}, map[string]string{}}, // three more
		{[]string{"extra", "middle0"}, map[string]string{}},
		{[]string{"leaf0", "deep"}, map[string]string{
			"deep": "makes root0 lead to 102 other flags, at most 100",
		}},
	} {
		asked = 0
		if got := flags.Unusable("base", c.keys); fmt.Sprint(got) != fmt.Sprint(c.want) || asked > 5*(count+100) {
			t.Errorf("%v: %v after %d questions, want %v", c.keys, got, asked, c.want)
		}
	}
}

func TestExplanationShowsPrerequisites(t *testing.T) {
	d := NewDependencies(nil, flagAt(t, "base", 0, boolean, on), enabled(t, "a", 0, "base"), enabled(t, "b", 0, "a", "base"))
	x := Context{Dependencies: d}
	_, explanation, err := Explain(*enabled(t, "f", 0, "b", "-base").State(), production.ID, &x)
	if err != nil {
		t.Fatal(err)
	}
	var text func(steps []Step) []string
	text = func(steps []Step) (list []string) {
		for _, s := range steps {
			if s.Kind == RequiredStep {
				list = append(list, fmt.Sprint(s.Key, " ", s.Version, " ", s.Outcome, text(s.Steps)))
			}
		}
		return list
	}
	want := "[b 3 met[a 3 met[base 2 met[]] base 2 met[]] base 2 unmet[]]"
	if got := fmt.Sprint(text(explanation.Steps)); got != want {
		t.Errorf("the steps are %s, want %s", got, want)
	}
}

func TestEvaluatingPrerequisitesDoesNotAllocate(t *testing.T) {
	f, _, c := withPrerequisites(t)
	if n := testing.AllocsPerRun(100, func() { _, _ = f.Evaluate(production.ID, &c) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// withPrerequisites returns a flag with three prerequisites, these, and a context. All have one rule.
func withPrerequisites(t testing.TB) (f *Flag, others []*Flag, c Context) {
	rule := events.Rule{ID: "r", Conditions: all(isIn("plan", "pro")), Serve: events.Serve{Value: True}}
	for _, key := range []string{"a", "b", "c"} {
		others = append(others, flagAt(t, key, 0, boolean, on, ruled(rule)))
	}
	f = flagAt(t, "f", 0, boolean, on, ruled(rule), requires("a", "b", "c"))
	return f, others, Context{
		TargetingKey: "user-42", Attributes: map[string]any{"plan": "pro"}, Dependencies: NewDependencies(nil, others...),
	}
}

func BenchmarkThreePrerequisites(b *testing.B) {
	f, _, c := withPrerequisites(b)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = f.Evaluate(production.ID, &c)
	}
}

func BenchmarkFourFlags(b *testing.B) {
	_, others, c := withPrerequisites(b)
	others = append(others, others[0])
	b.ReportAllocs()
	for b.Loop() {
		for _, f := range others {
			_, _ = f.Evaluate(production.ID, &c)
		}
	}
}
