package quota

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/puzpuzpuz/xsync/v4"
)

// kind is what a window counts.
type kind int

const (
	tenantRequests kind = iota
	personRequests
	creatorRequests
	addressRequests
	browserRequests
	browserAddresses
	signIns
	networkSecrets
	accountSecrets
	ownNetworks
	mails
	notifications
	paymentPages
	switches
	writtenBytes
	kinds
)

// window limits how often something happens in a period. Each key has windows of its own: the first begins with the
// first use, or at midnight in UTC.
type window struct {
	name   string // in docs/operate/limits.md, unless it is empty
	per    string
	max    int // the default, if it is a setting; 0 if it is by plan
	period time.Duration
	beyond string // if it is not a refusal
	day    bool   // begins at midnight
}

// table lists the windows. Each node counts for itself, in memory.
var table = [kinds]window{
	tenantRequests:  {period: time.Minute},
	personRequests:  {period: time.Minute},
	creatorRequests: {period: time.Minute},
	addressRequests: {"requests without a valid token", PerNetwork, 300, time.Minute, "", false},
	browserRequests: {period: time.Minute},
	browserAddresses: {
		"requests with browser keys", "tenant and " + PerNetwork, 300, time.Minute, "", false,
	},
	signIns:        {"sign-ins and tokens", PerNetwork, 60, time.Minute, "", false},
	networkSecrets: {"wrong passwords and secrets", "account and " + PerNetwork, 20, 15 * time.Minute, "", false},
	accountSecrets: {"wrong passwords and secrets", "account", 200, 15 * time.Minute, slowed, false},
	ownNetworks: {
		"a network counts as the account's own after a sign-in", "account and " + PerNetwork, 1, 30 * 24 * time.Hour,
		"it waits as others do", false,
	},
	mails: {
		"sign-ups, links to sandboxes and new passwords", PerSite, mailMinutes * 60, 24 * time.Hour, "", false,
	},
	notifications: {"notifications to one person", PerTenantOrCreator, 200, 24 * time.Hour, "", false},
	paymentPages:  {"checkouts and portals", PerTenantOrCreator, 20, time.Hour, "", false},
	writtenBytes:  {period: 24 * time.Hour, day: true},
	switches:      {max: 10, period: time.Minute},
}

// Budget is the remainder of a limit in the current window.
type Budget struct {
	Max       int
	Remaining int
	Reset     int // seconds until the next window, at least 1
	Exceeded  bool
}

// Spent returns an exhausted budget that resets after left, rounded up to seconds.
func Spent(limit int, left time.Duration) Budget {
	return Budget{Max: limit, Reset: int((left + time.Second - 1) / time.Second), Exceeded: true}
}

// Show sets the headers RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset, in this spelling.
func (b Budget) Show(h http.Header) {
	values := &[3]string{strconv.Itoa(b.Max), strconv.Itoa(b.Remaining), strconv.Itoa(b.Reset)}
	h["RateLimit-Limit"], h["RateLimit-Remaining"], h["RateLimit-Reset"] = values[0:1:1], values[1:2:2], values[2:3:3]
}

// counter counts one kind by key.
type counter struct {
	byKey    *xsync.Map[string, *count]
	sweeping sync.Mutex
}

// count is what a key has used since its window began.
type count struct {
	mu    sync.Mutex
	began int64 // in Unix seconds
	n     int
}

// maxWindows limits the number of keys that are counted of a kind: some 10 MB.
const maxWindows = 100_000

func newCounters() (all [kinds]*counter) {
	for k := range all {
		all[k] = &counter{byKey: xsync.NewMap[string, *count]()}
	}
	return all
}

// take counts one use of the table's limit, unless that is reached.
func (l *Limiter) take(k kind, key string) Budget { return l.takeUpTo(k, key, table[k].max) }

// takeUpTo counts one use of a limit by plan or setting, unless it is reached.
func (l *Limiter) takeUpTo(k kind, key string, limit int) Budget {
	return l.takeAt(l.now().Unix(), k, key, limit)
}

func (l *Limiter) takeAt(now int64, k kind, key string, limit int) Budget {
	return l.countOf(now, k, key).take(limit, now, &table[k])
}

// add counts n without a limit.
func (l *Limiter) add(k kind, key string, n int) {
	now := l.now().Unix()
	c := l.countOf(now, k, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begin(now, &table[k])
	c.n += n
}

// countOf returns the count of a key.
func (l *Limiter) countOf(now int64, k kind, key string) *count {
	c := l.counters[k]
	found, ok := c.byKey.Load(key)
	if !ok {
		if c.byKey.Size() >= maxWindows {
			c.sweep(now, &table[k])
		}
		found, _ = c.byKey.LoadOrStore(key, &count{})
	}
	return found
}

// used returns what a key has used in its current window.
func (l *Limiter) used(k kind, key string) int {
	c, ok := l.counters[k].byKey.Load(key)
	if !ok {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over(l.now().Unix(), &table[k]) {
		return 0
	}
	return c.n
}

// release undoes a recent take.
func (l *Limiter) release(k kind, key string) {
	if c, ok := l.counters[k].byKey.Load(key); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n = max(0, c.n-1)
	}
}

// sweep drops the windows that have ended. If most have not, it drops every other one: with more clients than can be
// counted, some are not limited.
func (c *counter) sweep(now int64, w *window) {
	if !c.sweeping.TryLock() {
		return
	}
	defer c.sweeping.Unlock()
	c.byKey.DeleteMatching(func(_ string, one *count) (bool, bool) {
		one.mu.Lock()
		defer one.mu.Unlock()
		return one.over(now, w), false
	})
	if c.byKey.Size() > maxWindows/2 {
		drop := false
		c.byKey.DeleteMatching(func(string, *count) (bool, bool) {
			drop = !drop
			return drop, false
		})
	}
}

// over reports whether a window has ended, or began long after now: the clock was set back.
func (c *count) over(now int64, w *window) bool {
	return now-c.began >= w.seconds() || c.began-now >= w.seconds()
}

func (w *window) seconds() int64 { return int64(w.period / time.Second) }

// begin begins a window, unless there is a current one.
func (c *count) begin(now int64, w *window) {
	if c.n > 0 && !c.over(now, w) {
		return
	}
	c.began, c.n = now, 0
	if w.day {
		c.began -= now % w.seconds()
	}
}

func (c *count) take(limit int, now int64, w *window) Budget {
	c.mu.Lock()
	c.begin(now, w)
	began, exceeded := c.began, c.n >= limit
	if !exceeded {
		c.n++
	}
	left := limit - c.n
	c.mu.Unlock()
	reset := began + w.seconds() - max(now, began)
	return Budget{Max: limit, Remaining: max(0, left), Reset: int(reset), Exceeded: exceeded}
}
