package queries_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/queries"
)

// maxLead is how far a node's clock may be ahead of a store's.
const maxLead = 500 * time.Millisecond

// clockStore is a store whose clock is behind this node's, or ahead if negative. Its first response is older.
type clockStore struct {
	events.Store
	behind, older time.Duration
	err           error
	asked         int
}

func (s *clockStore) Watermark(context.Context, time.Time) (time.Time, error) {
	passed := time.Now().Add(-s.behind)
	if s.asked++; s.asked == 1 {
		passed = passed.Add(-s.older)
	}
	return passed, s.err
}

func TestATimeIsPastByTheStoresClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		behind, older time.Duration
		at            time.Duration // from now
		want          error
	}{
		{"a time that is long past", 0, 0, -time.Hour, nil},
		{"now, by a clock that is the same", 0, 0, 0, nil},
		{"now, by a clock that is ahead of the store's", maxLead / 2, 0, 0, nil},
		{"now, by a clock that is far ahead", 2 * maxLead, 0, 0, queries.ErrFuture},
		{"a time that is past by both clocks, one of which is far ahead", time.Minute, 0, -time.Hour, nil},
		{"the future by both clocks", 0, 0, time.Minute, queries.ErrFuture},
		{"the future by both clocks, though soon", 0, 0, maxLead / 2, queries.ErrFuture},
		{"a time that is past by the store's clock alone", -time.Minute, 0, 30 * time.Second, nil},
		{"likewise, where an older answer is shared", -time.Minute, time.Hour, 30 * time.Second, nil},
	} {
		store := &clockStore{behind: c.behind, older: c.older}
		at := time.Now().Add(c.at)
		err := queries.WaitUntilPast(t.Context(), store, at)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if passed := time.Now().Add(-c.behind); err == nil && !at.Before(passed) {
			t.Errorf("%s: %v is past, and the store is at %v", c.name, at, passed)
		}
	}
}

func TestAStoreThatTellsNoWatermark(t *testing.T) {
	t.Parallel()
	if err := queries.WaitUntilPast(t.Context(), &clockStore{err: events.ErrUnavailable}, time.Now()); !errors.Is(err, events.ErrUnavailable) {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := queries.WaitUntilPast(gone, &clockStore{behind: maxLead / 2}, time.Now()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
