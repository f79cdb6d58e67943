package projections

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"flagledger/events"
	"flagledger/retry"
)

// feed reads the log for all projections of a process, over at most two subscriptions:
//
//   - the first one reads the end of the log, and its latest pages are kept, so that each projection takes them at
//     its own pace;
//   - the second one is for those that are further behind than these pages reach, until the first one holds what
//     comes next.
type feed struct {
	store events.Store
	log   *slog.Logger

	mu          sync.Mutex
	latest      *window       // what the first subscription has read; nil until it has begun
	catchUpOnly bool          // there is no first subscription: all end with the error of the second one
	limiter     *rate.Limiter // of the events that the second subscription reads; nil for no limit
	traffic     *traffic      // that followers give way to: they take longer meanwhile
	err         error
	behind      *window // what the second subscription reads; nil while it does not
	builds      bool    // behind was begun for read models that are being built, and for no other
	stop        context.CancelFunc
	lagging     map[*follower]struct{} // those that need the second subscription
	expected    int                    // those who are about to follow
	changed     chan struct{}          // closed and replaced when there is more to take
	signal      chan struct{}          // for catchUp: lagging followers have come, gone or moved
}

const (
	// expectWait is how long the second subscription waits for followers that are expected.
	expectWait = time.Second
	// laggingWait is how long reading waits for a follower that does not take pages, while others do.
	laggingWait = 2 * time.Second
)

func newFeed(store events.Store, log *slog.Logger) *feed {
	return &feed{
		store: store, log: log, lagging: map[*follower]struct{}{},
		changed: make(chan struct{}), signal: make(chan struct{}, 1),
	}
}

// limit bounds how many events a second are read for those that are behind. 0 is no bound.
func (d *feed) limit(events int) {
	if events > 0 {
		d.limiter = rate.NewLimiter(rate.Limit(events), min(events, pageEvents))
	}
}

// throttle waits until a page may be read.
func (d *feed) throttle(ctx context.Context, page events.Page) error {
	for left := len(page.Events); left > 0 && d.limiter != nil; {
		n := min(left, d.limiter.Burst())
		if err := d.limiter.WaitN(ctx, n); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// run reads the log until ctx ends.
func (d *feed) run(ctx context.Context) {
	var reading sync.WaitGroup
	reading.Go(func() { d.catchUp(ctx) })
	d.readLatest(ctx)
	reading.Wait()
}

// readLatest keeps the latest pages, from the end that the log has when it begins.
func (d *feed) readLatest(ctx context.Context) {
	if d.catchUpOnly {
		return
	}
	attempt := func(progressed func()) error { return d.readLatestOnce(ctx, progressed) }
	retry.Forever(ctx, attempt, func(err error, wait time.Duration) {
		d.log.Error("the projections' feed stopped; it tries again", "retry_in", wait, "err", err)
	})
}

func (d *feed) readLatestOnce(ctx context.Context, succeeded func()) error {
	if d.latest == nil {
		head, err := d.store.Head(ctx)
		if err != nil {
			return err
		}
		d.update(func() { d.latest = newWindow(head) })
	}
	for page, err := range d.store.Subscribe(ctx, d.latest.end) {
		if err != nil {
			return err
		}
		succeeded()
		d.update(func() {
			d.latest.add(page)
			for d.latest.full() && len(d.latest.pages) > 1 {
				d.latest.dropOldest()
			}
		})
	}
	return ctx.Err()
}

// update changes what followers can take, and wakes them.
func (d *feed) update(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	close(d.changed)
	d.changed = make(chan struct{})
}

// catchUp reads for those that are behind, one stretch of the log after another.
func (d *feed) catchUp(ctx context.Context) {
	delays := retry.NewBackoff()
	for ctx.Err() == nil {
		reading, w := d.begin(ctx)
		if w == nil {
			return
		}
		err := d.read(reading, w, delays.Reset)
		over := reading.Err() != nil
		d.mu.Lock()
		d.stop()
		d.behind = nil
		d.mu.Unlock()
		if !over && d.catchUpOnly {
			d.update(func() { d.err = err })
			return
		}
		if !over {
			wait := delays.NextBackOff()
			d.log.Error("projections that catch up cannot read the log; they try again", "after", w.end, "retry_in", wait,
				"err", err)
			_ = retry.Sleep(ctx, wait)
		}
	}
}

// begin waits until somebody is behind and all that are expected have come, and starts a window where the one that is
// furthest behind stands; those that are read go before those that are being built. The context that it returns ends
// when the reading is no longer needed.
func (d *feed) begin(ctx context.Context) (context.Context, *window) {
	var expire <-chan time.Time
	expired := false
	for {
		d.mu.Lock()
		if len(d.lagging) > 0 && (d.expected == 0 || expired) {
			defer d.mu.Unlock()
			d.builds = true
			for f := range d.lagging {
				d.builds = d.builds && f.building
			}
			var first *follower
			for f := range d.lagging {
				if (d.builds || !f.building) && (first == nil || f.position.Compare(first.position) < 0) {
					first = f
				}
			}
			d.behind = newWindow(first.position)
			reading, stop := context.WithCancel(ctx)
			d.stop = stop
			return reading, d.behind
		}
		if len(d.lagging) > 0 && expire == nil {
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
		if err := d.throttle(ctx, page); err != nil {
			return err
		}
		if err := d.makeRoom(ctx, w); err != nil {
			return err
		}
		d.update(func() { w.add(page) })
	}
	return ctx.Err()
}

// makeRoom waits until followers have taken enough of a full window, but for laggingWait at most: for whoever misses
// pages they are read again later.
func (d *feed) makeRoom(ctx context.Context, w *window) error {
	expired := false
	wait := laggingWait
	if d.traffic.present() {
		wait *= 10
	}
	expire := time.NewTimer(wait)
	defer expire.Stop()
	for {
		d.mu.Lock()
		w.dropUpTo(d.takenUpTo(w))
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

// takenUpTo is the position up to which all followers of a window have taken it.
func (d *feed) takenUpTo(w *window) events.Position {
	taken := w.end
	for f := range d.lagging {
		if w.holds(f.position) && f.position.Compare(taken) < 0 {
			taken = f.position
		}
	}
	return taken
}

// needed reports whether somebody waits for what is being read. Reading for those that are being built ends as soon as
// another waits.
func (d *feed) needed() bool {
	needed := false
	for f := range d.lagging {
		served := d.behind.holds(f.position)
		if d.builds && !f.building && (!served || f.position.Compare(d.behind.end) > 0) {
			return false
		}
		needed = needed || served && (d.builds || !f.building)
	}
	return needed
}

// laggingChanged is called, with the lock held, when lagging followers have come, gone or moved.
func (d *feed) laggingChanged() {
	if d.behind != nil && !d.needed() {
		d.stop()
	}
	select {
	case d.signal <- struct{}{}:
	default:
	}
}
