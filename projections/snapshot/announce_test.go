package snapshot

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"flagledger/events"
)

func TestListenersWaitForListsForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		shown := make(chan struct{})
		s := New(Options{Shown: func(ctx context.Context, _ events.Position) {
			select {
			case <-shown:
			case <-ctx.Done():
			}
		}})
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.announcer.run(ctx, s.changes.publish)
		}()
		log := slog.New(slog.DiscardHandler)
		created := events.FlagCreated{
			TenantID:     "t",
			Key:          "k",
			ID:           "f",
			Type:         events.BooleanFlag,
			DefaultValue: []byte("false"),
			Salt:         "s",
		}
		s.apply(events.Page{Live: true, Events: []events.Recorded{recorded("tenant-t", 1, events.TenantCreated{ID: "t"})}},
			log)
		tenant, _ := s.Tenant("t")
		l := s.Listen(tenant, production.ID, 1)
		defer l.Close()

		began := time.Now()
		s.apply(
			events.Page{
				Next:   events.Position{Commit: 2, Prepare: 2},
				Live:   true,
				Events: []events.Recorded{at(2, recorded(events.FlagStream("t", "k"), 1, created))},
			},
			log,
		)
		if _, ok := tenant.Flag("k"); !ok {
			t.Error("evaluation waits for lists")
		}
		s.Await(t.Context(), tenant, events.Position{Commit: 2, Prepare: 2})
		synctest.Wait()
		if update := l.Next(); len(update.Changes) > 0 || time.Since(began) > 0 {
			t.Errorf("after %v, %d changes are told before lists show them", time.Since(began), len(update.Changes))
		}
		<-l.Next().More
		if update := l.Next(); len(update.Changes) != 1 || time.Since(began) != announceDelay {
			t.Errorf("%d changes were told after %v, want 1 after %v", len(update.Changes), time.Since(began), announceDelay)
		}

		close(shown)
		s.apply(
			events.Page{
				Next:   events.Position{Commit: 3, Prepare: 3},
				Live:   true,
				Events: []events.Recorded{at(3, recorded(events.FlagStream("t", "k"), 2, events.FlagDeleted{}))},
			},
			log,
		)
		began = time.Now()
		synctest.Wait()
		if update := l.Next(); len(update.Changes) != 1 || time.Since(began) > 0 {
			t.Errorf("%d changes were told after %v, want 1 at once", len(update.Changes), time.Since(began))
		}
		cancel()
		<-done
	})
}

// A client from a node with faster lists misses nothing and gets nothing twice.
func TestAListenerResumesFromWhatIsNotToldYet(t *testing.T) {
	s := New(Options{Shown: func(context.Context, events.Position) {}})
	log := slog.New(slog.DiscardHandler)
	page := func(position uint64, stream string, revision events.Revision, fact events.Fact) {
		s.apply(
			events.Page{
				Next:   events.Position{Commit: position, Prepare: position},
				Live:   true,
				Events: []events.Recorded{at(position, recorded(stream, revision, fact))},
			},
			log,
		)
	}
	tell := func() { // what is delayed
		for _, h := range s.announcer.held {
			s.changes.publish(h.announcement)
		}
		s.announcer.held = nil
	}
	flag := events.FlagStream("t", "k")
	page(1, "tenant-t", 1, events.TenantCreated{ID: "t"})
	page(
		2,
		flag,
		1,
		events.FlagCreated{
			TenantID:     "t",
			Key:          "k",
			ID:           "f",
			Type:         events.BooleanFlag,
			DefaultValue: []byte("false"),
			Salt:         "s",
		},
	)
	tenant, _ := s.Tenant("t")
	l := s.Listen(tenant, production.ID, 2)
	defer l.Close()
	l.Resume(events.Position{Commit: 2, Prepare: 2})
	hears := func(when string, changes int, gap bool, position uint64) {
		t.Helper()
		if update := l.Next(); len(update.Changes) != changes || update.Gap != gap || update.Position.Commit != position {
			t.Errorf("%s: %d changes, a gap is %v, up to %v", when, len(update.Changes), update.Gap, update.Position)
		}
	}
	hears("before the change is told", 0, false, 2)
	tell()
	hears("when it is told", 0, false, 2)
	page(3, flag, 2, events.FlagDeleted{})
	tell()
	hears("after the next one", 1, false, 3)
	l.Resume(events.Position{Commit: 4, Prepare: 4})
	hears("from what the snapshot does not hold", 0, true, 3)
}

// at gives an event its position.
func at(position uint64, e events.Recorded) events.Recorded {
	e.Position = events.Position{Commit: position, Prepare: position}
	return e
}
