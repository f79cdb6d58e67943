package quota

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
)

// newLimiter returns a limiter for clients without a token, with a test clock.
func newLimiter(anonymous int) (*Limiter, *time.Time) {
	clock := new(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))
	return NewLimiter(Limits{Anonymous: anonymous, Auth: anonymous}, nil, func() time.Time { return *clock }), clock
}

// from returns a request from an address.
func from(address string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = address
	return r
}

func TestTheAddressThatIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		remote, forwarded, want string
	}{
		"an address":                              {"192.0.2.1:4711", "", "192.0.2.1"},
		"whom nobody trusts":                      {"192.0.2.1:4711", "198.51.100.1", "192.0.2.1"},
		"behind a proxy":                          {"10.0.0.1:4711", "198.51.100.1", "198.51.100.1"},
		"behind two":                              {"10.0.0.1:4711", "198.51.100.1, 10.9.9.9", "198.51.100.1"},
		"what a client claims of itself":          {"10.0.0.1:4711", "203.0.113.1, 198.51.100.1,10.9.9.9", "198.51.100.1"},
		"several headers":                         {"10.0.0.1:4711", "203.0.113.1\n198.51.100.1\n10.9.9.9", "198.51.100.1"},
		"a proxy that calls by itself":            {"10.0.0.1:4711", "", "10.0.0.1"},
		"proxies alone":                           {"10.0.0.1:4711", "10.0.0.3, 10.0.0.2", "10.0.0.3"},
		"an unreadable one":                       {"10.0.0.1:4711", "198.51.100.1, unknown", "10.0.0.1"},
		"an unreadable one behind a proxy":        {"10.0.0.1:4711", "unknown,10.0.0.2", "10.0.0.2"},
		"an empty one":                            {"10.0.0.1:4711", "198.51.100.1,", "10.0.0.1"},
		"a port":                                  {"10.0.0.1:4711", "198.51.100.1:80", "198.51.100.1"},
		"IPv6":                                    {"[2001:db8:1:2:3:4:5:6]:4711", "", "2001:db8:1:2::"},
		"IPv6 with a zone":                        {"[fe80::1%eth0]:4711", "", "fe80::"},
		"IPv6 behind a proxy, in brackets":        {"[2001:db8:ffff::1]:4711", "[2001:db8:1:2::9]:443", "2001:db8:1:2::"},
		"IPv6 behind a proxy, in bare brackets":   {"[2001:db8:ffff::1]:4711", "[2001:db8:1:2::9]", "2001:db8:1:2::"},
		"IPv4 in IPv6":                            {"[::ffff:192.0.2.1]:4711", "", "192.0.2.1"},
		"IPv4 in IPv6, of a proxy":                {"[::ffff:10.0.0.1]:4711", "::ffff:198.51.100.1", "198.51.100.1"},
		"a proxy whose setting is IPv4 in IPv6":   {"192.0.2.9:4711", "198.51.100.1, 10.200.0.1", "198.51.100.1"},
		"a connection that comes from no address": {"@", "", "invalid IP"},
	} {
		t.Run(name, func(t *testing.T) {
			proxies, err := ParseProxies("10.0.0.0/9, ::ffff:10.128.0.0/105, ::ffff:192.0.2.9, 2001:db8:ffff::1")
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = c.remote
			for line := range strings.SplitSeq(c.forwarded, "\n") {
				if line != "" {
					r.Header.Add("X-Forwarded-For", line)
				}
			}
			if got := clientAddress(r, proxies).String(); got != c.want {
				t.Errorf("%s is counted, want %s", got, c.want)
			}
		})
	}
	t.Run("a client whose address cannot be read is let through", func(t *testing.T) {
		l, _ := newLimiter(1)
		for range 3 {
			if left := l.CountAddress(from("@")); left.Exceeded || left.Remaining != 1 || left.Reset != 60 {
				t.Errorf("what is left: %+v", left)
			}
		}
	})
}

// A request of a person with an unverified address counts for the client address, the person and the tenant. If one of
// them refuses it, it counts for none.
func TestCallsBeforeTheAddressIsVerified(t *testing.T) {
	l := NewLimiter(Limits{Plans: map[events.Plan]int{events.FreePlan: 2}, Anonymous: 5, Auth: 5}, nil, time.Now)
	r := from("192.0.2.1:4711")
	call := func(id string) Budget {
		return l.CountUnverified(r, id, events.FreePlan, "tenant of "+id, events.FreePlan)
	}
	for range 2 {
		if call("ada").Exceeded {
			t.Fatal("a first call is refused")
		}
	}
	for range 9 {
		if !call("ada").Exceeded {
			t.Fatal("a third call is let in")
		}
	}
	if left := l.Peek(r).Remaining; left != 3 {
		t.Errorf("%d calls are left to the address, want 3", left)
	}
	for range 3 {
		l.CountAddress(r)
	}
	if left := call("grace"); !left.Exceeded || l.used(personRequests, "grace") > 0 ||
		l.used(tenantRequests, "tenant of grace") > 0 {
		t.Error("a call that the address's limit refuses counts for the person, or is let in")
	}
}

func TestSettingLimits(t *testing.T) {
	limits, err := Parse(" free=5, enterprise = 7 ,auth=3,")
	want := Default()
	want.Plans[events.FreePlan], want.Plans["enterprise"], want.Auth = 5, 7, 3
	if err != nil || fmt.Sprint(limits) != fmt.Sprint(want) {
		t.Errorf("%v, %v", limits, err)
	}
	for _, text := range []string{"free", "free=x", "free=0", "gold=1", "=1", "free=5;auth=3"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// A window never admits more concurrent requests than its limit.
func TestCountingAtOnce(t *testing.T) {
	var clock atomic.Int64
	l := NewLimiter(Limits{}, nil, func() time.Time { return time.Unix(clock.Load(), 0) })
	for round := range 3 {
		var passed atomic.Int64
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for range 1000 {
					if !l.takeUpTo(tenantRequests, "k", 500).Exceeded {
						passed.Add(1)
					}
				}
			})
		}
		callers.Wait()
		if n := passed.Load(); n != 500 {
			t.Errorf("%d passed in window %d, want 500", n, round)
		}
		clock.Add(60)
	}
}

func TestAClockThatIsSetBackBeginsAWindow(t *testing.T) {
	l, clock := newLimiter(1)
	r := from("192.0.2.1:1")
	*clock = clock.Add(time.Hour)
	l.CountAddress(r)
	for i, back := range []time.Duration{30 * time.Second, time.Hour} {
		*clock = clock.Add(-back)
		if left := l.CountAddress(r); left.Exceeded != (i == 0) || left.Reset > 60 {
			t.Errorf("set back by %v: %+v", back, left)
		}
	}
}

func TestAFloodOfAddresses(t *testing.T) {
	l, clock := newLimiter(3)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	count := func(i int) Budget {
		r.RemoteAddr = fmt.Sprintf("[2001:db8:%x:%x::1]:1", i>>16, i&0xffff)
		return l.CountAddress(r)
	}
	for i := range 2 * maxWindows {
		if count(i).Exceeded {
			t.Fatal("a first request is refused")
		}
		if n := l.counters[addressRequests].byKey.Size(); n > maxWindows {
			t.Fatalf("%d addresses are kept", n)
		}
	}
	t.Run("which forgets half of them and not all", func(t *testing.T) {
		if n := l.counters[addressRequests].byKey.Size(); n < maxWindows/3 {
			t.Errorf("%d addresses are kept", n)
		}
	})
	t.Run("an address over its limit is still refused after the flood", func(t *testing.T) {
		*clock = clock.Add(time.Minute)
		for range 4 {
			count(1 << 20)
		}
		*clock = clock.Add(59 * time.Second)
		for i := range maxWindows / 4 {
			count(i)
		}
		if !count(1 << 20).Exceeded {
			t.Error("it was forgotten")
		}
	})
}

// guess makes an attempt, and returns whether it was admitted and after how long.
func guess(t *testing.T, l *Limiter, account string, network netip.Addr) (in bool, left Budget, wait time.Duration) {
	t.Helper()
	began := time.Now()
	_, left, err := l.CountAttempt(t.Context(), account, network)
	if err != nil {
		t.Error(err)
	}
	return !left.Exceeded, left, time.Since(began)
}

// right makes an attempt with the right secret, whatever the result.
func right(t *testing.T, l *Limiter, account string, network netip.Addr) {
	if g, _, err := l.CountAttempt(t.Context(), account, network); err != nil {
		t.Error(err)
	} else if g != nil {
		g.Succeed()
	}
}

func TestGuesses(t *testing.T) {
	l, clock := newLimiter(1)
	here, there := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::")
	for range 100 {
		right(t, l, "person me@example.com", here)
	}
	for i := range table[networkSecrets].max {
		if in, left, _ := guess(t, l, "person me@example.com", here); !in || left.Remaining != table[networkSecrets].max-i-1 {
			t.Fatalf("guess %d: %+v", i, left)
		}
	}
	*clock = clock.Add(14 * time.Minute)
	if in, left, _ := guess(t, l, "person me@example.com", here); in || left.Reset != 60 {
		t.Errorf("one guess more: %+v", left)
	}
	if in, _, _ := guess(t, l, "person me@example.com", there); !in {
		t.Error("another network is refused")
	}
	if in, _, _ := guess(t, l, "person you@example.com", here); !in {
		t.Error("another account is refused")
	}
	*clock = clock.Add(time.Minute)
	if in, _, _ := guess(t, l, "person me@example.com", here); !in {
		t.Error("refused in the next window")
	}
}

// Browsers of a /64 of IPv6 count as one address, with the keys of a tenant.
func TestBrowsersOfANetworkCountTogether(t *testing.T) {
	now := time.Now()
	l := NewLimiter(Default(), nil, func() time.Time { return now })
	ask := func(address, tenantID string) Budget {
		return l.CountBrowser(from(netip.AddrPortFrom(netip.MustParseAddr(address), 40000).String()), "", tenantID,
			events.EnterprisePlan)
	}
	for i := range table[browserAddresses].max {
		if b := ask(fmt.Sprintf("2001:db8:1:2:%x::1", i), "t"); b.Exceeded || b.Remaining != table[browserAddresses].max-i-1 {
			t.Fatalf("call %d: %+v", i, b)
		}
	}
	for _, c := range []struct {
		address, tenantID string
		exceeded          bool
	}{
		{"2001:db8:1:2:ffff::9", "t", true}, {"2001:db8:1:3::1", "t", false}, {"2001:db8:1:2::1", "another", false},
		{"192.0.2.1", "t", false},
	} {
		if b := ask(c.address, c.tenantID); b.Exceeded != c.exceeded {
			t.Errorf("a browser at %s with a key of %s: %+v", c.address, c.tenantID, b)
		}
	}
}

// Wrong guesses from many networks slow an account's sign-in, but do not block it.
func TestGuessesFromManyNetworks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const account = "person me@example.com"
		l := NewLimiter(Limits{}, nil, time.Now)
		var fresh atomic.Int64
		network := func() netip.Addr { // a /64 of the same /48
			n := fresh.Add(1)
			return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 0, 1, byte(n >> 8), byte(n)})
		}
		own := netip.MustParseAddr("192.0.2.1")
		right(t, l, account, own)
		for i := range table[accountSecrets].max {
			if in, _, wait := guess(t, l, account, network()); !in || wait != 0 {
				t.Fatalf("guess %d is let in: %t, after %v", i, in, wait)
			}
		}
		flooding, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var flooded atomic.Int64
		all.Go(func() {
			for flooding.Err() == nil { // 30 a second
				all.Go(func() {
					if in, _, _ := guess(t, l, account, network()); in {
						flooded.Add(1)
					}
				})
				time.Sleep(time.Second / 30)
			}
		})
		const tries = 60
		for i := range tries {
			if in, left, wait := guess(t, l, account, netip.AddrFrom4([4]byte{10, 0, byte(i), 1})); !in || wait > slowedFor {
				t.Errorf("from a network that never guessed: %+v after %v", left, wait)
			}
		}
		stop()
		all.Wait()
		if most := (tries + 1) * slowedAtOnce; int(flooded.Load()) > most {
			t.Errorf("%d guesses of the flood are let in, want %d at most", flooded.Load(), most)
		}
		for range 100 {
			right(t, l, account, own)
		}
		if in, left, wait := guess(t, l, account, own); !in || wait != 0 {
			t.Errorf("from the owner's network: %+v after %v", left, wait)
		}
		if in, left, wait := guess(t, l, account, network()); !in || wait == 0 {
			t.Errorf("right secrets made room for wrong ones: %+v after %v", left, wait)
		}
		if in, left, wait := guess(t, l, "person you@example.com", network()); !in || wait != 0 {
			t.Errorf("another account: %+v after %v", left, wait)
		}
		gone, goAway := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, goAway)
		if _, _, err := l.CountAttempt(gone, account, network()); !errors.Is(err, context.Canceled) {
			t.Errorf("who goes away is answered %v", err)
		}
	})
}

func TestAPersonHasOneLimitHoweverManyTenants(t *testing.T) {
	l := NewLimiter(Limits{Plans: map[events.Plan]int{events.FreePlan: 10, events.StandardPlan: 15}, Anonymous: 1, Auth: 1}, nil,
		time.Now)
	call := func(person string, best events.Plan, tenant string, plan events.Plan, limit, remaining int) {
		t.Helper()
		b := l.CountPerson(person, best, tenant, plan)
		if exceeded := remaining < 0; b.Max != limit || b.Remaining != max(remaining, 0) || b.Exceeded != exceeded {
			t.Errorf("%s calls %s: %+v", person, tenant, b)
		}
	}
	for i := range 10 {
		call("ada", events.FreePlan, fmt.Sprint("t", i%4), events.FreePlan, 10, 9-i)
	}
	call("ada", events.FreePlan, "t5", events.FreePlan, 10, -1)
	call("bob", events.FreePlan, "t5", events.FreePlan, 10, 9) // ada's refused call used nothing
	for i := range 10 {
		call("cy", events.StandardPlan, "s", events.FreePlan, 10, 9-i)
	}
	for range 20 {
		call("cy", events.StandardPlan, "s", events.FreePlan, 10, -1) // which uses nothing of its own
	}
	call("cy", events.StandardPlan, "p", events.StandardPlan, 15, 4)
}

func TestMachinesOfTenantsThatPayNothingShareALimit(t *testing.T) {
	l := NewLimiter(Limits{Plans: map[events.Plan]int{events.FreePlan: 10, events.SandboxPlan: 20, events.StandardPlan: 30}}, nil,
		time.Now)
	passed := func(creator string, plan events.Plan, tenants ...string) (n int) {
		for i := range 100 {
			if !l.CountMachine(creator, tenants[i%len(tenants)], plan).Exceeded {
				n++
			}
		}
		return n
	}
	if n := passed("ada", events.FreePlan, "a"); n != 10 {
		t.Errorf("%d calls of one tenant pass", n)
	}
	if n := passed("ada", events.FreePlan, "b", "c", "d", "e"); n != 10 {
		t.Errorf("%d more of others of its creator pass, want what is left of the largest limit", n)
	}
	if n := passed("ada", events.SandboxPlan, "f"); n != 0 {
		t.Errorf("%d more of a sandbox pass", n)
	}
	if n := passed("ada", events.StandardPlan, "g"); n != 30 {
		t.Errorf("%d of a tenant that pays pass", n)
	}
	if n := passed("bob", events.FreePlan, "e"); n == 0 || n > 10 {
		t.Errorf("%d of another creator's pass", n)
	}
}

func TestMailsOfAnIPv6SiteCountTogether(t *testing.T) {
	l, _ := newLimiter(1)
	mailed := func(address string) bool {
		left, _ := l.CountMailRequest(from(address))
		return !left.Exceeded
	}
	for i := range mailMinutes {
		if !mailed(fmt.Sprintf("[2001:db8:1:%x::1]:4711", i)) {
			t.Fatalf("mail %d is refused", i)
		}
	}
	for address, want := range map[string]bool{"[2001:db8:1:ff::1]:4711": false, "[2001:db8:2::1]:4711": true} {
		if mailed(address) != want {
			t.Errorf("%s: mailed is not %v", address, want)
		}
	}
	for i := range mailMinutes + 1 {
		if !mailed(fmt.Sprintf("192.0.2.%d:4711", i)) {
			t.Error("IPv4 addresses count together")
		}
	}
}

func TestPeekDoesNotCount(t *testing.T) {
	l, _ := newLimiter(2)
	r := from("192.0.2.1:1")
	for _, remaining := range []int{2, 1, 0} {
		for range 2 {
			if left := l.Peek(r); left.Remaining != remaining || left.Exceeded != (remaining == 0) {
				t.Errorf("%d left: %+v", remaining, left)
			}
		}
		l.CountAddress(r)
	}
}

func BenchmarkLimiter(b *testing.B) {
	l := NewLimiter(Limits{Plans: map[events.Plan]int{events.FreePlan: maxLimit}, Anonymous: maxLimit}, nil, time.Now)
	tenants := make([]string, 1000)
	for i := range tenants {
		tenants[i] = uuid.NewString()
	}
	for name, tenants := range map[string][]string{"tenants": tenants, "one tenant": tenants[:1]} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				h := http.Header{}
				for pb.Next() {
					l.CountMachine(tenants[0], tenants[rand.IntN(len(tenants))], events.FreePlan).Show(h)
				}
			})
		})
	}
	b.Run("person", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			h := http.Header{}
			for pb.Next() {
				l.CountPerson(tenants[0], events.FreePlan, tenants[1+rand.IntN(len(tenants)-1)], events.FreePlan).Show(h)
			}
		})
	})
	b.Run("address", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			r, h := from("192.0.2.1:1"), http.Header{}
			for pb.Next() {
				l.CountAddress(r).Show(h)
			}
		})
	})
}
