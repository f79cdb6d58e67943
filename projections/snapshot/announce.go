package snapshot

import (
	"context"
	"sync"
	"time"

	"flagledger/events"
)

// announceDelay is how long listeners wait at most for the lists to show a change.
const announceDelay = time.Second

// announcer holds announcements back until the lists show what they tell of.
type announcer struct {
	shown func(ctx context.Context, position events.Position)

	mu      sync.Mutex
	held    []heldAnnouncement
	arrived chan struct{} // has room for one
}

type heldAnnouncement struct {
	announcement
	until time.Time
}

// AnnounceWhenShown makes listeners wait until shown returns, but not longer than a second: shown waits until lists
// hold the changes up to a position, or ctx ends. It must be called before Run.
func (s *Snapshot) AnnounceWhenShown(shown func(ctx context.Context, position events.Position)) {
	s.announcer = &announcer{shown: shown, arrived: make(chan struct{}, 1)}
}

// announce tells listeners of a page, now or when lists show it.
func (s *Snapshot) announce(a announcement) {
	if s.announcer == nil || !s.live.Load() {
		s.changes.publish(a)
		return
	}
	s.announcer.hold(a)
	s.changes.wake(a) // Await does not wait for lists
}

func (n *announcer) hold(a announcement) {
	n.mu.Lock()
	n.held = append(n.held, heldAnnouncement{a, time.Now().Add(announceDelay)})
	n.mu.Unlock()
	select {
	case n.arrived <- struct{}{}:
	default:
	}
}

// run publishes what is held, in order, until ctx ends.
func (n *announcer) run(ctx context.Context, publish func(announcement)) {
	for {
		select {
		case <-n.arrived:
		case <-ctx.Done():
			return
		}
		n.mu.Lock()
		held := n.held
		n.held = nil
		n.mu.Unlock()
		for _, h := range held {
			if last := len(h.changes) - 1; last >= 0 {
				wait, cancel := context.WithDeadline(ctx, h.until)
				n.shown(wait, h.changes[last].Position)
				cancel()
			}
			publish(h.announcement)
		}
	}
}
