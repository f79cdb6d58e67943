package snapshot

import (
	"context"
	"sync"
	"time"

	"flagledger/events"
)

// announceDelay limits how long listeners wait for the lists to show a change.
const announceDelay = time.Second

// announcer delays announcements until the lists show their changes.
type announcer struct {
	shown func(ctx context.Context, position events.Position)

	mu      sync.Mutex
	held    []heldAnnouncement
	arrived chan struct{} // buffered for one signal
}

type heldAnnouncement struct {
	announcement
	until time.Time
}

// announce informs listeners of a page, now or once lists show it.
func (s *Snapshot) announce(a announcement) {
	if s.announcer == nil || !s.live.Load() {
		s.changes.publish(a)
		return
	}
	s.announcer.hold(a)
	s.changes.endWaits(a) // Await does not wait for lists
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

// run publishes delayed announcements in order until ctx ends.
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
