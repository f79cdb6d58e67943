package evaluation

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"flagledger/events"
	"flagledger/events/rules"
)

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// The limit of a tenant's flags in bytes must also limit a node's memory.
func TestAFlagTakesFewTimesItsBytesOfMemory(t *testing.T) {
	for name, c := range map[string]struct {
		op    events.Operator
		value string
		count int
	}{
		"short numbers":  {events.In, `%d`, 1000},
		"short texts":    {events.In, `"%d"`, 1000},
		"versions":       {events.SemverEqual, `"1.0.%d"`, 1000},
		"parts of texts": {events.Contains, `"%d"`, 1000},
		"patterns":       {events.Matches, `"(?:a%d-0?){400}"`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			facts := []events.Fact{three}
			var environments []events.EnvironmentRef
			for i := range 20 {
				values := make([]json.RawMessage, c.count)
				for j := range values {
					values[j] = fmt.Appendf(nil, c.value, i*c.count+j)
				}
				in := events.EnvironmentRef{ID: fmt.Sprint(i), Name: fmt.Sprint(i)}
				environments = append(environments, in)
				rule := events.Rule{ID: "r", Serve: toA, Conditions: []events.Condition{{Attribute: "a", Op: c.op, Values: values}}}
				facts = append(facts, events.FlagEnabled{Environment: in}, events.ChangeRules(in, nil, []events.Rule{rule}))
			}
			flag := flagIn(t, environments, facts...)
			took, counted := heap()-before, flag.State().Bytes()
			t.Logf("%d bytes in memory of %d that are counted", took, counted)
			if took > 7*counted {
				t.Errorf("it takes %d bytes of memory, and counts as %d", took, counted)
			}
			runtime.KeepAlive(flag)
		})
	}
}

func TestCompiledPatternsTakeBoundedMemory(t *testing.T) {
	const count = 750 // take 90 MB
	x := &Context{Attributes: map[string]any{"a": "a"}}
	before := heap()
	for i := range count {
		compiled, err := compileCondition(
			events.Condition{Attribute: "a", Op: events.Matches, Values: raw(fmt.Sprintf(`["(?:b%d-0?){400}"]`, i))},
			"", new(rules.MaxRegexpCost),
		)
		if err != nil {
			t.Fatal(err)
		}
		if left := maxEffort; compiled.holds(x, &left) || left < 0 {
			t.Fatalf("it matches, with %d left", left)
		}
	}
	if took := heap() - before; took > maxPrograms {
		t.Errorf("%d patterns that were matched take %d MB", count, took>>20)
	}
}

// An evaluation whose caller is gone must not compile for long.
func TestCompilingCounts(t *testing.T) {
	flag := withCondition(t, events.Condition{Attribute: "a", Op: events.Matches, Values: raw(`["(?:c-0?){400}"]`)})
	x := &Context{Attributes: map[string]any{"a": "c"}}
	if _, err := flag.EvaluateShort(production.ID, x); err != ErrTooLarge {
		t.Errorf("an evaluation that nobody waits for compiles a large pattern: %v", err)
	}
	for _, evaluate := range []func(string, *Context) (Result, error){flag.Evaluate, flag.EvaluateShort} {
		if r, err := evaluate(production.ID, x); err != nil || r.Reason != Fallthrough {
			t.Errorf("it serves %+v, %v", r, err)
		}
	}
}

// Earlier releases accepted patterns that take seconds to parse. They work, but other flags' facts do not wait for
// them.
func TestPatternsOfEarlierReleasesAreParsedWhenTheyAreMatched(t *testing.T) {
	var values []json.RawMessage
	for i := range 130 {
		values = append(values, json.RawMessage(fmt.Sprintf(`"x%d[%s]"`, i, strings.Repeat(`\\pC\\PC`, 160))))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	flag := withCondition(t, events.Condition{Attribute: "a", Op: events.Matches, Values: values})
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
		t.Errorf("applying the fact takes %d KB, as parsing does", took>>10)
	}
	x := &Context{Attributes: map[string]any{"a": "x1!"}}
	if _, err := flag.EvaluateShort(production.ID, x); err != ErrTooLarge {
		t.Errorf("an evaluation that nobody waits for parses for long: %v", err)
	}
	tries := 1
	r, err := flag.Evaluate(production.ID, x)
	for ; err == ErrTooLarge && tries < len(values); tries++ {
		r, err = flag.Evaluate(production.ID, x)
	}
	if err != nil || r.RuleID != "r" || tries != 2 { // it parses x0 and x1
		t.Errorf("after %d evaluations it serves %+v, %v", tries, r, err)
	}
	if r, err = flag.EvaluateShort(production.ID, x); err != nil || r.RuleID != "r" {
		t.Errorf("once they are compiled it serves %+v, %v", r, err)
	}
}
