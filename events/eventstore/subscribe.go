package eventstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"flagledger/events"
	"flagledger/retry"
)

const (
	pageSize  = 500
	pageBytes = 8 << 20
	// pageWait limits how long a partial page waits for more events while the subscriber catches up.
	pageWait = 20 * time.Millisecond
	// The server sends a checkpoint after window times interval events of others: a restart reads at most these again.
	window   = 500
	interval = 4
	buffered = 256 // messages between the client and the current page
)

type delivery struct {
	page events.Page
	err  error
}

// Subscribe implements events.Store, and reads the next page while the caller handles the last one. If others append
// to the log, pages without events move Next from time to time.
func (s *Store) Subscribe(ctx context.Context, after events.Position) iter.Seq2[events.Page, error] {
	return func(yield func(events.Page, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		pages := make(chan delivery)
		go s.follow(ctx, after, pages)
		for d := range pages {
			if !yield(d.page, d.err) || d.err != nil {
				return
			}
		}
		yield(events.Page{}, ctx.Err())
	}
}

// follow sends pages until ctx ends or the server refuses for good. It subscribes again whenever a subscription is
// dropped, because none resumes by itself.
func (s *Store) follow(ctx context.Context, last events.Position, pages chan<- delivery) {
	defer close(pages)
	resumed := false
	err := retry.Run(ctx, func(progressed func()) error {
		began := last
		err := s.followOnce(ctx, &last, pages)
		// Once events of this log were delivered, a node whose log ends before them lags.
		if final(err) || errors.Is(err, events.ErrPastEnd) && !resumed {
			return retry.Permanent(err)
		}
		if last != began {
			progressed()
			resumed = true
		}
		return err
	}, func(err error, wait time.Duration) {
		if !errors.Is(err, ErrCredentials) { // those are logged at a lower rate
			s.log.Warn("a subscription was dropped; subscribing again", "after", last, "retry_in", wait, "err", err)
		}
	})
	select {
	case pages <- delivery{err: err}:
	case <-ctx.Done():
	}
}

// followOnce follows the log over one subscription, and always ends with an error. It sets last to the end of the
// pages sent so far.
func (s *Store) followOnce(ctx context.Context, last *events.Position, pages chan<- delivery) error {
	tail, err := s.tail(ctx)
	if err != nil {
		return err
	}
	if last.Compare(tail) > 0 {
		return fmt.Errorf("%w: it is %v, the end %v", events.ErrPastEnd, *last, tail)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	messages := make(chan *esdb.SubscriptionEvent, buffered)
	ended := make(chan error, 1)
	go func() {
		err := s.hear(ctx, c.client, *last, messages)
		s.release(c, err)
		ended <- err
		close(messages)
	}()
	p := pager{last: last, pages: pages, end: &s.end}
	p.reset()
	live := false
	var wait <-chan time.Time
	for {
		select {
		case m, ok := <-messages:
			if !ok {
				if err := p.send(ctx, false); err != nil {
					return err
				}
				return s.classify(ctx, <-ended)
			}
			switch {
			case m.EventAppeared != nil:
				if err := p.add(m.EventAppeared.OriginalEvent()); err != nil {
					return err
				}
			case m.CheckPointReached != nil:
				p.moveTo(at(*m.CheckPointReached))
			case m.FellBehind != nil:
				live = false
			case m.CaughtUp != nil:
				live, p.due = true, true
			}
		case <-wait:
			p.due = true
		case <-c.replaced: // its node may hang
			if err := p.send(ctx, false); err != nil {
				return err
			}
			return errReplaced
		case <-ctx.Done():
			return ctx.Err()
		}
		switch {
		case p.due || p.full() || live && len(messages) == 0:
			if err := p.send(ctx, live && len(messages) == 0); err != nil {
				return err
			}
			wait = nil
		case wait == nil:
			wait = time.After(s.pageWait)
		}
	}
}

var errReplaced = errors.New("the connection was replaced")

// hear sends the messages of one subscription until it is dropped or ctx ends.
func (s *Store) hear(
	ctx context.Context, client *esdb.Client, after events.Position, messages chan<- *esdb.SubscriptionEvent,
) error {
	options := esdb.SubscribeToAllOptions{
		From:               esdb.Start{}, // without it, the client begins at the end
		MaxSearchWindow:    window,
		CheckpointInterval: interval,
		Filter:             &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: s.prefixes},
	}
	if after != (events.Position{}) {
		options.From = esdb.Position{Commit: after.Commit, Prepare: after.Prepare}
	}
	subscription, err := client.SubscribeToAll(ctx, options)
	if err != nil {
		return err
	}
	defer func() { _ = subscription.Close() }()
	for {
		m := subscription.Recv()
		if m.SubscriptionDropped != nil {
			return m.SubscriptionDropped.Error
		}
		select {
		case messages <- m:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pager builds pages from messages.
type pager struct {
	last  *events.Position // the end of the pages sent so far
	pages chan<- delivery
	end   *end

	page  events.Page
	bytes int
	due   bool
}

func (p *pager) reset() { p.page, p.bytes, p.due = events.Page{Next: *p.last}, 0, false }

func (p *pager) full() bool { return len(p.page.Events) >= pageSize || p.bytes >= pageBytes }

func (p *pager) add(e *esdb.RecordedEvent) error {
	position := at(e.Position)
	if position.Compare(p.page.Next) <= 0 {
		return fmt.Errorf("the server sent position %v after %v", position, p.page.Next)
	}
	p.page.Events = append(p.page.Events, fromRecorded(e))
	p.page.Next = position
	p.bytes += len(e.Data) + len(e.UserMetadata)
	return nil
}

// moveTo handles a checkpoint: the subscriber has all events up to it.
func (p *pager) moveTo(checkpoint events.Position) {
	if checkpoint.Compare(p.page.Next) > 0 {
		p.page.Next = checkpoint
	}
}

// send delivers the page if it has events or a checkpoint, or if it is due.
func (p *pager) send(ctx context.Context, live bool) error {
	if p.page.Next == *p.last && !p.due {
		return nil
	}
	p.page.Live = live
	select {
	case p.pages <- delivery{page: p.page}:
	case <-ctx.Done():
		return ctx.Err()
	}
	newest := *p.last
	if n := len(p.page.Events); n > 0 {
		newest = p.page.Events[n-1].Position
	}
	p.end.read(*p.last, newest, p.page.Next)
	*p.last = p.page.Next
	p.reset()
	return nil
}
