package snapshot

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"flagledger/commands/keep/metering/counted"
	"flagledger/events"
)

var staging = events.EnvironmentRef{ID: "e2", Name: "staging"}

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// ledger is what is written down of a node's uses, as the tables are: what is written last of a use counts.
type ledger map[string]counted.Use

func nameOf(u counted.Use) string {
	return fmt.Sprint(u.TenantID, " ", u.FlagKey, " ", u.Life, " ", u.EnvironmentID, " ", u.Hour)
}

// take writes down what has changed. Now and then something cannot be written.
func (l ledger) take(s *Snapshot, now time.Time, fails func() bool) {
	for u := range s.TakeUses() {
		if fails() {
			u.Source.Retry()
			if fails() {
				break
			}
			continue
		}
		l[nameOf(u)] = u
	}
	s.UsesWritten(now)
}

func noFailure() bool { return false }

// sums adds up what a ledger has, by what is asked for.
func (l ledger) sums(of func(u counted.Use, add func(string, uint64))) map[string]uint64 {
	all := map[string]uint64{}
	for _, u := range l {
		of(u, func(name string, n uint64) { all[name] += n })
	}
	return all
}

// trueSums are counted beside.
type trueSums struct {
	mu  sync.Mutex
	all map[string]uint64
}

func (s *trueSums) add(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.all[name]++
	}
}

// What is gone is removed by who knows all.
func TestASnapshotThatLacksFactsIsNotComplete(t *testing.T) {
	s := of(three, on)
	if s.live.Store(true); !s.Complete() {
		t.Error("it is not complete, though it has all")
	}
	if s.faults.Add(1); s.Complete() {
		t.Error("it is complete, though a fact could not be applied")
	}
}

// Sixteen callers on two nodes evaluate flags that change, move, end and begin again, over the ends of hours, while all
// is written down, at times in vain: what is written down in the end is what was evaluated.
func TestNothingIsLostOrCountedTwice(t *testing.T) {
	const flags, perCaller = 5, 2500
	truth := trueSums{all: map[string]uint64{}}
	var seconds atomic.Int64 // since noon
	now := func() time.Time { return noon.Add(time.Duration(seconds.Load()) * time.Second) }
	clients := []*Client{nil, {ID: "c1"}, {ID: "c2"}}
	var nodes [2]*Snapshot
	var ledgers [2]ledger
	var evaluating, beside sync.WaitGroup
	done := make(chan struct{})
	for n := range nodes {
		s := of()
		nodes[n], ledgers[n] = s, ledger{}
		seed := rand.Uint64()
		changer := flagChanger{s, map[string]events.Revision{}, rand.New(rand.NewPCG(seed, 1)), &seconds}
		for k := range flags {
			changer.create(fmt.Sprint("k", k))
		}
		beside.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					changer.change(fmt.Sprint("k", changer.random.IntN(flags)))
				}
			}
		})
		write := rand.New(rand.NewPCG(seed, 2))
		beside.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					ledgers[n].take(s, now(), func() bool { return write.IntN(10) == 0 })
				}
			}
		})
		for caller := range 8 {
			evaluating.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(10+caller)))
				tenant, _ := s.Tenant("t")
				x := &Context{TargetingKey: "u", Attributes: attributes(`{"plan":"pro"}`)}
				held := map[string]*Flag{}
				for range perCaller {
					key := fmt.Sprint("k", random.IntN(flags))
					if held[key] == nil || random.IntN(4) > 0 { // else one that may be over
						held[key], _ = tenant.Flag(key)
					}
					flag := held[key]
					if flag == nil {
						continue
					}
					by, environment := clients[random.IntN(len(clients))], []string{production.ID, staging.ID}[random.IntN(2)]
					x.TargetingKey = fmt.Sprint(random.IntN(100))
					r, err := flag.Evaluate(environment, x)
					if err != nil {
						t.Error(err)
						return
					}
					at := tenant.CountTime(now())
					ofFlag := fmt.Sprint(n, " ", key, " ", flag.life)
					switch random.IntN(6) {
					case 0:
						y := &Uncounted{}
						y.Prefetched(key, &r)
						tenant.CountMany(y, true, environment, by, at)
						truth.add("calls", ofFlag+" prefetches")
						continue
					case 1:
						y := &Uncounted{}
						y.Evaluated(key, &r)
						tenant.CountMany(y, false, environment, by, at)
					default:
						tenant.CountEvaluation(key, environment, &r, by, at)
					}
					client := "people"
					if by != nil {
						client = by.ID
					}
					truth.add("reason "+string(r.Reason), "client "+client, ofFlag+" client "+client,
						fmt.Sprint(ofFlag, " ", r.Reason, " ", outcomeName(r.VariationID, r.Value)))
				}
			})
		}
	}
	evaluating.Wait()
	close(done)
	beside.Wait()
	for n, s := range nodes {
		tenant, _ := s.Tenant("t")
		for k := range flags { // whatever life each has in the end
			key := fmt.Sprint("k", k)
			flag, _ := tenant.Flag(key)
			r, err := flag.Evaluate(production.ID, &Context{TargetingKey: "u"})
			if err != nil {
				t.Fatal(err)
			}
			tenant.CountEvaluation(key, production.ID, &r, nil, tenant.CountTime(now()))
			of := fmt.Sprint(n, " ", key, " ", flag.life, " ")
			truth.add("reason "+string(r.Reason), "client people", of+"client people",
				fmt.Sprint(of, r.Reason, " ", outcomeName(r.VariationID, r.Value)))
		}
		ledgers[n].take(s, now(), noFailure)
		if len(s.uses.flags.uses)+len(s.uses.tenants.uses) > 0 {
			t.Error("uses that are written down are to be written down again")
		}
	}
	compared := 0
	for n, s := range nodes {
		compared += checkUsesOfFlags(t, n, s, ledgers[n], truth.all, flags)
	}
	checkUsesOfTenant(t, ledgers[:], truth.all)
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// checkUsesOfFlags compares what is written down of the flags of a node, in the lives that they have in the end, with
// what was made. It returns how much it compared.
func checkUsesOfFlags(
	t *testing.T, node int, s *Snapshot, written ledger, made map[string]uint64, flags int,
) (compared int) {
	t.Helper()
	tenant, _ := s.Tenant("t")
	got := written.sums(func(u counted.Use, add func(string, uint64)) {
		if u.FlagKey == "" {
			return
		}
		if flag, ok := tenant.Flag(u.FlagKey); !ok || uint64(flag.life) != u.Life {
			return
		}
		name := fmt.Sprint(node, " ", u.FlagKey, " ", u.Life)
		add(name+" prefetches", u.Prefetches)
		for _, c := range u.Callers {
			client := c.ClientID
			if client == "" {
				client = "people"
			}
			add(name+" client "+client, c.Count)
		}
		for _, o := range u.Served {
			if o.Rest {
				add(name+" rest", o.Count)
				continue
			}
			add(fmt.Sprint(name, " ", o.Reason, " ", outcomeName(o.VariationID, o.Value)), o.Count)
		}
	})
	for name, want := range got {
		if made[name] != want {
			t.Errorf("%s: %d are written down, and %d were made", name, want, made[name])
		}
		compared++
	}
	for k := range flags {
		flag, ok := tenant.Flag(fmt.Sprint("k", k))
		if !ok {
			continue
		}
		of := fmt.Sprint(node, " k", k, " ", flag.life, " ")
		for name, n := range made {
			if len(name) > len(of) && name[:len(of)] == of && got[name] != n {
				t.Errorf("%s: %d were made, and %d are written down", name, n, got[name])
			}
		}
	}
	return compared
}

// checkUsesOfTenant compares the totals that are written down of all nodes with what was made.
func checkUsesOfTenant(t *testing.T, ledgers []ledger, made map[string]uint64) {
	t.Helper()
	totals := map[string]uint64{}
	for _, l := range ledgers {
		for name, n := range l.sums(func(u counted.Use, add func(string, uint64)) {
			if u.FlagKey != "" {
				return
			}
			add("calls", u.Prefetches)
			for _, c := range u.Callers {
				add("client "+map[bool]string{true: "people", false: c.ClientID}[c.ClientID == ""], c.Count)
			}
			for _, o := range u.Served {
				add("reason "+o.Reason, o.Count)
			}
		}) {
			totals[name] += n
		}
	}
	for _, name := range []string{"calls", "client people", "client c1", "client c2", "reason OFF", "reason RULE_MATCH"} {
		if totals[name] != made[name] || totals[name] == 0 {
			t.Errorf("%s of the tenant: %d are written down, and %d were made", name, totals[name], made[name])
		}
	}
}

// flagChanger makes and changes flags of a node, and moves its clock.
type flagChanger struct {
	s         *Snapshot
	revisions map[string]events.Revision
	random    *rand.Rand
	seconds   *atomic.Int64
}

func (c *flagChanger) apply(key string, facts ...events.Fact) {
	for _, fact := range facts {
		c.revisions[key]++
		c.s.apply(
			events.Page{Events: []events.Recorded{recorded(events.FlagStream("t", key), c.revisions[key], fact)}, Live: true},
			slog.New(slog.DiscardHandler),
		)
	}
}

func (c *flagChanger) create(key string) {
	c.apply(key, made(events.NumberFlag, "0", choice("a", "1", 1), choice("b", "2", 1)), on, ruled(when("r", "pro", toA)))
}

func (c *flagChanger) change(key string) {
	switch c.random.IntN(8) {
	case 0:
		if c.random.IntN(50) == 0 { // so that lives last for some evaluations
			c.apply(key, events.FlagDeleted{})
			c.create(key)
		}
	case 1:
		c.apply(key, events.FlagUpdated{ProjectID: &events.Change[string]{To: fmt.Sprint("p", c.random.IntN(3))}})
	case 2:
		c.apply(key, events.FlagDisabled{Environment: production}, on)
	case 3:
		c.apply(key, events.VariationUpdated{ID: "a", Name: &events.Change[string]{To: fmt.Sprint("n", c.random.IntN(3))}})
	case 4:
		c.apply(key, events.FlagEnabled{Environment: staging})
	case 5:
		value := &events.Change[json.RawMessage]{To: fmt.Appendf(nil, "%d", c.random.IntN(30))}
		c.apply(key, events.VariationUpdated{ID: "b", Value: value}, events.FlagUpdated{DefaultValue: value})
	case 6:
		c.seconds.Add(int64(c.random.IntN(700)))
	default:
		c.apply(key, ruled(when("r", "pro", toA)))
	}
}

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

func resultOf(t *testing.T, s *Snapshot, key string, x *Context) Result {
	t.Helper()
	r, err := s.evaluate(key, x)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// outcomeName is a variation, whatever its value, or a value without one.
func outcomeName(variationID string, value []byte) string {
	if variationID != "" {
		return variationID
	}
	return "value " + string(value)
}

// evaluated is a result of a flag of the tenant that of makes.
func evaluated(s *Snapshot, key, id string) *Result {
	tenant, _ := s.Tenant("t")
	flag, _ := tenant.Flag(key)
	served := newVariation(choice(id, `"`+id+`"`, 0))
	return &Result{
		Value:         served.value,
		Reason:        Fallthrough,
		VariationID:   id,
		VariationName: served.name,
		flag:          flag,
		served:        served,
	}
}

// taken is what is to be written down, by name.
func taken(s *Snapshot) map[string]counted.Use {
	all := map[string]counted.Use{}
	for u := range s.TakeUses() {
		all[nameOf(u)] = u
	}
	return all
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
				tenant.CountEvaluation("f", fmt.Sprint("e", e), &Result{Value: jsonTrue, Reason: Fallthrough, flag: flag},
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
		r, err := flag.Evaluate(production.ID, &Context{TargetingKey: "u"})
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

// Totals of tenants are written down first, and what could not be written before what has come meanwhile: who is
// counted without end keeps nobody waiting.
func TestWhatWaitsIsWrittenInItsTurn(t *testing.T) {
	const flags = 4
	s := filled(flags)
	tenant, _ := s.Tenant("t")
	count := func(from, to int) {
		for i := from; i < to; i++ {
			key := fmt.Sprintf("flag-%d", i)
			tenant.CountEvaluation(key, production.ID, evaluated(s, key, "a"), nil, tenant.CountTime(noon))
		}
	}
	count(0, flags)
	var written []string
	for range 3 {
		for u := range s.TakeUses() {
			written = append(written, u.FlagKey)
			if u.FlagKey != "" {
				count(0, 2) // while it is written
				break
			}
		}
	}
	if want := []string{"", "flag-0", "", "flag-1", "", "flag-2"}; !slices.Equal(written, want) {
		t.Errorf("written down are %q, want %q", written, want)
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
				served := &variation{id: fmt.Sprint("v", i), value: value}
				tenant.CountEvaluation(key, "e",
					&Result{VariationID: served.id, Value: value, Reason: Fallthrough, flag: flag, served: served}, nil,
					tenant.CountTime(noon))
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
		tenant.CountEvaluation(key, "e", &Result{Value: jsonTrue, Reason: Fallthrough, flag: flag}, client(0),
			tenant.CountTime(noon))
		late = append(late, flag.uses.Load())
	}
	s.apply(events.Page{Events: []events.Recorded{recorded(events.FlagStream("t", "flag-1"), 3, events.FlagDeleted{})}},
		slog.New(slog.DiscardHandler))
	next := noon.Add(time.Hour)
	flag, _ := tenant.Flag("flag-0")
	tenant.CountEvaluation("flag-0", "e", &Result{Value: jsonTrue, Reason: Fallthrough, flag: flag}, client(0),
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

// Usage of an hour whose counts are dropped counts in the next hour: the dropped counts would start again from 0, and
// overwrite those in the database.
func TestLateUsageCountsInNextHour(t *testing.T) {
	s := of(made(events.BooleanFlag, "false"))
	tenant, _ := s.Tenant("t")
	count := func(at CountTime) {
		tenant.CountEvaluation("k", production.ID, evaluated(s, "k", "a"), nil, at)
		u := &Uncounted{}
		u.Prefetched("k", evaluated(s, "k", "a"))
		tenant.CountMany(u, true, production.ID, nil, at)
	}
	late := tenant.CountTime(noon.Add(time.Hour - time.Second)) // of calls that end after the hour
	count(late)
	next := noon.Add(time.Hour)
	ledger{}.take(s, next, noFailure)
	count(late)
	uses := taken(s)
	if len(uses) != 2 {
		t.Errorf("%d uses are taken, want one of the flag and one of the tenant", len(uses))
	}
	for name, u := range uses {
		if !u.Hour.Equal(next) || u.Prefetches != 1 || len(u.Served) != 1 || u.Served[0].Count != 1 {
			t.Errorf("%s has %d prefetches and served %+v, want 1 of each in the hour from %v", name, u.Prefetches,
				u.Served, next)
		}
	}
}

// A call for all flags is one prefetch of the tenant, in however many pieces it is counted, and one of each flag.
func TestCallInPiecesIsOnePrefetch(t *testing.T) {
	s := filled(3)
	tenant, _ := s.Tenant("t")
	for range 2 {
		call := &Uncounted{}
		for i := range 3 {
			key := fmt.Sprint("flag-", i)
			call.Prefetched(key, evaluated(s, key, "a"))
			tenant.CountMany(call, true, production.ID, nil, tenant.CountTime(noon))
		}
	}
	uses := taken(s)
	if len(uses) != 4 {
		t.Errorf("%d uses are taken, want those of the tenant and three flags", len(uses))
	}
	for name, u := range uses {
		if u.Prefetches != 2 {
			t.Errorf("%s has %d prefetches, want one for each of two calls", name, u.Prefetches)
		}
	}
}

func TestCallersAreLastSeenWhenTheyEvaluatedLast(t *testing.T) {
	s := filled(1)
	tenant, _ := s.Tenant("t")
	flag, _ := tenant.Flag("flag-0")
	for _, now := range []time.Time{noon, noon.Add(20 * time.Second)} {
		for _, client := range []*Client{{ID: "first"}, {ID: "later"}} {
			tenant.CountEvaluation("flag-0", "e", &Result{Value: jsonTrue, Reason: Fallthrough, flag: flag}, client,
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
