package projections

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"flagledger/events"
)

// feed reads the log for all projections of a process. Those that are up to date share one subscription, whose latest pages are kept: each takes them at its
// own pace, and none waits for another. One that is further behind than these pages reach catches up over a second subscription, which all who are
// behind share, and comes back to the first one where that holds what comes next.
type feed struct {
	store events.Store
	log   *slog.Logger

	mu       sync.Mutex
	latest   *window // nil until it has begun
	unled    bool    // there is no latest: all follow the second subscription, and end with its error
	err      error
	behind   *window // what the second subscription reads; nil while it does not
	builds   bool    // behind was begun for read models that are being built, and for no other
	stop     context.CancelFunc
	members  map[*follower]struct{} // who is behind
	expected int                    // those who are about to follow
	changed  chan struct{}          // closed and replaced when there is more to take
	signal   chan struct{}          // for catchUp: members have changed or moved
}

const (
	// expectWait is how long reading for those who are behind waits for others who are expected.
	expectWait = time.Second
	// memberWait is how long reading waits for somebody who does not take pages, while others do.
	memberWait = 2 * time.Second
)

func newFeed(store events.Store, log *slog.Logger) *feed {
	return &feed{
		store: store, log: log, members: map[*follower]struct{}{},
		changed: make(chan struct{}), signal: make(chan struct{}, 1),
	}
}

// run reads the log until ctx ends.
func (d *feed) run(ctx context.Context) {
	var reading sync.WaitGroup
	reading.Go(func() { d.catchUp(ctx) })
	d.lead(ctx)
	reading.Wait()
}

// lead keeps the window of the latest pages, from the end that the log has when it begins.
func (d *feed) lead(ctx context.Context) {
	if d.unled {
		return
	}
	retry := newRetry()
	for ctx.Err() == nil {
		err := d.leadOnce(ctx, retry.Reset)
		if ctx.Err() != nil {
			return
		}
		wait := retry.NextBackOff()
		d.log.Error("the projections' feed stopped; it tries again", "in", wait, "err", err)
		_ = pause(ctx, wait)
	}
}

func (d *feed) leadOnce(ctx context.Context, succeeded func()) error {
	if d.latest == nil {
		head, err := d.store.Head(ctx)
		if err != nil {
			return err
		}
		d.change(func() { d.latest = newWindow(head) })
	}
	for page, err := range d.store.Subscribe(ctx, d.latest.end) {
		if err != nil {
			return err
		}
		succeeded()
		d.change(func() {
			d.latest.add(page)
			for d.latest.full() && len(d.latest.pages) > 1 {
				d.latest.dropOldest()
			}
		})
	}
	return ctx.Err()
}

// change changes what can be taken.
func (d *feed) change(what func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	what()
	close(d.changed)
	d.changed = make(chan struct{})
}

// catchUp reads for those who are behind, one stretch of the log after another.
func (d *feed) catchUp(ctx context.Context) {
	retry := newRetry()
	for ctx.Err() == nil {
		reading, w := d.begin(ctx)
		if w == nil {
			return
		}
		err := d.read(reading, w, retry.Reset)
		over := reading.Err() != nil
		d.mu.Lock()
		d.stop()
		d.behind = nil
		d.mu.Unlock()
		if !over && d.unled {
			d.change(func() { d.err = err })
			return
		}
		if !over {
			wait := retry.NextBackOff()
			d.log.Error("projections that catch up cannot read the log; they try again", "after", w.end, "in", wait, "err", err)
			_ = pause(ctx, wait)
		}
	}
}

// begin waits until somebody is behind, and until all who are expected have come. It begins with the one who is furthest behind, except that read
// models that are being built wait for those that are read. The context that it returns ends when the reading is no longer needed.
func (d *feed) begin(ctx context.Context) (context.Context, *window) {
	var expire <-chan time.Time
	expired := false
	for {
		d.mu.Lock()
		if len(d.members) > 0 && (d.expected == 0 || expired) {
			defer d.mu.Unlock()
			d.builds = true
			for f := range d.members {
				d.builds = d.builds && f.building
			}
			var first *follower
			for f := range d.members {
				if (d.builds || !f.building) && (first == nil || f.position.Compare(first.position) < 0) {
					first = f
				}
			}
			d.behind = newWindow(first.position)
			reading, stop := context.WithCancel(ctx)
			d.stop = stop
			return reading, d.behind
		}
		if len(d.members) > 0 && expire == nil {
			expire = time.After(expectWait)
		}
		d.mu.Unlock()
		select {
		case <-d.signal:
		case <-expire:
			expired = true
		case <-ctx.Done():
			return ctx, nil
		}
	}
}

func (d *feed) read(ctx context.Context, w *window, succeeded func()) error {
	for page, err := range d.store.Subscribe(ctx, w.start) {
		if err != nil {
			return err
		}
		succeeded()
		if err := d.makeRoom(ctx, w); err != nil {
			return err
		}
		d.change(func() { w.add(page) })
	}
	return ctx.Err()
}

// makeRoom waits until those who read have taken what stands in the way. It does not wait for ever: whoever misses pages is read for later.
func (d *feed) makeRoom(ctx context.Context, w *window) error {
	expired := false
	expire := time.NewTimer(memberWait)
	defer expire.Stop()
	for {
		d.mu.Lock()
		w.dropUpTo(d.taken(w))
		for expired && w.full() {
			w.dropOldest()
		}
		full := w.full()
		d.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-d.signal:
		case <-expire.C:
			expired = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// taken is the position up to which all have taken what a window holds.
func (d *feed) taken(w *window) events.Position {
	taken := w.end
	for f := range d.members {
		if w.holds(f.position) && f.position.Compare(taken) < 0 {
			taken = f.position
		}
	}
	return taken
}

// needed tells whether somebody waits for what is being read. Reading for those who are being built ends as soon as it would keep another waiting.
func (d *feed) needed() bool {
	needed := false
	for f := range d.members {
		served := d.behind.holds(f.position)
		if d.builds && !f.building && (!served || f.position.Compare(d.behind.end) > 0) {
			return false
		}
		needed = needed || served && (d.builds || !f.building)
	}
	return needed
}

// moved is called when members have changed or moved, with the lock held.
func (d *feed) moved() {
	if d.behind != nil && !d.needed() {
		d.stop()
	}
	select {
	case d.signal <- struct{}{}:
	default:
	}
}

// follower is a place in the log that moves on. It must be left.
type follower struct {
	feed     *feed
	position events.Position
	building bool // nobody reads the read model yet
	expected bool
}

func (d *feed) follow() *follower { return &follower{feed: d} }

// expect tells the feed that next will be called soon, so that those who begin at the same time read together.
func (f *follower) expect() {
	f.feed.mu.Lock()
	defer f.feed.mu.Unlock()
	if !f.expected {
		f.expected = true
		f.feed.expected++
	}
}

func (f *follower) leave() {
	f.feed.mu.Lock()
	defer f.feed.mu.Unlock()
	f.arrive()
	delete(f.feed.members, f)
	f.feed.moved()
}

func (f *follower) arrive() {
	if f.expected {
		f.expected = false
		f.feed.expected--
	}
}

// next returns what comes after a position, as soon as there is something, or nothing after a while.
func (f *follower) next(ctx context.Context, after events.Position, wait time.Duration) (events.Page, error) {
	expire := time.NewTimer(wait)
	defer expire.Stop()
	for {
		page, changed, err := f.take(after)
		if err != nil || page.Next != after {
			return page, err
		}
		select {
		case <-changed:
		case <-expire.C:
			return page, nil
		case <-ctx.Done():
			return page, ctx.Err()
		}
	}
}

func (f *follower) take(after events.Position) (page events.Page, changed <-chan struct{}, err error) {
	d := f.feed
	d.mu.Lock()
	defer d.mu.Unlock()
	page, changed = events.Page{Next: after}, d.changed
	f.position = after
	f.arrive()
	switch {
	case d.latest == nil && !d.unled:
	case d.latest != nil && d.latest.holds(after):
		delete(d.members, f)
		page = d.latest.after(after)
	default:
		d.members[f] = struct{}{}
		if d.behind != nil && d.behind.holds(after) {
			page = d.behind.after(after)
		}
	}
	d.moved()
	return page, changed, d.err
}
