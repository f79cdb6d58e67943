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
//   - the first one reads the end of the log, and caches its latest pages, so that each projection takes them at
//     its own pace;
//   - the second one serves projections that are further behind than the cached pages, until the first one has the
//     next page.
type feed struct {
	store events.Store
	log   *slog.Logger

	mu          sync.Mutex
	latest      *window       // pages of the first subscription; nil before it starts
	catchUpOnly bool          // no first subscription: its second one's error ends all
	limiter     *rate.Limiter // for the second subscription, in events; nil for no limit
	traffic     *traffic      // followers are slower while a rebuild yields to it
	err         error
	behind      *window // pages of the second subscription; nil while it does not run
	builds      bool    // behind serves only read models that are being built
	stop        context.CancelFunc
	lagging     map[*follower]struct{} // they need the second subscription
	expected    int                    // how many are about to follow
	changed     chan struct{}          // closed and replaced when there are new pages
	signal      chan struct{}          // for catchUp: lagging followers have come, gone or moved
}

const (
	// expectWait limits the wait of the second subscription for expected followers.
	expectWait = time.Second
	// laggingWait limits the wait for a follower that takes no pages while others do.
	laggingWait = 2 * time.Second
)

func newFeed(store events.Store, log *slog.Logger) *feed {
	return &feed{
		store: store, log: log, lagging: map[*follower]struct{}{},
		changed: make(chan struct{}), signal: make(chan struct{}, 1),
	}
}

// limit limits the events a second of the second subscription; 0 means no limit.
func (d *feed) limit(events int) {
	if events > 0 {
		d.limiter = rate.NewLimiter(rate.Limit(events), min(events, pageEvents))
	}
}

// throttle waits until the limiter allows a page.
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

// readLatest caches the latest pages, starting at the current end of the log.
func (d *feed) readLatest(ctx context.Context) {
	if d.catchUpOnly {
		return
	}
	attempt := func(progressed func()) error { return d.readLatestOnce(ctx, progressed) }
	retry.Forever(ctx, attempt, func(err error, wait time.Duration) {
		d.log.Error("the projections' feed stopped; retrying", "retry_in", wait, "err", err)
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

// update runs a change of the pages, and wakes the followers.
func (d *feed) update(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	close(d.changed)
	d.changed = make(chan struct{})
}

// catchUp reads for lagging followers, one window after another.
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
			d.log.Error("projections that catch up cannot read the log; retrying", "after", w.end, "retry_in", wait,
				"err", err)
			_ = retry.Sleep(ctx, wait)
		}
	}
}

// begin waits for lagging followers and all expected ones, and starts a window at the furthest behind. Live read
// models go before those being built. The returned context ends when the window is no longer needed.
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

// makeRoom waits until followers have taken enough of a full window, at most laggingWait. A follower that misses pages
// lags, and they are read again.
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

// takenUpTo returns the position that all followers of a window have reached.
func (d *feed) takenUpTo(w *window) events.Position {
	taken := w.end
	for f := range d.lagging {
		if w.holds(f.position) && f.position.Compare(taken) < 0 {
			taken = f.position
		}
	}
	return taken
}

// needed reports whether a follower waits for the window. A window for builds ends as soon as a live read model waits.
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

// laggingChanged signals that lagging followers came, left or moved. The caller holds the lock.
func (d *feed) laggingChanged() {
	if d.behind != nil && !d.needed() {
		d.stop()
	}
	select {
	case d.signal <- struct{}{}:
	default:
	}
}
