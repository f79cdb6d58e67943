package queries_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/queries"
)

// clockStore is a store whose clock is behind by some time, and that tells its watermark slowly if it is to.
type clockStore struct {
	events.Store
	behind time.Duration
	err    error
	slowly chan struct{} // unless nil, an answer is sent for each value

	asked, asking, most atomic.Int32
}

func (s *clockStore) Watermark(ctx context.Context) (time.Time, error) {
	s.asked.Add(1)
	s.most.Store(max(s.most.Load(), s.asking.Add(1)))
	defer s.asking.Add(-1)
	if s.slowly != nil {
		select {
		case <-s.slowly:
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
	return time.Now().Add(-s.behind), s.err
}

func TestATimeIsPastByTheStoresClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		behind time.Duration
		at     time.Duration // from now
		want   error
		asked  int32 // at least
	}{
		{"a time that is long past", 0, -time.Hour, nil, 1},
		{"now, by a clock that is the same", 0, 0, nil, 1},
		{"now, by a clock that is ahead of the store's", 50 * time.Millisecond, 0, nil, 2},
		{"now, by a clock that is far ahead", time.Minute, 0, queries.ErrFuture, 1},
		{"a time that is past by both clocks, one of which is far ahead", time.Minute, -time.Hour, nil, 1},
		{"the future by both clocks", 0, time.Minute, queries.ErrFuture, 1},
		{"a time that is past by the store's clock alone", -time.Minute, 30 * time.Second, nil, 1},
	} {
		store := &clockStore{behind: c.behind}
		at := time.Now().Add(c.at)
		err := queries.NewWatermark(store).WaitUntilPast(t.Context(), at)
		if !errors.Is(err, c.want) || store.asked.Load() < c.asked {
			t.Errorf("%s: %v, after the store was asked %d times; want %v", c.name, err, store.asked.Load(), c.want)
		}
		if passed := time.Now().Add(-c.behind); err == nil && !at.Before(passed) {
			t.Errorf("%s: %v is past, and the store is at %v", c.name, at, passed)
		}
	}
}

func TestAStoreIsNotAskedAboutWhatIsKnownToBePast(t *testing.T) {
	t.Parallel()
	store := &clockStore{}
	w := queries.NewWatermark(store)
	for range 3 {
		if err := w.WaitUntilPast(t.Context(), time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if n := store.asked.Load(); n != 1 {
		t.Errorf("the store was asked %d times", n)
	}
}

func TestAStoreIsAskedOnceAtATime(t *testing.T) {
	t.Parallel()
	store := &clockStore{slowly: make(chan struct{})}
	w := queries.NewWatermark(store)
	var waiting sync.WaitGroup
	for range 20 {
		waiting.Go(func() {
			if err := w.WaitUntilPast(t.Context(), time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	done := make(chan struct{})
	go func() { waiting.Wait(); close(done) }()
	for {
		select {
		case store.slowly <- struct{}{}:
			continue
		case <-done:
		}
		break
	}
	if most := store.most.Load(); most != 1 {
		t.Errorf("it was asked %d times at once", most)
	}
}

func TestAStoreThatTellsNoWatermark(t *testing.T) {
	t.Parallel()
	w := queries.NewWatermark(&clockStore{err: events.ErrUnavailable})
	if err := w.WaitUntilPast(t.Context(), time.Now()); !errors.Is(err, queries.ErrUnavailable) || !errors.Is(err, events.ErrUnavailable) {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w = queries.NewWatermark(&clockStore{slowly: make(chan struct{})})
	if err := w.WaitUntilPast(gone, time.Now()); !errors.Is(err, queries.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
