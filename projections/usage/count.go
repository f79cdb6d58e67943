package usage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"flagledger/projections/snapshot/evaluation"
)

// Flag holds the usage of a flag from its creation to its deletion. All compiled versions of the flag share it.
type Flag struct {
	key     string
	life    uint32                 // the revision of its FlagCreated
	windows atomic.Pointer[window] // at most one for each environment
}

// NewFlag returns the usage of a flag that nobody has evaluated. life is the revision of its FlagCreated.
func NewFlag(key string, life uint32) *Flag { return &Flag{key: key, life: life} }

// Key returns the flag's key.
func (f *Flag) Key() string { return f.key }

// Life returns the revision of the flag's FlagCreated.
func (f *Flag) Life() uint32 { return f.life }

// window counts the usage of a flag in an environment in an hour, or that of all flags of a tenant. Counts only grow,
// and a flush writes all of them. Counting reads the lists without a lock; Meter.mu is held to add to them.
type window struct {
	flag       *Flag                  // nil in a total
	next       atomic.Pointer[window] // of the flag, in another environment
	older      *window                // the one that was added before it, of any flag
	total      *total
	clients    atomic.Pointer[client]
	evaluated  atomic.Uint32 // the last second, of the Unix time; 0 before the first
	prefetched atomic.Uint32
	prefetches atomic.Uint32
	pending    atomic.Bool // it is queued for a flush
}

// total counts the usage of all flags of a tenant in an environment in an hour. A flush adds to it what flags have
// counted. The environment is empty where the flags' environments are counted together.
type total struct {
	window
	tenantID, environmentID string
	hour                    uint32 // of the Unix time
	month                   *month
}

// client has the evaluations by a machine client, or by people, whose id is empty. Evaluations on behalf of other flags
// are by requiredClient.
type client struct {
	next  *client
	id    string
	cells atomic.Pointer[cell]
	seen  atomic.Uint32 // the last second
}

// cell counts the evaluations by a client with an outcome and a reason.
type cell struct {
	next     *cell
	served   atomic.Pointer[evaluation.Variation] // a value alone has no id; nil in a total
	n        counter
	stored   *evaluation.Variation // what served was when it was last written; only a flush uses it
	summed   uint32                // how much of n is in the total; only a flush uses it
	reason   byte                  // the first letter, which no two reasons share
	repeated bool                  // the outcome had a cell in the window before
}

const (
	// maxOutcomes limits the outcomes of a window, and of a point of metrics.
	maxOutcomes = 20
	// maxClients limits the clients of a window. A tenant has 100 OAuth clients and 100 evaluation keys, people are one
	// more, and some may have been replaced.
	maxClients = 220
	// maxBytes limits the memory of the windows of an hour, for a tenant or for all free tenants of a creator.
	maxBytes = 64 << 20
	// About the memory that a part of it takes.
	windowBytes, clientBytes, cellBytes = 64, 48, 48
	// maxStriped limits the counters of a node that are striped in an hour.
	maxStriped = 1 << 12
)

// RestOutcome stands for the outcomes beyond the limits, as restClient does for clients. Their counts are not shown.
var RestOutcome = &evaluation.Variation{ID: "rest"}

const (
	restClient     = "rest"
	requiredClient = "required"
)

// counter is a count that is striped once two have added to it at the same moment.
type counter struct {
	n       atomic.Int64
	stripes atomic.Pointer[stripes]
}

// stripes are parts of a count, each in a cache line of its own.
type stripes [32]struct {
	n atomic.Int64
	_ [56]byte
}

var (
	lastStripe atomic.Uint32
	// stripePool lends the number of a stripe, mostly another one to each processor.
	stripePool = sync.Pool{New: func() any { return new(lastStripe.Add(1) % uint32(len(stripes{}))) }}
)

func (c *counter) load() int64 {
	n := c.n.Load()
	if s := c.stripes.Load(); s != nil {
		for i := range s {
			n += s[i].n.Load()
		}
	}
	return n
}

// add adds n to counters.
func (m *Meter) add(n int64, counters ...*counter) {
	var stripe *uint32
	for _, c := range counters {
		if s := c.stripes.Load(); s != nil {
			if stripe == nil {
				stripe, _ = stripePool.Get().(*uint32)
			}
			s[*stripe].n.Add(n)
		} else if before := c.n.Load(); !c.n.CompareAndSwap(before, before+n) {
			c.n.Add(n)
			m.stripe(c)
		}
	}
	if stripe != nil {
		stripePool.Put(stripe)
	}
}

// stripe stripes a counter, while the node has few that are striped.
func (m *Meter) stripe(c *counter) {
	if m.striped.Add(1) <= maxStriped {
		c.stripes.CompareAndSwap(nil, &stripes{})
	}
}

// Call collects the flags that a call for many has evaluated, until they are counted.
type Call struct {
	All     bool // the call named no flags: it prefetches them
	flags   []*Flag
	results []evaluation.Result // of flags that the call named

	required        []*Flag
	requiredResults []evaluation.Result

	counted bool // the prefetch itself, which may be counted in pieces
}

// Add adds a flag that the call has evaluated.
func (c *Call) Add(f *Flag, r *evaluation.Result) {
	c.flags = append(c.flags, f)
	if !c.All {
		c.results = append(c.results, *r)
	}
}

// AddRequired adds a flag that the call has evaluated on behalf of another one.
func (c *Call) AddRequired(f *Flag, r *evaluation.Result) {
	c.required = append(c.required, f)
	c.requiredResults = append(c.requiredResults, *r)
}

// Results returns what the named flags that are not counted yet served.
func (c *Call) Results() []evaluation.Result { return c.results }

// Each calls count with each flag that was added since the call was last counted, and with its result, which is nil for
// a prefetch. The first time, the flag of a prefetch is nil too, for the call itself. Afterwards all is counted.
func (c *Call) Each(count func(f *Flag, r *evaluation.Result)) {
	if c.All && !c.counted {
		c.counted = true
		count(nil, nil)
	}
	for i, f := range c.flags {
		var r *evaluation.Result
		if !c.All {
			r = &c.results[i]
		}
		count(f, r)
	}
	c.flags, c.results = emptied(c.flags), emptied(c.results)
}

// EachRequired calls count with each flag that was added by AddRequired since the call was last counted, and with its
// result. Afterwards all is counted.
func (c *Call) EachRequired(count func(f *Flag, r *evaluation.Result)) {
	for i, f := range c.required {
		count(f, &c.requiredResults[i])
	}
	c.required, c.requiredResults = emptied(c.required), emptied(c.requiredResults)
}

// emptied returns a slice without its elements, with its memory.
func emptied[T any](s []T) []T {
	clear(s)
	return s[:0]
}

// CountCall counts the flags of a call that were added since it was last counted. clientID is empty for people.
func (m *Meter) CountCall(c *Call, tenantID, environmentID, clientID string) {
	now := m.now()
	for i, f := range c.flags {
		if !c.All {
			m.count(tenantID, f, environmentID, &c.results[i], clientID, now, 1)
			continue
		}
		m.prefetchOne(tenantID, f, environmentID, now, 1)
	}
	if c.All && !c.counted {
		c.counted = true
		m.prefetchAll(tenantID, environmentID, clientID, now, 1)
	}
	c.flags, c.results = emptied(c.flags), emptied(c.results)
	c.EachRequired(func(f *Flag, r *evaluation.Result) { m.require(tenantID, f, environmentID, r, now, 1) })
}

// prefetchOne counts that a flag was fetched with all others.
func (m *Meter) prefetchOne(tenantID string, f *Flag, environmentID string, now time.Time, n int64) {
	second, hour := m.clock(now)
	w := m.window(tenantID, f, environmentID, hour)
	m.add(n, &w.total.month.counter)
	m.prefetch(w, second, n)
}

// prefetchAll counts calls for all flags.
func (m *Meter) prefetchAll(tenantID, environmentID, clientID string, now time.Time, n int64) {
	second, hour := m.clock(now)
	m.mu.Lock()
	t := m.totalOf(tenantID, environmentID, hour)
	if clientID != "" { // it is seen, although it has no evaluations
		advance(&t.client(clientID).seen, second)
	}
	m.mu.Unlock()
	m.prefetch(&t.window, second, n)
}

// Count counts an evaluation of a flag that was asked for by its name. clientID is empty for people.
func (m *Meter) Count(tenantID string, f *Flag, environmentID string, r *evaluation.Result, clientID string) {
	m.count(tenantID, f, environmentID, r, clientID, m.now(), 1)
}

func (m *Meter) count(
	tenantID string, f *Flag, environmentID string, r *evaluation.Result, clientID string, now time.Time, n int64,
) {
	second, hour := m.clock(now)
	w := m.window(tenantID, f, environmentID, hour)
	by := m.client(w, clientID)
	advance(&by.seen, second)
	m.add(n, &m.cell(w, by, r).n, &w.total.month.counter)
	advance(&w.evaluated, second)
	m.queue(w)
}

// CountRequired counts an evaluation of a flag on behalf of another one that requires it. It is no evaluation of the
// month.
func (m *Meter) CountRequired(tenantID string, f *Flag, environmentID string, r *evaluation.Result) {
	m.require(tenantID, f, environmentID, r, m.now(), 1)
}

func (m *Meter) require(
	tenantID string, f *Flag, environmentID string, r *evaluation.Result, now time.Time, n int64,
) {
	second, hour := m.clock(now)
	w := m.window(tenantID, f, environmentID, hour)
	by := m.client(w, requiredClient)
	advance(&by.seen, second)
	m.add(n, &m.cell(w, by, r).n)
	m.queue(w)
}

func (m *Meter) prefetch(w *window, second uint32, n int64) {
	w.prefetches.Add(uint32(n))
	advance(&w.prefetched, second)
	m.queue(w)
}

// advance sets a second if it is after the one before. Of two that do so at once, either may be left.
func advance(last *atomic.Uint32, second uint32) {
	if last.Load() < second {
		last.Store(second)
	}
}

// clock returns the second of a time, and the hour that it counts in: at most one after that of the last flush, so that
// a long outage of the database takes the memory of two hours.
func (m *Meter) clock(now time.Time) (second, hour uint32) {
	second = uint32(now.Unix())
	return second, min(second/3600, m.lastHour.Load())
}

// queue has a flush write a window that has counted something.
func (m *Meter) queue(w *window) {
	if w.pending.Load() || w.pending.Swap(true) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.flag == nil {
		m.pendingTotals = append(m.pendingTotals, w)
	} else {
		m.pending = append(m.pending, w)
	}
}

// find returns the flag's window in an environment in an hour or a later one: what counts late counts in the later one.
// If there is none, it returns the window of all environments, or nil.
func (f *Flag) find(environmentID string, hour uint32) (together *window) {
	for w := f.windows.Load(); w != nil; w = w.next.Load() {
		if w.total.hour < hour {
			continue
		}
		switch w.total.environmentID {
		case environmentID:
			return w
		case "":
			together = w
		}
	}
	return together
}

// window finds or adds the window of a flag.
func (m *Meter) window(tenantID string, f *Flag, environmentID string, hour uint32) *window {
	if w := f.find(environmentID, hour); w != nil {
		return w
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := f.find(environmentID, hour); w != nil {
		return w
	}
	if !m.spend(tenantID, windowBytes+cellBytes+clientBytes) {
		environmentID = ""
	}
	w := &window{flag: f, total: m.totalOf(tenantID, environmentID, hour), older: m.windows}
	f.remove(func(other *window) bool { return other.total.environmentID == environmentID })
	w.next.Store(f.windows.Load())
	f.windows.Store(w)
	m.windows = w
	return w
}

// remove removes windows of the flag. Meter.mu must be held.
func (f *Flag) remove(which func(*window) bool) {
	for at := &f.windows; at.Load() != nil; {
		if w := at.Load(); which(w) {
			at.Store(w.next.Load())
		} else {
			at = &w.next
		}
	}
}

// totalOf finds or adds the total of a tenant in an hour, or finds that of a later hour. mu must be held.
func (m *Meter) totalOf(tenantID, environmentID string, hour uint32) *total {
	hour = max(hour, m.firstHour)
	of := totalKey{tenantID, environmentID}
	t := m.totals[of]
	if t == nil || t.hour < hour {
		t = &total{
			tenantID: tenantID, environmentID: environmentID, hour: hour, month: m.tenantMonth(tenantID, monthOfHour(hour)),
		}
		t.total = t
		m.totals[of] = t
	}
	return t
}

// spend takes bytes of what a tenant, or the creator of free tenants, may have in an hour. It returns false if there
// are not as many left. mu must be held.
func (m *Meter) spend(tenantID string, bytes int) bool {
	owner := cmp.Or(m.unpaidCreator(tenantID), tenantID)
	if m.spent[owner]+bytes > maxBytes {
		return false
	}
	m.spent[owner] += bytes
	return true
}

// find returns the cell of a result, or that of the rest, or nil.
func (c *client) find(r *evaluation.Result) (rest *cell) {
	for of := c.cells.Load(); of != nil; of = of.next {
		if of.reason != r.Reason[0] {
			continue
		}
		switch served := of.served.Load(); {
		case served == RestOutcome:
			rest = of
		case sameOutcome(served, r):
			if served != r.Variation && (r.Variation != nil || !sameMemory(served.Value, r.Value)) {
				of.served.Store(outcomeOf(r)) // of a newer version of the flag: it is found faster, and may be renamed
			}
			return of
		}
	}
	return rest
}

// sameOutcome reports whether a result has an outcome: a variation, whatever its value, or without one a value.
func sameOutcome(v *evaluation.Variation, r *evaluation.Result) bool {
	return v == r.Variation || v.ID == r.VariationID && (v.ID != "" || bytes.Equal(v.Value, r.Value))
}

func sameMemory(a, b json.RawMessage) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// What flags without variations serve mostly.
var (
	trueAlone  = &evaluation.Variation{Value: evaluation.True}
	falseAlone = &evaluation.Variation{Value: evaluation.False}
)

func outcomeOf(r *evaluation.Result) *evaluation.Variation {
	switch {
	case r.Variation != nil:
		return r.Variation
	case sameMemory(r.Value, evaluation.True):
		return trueAlone
	case sameMemory(r.Value, evaluation.False):
		return falseAlone
	default:
		return &evaluation.Variation{Value: r.Value}
	}
}

// cell finds or adds the cell of a result. Once a client has a cell of the rest, outcomes that are new for it are in
// there, also if other clients have been served them before.
func (m *Meter) cell(w *window, by *client, r *evaluation.Result) *cell {
	if c := by.find(r); c != nil {
		return c
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := by.find(r); c != nil {
		return c
	}
	served, outcomes, repeated, full := outcomeOf(r), 0, false, false
	for c := range w.cells() {
		switch other := c.served.Load(); {
		case other == RestOutcome:
			full = true
		case sameOutcome(other, r):
			repeated = true
		case !c.repeated:
			outcomes++
		}
	}
	full = full || outcomes >= maxOutcomes
	if first := outcomes == 0 && !repeated && !full; !first {
		bytes := cellBytes
		if !repeated {
			bytes += len(served.Value)
		}
		if !repeated && full || !m.spend(w.total.tenantID, bytes) {
			served = RestOutcome
		}
	}
	c := by.addCell(served, r.Reason[0])
	c.repeated = repeated
	return c
}

func (c *client) addCell(served *evaluation.Variation, reason byte) *cell {
	added := &cell{next: c.cells.Load(), reason: reason}
	added.served.Store(served)
	c.cells.Store(added)
	return added
}

// cells yields the cells of all clients.
func (w *window) cells() iter.Seq[*cell] {
	return func(yield func(*cell) bool) {
		for by := w.clients.Load(); by != nil; by = by.next {
			for c := by.cells.Load(); c != nil; c = c.next {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// findClient returns the client of an id, or that of the rest if the client is in it, or nil.
func (w *window) findClient(id string) (rest *client) {
	for c := w.clients.Load(); c != nil; c = c.next {
		switch c.id {
		case id:
			return c
		case restClient:
			rest = c
		}
	}
	return rest
}

// client finds or adds the client of an id.
func (m *Meter) client(w *window, id string) *client {
	if c := w.findClient(id); c != nil {
		return c
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := w.findClient(id); c != nil {
		return c
	}
	n := 0
	for c := w.clients.Load(); c != nil; c = c.next {
		n++
	}
	full := n >= maxClients || n > 0 && !m.spend(w.total.tenantID, clientBytes)
	if full && id != requiredClient { // there is only one of these
		id = restClient
	}
	c := &client{next: w.clients.Load(), id: id}
	w.clients.Store(c)
	return c
}
