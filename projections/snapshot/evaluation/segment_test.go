package evaluation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

// at is when the store recorded the n-th fact.
func at(n int) time.Time { return time.Date(2026, 3, 14, 15, 0, n, 0, time.UTC) }

func asks(negate bool, keys ...string) events.Condition {
	c := events.Condition{Op: events.InSegment, Negate: negate}
	for _, key := range keys {
		c.Values = append(c.Values, json.RawMessage(fmt.Sprintf("%q", key)))
	}
	return c
}

func isIn(attribute string, values ...string) events.Condition {
	c := asks(false, values...)
	c.Attribute, c.Op = attribute, events.In
	return c
}

// segmentOf folds and compiles a segment, whose facts were recorded one second after the other.
func segmentOf(t testing.TB, key string, from int, facts ...events.Fact) *Segment {
	t.Helper()
	var s state.Segment
	for i, fact := range append([]events.Fact{events.SegmentCreated{Key: key}}, facts...) {
		s.Apply(events.Recorded{Event: events.Event{Fact: fact}, Revision: events.Revision(i + 1), At: at(from + i)})
	}
	compiled, err := CompileSegment(&s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func segmentRules(list ...[]events.Condition) events.Fact {
	var rules []events.Rule
	for i, conditions := range list {
		rules = append(rules, events.Rule{ID: fmt.Sprint("r", i+1), Conditions: conditions})
	}
	return events.ChangeSegmentRules(nil, rules)
}

func all(conditions ...events.Condition) []events.Condition { return conditions }

// asking returns a flag that is true for who matches the conditions.
func asking(t testing.TB, conditions ...events.Condition) *Flag {
	rule := events.Rule{ID: "r", Conditions: conditions, Serve: events.Serve{Value: json.RawMessage("true")}}
	return flagOf(t, made(events.BooleanFlag, "false"), on, ruled(rule), otherwise(events.Serve{Value: json.RawMessage("false")}))
}

func serves(t testing.TB, f *Flag, c Context) bool {
	t.Helper()
	r, err := f.Evaluate(production.ID, &c)
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Value) == "true"
}

func TestSegmentMembership(t *testing.T) {
	segments := NewSegments([]*Segment{
		segmentOf(t, "beta", 0,
			segmentRules(all(isIn("plan", "pro"), isIn("country", "de")), all(isIn("targetingKey", "ruled"))),
			events.SegmentMembersAdded{List: events.Included, Members: []string{"ada", "both"}},
			events.SegmentMembersAdded{List: events.Excluded, Members: []string{"both", "eve"}}),
		segmentOf(t, "empty", 0),
		segmentOf(t, "deleted", 0, events.SegmentMembersAdded{List: events.Included, Members: []string{"ada"}},
			events.SegmentDeleted{}),
		segmentOf(t, "outer", 0, segmentRules(all(asks(false, "beta"), isIn("country", "de", "fr")))),
	})
	german := map[string]any{"plan": "pro", "country": "de"}
	for _, c := range []struct {
		key        string
		attributes map[string]any
		asked      events.Condition
		want       bool
	}{
		{"ada", nil, asks(false, "beta"), true},
		{"ada", nil, asks(true, "beta"), false},
		{"both", german, asks(false, "beta"), false},
		{"eve", german, asks(false, "beta"), false},
		{"bob", german, asks(false, "beta"), true},
		{"", german, asks(false, "beta"), true},
		{"bob", map[string]any{"plan": "pro"}, asks(false, "beta"), false},
		{"ruled", nil, asks(false, "beta"), true},
		{"", nil, asks(false, "empty"), false},
		{"ada", nil, asks(false, "empty", "beta"), true},
		{"ada", nil, asks(false, "deleted"), false},
		{"ada", nil, asks(true, "deleted"), true},
		{"ada", nil, asks(false, "never"), false},
		{"ada", nil, asks(true, "never"), true},
		{"ada", nil, asks(false, "outer"), false},
		{"ada", map[string]any{"country": "fr"}, asks(false, "outer"), true},
	} {
		x := Context{TargetingKey: c.key, Attributes: c.attributes, Dependencies: NewDependencies(segments)}
		if got := serves(t, asking(t, c.asked), x); got != c.want {
			t.Errorf("%s with %v is in %s (negate %v): %v", c.key, c.attributes, c.asked.Values, c.asked.Negate, got)
		}
	}
	if serves(t, asking(t, asks(false, "beta")), Context{TargetingKey: "ada"}) {
		t.Error("a context without segments is in one")
	}
}

// Of the uses that form a cycle the latest matches nobody, whatever is asked first.
func TestLatestUseOfCycleMatchesNobody(t *testing.T) {
	member := events.SegmentMembersAdded{List: events.Included, Members: []string{"ada"}}
	a := segmentOf(t, "a", 0, segmentRules(all(asks(false, "b"))))
	b := segmentOf(t, "b", 10, segmentRules(all(asks(false, "c"))))
	c := segmentOf(t, "c", 20, member, segmentRules(all(asks(true, "a"))))
	self := segmentOf(t, "self", 30, segmentRules(all(asks(true, "self"))))
	plain := segmentOf(t, "plain", 40, segmentRules(all(asks(false, "a"))))
	segments := NewSegments([]*Segment{a, b, c, self, plain})
	for key, want := range map[string]bool{"a": true, "b": true, "c": true, "self": true, "plain": true} {
		for _, targetingKey := range []string{"ada", "bob"} { // bob is in c, as the question for a is answered no
			x := Context{TargetingKey: targetingKey, Dependencies: NewDependencies(segments)}
			if got := serves(t, asking(t, asks(false, key)), x); got != want {
				t.Errorf("%s is in %s: %v", targetingKey, key, got)
			}
		}
	}
	x := Context{TargetingKey: "bob", Dependencies: NewDependencies(segments)}
	r, _ := asking(t, asks(false, "c")).Evaluate(production.ID, &x)
	if !r.AskedAt.Equal(at(22)) {
		t.Errorf("the answer depends on %v, want the newest fact of the cycle", r.AskedAt)
	}
	segments = segments.With(segmentOf(t, "b", 50))
	if serves(t, asking(t, asks(false, "c")), Context{TargetingKey: "bob", Dependencies: NewDependencies(segments)}) != true {
		t.Error("without the cycle, bob is not in a, and so in c")
	}
	if segments.graph.closesCycle("c", "a") {
		t.Error("the cycle is still there")
	}
	if !segments.With(b).graph.closesCycle("c", "a") {
		t.Error("the cycle is not there again")
	}
}

// The answer after a cycle depends on the change that broke it, though that segment is not asked.
func TestAnswerDependsOnEndOfCycle(t *testing.T) {
	member := events.SegmentMembersAdded{List: events.Included, Members: []string{"ada"}}
	before := NewSegments([]*Segment{
		segmentOf(t, "a", 29, segmentRules(all(asks(false, "b")))),
		segmentOf(t, "b", 18, member, segmentRules(all(asks(false, "c")))),
		segmentOf(t, "c", 9, segmentRules(all(asks(false, "a")))),
	})
	after := before.With(segmentOf(t, "c", 39, member))
	flag := asking(t, asks(false, "a"))
	for segments, want := range map[*Segments]struct {
		member bool
		at     time.Time
	}{before: {false, at(30)}, after: {true, at(40)}, NewSegments(after.All()): {true, at(40)}, after.Without("c"): {true, at(30)}} {
		x := Context{TargetingKey: "ada", Dependencies: NewDependencies(segments)}
		r, err := flag.Evaluate(production.ID, &x)
		if err != nil || string(r.Value) != fmt.Sprint(want.member) || !r.AskedAt.Equal(want.at) {
			t.Errorf("it serves %s, depending on %v, %v; want %v", r.Value, r.AskedAt, err, want)
		}
	}
}

// The answer depends on the newest of what it asked and what that leads to, and on nothing else.
func TestAnswerDependsOnAskedSegments(t *testing.T) {
	segments := NewSegments([]*Segment{
		segmentOf(t, "a", 10, segmentRules(all(asks(false, "b")))),
		segmentOf(t, "b", 30),
		segmentOf(t, "c", 50),
		segmentOf(t, "d", 5, events.SegmentMembersAdded{List: events.Included, Members: []string{"ada"}},
			segmentRules(all(asks(false, "c")))),
	})
	for _, c := range []struct {
		flag  *Flag
		asked bool
		at    time.Time
	}{
		{asking(t, isIn("plan", "pro")), false, time.Time{}},
		{asking(t, isIn("plan", "pro"), asks(false, "c")), false, time.Time{}},
		{asking(t, asks(false, "a")), true, at(30)},
		{asking(t, asks(false, "never")), true, time.Time{}},
		{asking(t, asks(false, "a", "c")), true, at(50)},
		{asking(t, asks(false, "d")), true, at(50)},
	} {
		r, err := c.flag.Evaluate(production.ID, &Context{TargetingKey: "ada", Dependencies: NewDependencies(segments)})
		if err != nil || r.Asked != c.asked || !r.AskedAt.Equal(c.at) {
			t.Errorf("asked %v until %v, %v; want %v until %v", r.Asked, r.AskedAt, err, c.asked, c.at)
		}
	}
}

func TestReservedAttributes(t *testing.T) {
	in := asking(t, isIn("$environment", "production"))
	if !serves(t, in, Context{Environment: "production"}) || serves(t, in, Context{Environment: "staging"}) ||
		serves(t, in, Context{Attributes: map[string]any{"$environment": "production"}}) {
		t.Error("$environment is not the name of the environment")
	}
	before := isIn("$now", at(10).Format(time.RFC3339))
	before.Op = events.Before
	early, late := Context{Now: at(9)}, Context{Now: at(11)}
	flag := asking(t, before)
	if !serves(t, flag, early) || serves(t, flag, late) || serves(t, flag, Context{}) {
		t.Error("$now is not the time of the evaluation")
	}
	r, _ := flag.Evaluate(production.ID, &late)
	if !r.Asked || !r.AskedNow.Equal(at(11)) || !r.AskedAt.IsZero() {
		t.Errorf("asked %v at %v, %v", r.Asked, r.AskedNow, r.AskedAt)
	}
	for _, negate := range []bool{false, true} {
		other := isIn("$other", "x")
		other.Negate = negate
		if serves(t, asking(t, other), Context{Attributes: map[string]any{"$other": "x"}}) != negate {
			t.Errorf("$other is read from the context (negate: %v)", negate)
		}
	}
}

func TestExplanationShowsSegments(t *testing.T) {
	segments := NewSegments([]*Segment{
		segmentOf(t, "a", 0, segmentRules(all(asks(false, "b")))),
		segmentOf(t, "b", 0, events.SegmentMembersAdded{List: events.Included, Members: []string{"ada"}}),
	})
	flag := asking(t, asks(false, "never", "a"))
	x := Context{TargetingKey: "ada", Dependencies: NewDependencies(segments)}
	_, explanation, err := Explain(*flag.State(), production.ID, &x)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range explanation.Steps[2:] {
		got = append(got, fmt.Sprint(s.Kind, " ", s.Key, " ", s.Version, " ", s.Outcome, " ", s.List, " ", s.RuleID))
	}
	want := "[segment never 0 missing   segment b 2 member included  segment a 2 member  r1 rule  0 matched  r]"
	if fmt.Sprint(got) != want {
		t.Errorf("the steps are %v", got)
	}
}

// A segment that many others refer to has one step in each rule, and all steps have a limit.
func TestExplanationOfManySegmentsIsLimited(t *testing.T) {
	var list []*Segment
	var outer, inner []string
	for i := range 50 {
		inner = append(inner, fmt.Sprint("inner", i))
		list = append(list, segmentOf(t, inner[i], 0))
	}
	for i := range 50 {
		outer = append(outer, fmt.Sprint("outer", i))
		list = append(list, segmentOf(t, outer[i], 0, segmentRules(all(asks(false, inner...)))))
	}
	list = append(list, segmentOf(t, "self", 0, segmentRules(all(asks(true, "self", "inner0")))))
	x := Context{TargetingKey: "ada", Dependencies: NewDependencies(NewSegments(list))}
	steps := func(f *Flag) map[string]int {
		_, explanation, err := Explain(*f.State(), production.ID, &x)
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, s := range explanation.Steps {
			if s.Kind == SegmentStep {
				count["all"]++
				count[s.Key+" "+s.Outcome]++
			}
		}
		return count
	}
	if got := steps(asking(t, asks(true, outer...), asks(true, "inner0"))); got["all"] != 100 || len(got) != 101 {
		t.Errorf("the steps are %v", got)
	}
	got := steps(asking(t, asks(false, "self")))
	if got["self cycle"] != 1 || got["self member"] != 1 || got["inner0 not_member"] != 1 || got["all"] != 3 {
		t.Errorf("the steps are %v", got)
	}
	var rules []events.Rule
	for i := range 60 {
		rules = append(rules, events.Rule{
			ID: fmt.Sprint("r", i), Conditions: all(asks(false, outer...)), Serve: events.Serve{Value: True},
		})
	}
	if got := steps(flagOf(t, boolean, on, ruled(rules...)))["all"]; got != maxExplained/segmentStepBytes {
		t.Errorf("there are %d steps", got)
	}
}

// A check asks each segment that its rules refer to once, and costs what an evaluation does.
func TestCheckAsksOnce(t *testing.T) {
	inner := segmentOf(t, "inner", 0, events.SegmentMembersAdded{List: events.Included, Members: []string{"ada"}})
	outer := segmentOf(t, "outer", 0,
		events.SegmentMembersAdded{List: events.Included, Members: []string{"in", "both"}},
		events.SegmentMembersAdded{List: events.Excluded, Members: []string{"both"}},
		segmentRules(all(isIn("plan", "pro")), all(asks(false, "inner"))))
	for key, want := range map[string]struct {
		check Check
		asked int
	}{
		"ada":  {Check{Member: true, RuleID: "r2"}, 2},
		"bob":  {Check{}, 2},
		"in":   {Check{Member: true, List: events.Included}, 0},
		"both": {Check{List: events.Excluded}, 0},
	} {
		asked := 0
		x := Context{TargetingKey: key, Dependencies: NewDependencies(NewSegments([]*Segment{inner, outer}))}
		got, err := CheckMember(outer, &x)
		for _, c := range got.Conditions {
			asked++
			if c.RuleID == "" {
				t.Errorf("%s: %+v", key, c)
			}
		}
		if got.Conditions = nil; err != nil || fmt.Sprint(got) != fmt.Sprint(want.check) || asked != want.asked {
			t.Errorf("%s: %+v with %d conditions, %v; want %+v", key, got, asked, err, want)
		}
	}
	var list [][]events.Condition // together they cost more than half of what an evaluation may
	for range 150 {
		list = append(list, all(isIn("a", "b")))
	}
	x := Context{Attributes: map[string]any{"a": strings.Repeat("a", 1<<20)}}
	if got, err := CheckMember(segmentOf(t, "costly", 0, segmentRules(list...)), &x); err != nil || got.Member {
		t.Errorf("%v, %v", got.Member, err)
	}
}

func TestEvaluatingSegmentsDoesNotAllocate(t *testing.T) {
	flag, c := largeSegment(t)
	x := &c
	if n := testing.AllocsPerRun(100, func() { _, _ = flag.Evaluate(production.ID, x) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// largeSegment returns a flag with a segment of 100,000 members, and a context that is one of them.
func largeSegment(t testing.TB) (*Flag, Context) {
	var members []string
	for i := range 100_000 {
		members = append(members, fmt.Sprintf("user-%06d", i))
	}
	segment := segmentOf(t, "large", 0, events.SegmentMembersAdded{List: events.Included, Members: members})
	return asking(t, asks(false, "large")),
		Context{TargetingKey: "user-054321", Dependencies: NewDependencies(NewSegments([]*Segment{segment}))}
}

func BenchmarkSegmentOf100000Members(b *testing.B) {
	flag, c := largeSegment(b)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = flag.Evaluate(production.ID, &c)
	}
}

func BenchmarkInWithTenValues(b *testing.B) {
	var values []string
	for i := range 10 {
		values = append(values, fmt.Sprintf("user-%06d", i))
	}
	flag, c := asking(b, isIn("targetingKey", values...)), Context{TargetingKey: "user-000005"}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = flag.Evaluate(production.ID, &c)
	}
}
