package snapshot

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"flagledger/events"
)

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// The bytes that bound a tenant's flags must bound the memory of a node too.
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
			var flag *Flag
			facts := []events.FlagFact{three}
			for i := range 20 {
				values := make([]json.RawMessage, c.count)
				for j := range values {
					values[j] = fmt.Appendf(nil, c.value, i*c.count+j)
				}
				in := events.EnvironmentRef{ID: fmt.Sprint(i), Name: fmt.Sprint(i)}
				rule := events.Rule{ID: "r", Serve: toA, Conditions: []events.Condition{{Attribute: "a", Op: c.op, Values: values}}}
				facts = append(facts, events.FlagEnabled{Environment: in}, events.ChangeRules(in, nil, []events.Rule{rule}))
			}
			for i, fact := range facts {
				var err error
				if flag, err = evolve(flag, recorded(events.FlagStream("t", "f"), events.Revision(i+1), fact), fact); err != nil {
					t.Fatal(err)
				}
			}
			took, counted := heap()-before, int(flag.bytes)
			t.Logf("%d bytes in memory of %d that are counted", took, counted)
			if took > 6*counted {
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
		compiled, err := compileCondition(events.Condition{Attribute: "a", Op: events.Matches, Values: raw(fmt.Sprintf(`["(?:b%d-0?){400}"]`, i))})
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

// An evaluation that nobody waits for must not compile for long.
func TestCompilingCounts(t *testing.T) {
	flag := compiledFlag(t, events.Condition{Attribute: "a", Op: events.Matches, Values: raw(`["(?:c-0?){400}"]`)})
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

// compiledFlag is a flag that is on, with one rule of one condition.
func compiledFlag(t *testing.T, c events.Condition) *Flag {
	t.Helper()
	s := of(three, on, ruled(events.Rule{ID: "r", Serve: toA, Conditions: []events.Condition{c}}))
	tenant, _ := s.Tenant("t")
	flag, ok := tenant.Flag("k")
	if !ok || s.Faults() > 0 {
		t.Fatal("it cannot be compiled")
	}
	return flag
}
