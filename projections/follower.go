package projections

import (
	"context"
	"time"

	"flagledger/events"
)

// follower is a moving position in the log. The owner must call leave.
type follower struct {
	feed     *feed
	position events.Position
	building bool // the read model is not read yet
	expected bool
}

func (d *feed) follow() *follower { return &follower{feed: d} }

// expect announces that next will be called soon, so that followers that start together read together.
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
	f.arrived()
	delete(f.feed.lagging, f)
	f.feed.laggingChanged()
}

// arrived ends an expect. The caller holds the lock.
func (f *follower) arrived() {
	if f.expected {
		f.expected = false
		f.feed.expected--
	}
}

// next returns the events after a position as soon as there are any, or none after a while.
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

// take returns the available events after a position, and a channel that closes when there are more.
func (f *follower) take(after events.Position) (page events.Page, changed <-chan struct{}, err error) {
	d := f.feed
	d.mu.Lock()
	defer d.mu.Unlock()
	page, changed = events.Page{Next: after}, d.changed
	f.position = after
	f.arrived()
	switch {
	case d.latest == nil && !d.catchUpOnly:
	case d.latest != nil && d.latest.holds(after):
		delete(d.lagging, f)
		page = d.latest.after(after)
	default:
		d.lagging[f] = struct{}{}
		if d.behind != nil && d.behind.holds(after) {
			page = d.behind.after(after)
		}
	}
	d.laggingChanged()
	return page, changed, d.err
}
