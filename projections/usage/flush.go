package usage

import (
	"cmp"
	"context"
	"slices"
	"time"
)

const (
	flushTimeout = 5 * time.Second // also of the last flush, which a node waits for when it ends
	// A page is what one transaction writes: pageWindows windows, or about pageBytes. Pages are small, because a large one
	// holds up what others write meanwhile.
	pageWindows = 100
	pageBytes   = 256 << 10
	// A flush that hurries, as each does after hurryAfter, writes pages that are hurryFactor times as large, to end within
	// flushTimeout.
	hurryAfter  = flushTimeout / 2
	hurryFactor = 20
)

// flushWindows writes the pending windows page by page, totals first. After an error the rest stays pending. Once all
// is written, it drops the windows of past hours.
func (m *Meter) flushWindows(ctx context.Context, hurry bool) error {
	began := m.now()
	today := began.UTC().Truncate(Daily)
	pending := m.takePending()
	slices.SortStableFunc(pending, func(a, b *window) int { // a past day may be locked while it is summed
		return cmp.Compare(pastDays(b, today), pastDays(a, today))
	})
	for len(pending) > 0 {
		page := pending[:pageLength(pending, hurry || m.now().Sub(began) > hurryAfter)]
		if err := m.writePage(ctx, page); err != nil {
			m.requeue(page, pending[len(page):])
			return err
		}
		pending = pending[len(page):]
	}
	m.dropBefore(hourOf(began))
	return nil
}

// pastDays is negative for a window of a past day, and else zero.
func pastDays(w *window, today time.Time) int {
	return min(0, timeOfHour(w.total.hour).Compare(today))
}

// takePending takes the pending windows, totals first, which are few.
func (m *Meter) takePending() []*window {
	take := func(queue *[]*window) (taken []*window) {
		m.mu.Lock()
		defer m.mu.Unlock()
		taken, *queue = *queue, nil
		return taken
	}
	flags := take(&m.pending)
	for _, w := range flags {
		m.addToTotal(w)
	}
	return append(take(&m.pendingTotals), flags...)
}

// begin begins to write a window: what is counted later makes it pending again.
func (m *Meter) begin(w *window) {
	w.pending.Store(false)
	m.addToTotal(w)
}

// addToTotal adds what a flag's window has counted since the last time to its total.
func (m *Meter) addToTotal(w *window) {
	if w.flag == nil {
		return
	}
	t := w.total
	changed := false
	for by := w.clients.Load(); by != nil; by = by.next {
		for c := by.cells.Load(); c != nil; c = c.next {
			n := uint32(c.n.load())
			if n == c.summed {
				continue
			}
			m.mu.Lock()
			of := t.client(by.id)
			m.mu.Unlock()
			m.add(int64(n-c.summed), &of.ofReason(c.reason).n)
			advance(&of.seen, by.seen.Load())
			c.summed, changed = n, true
		}
	}
	if changed {
		advance(&t.evaluated, w.evaluated.Load())
		m.queue(&t.window)
	}
}

// client finds or adds a client of a total. Meter.mu must be held.
func (t *total) client(id string) *client {
	n := 0
	for c := t.clients.Load(); c != nil; c = c.next {
		if c.id == id {
			return c
		}
		if c.id != restClient {
			n++
		}
	}
	if n >= maxClients && id != restClient && id != requiredClient {
		return t.client(restClient)
	}
	c := &client{next: t.clients.Load(), id: id}
	t.clients.Store(c)
	return c
}

// ofReason finds or adds the cell of a reason in a total, which only a flush does.
func (c *client) ofReason(reason byte) *cell {
	for of := c.cells.Load(); of != nil; of = of.next {
		if of.reason == reason {
			return of
		}
	}
	return c.addCell(nil, reason)
}

// requeue has the next flush write windows before all that has become pending meanwhile, so that what is counted all
// the time delays nothing else. Some may have been counted, and are pending, since a page that failed began.
func (m *Meter) requeue(page, rest []*window) {
	page = slices.DeleteFunc(page, func(w *window) bool { return w.pending.Swap(true) })
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending = slices.Concat(page, rest, m.pending)
}

// pageLength returns how many of the windows the next page writes: of one hour, since then a flag has one window in an
// environment, and no statement meets a row twice.
func pageLength(pending []*window, hurry bool) int {
	factor := 1
	if hurry {
		factor = hurryFactor
	}
	n, bytes := 0, 0
	for n < len(pending) && n < factor*pageWindows && bytes < factor*pageBytes &&
		pending[n].total.hour == pending[0].total.hour {
		bytes += pending[n].bytes()
		n++
	}
	return n
}

// bytes returns about how many bytes a flush writes of a window.
func (w *window) bytes() int {
	bytes := 200
	for c := w.clients.Load(); c != nil; c = c.next {
		bytes += 60
	}
	for c := range w.cells() {
		bytes += 30
		if served := c.served.Load(); served != c.stored {
			bytes += len(served.Value)
		}
	}
	return bytes
}

// dropBefore drops the windows of hours before one. Nothing counts in such an hour any more: counts that began again
// would overwrite those in the database.
func (m *Meter) dropBefore(hour uint32) {
	m.lastHour.Store(hour + 1)
	m.mu.Lock()
	if m.firstHour >= hour {
		m.mu.Unlock()
		return
	}
	m.firstHour = hour
	clear(m.spent)
	m.striped.Store(0)
	for key, t := range m.totals {
		if t.hour < hour {
			delete(m.totals, key)
		}
	}
	w := m.windows
	m.windows = nil
	m.mu.Unlock()
	for w != nil {
		m.mu.Lock() // for each one anew, so that counting waits for none
		older := w.older
		if w.total.hour < hour {
			w.older = nil
			w.flag.remove(func(other *window) bool { return other == w })
		} else {
			w.older, m.windows = m.windows, w
		}
		m.mu.Unlock()
		w = older
	}
}
