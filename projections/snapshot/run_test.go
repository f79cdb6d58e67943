package snapshot

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"testing"
	"time"

	"flagledger/events"
)

// logHandler checks each log record when it is logged.
type logHandler struct {
	slog.Handler
	handle func(slog.Record)
}

func (h logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h logHandler) Handle(_ context.Context, r slog.Record) error {
	h.handle(r)
	return nil
}

// A stored position promises that all events up to it can be read, so it is stored after its page is applied.
func TestThePositionIsStoredAfterThePageIsApplied(t *testing.T) {
	s := of()
	at := s.Position()
	seen := 0
	log := slog.New(logHandler{handle: func(slog.Record) {
		if seen++; s.Position() != at {
			t.Errorf("the position is %s while the page is applied, want %s", s.Position(), at)
		}
	}})
	next := events.Position{Commit: 7, Prepare: 7}
	s.apply(events.Page{Next: next, Events: []events.Recorded{
		recorded(events.FlagStream("t", "k"), 1, three),
		// the page logs it in its middle
		{Stream: events.FlagStream("t", "x"), Revision: 1, Name: "flag.created", Err: errors.New("cannot be decoded")},
		recorded(events.FlagStream("t", "k"), 2, on),
	}}, log)
	if seen != 1 || s.Position() != next {
		t.Errorf("%d records were logged, the position is %s", seen, s.Position())
	}
}

// outage is a log whose subscriptions fail after each page.
type outage struct {
	events.Store
	pages         []events.Page
	subscriptions []events.Position
	end           func() // called after the last page
}

func (o *outage) Engine() string { return "test" }

func (o *outage) Log(context.Context) (events.Log, error) { return events.Log{}, events.ErrUnavailable }

func (o *outage) Subscribe(_ context.Context, after events.Position) iter.Seq2[events.Page, error] {
	o.subscriptions = append(o.subscriptions, after)
	return func(yield func(events.Page, error) bool) {
		for _, page := range o.pages {
			if page.Next.Compare(after) > 0 {
				_ = yield(page, nil) && yield(events.Page{}, events.ErrUnavailable)
				return
			}
		}
		o.end()
		yield(events.Page{}, events.ErrUnavailable)
	}
}

func TestRunTellsAPositionOnceTheSnapshotHoldsIt(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	position := func(n uint64) events.Position { return events.Position{Commit: n, Prepare: n} }
	store := &outage{end: cancel, pages: []events.Page{
		{Next: position(3), Events: []events.Recorded{
			recorded("tenant-t", 1, events.TenantCreated{ID: "t"}),
			recorded("tenant-t", 2, events.EnvironmentAdded{Environment: production}),
			recorded(events.FlagStream("t", "k"), 1, three),
		}},
		{Next: position(4), Live: true, Events: []events.Recorded{recorded(events.FlagStream("t", "k"), 2, on)}},
	}}
	s := New(Options{})
	var told []events.Position
	s.Run(ctx, store, func(page events.Page) {
		p := page.Next
		told = append(told, p)
		if s.Position() != p {
			t.Errorf("told of %s at %s", p, s.Position())
		}
		tenant, _ := s.Tenant("t")
		if tenant == nil {
			t.Fatalf("told of %s before the tenant was there", p)
		}
		if flag, ok := tenant.Flag("k"); !ok || flag.Version() != events.Revision(len(told)) {
			t.Errorf("told of %s before the flag was there: %t", p, ok)
		}
	}, slog.New(slog.DiscardHandler))
	if len(told) != 2 || told[0] != position(3) || told[1] != position(4) {
		t.Errorf("told of %v", told)
	}
	if want := []events.Position{
		{},
		position(3),
		position(4),
	}; len(store.subscriptions) != 3 || store.subscriptions[1] != want[1] ||
		store.subscriptions[2] != want[2] {
		t.Errorf("subscribed after %v, want %v", store.subscriptions, want)
	}
	select {
	case <-s.Ready():
	default:
		t.Error("not ready after a live page")
	}
}
