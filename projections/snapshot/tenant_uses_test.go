package snapshot

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/projections/snapshot/evaluation"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// Beyond the bound a flag's environments are counted together, and no flag that is used is left out. What is deleted
// makes room.
func TestManyUsesOfATenant(t *testing.T) {
	const flags, environments = 1010, 100
	s := filled(flags)
	tenant, _ := s.Tenant("t")
	at := tenant.CountTime(noon)
	for i := range flags {
		key := fmt.Sprintf("flag-%d", i)
		for e := range environments {
			tenant.CountEvaluation(key, fmt.Sprint("e", e), evaluated(s, key, "a"), nil, at)
		}
	}
	sums, together := map[string]uint64{}, 0
	for _, u := range taken(s) {
		for _, o := range u.Served {
			sums[u.FlagKey] += o.Count
		}
		if u.FlagKey != "" && u.EnvironmentID == "" {
			together++
		}
	}
	for i := range flags {
		if n := sums[fmt.Sprintf("flag-%d", i)]; n != environments {
			t.Fatalf("flag %d has %d evaluations", i, n)
		}
	}
	if n := sums[""]; n != flags*environments {
		t.Errorf("the tenant has %d evaluations, want those of all flags", n)
	}
	if together != flags-maxUses/environments || tenant.uses.count.Load() != int64(maxUses+together) {
		t.Errorf("%d flags are counted without environments, and %d uses in all", together, tenant.uses.count.Load())
	}
	for i := range flags {
		s.apply(
			events.Page{
				Events: []events.Recorded{recorded(events.FlagStream("t", fmt.Sprintf("flag-%d", i)), 3, events.FlagDeleted{})},
			},
			slog.New(slog.DiscardHandler),
		)
	}
	if n := tenant.uses.count.Load(); n != 0 {
		t.Errorf("%d uses are counted of flags that were deleted", n)
	}
}

// Many tenants that nobody pays for tell no more apart than one.
func TestUsesOfAllUnpaidTenantsOfACreator(t *testing.T) {
	s := New()
	for id, of := range map[string]struct {
		creator string
		plan    events.Plan
	}{"full": {"c", events.FreePlan}, "free": {"c", events.FreePlan}, "paid": {"c", events.StandardPlan}, "other": {"d", events.FreePlan}} {
		created := recorded(events.TenantStream(id), 1, events.TenantCreated{ID: id, Plan: of.plan})
		created.Actor.ID = of.creator
		s.apply(
			events.Page{
				Events: []events.Recorded{created, recorded(events.FlagStream(id, "f"), 1, made(events.BooleanFlag, "false"))},
			},
			slog.New(slog.DiscardHandler),
		)
	}
	full, _ := s.Tenant("full")
	full.uses.count.Store(maxUses - 1)
	full.uses.callerPages.Store(maxCallerPages - 1)
	for id, want := range map[string][3]int{"free": {2, 12, 30}, "paid": {3, 30, 30}, "other": {3, 30, 30}} {
		tenant, _ := s.Tenant(id)
		flag, _ := tenant.Flag("f")
		for i := range 30 {
			for e := range 3 {
				tenant.CountEvaluation("f", fmt.Sprint("e", e), servesTrue(flag),
					&Client{ID: fmt.Sprint("c", i)}, tenant.CountTime(noon))
			}
		}
		uses, clients, own := 0, 0, 0
		for _, u := range taken(s) {
			switch {
			case u.FlagKey == "":
				own = max(own, len(u.Callers))
			case u.EnvironmentID == "e0":
				clients = len(u.Callers)
				fallthrough
			default:
				uses++
			}
		}
		if got := [3]int{uses, clients, own}; got != want {
			t.Errorf("%s has %v uses, clients of the first and clients of all flags, want %v", id, got, want)
		}
	}
}

// While nothing can be written down, the hour stands still once so much of past hours waits, and goes on when it is
// written.
func TestAnOutageTakesBoundedMemory(t *testing.T) {
	const flags = 20
	s := filled(flags)
	s.uses.maxPast = flags / 2 * useBytes
	tenant, _ := s.Tenant("t")
	made := uint64(0)
	written := ledger{}
	for hour := range 10 {
		now := noon.Add(time.Duration(hour) * time.Hour)
		for i := range flags {
			key := fmt.Sprintf("flag-%d", i)
			tenant.CountEvaluation(key, production.ID, evaluated(s, key, "a"), nil, tenant.CountTime(now))
			made++
		}
		written.take(s, now, func() bool { return true })
		written.take(s, now.Add(59*time.Minute), func() bool { return true })
		if n := len(s.uses.flags.uses) + len(s.uses.tenants.uses); n > 3*(flags+1) {
			t.Fatalf("%d uses wait after %d hours", n, hour)
		}
	}
	now := noon.Add(10 * time.Hour)
	written.take(s, now, noFailure)
	tenant.CountEvaluation("flag-0", production.ID, evaluated(s, "flag-0", "a"), nil, tenant.CountTime(now))
	made++
	written.take(s, now, noFailure)
	sum, last := uint64(0), time.Time{}
	for _, u := range written {
		if u.FlagKey == "" {
			continue
		}
		for _, o := range u.Served {
			sum += o.Count
		}
		if u.Hour.After(last) {
			last = u.Hour
		}
	}
	if sum != made || !last.Equal(now) {
		t.Errorf("%d evaluations are written down of %d, the last in the hour %v", sum, made, last)
	}
}

// Beyond the bound outcomes of a flag are among the rest, but for the first of each. What is deleted makes room.
func TestOutcomesOfATenantTakeBoundedMemory(t *testing.T) {
	s := filled(6)
	tenant, _ := s.Tenant("t")
	value := json.RawMessage(strconv.Quote(strings.Repeat("x", 1<<20-cellBytes-2)))
	serveAll := func(key string) {
		flag, _ := tenant.Flag(key)
		for range 2 {
			for i := range maxOutcomes {
				served := &evaluation.Variation{ID: fmt.Sprint("v", i), Value: value}
				tenant.CountEvaluation(key, "e",
					&Result{flag: flag, Result: evaluation.Result{
						VariationID: served.ID, Value: value, Reason: evaluation.Fallthrough, Variation: served,
					}}, nil, tenant.CountTime(noon))
			}
		}
	}
	for _, c := range []struct {
		key            string
		outcomes, rest int
	}{{"flag-0", 20, 0}, {"flag-1", 20, 0}, {"flag-2", 20, 0}, {"flag-3", 8, 24}, {"flag-4", 1, 38}} {
		serveAll(c.key)
		outcomes, rest := 0, 0
		for _, u := range taken(s) {
			if u.FlagKey != c.key {
				continue
			}
			for _, o := range u.Served {
				if o.Rest {
					rest += int(o.Count)
				} else {
					outcomes++
				}
			}
		}
		if outcomes != c.outcomes || rest != c.rest {
			t.Errorf("%s has %d outcomes and %d evaluations of the rest, want %d and %d", c.key, outcomes, rest, c.outcomes,
				c.rest)
		}
	}
	for i := range 5 {
		s.apply(
			events.Page{
				Events: []events.Recorded{recorded(events.FlagStream("t", fmt.Sprint("flag-", i)), 3, events.FlagDeleted{})},
			},
			slog.New(slog.DiscardHandler),
		)
	}
	if n := tenant.uses.outcomeBytes.Load(); n != 0 {
		t.Errorf("%d bytes are counted of flags that were deleted", n)
	}
}

// Calls that have found a use go on counting in it when its hour is over or its flag deleted, and take nothing of what
// its tenant may have.
func TestWhatCountsLateTakesNothingOfTheBounds(t *testing.T) {
	s := filled(2)
	tenant, _ := s.Tenant("t")
	client := func(i int) *Client { return &Client{ID: fmt.Sprint("c", i)} }
	var late []*use
	for _, key := range []string{"flag-0", "flag-1"} {
		flag, _ := tenant.Flag(key)
		tenant.CountEvaluation(key, "e", servesTrue(flag), client(0),
			tenant.CountTime(noon))
		late = append(late, flag.uses.Load())
	}
	s.apply(events.Page{Events: []events.Recorded{recorded(events.FlagStream("t", "flag-1"), 3, events.FlagDeleted{})}},
		slog.New(slog.DiscardHandler))
	next := noon.Add(time.Hour)
	flag, _ := tenant.Flag("flag-0")
	tenant.CountEvaluation("flag-0", "e", servesTrue(flag), client(0),
		tenant.CountTime(next))
	for i := range 30 {
		for _, u := range late {
			if c, first := u.callerOf(client(i), tenant.CountTime(next)); c == nil && !first {
				t.Fatal("a late evaluation has no caller")
			}
		}
	}
	if uses, pages := tenant.uses.count.Load(), tenant.uses.callerPages.Load(); uses != 1 || pages != 0 {
		t.Errorf("%d uses and %d pages of callers count, want 1 and 0", uses, pages)
	}
}
