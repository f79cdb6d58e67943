package snapshot

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"flagledger/events"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/usage/counted"
)

// A flag that nobody evaluates costs no memory for it, and one that somebody does little.
func TestAUseTakesLittleMemory(t *testing.T) {
	if size := unsafe.Sizeof(Flag{}); size > 128 {
		t.Errorf("a flag takes %d bytes, which is another class of sizes", size)
	}
	const flags = 20_000
	s := filled(flags)
	x := user()
	tenant, _ := s.Tenant("t")
	at := tenant.CountTime(noon)
	evaluate := func(by *Client, below, step int) {
		for i := 0; i < below; i += step {
			key := fmt.Sprintf("flag-%d", i)
			flag, _ := tenant.Flag(key)
			r, err := flag.Evaluate(production.ID, x)
			if err != nil {
				t.Fatal(err)
			}
			tenant.CountEvaluation(key, production.ID, &r, by, at)
		}
	}
	before := heap()
	evaluate(nil, flags, 1)
	ledger{}.take(s, noon, noFailure)
	each := (heap() - before) / flags
	t.Logf("%d bytes for a flag and environment that is evaluated", each)
	if each > 160 {
		t.Errorf("a flag and environment that is evaluated takes %d bytes", each)
	}
	const many = flags / 80 // with the race detector all take a minute
	used := heap()
	for c := range 1000 {
		step := 1
		if c > maxCallers { // they are not told apart any more
			step = 100
		}
		evaluate(&Client{ID: fmt.Sprintf("0198c5a1-7d2e-7b10-9d0c-3f5f%08d", c)}, many, step)
		if c%100 == 0 {
			for range s.TakeUses() {
				continue
			}
		}
	}
	took := used - before + (heap()-used)*flags/many
	t.Logf("%d MB for 20,000 flags that 1,000 clients evaluate", took>>20)
	if took > 100<<20 {
		t.Errorf("20,000 flags that 1,000 clients evaluate take %d MB", took>>20)
	}
	tenant.CountEvaluation("boolean", production.ID, new(resultOf(t, s, "boolean", x)), nil,
		tenant.CountTime(noon.Add(time.Hour)))
	ledger{}.take(s, noon.Add(time.Hour), noFailure)
	if left := heap() - before; left > 2<<20 {
		t.Errorf("%d MB are left when the hour is over", left>>20)
	}
	runtime.KeepAlive(s)
}

func TestOutcomesAndClientsBeyondTheBoundsAreCountedTogether(t *testing.T) {
	s := of(made(events.BooleanFlag, "false"))
	tenant, _ := s.Tenant("t")
	at := tenant.CountTime(noon)
	for round := range 2 {
		for i := range 130 {
			tenant.CountEvaluation("k", production.ID, evaluated(s, "k", fmt.Sprint("v", i%30)), &Client{ID: fmt.Sprint("c", i)},
				at)
		}
		for name, u := range taken(s) {
			if u.FlagKey == "" {
				continue
			}
			var rest, outcomes, all, callers uint64
			for _, o := range u.Served {
				all += o.Count
				if o.Rest {
					rest += o.Count
					continue
				}
				outcomes++
			}
			for _, c := range u.Callers {
				callers += c.Count
			}
			times := uint64(round + 1)
			// The first ten variations are served five times in a round, the others four times.
			if outcomes != maxOutcomes || all != 130*times || rest != 40*times {
				t.Errorf("%s has %d outcomes, %d evaluations and %d of the rest", name, outcomes, all, rest)
			}
			if len(u.Callers) != maxCallers || callers != maxCallers*times {
				t.Errorf("%s has %d clients with %d evaluations", name, len(u.Callers), callers)
			}
		}
	}
}

// An outcome that is served for two reasons is one of those that are told apart.
func TestOutcomeOfTwoReasonsCountsOnce(t *testing.T) {
	s := of(made(events.BooleanFlag, "false"))
	tenant, _ := s.Tenant("t")
	for i := range maxOutcomes {
		for _, reason := range []evaluation.Reason{evaluation.Fallthrough, evaluation.RuleMatch} {
			r := evaluated(s, "k", fmt.Sprint("v", i))
			r.Reason = reason
			tenant.CountEvaluation("k", production.ID, r, nil, tenant.CountTime(noon))
		}
	}
	for name, u := range taken(s) {
		rest := slices.ContainsFunc(u.Served, func(o counted.Served) bool { return o.Rest })
		if u.FlagKey != "" && (len(u.Served) != 2*maxOutcomes || rest) {
			t.Errorf("%s has %d outcomes by reason, and a rest: %t", name, len(u.Served), rest)
		}
	}
}

// A variation is one outcome, whatever its value, which is told of again when it has changed.
func TestAVariationIsOneOutcome(t *testing.T) {
	s := of(made(events.NumberFlag, "0", choice("a", "1", 1)), on)
	tenant, _ := s.Tenant("t")
	for n := range 2 * maxOutcomes {
		s.apply(
			events.Page{
				Events: []events.Recorded{
					recorded(events.FlagStream("t", "k"), events.Revision(n+3),
						events.VariationUpdated{ID: "a", Value: &events.Change[json.RawMessage]{To: fmt.Append(nil, n)}}),
				},
			},
			slog.New(slog.DiscardHandler),
		)
		flag, _ := tenant.Flag("k")
		r, err := flag.Evaluate(production.ID, &evaluation.Context{TargetingKey: "u"})
		if err != nil {
			t.Fatal(err)
		}
		tenant.CountEvaluation("k", production.ID, &r, nil, tenant.CountTime(noon))
		for _, u := range taken(s) {
			if u.FlagKey == "" {
				continue
			}
			if len(u.Served) != 1 || u.Served[0].Count != uint64(n+1) || !u.Served[0].New ||
				string(u.Served[0].Value) != fmt.Sprint(n) {
				t.Fatalf("after %d changes it has served %+v", n, u.Served)
			}
		}
	}
}

func TestCallersAreLastSeenWhenTheyEvaluatedLast(t *testing.T) {
	s := filled(1)
	tenant, _ := s.Tenant("t")
	flag, _ := tenant.Flag("flag-0")
	for _, now := range []time.Time{noon, noon.Add(20 * time.Second)} {
		for _, client := range []*Client{{ID: "first"}, {ID: "later"}} {
			tenant.CountEvaluation("flag-0", "e", servesTrue(flag), client,
				tenant.CountTime(now))
		}
	}
	for u := range s.TakeUses() {
		if len(u.Callers) != 2 {
			t.Errorf("%q has the callers %v", u.FlagKey, u.Callers)
		}
		for _, c := range u.Callers {
			if c.Count != 2 || !c.Seen.Equal(noon.Add(20*time.Second)) {
				t.Errorf("%q was evaluated by %s %d times, the last at %v", u.FlagKey, c.ClientID, c.Count, c.Seen)
			}
		}
	}
}

// Stripes are most of the memory of a use that is counted all the time.
func TestTheStripesOfAUseCount(t *testing.T) {
	u := &use{}
	u.callers.Store(&callers{})
	before := u.bytes()
	for _, c := range []*counter{&u.first.byOthers, &u.first.byFirst, &u.callers.Load().of[3].n} {
		c.stripes.Store(&stripes{})
	}
	if more := u.bytes() - before; more != 3*int(unsafe.Sizeof(stripes{})) {
		t.Errorf("three counters with stripes count for %d bytes", more)
	}
}

func resultOf(t *testing.T, s *Snapshot, key string, x *evaluation.Context) Result {
	t.Helper()
	r, err := s.evaluate(key, x)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// evaluated is a result of a flag of the tenant that of makes.
func evaluated(s *Snapshot, key, id string) *Result {
	tenant, _ := s.Tenant("t")
	flag, _ := tenant.Flag(key)
	served := &evaluation.Variation{ID: id, Name: "name of " + id, Value: []byte(`"` + id + `"`)}
	return &Result{flag: flag, Result: evaluation.Result{
		Value:         served.Value,
		Reason:        evaluation.Fallthrough,
		VariationID:   id,
		VariationName: served.Name,
		Variation:     served,
	}}
}

func servesTrue(flag *Flag) *Result {
	return &Result{evaluation.Result{Value: evaluation.True, Reason: evaluation.Fallthrough}, flag}
}
