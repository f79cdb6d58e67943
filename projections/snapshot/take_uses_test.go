package snapshot

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/usage/counted"
)

var staging = events.EnvironmentRef{ID: "e2", Name: "staging"}

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
				x := &evaluation.Context{TargetingKey: "u", Attributes: attributes(`{"plan":"pro"}`)}
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
			r, err := flag.Evaluate(production.ID, &evaluation.Context{TargetingKey: "u"})
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

// outcomeName is a variation, whatever its value, or a value without one.
func outcomeName(variationID string, value []byte) string {
	if variationID != "" {
		return variationID
	}
	return "value " + string(value)
}

// taken is what is to be written down, by name.
func taken(s *Snapshot) map[string]counted.Use {
	all := map[string]counted.Use{}
	for u := range s.TakeUses() {
		all[nameOf(u)] = u
	}
	return all
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

// Usage of a deleted flag is not written, and none of a deleted tenant: it would be removed from the database again.
func TestUsageOfDeletedIsNotTaken(t *testing.T) {
	s := filled(2)
	tenant, _ := s.Tenant("t")
	apply := func(stream string, at events.Revision, fact events.Fact) {
		s.apply(events.Page{Events: []events.Recorded{recorded(stream, at, fact)}}, slog.New(slog.DiscardHandler))
	}
	want := func(what string, keys ...string) {
		t.Helper()
		var got []string
		for _, u := range taken(s) {
			got = append(got, u.FlagKey)
		}
		if slices.Sort(got); !slices.Equal(got, keys) {
			t.Errorf("%s: the usage of %q is taken, want %q", what, got, keys)
		}
	}
	count := func(keys ...string) {
		for _, key := range keys {
			tenant.CountEvaluation(key, production.ID, evaluated(s, key, "a"), nil, tenant.CountTime(noon))
		}
	}
	count("flag-0", "flag-1")
	apply(events.FlagStream("t", "flag-0"), 3, events.FlagDeleted{})
	want("a flag is deleted", "", "flag-1")
	count("flag-1")
	apply(events.FlagStream("t", "flag-1"), 3, events.FlagDeleted{})
	apply(events.FlagStream("t", "flag-1"), 4, made(events.BooleanFlag, "false"))
	want("a flag is created again", "")
	count("flag-1")
	apply(events.TenantStream("t"), 100, events.TenantDeleted{})
	want("the tenant is deleted")
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
