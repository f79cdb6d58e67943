package usage

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/snapshot/evaluation/evaluationtest"
)

// offline is a node without a database, at noon.
type offline struct {
	*node
	clock time.Time
}

func newOffline() *offline {
	n := &offline{clock: time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)}
	n.node = &node{New(nil, paid, func() time.Time { return n.clock }), map[string]*Flag{}}
	return n
}

// stored is what a window has in the database.
type stored struct {
	hour                    time.Time
	evaluations, prefetches int64
	outcomes, clients       map[string]int64 // the rest without a name
	seen                    map[string]time.Time
	rest                    int64
	unnamed                 int64
}

// pendingUsage is what a flush would write, by flag and environment. It stays pending.
func (n *offline) pendingUsage() map[string]stored {
	all := map[string]stored{}
	windows := n.takePending()
	n.requeue(nil, windows)
	for _, w := range windows {
		all[w.key()+" "+w.total.environmentID] = storedOf(w)
	}
	return all
}

func storedOf(w *window) stored {
	s := stored{
		hour: timeOfHour(w.total.hour), prefetches: int64(w.prefetches.Load()), outcomes: map[string]int64{},
		clients: map[string]int64{}, seen: map[string]time.Time{},
	}
	for by := w.clients.Load(); by != nil; by = by.next {
		for c := by.cells.Load(); c != nil; c = c.next {
			count := c.n.load()
			s.evaluations += count
			switch served := c.served.Load(); {
			case served == RestOutcome:
				s.rest += count
			case served != nil:
				s.outcomes[served.ID+" "+string(served.Value)] += count
			}
			if by.id == restClient {
				s.unnamed += count
				continue
			}
			s.clients[by.id] += count
			s.seen[by.id] = time.Unix(int64(by.seen.Load()), 0).UTC()
		}
	}
	return s
}

// flushed is a flush that wrote all.
func (n *offline) flushed() {
	for _, w := range n.takePending() {
		n.begin(w)
	}
	n.pendingTotals = nil
	n.dropBefore(hourOf(n.clock))
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestUsageTakesLittleMemory(t *testing.T) {
	const flags, clients, many = 20_000, 1000, 250 // with the race detector all flags take a minute
	n := newOffline()
	for i := range flags {
		n.flag(fmt.Sprint("flag-", i))
	}
	before := heap()
	for i := range flags {
		n.evaluate(fmt.Sprint("flag-", i), "e", "true", "")
	}
	n.flushed()
	each := (heap() - before) / flags
	t.Logf("%d bytes for a flag and environment that is evaluated", each)
	if each > 176 {
		t.Errorf("a flag and environment that is evaluated takes %d bytes", each)
	}
	used := heap()
	for c := range clients {
		for i := range many {
			n.evaluate(fmt.Sprint("flag-", i), "e", "true", fmt.Sprintf("0198c5a1-7d2e-7b10-9d0c-3f5f%08d", c))
		}
	}
	n.flushed()
	// of 20,000 flags the tenant has the memory of maxBytes
	took := used - before + min((heap()-used)*flags/many, maxBytes)
	t.Logf("%d MB for 20,000 flags that 1,000 clients evaluate", took>>20)
	if took > 100<<20 {
		t.Errorf("20,000 flags that 1,000 clients evaluate take %d MB", took>>20)
	}
	n.clock = n.clock.Add(time.Hour)
	n.evaluate("flag-0", "e", "true", "")
	n.flushed()
	if left := heap() - before; left > 1<<20 {
		t.Errorf("%d MB are left when the hour is over", left>>20)
	}
	runtime.KeepAlive(n)
}

func TestOutcomesAndClientsBeyondLimitsAreCountedTogether(t *testing.T) {
	n := newOffline()
	for round := range int64(2) {
		for i := range 250 {
			n.Count("t", n.flag("k"), "e", servingVariation(fmt.Sprint("v", i%30)), fmt.Sprint("c", i))
		}
		u, times := n.pendingUsage()["k e"], round+1
		// The first ten variations are served nine times in a round, the last time to clients without a name, which have
		// been served others of the rest. The others are served eight times.
		if len(u.outcomes) != maxOutcomes || u.evaluations != 250*times || u.rest != 90*times {
			t.Errorf("it has %d outcomes, %d evaluations and %d of the rest", len(u.outcomes), u.evaluations, u.rest)
		}
		if len(u.clients) != maxClients || u.unnamed != (250-maxClients)*times {
			t.Errorf("it has %d clients, and %d evaluations by others", len(u.clients), u.unnamed)
		}
	}
	if total := n.pendingUsage()[" e"]; total.evaluations != 500 || len(total.clients) != maxClients {
		t.Errorf("the tenant has %d evaluations by %d clients", total.evaluations, len(total.clients))
	}
}

// An outcome that is served for two reasons, or to two clients, is one of those that are told apart.
func TestOutcomeOfTwoReasonsCountsOnce(t *testing.T) {
	n := newOffline()
	for i := range maxOutcomes {
		for _, reason := range []evaluation.Reason{evaluation.Fallthrough, evaluation.RuleMatch} {
			for _, client := range []string{"", "c"} {
				r := servingVariation(fmt.Sprint("v", i))
				r.Reason = reason
				n.Count("t", n.flag("k"), "e", r, client)
			}
		}
	}
	if u := n.pendingUsage()["k e"]; len(u.outcomes) != maxOutcomes || u.rest != 0 {
		t.Errorf("it has %d outcomes, and %d evaluations of the rest", len(u.outcomes), u.rest)
	}
}

func TestClientsAreLastSeenWhenTheyEvaluatedLast(t *testing.T) {
	n := newOffline()
	for range 2 {
		n.evaluate("k", "e", "true", "first")
		n.evaluate("k", "e", "true", "later")
		n.clock = n.clock.Add(20 * time.Second)
	}
	last := n.clock.Add(-20 * time.Second)
	for name, u := range n.pendingUsage() {
		for _, client := range []string{"first", "later"} {
			if u.clients[client] != 2 || !u.seen[client].Equal(last) {
				t.Errorf("%q was evaluated by %s %d times, the last at %v", name, client, u.clients[client], u.seen[client])
			}
		}
	}
}

// The last time of a client is the latest one, whichever flag is counted or flushed last, and if the clock is set back.
func TestLastSeenNeverRunsBack(t *testing.T) {
	n := newOffline()
	latest := n.clock
	n.evaluate("k", "e", "true", "c")
	n.clock = latest.Add(-10 * time.Second)
	n.evaluate("k", "e", "true", "c")
	n.evaluate("other", "e", "true", "c")
	all := n.pendingUsage()
	for _, name := range []string{"k e", " e"} {
		if seen := all[name].seen["c"]; !seen.Equal(latest) {
			t.Errorf("in %q the client was last seen at %v, want %v", name, seen, latest)
		}
	}
}

// Usage of a tenant takes no more than its memory, and that of a creator's free tenants no more than that of one. Each
// flag has one window, one outcome and one client all the same.
func TestUsageOfATenantTakesBoundedMemory(t *testing.T) {
	owner := map[string]string{"free 1": "c", "free 2": "c"}
	n := newOffline()
	n.unpaidCreator = func(tenantID string) string { return owner[tenantID] }
	evaluate := func(tenantID, environment string) {
		flag := NewFlag(tenantID+"'s", 1)
		n.Count(tenantID, flag, environment, servingVariation("a"), "c1")
		n.Count(tenantID, flag, environment, servingVariation("b"), "c2")
		n.Count(tenantID, flag, environment, servingVariation("b"), "c2")
	}
	n.spent["c"], n.spent["full"] = maxBytes, maxBytes
	for _, tenantID := range []string{"free 1", "free 2", "full", "paid"} {
		evaluate(tenantID, "e")
	}
	all := n.pendingUsage()
	for _, key := range []string{"free 1's ", "free 2's ", "full's "} {
		if u := all[key]; u.evaluations != 3 || len(u.outcomes) != 1 || u.rest != 2 || len(u.clients) != 1 || u.unnamed != 2 {
			t.Errorf("%s usage is %+v", key, u)
		}
	}
	if u := all["paid's e"]; u.evaluations != 3 || len(u.outcomes) != 2 || len(u.clients) != 2 {
		t.Errorf("a tenant that has memory left has the usage %+v", u)
	}
	n.flushed()
	n.clock = n.clock.Add(time.Hour)
	n.flushed()
	evaluate("full", "e")
	if u := n.pendingUsage()["full's e"]; len(u.outcomes) != 2 {
		t.Errorf("in the next hour the usage is %+v", u)
	}
}

// The values that outcomes have are memory too.
func TestLargeOutcomesAreCountedTogether(t *testing.T) {
	n := newOffline()
	value := json.RawMessage(strconv.Quote(strings.Repeat("x", 1<<20-cellBytes-2)))
	serveAll := func(key string) {
		for range 2 {
			for i := range maxOutcomes {
				served := &evaluation.Variation{ID: fmt.Sprint("v", i), Value: value}
				n.Count("t", n.flag(key), "e", &evaluation.Result{
					VariationID: served.ID, Value: value, Reason: evaluation.Fallthrough, Variation: served,
				}, "")
			}
		}
	}
	for i, want := range [][2]int{{20, 0}, {20, 0}, {20, 0}, {7, 26}, {1, 38}} {
		key := fmt.Sprint("flag-", i)
		serveAll(key)
		u := n.pendingUsage()[key+" e"]
		if len(u.outcomes) != want[0] || u.rest != int64(want[1]) {
			t.Errorf("%s has %d outcomes and %d evaluations of the rest, want %v", key, len(u.outcomes), u.rest, want)
		}
	}
}

// While nothing can be written, usage takes the memory of two hours. What is counted meanwhile is written later.
func TestAnOutageTakesBoundedMemory(t *testing.T) {
	const flags, hours = 20, 10
	n := newOffline()
	evaluate := func() {
		for i := range flags {
			n.Count("t", n.flag(fmt.Sprint("flag-", i)), "e", serving("true"), "")
		}
	}
	for range hours {
		evaluate()
		n.requeue(nil, n.takePending())
		n.clock = n.clock.Add(time.Hour)
	}
	if windows := len(n.pending) + len(n.pendingTotals); windows != 2*(flags+1) {
		t.Errorf("%d windows are pending, want those of two hours", windows)
	}
	var sum int64
	for _, w := range n.takePending() {
		for c := range w.cells() {
			if w.flag == nil {
				sum += c.n.load()
			}
		}
	}
	if sum != flags*hours {
		t.Errorf("%d evaluations are written, want %d", sum, flags*hours)
	}
	n.flushed()
	evaluate()
	if got := n.pendingUsage()["flag-0 e"]; !got.hour.Equal(n.clock) || got.evaluations != 1 {
		t.Errorf("after the outage the usage is %+v", got)
	}
}

// Usage of an hour whose counts are dropped counts in the next hour: the dropped counts would start again from 0, and
// overwrite those in the database.
func TestLateUsageCountsInNextHour(t *testing.T) {
	n := newOffline()
	count := func() {
		n.Count("t", n.flag("k"), "e", serving("true"), "")
		call := &Call{All: true}
		call.Add(n.flag("k"), serving("true"))
		n.CountCall(call, "t", "e", "")
	}
	late, next := n.clock.Add(time.Hour-time.Second), n.clock.Add(time.Hour)
	n.clock = late
	count()
	n.clock = next
	n.flushed()
	n.clock = late // of calls that end after the hour
	count()
	all := n.pendingUsage()
	if len(all) != 2 {
		t.Errorf("%d windows are pending, want one of the flag and one of the tenant", len(all))
	}
	for name, u := range all {
		if !u.hour.Equal(next) || u.prefetches != 1 || u.evaluations != 1 {
			t.Errorf("%s has the usage %+v, want 1 of each in the hour from %v", name, u, next)
		}
	}
}

// A call for all flags is one prefetch of the tenant, in however many pieces it is counted, and one of each flag.
func TestCallInPiecesIsOnePrefetch(t *testing.T) {
	n := newOffline()
	for range 2 {
		call := &Call{All: true}
		for i := range 3 {
			call.Add(n.flag(fmt.Sprint("flag-", i)), serving("true"))
			n.CountCall(call, "t", "e", "")
		}
	}
	all := n.pendingUsage()
	sent := map[bool]int{} // by an edge: whether it is the prefetch itself
	call := &Call{All: true}
	for i := range 3 {
		call.Add(n.flag(fmt.Sprint("flag-", i)), serving("true"))
		call.Each(func(f *Flag, _ *evaluation.Result) { sent[f == nil]++ })
	}
	if sent[true] != 1 || sent[false] != 3 {
		t.Errorf("an edge reports %d prefetches of %d flags", sent[true], sent[false])
	}
	if len(all) != 4 {
		t.Errorf("%d windows are pending, want those of the tenant and three flags", len(all))
	}
	for name, u := range all {
		if u.prefetches != 2 {
			t.Errorf("%s has %d prefetches, want one for each of two calls", name, u.prefetches)
		}
	}
}

// Totals are written first, and what could not be written before what became pending meanwhile: a flag that is evaluated
// all the time delays no other.
func TestPendingWindowsKeepTheirTurn(t *testing.T) {
	n := newOffline()
	evaluate := func(from, to int) {
		for i := from; i < to; i++ {
			n.evaluate(fmt.Sprint("flag-", i), "e", "true", "")
		}
	}
	evaluate(0, 4)
	var written []string
	for range 3 {
		pending := n.takePending()
		for _, w := range pending[:2] {
			n.begin(w)
			written = append(written, w.key())
		}
		evaluate(0, 2) // while these two are written
		n.requeue(nil, pending[2:])
	}
	if want := []string{"", "flag-0", "", "flag-1", "", "flag-2"}; !slices.Equal(written, want) {
		t.Errorf("written are %q, want %q", written, want)
	}
}

// Callers evaluate flags that are deleted and created again, over the ends of hours, while usage is written, at times in
// vain: what is written in the end is what was evaluated.
func TestNothingIsLostOrCountedTwice(t *testing.T) {
	const flags, callers, each = 5, 8, 2500
	n := newOffline()
	began := n.clock
	var seconds atomic.Int64
	n.now = func() time.Time { return began.Add(time.Duration(seconds.Load()) * time.Second) }
	var current [flags]atomic.Pointer[Flag]
	for i := range current {
		current[i].Store(NewFlag(fmt.Sprint("k", i), 1))
	}
	written := map[string]stored{}
	write := func(fails func() bool) {
		hour, pending := hourOf(n.now()), n.takePending()
		for i, w := range pending {
			if fails() {
				n.begin(w)
				n.requeue([]*window{w}, pending[i+1:])
				return
			}
			n.begin(w)
			written[fmt.Sprint(w.key(), " ", w.life(), " ", w.total.environmentID, " ", w.total.hour)] = storedOf(w)
		}
		n.dropBefore(hour)
	}
	var mu sync.Mutex
	made := map[string]int64{}
	var evaluating, beside sync.WaitGroup
	done := make(chan struct{})
	beside.Go(func() {
		random := rand.New(rand.NewPCG(1, 1))
		for {
			select {
			case <-done:
				return
			default:
				write(func() bool { return random.IntN(10) == 0 })
				seconds.Add(random.Int64N(700))
				if i := random.IntN(flags); random.IntN(10) == 0 {
					current[i].Store(NewFlag(fmt.Sprint("k", i), current[i].Load().life+1))
				}
			}
		}
	})
	for caller := range callers {
		evaluating.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(caller)))
			for range each {
				f, environment := current[random.IntN(flags)].Load(), fmt.Sprint("e", random.IntN(2))
				value, client := fmt.Sprint(random.IntN(3)), fmt.Sprint("c", random.IntN(3))
				name := fmt.Sprint(f.key, " ", f.life)
				call := &Call{All: random.IntN(4) == 0}
				call.Add(f, serving(value))
				n.CountCall(call, "t", environment, client)
				mu.Lock()
				if made["all"]++; call.All {
					made["calls"]++
					made[name+" prefetches"]++
				} else {
					made["client "+client]++
					made[name+" client "+client]++
					made[name+"  "+value]++
				}
				mu.Unlock()
			}
		})
	}
	evaluating.Wait()
	close(done)
	beside.Wait()
	write(func() bool { return false })
	write(func() bool { return false }) // totals of what was counted between
	if len(n.pending)+len(n.pendingTotals) > 0 {
		t.Error("windows that are written are pending")
	}
	got := map[string]int64{}
	for _, of := range n.months {
		got["all"] += of.load()
	}
	add := func(name string, count int64) {
		if count > 0 {
			got[name] += count
		}
	}
	for name, s := range written {
		prefix, _, _ := strings.Cut(name, " e")
		if prefix == " 0" {
			add("calls", s.prefetches)
			prefix = ""
		} else {
			add(prefix+" prefetches", s.prefetches)
			prefix += " "
		}
		for client, count := range s.clients {
			add(prefix+"client "+client, count)
		}
		for outcome, count := range s.outcomes {
			add(prefix+outcome, count)
		}
	}
	if !maps.Equal(got, made) {
		t.Errorf("written are %v, and made were %v", got, made)
	}
}

func TestCounterLosesNothing(t *testing.T) {
	for what, before := range map[string]*stripes{"without stripes": nil, "with stripes": {}} {
		t.Run(what, func(t *testing.T) {
			n := newOffline()
			var c counter
			n.add(3, &c)
			c.stripes.Store(before)
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					for range 1000 {
						n.add(2, &c)
					}
				})
			}
			all.Wait()
			if got := c.load(); got != 3+16*1000*2 {
				t.Errorf("it counted %d, want 32003", got)
			}
		})
	}
}

// A node stripes no more counters than its limit.
func TestStripedCountersAreBounded(t *testing.T) {
	n := newOffline()
	n.striped.Store(maxStriped - 1)
	for _, want := range []bool{true, false} {
		var c counter
		n.add(1, &c)
		n.stripe(&c)
		n.add(1, &c)
		if striped := c.stripes.Load() != nil; striped != want || c.load() != 2 {
			t.Errorf("it counted %d, with stripes: %v, want %v", c.load(), striped, want)
		}
	}
}

// changing is a flag whose facts are compiled one after the other.
type changing struct {
	state    state.Flag
	compiled evaluation.Flag
	revision events.Revision
	usage    *Flag
}

func (f *changing) apply(t testing.TB, facts ...events.Fact) {
	t.Helper()
	for _, fact := range facts {
		f.revision++
		next := f.state.Clone()
		next.Apply(events.Recorded{Event: events.Event{Fact: fact}, Revision: f.revision, Name: fact.StoredName()})
		before := &f.compiled
		if f.revision == 1 {
			before = nil
		}
		compiled, err := evaluation.Compile(&next, evaluationtest.Environments, before)
		if err != nil {
			t.Fatal(err)
		}
		f.state, f.compiled = next, compiled
	}
}

func newChanging(t testing.TB, key string) *changing {
	t.Helper()
	f := &changing{usage: NewFlag(key, 1)}
	f.apply(t, evaluationtest.Made(events.NumberFlag, "0", evaluationtest.Choice("a", "1", 1)),
		events.FlagEnabled{Environment: evaluationtest.Production})
	return f
}

func (f *changing) evaluate(t testing.TB) *evaluation.Result {
	t.Helper()
	r, err := f.compiled.Evaluate(evaluationtest.Production.ID, &evaluation.Context{TargetingKey: "u"})
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

// A variation is one outcome, whatever its value and name, and has those of today.
func TestAVariationIsOneOutcome(t *testing.T) {
	n, f := newOffline(), newChanging(t, "k")
	for i := range 2 * maxOutcomes {
		f.apply(t, events.VariationUpdated{ID: "a", Value: &events.Change[json.RawMessage]{To: fmt.Append(nil, i)}})
		n.Count("t", f.usage, "e", f.evaluate(t), "")
		u := n.pendingUsage()["k e"]
		if name := fmt.Sprint("a ", i); len(u.outcomes) != 1 || u.outcomes[name] != int64(i+1) {
			t.Fatalf("after %d changes it has served %v", i+1, u.outcomes)
		}
	}
}

// named lists the outcomes that are stored, by the names of their variations.
func (c *cluster) named() (text string) {
	c.t.Helper()
	err := c.pool.QueryRow(c.t.Context(), `select (select coalesce(sum(evaluations), 0) from keep.flag_hours) || ' ' ||
		(select coalesce(string_agg(variation_name, ' '), '') from keep.flag_outcomes)`).Scan(&text)
	if err != nil {
		c.t.Fatal(err)
	}
	return text
}

func TestFlushAfterFailureWritesOutcomes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.node()
	alter := func(change string) {
		t.Helper()
		if _, err := c.pool.Exec(t.Context(), `alter table keep.flag_hours `+change); err != nil {
			t.Fatal(err)
		}
	}
	n.Count("t", n.flag("k"), "e", servingVariation("a"), "")
	alter(`add constraint refused check (flag_key <> 'k')`)
	if err := n.flush(t.Context(), time.Minute, false); err == nil || c.named() != "0 " {
		t.Errorf("the first flush ended with %v and has written %q", err, c.named())
	}
	alter(`drop constraint refused`)
	c.flush(n)
	if got := c.named(); got != "1 name of a" {
		t.Errorf("the second flush has written %q", got)
	}
}

func TestNewNameOfVariationIsWritten(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n, f := c.node(), newChanging(t, "k")
	for i, name := range []string{"first", "second"} {
		f.apply(t, events.VariationUpdated{ID: "a", Name: &events.Change[string]{To: name}})
		n.Count("t", f.usage, "e", f.evaluate(t), "")
		c.flush(n)
		if got, want := c.named(), fmt.Sprint(i+1, " ", name); got != want {
			t.Errorf("the flag has %q, want %q", got, want)
		}
	}
}
