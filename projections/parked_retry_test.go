package projections_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"flagledger/events"
	"flagledger/projections"
)

// A retry makes a running projector follow a parked stream again, with all missed events. A stream that still fails
// stays parked.
func TestAParkedStreamIsFollowedAgainAfterARetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var repaired atomic.Uint64 // the revision up to which all events can be applied
	repaired.Store(1)
	p := tally(1, "event")
	apply := p.Apply
	p.Apply = func(b *projections.Batch, e events.Recorded) error {
		if strings.HasPrefix(e.Stream, "flag-t.bad") && uint64(e.Revision) > repaired.Load() {
			panic("out of order")
		}
		return apply(b, e)
	}
	var reached atomic.Uint64
	w.carryOnOne(p, func(position events.Position) { reached.Store(position.Commit) })
	var last events.Position
	write := func(stream string, at events.Revision) { last = w.append(stream, at, newFlag("f")) }
	settle := func() {
		t.Helper()
		w.eventually("all is taken in", func() bool { return reached.Load() == last.Commit })
	}
	rows := func(stream string) (list []string) {
		return column[string](w, `select event from read.tally where event like $1 || '@%' order by n`, stream)
	}
	retry := func(stream string) error { return projections.Retry(t.Context(), w.url, w.store, p, stream) }
	want := func(stream string, revisions int) {
		t.Helper()
		var want []string
		for r := range revisions {
			want = append(want, fmt.Sprintf("%s@%d", stream, r+1))
		}
		if got := rows(stream); !slices.Equal(got, want) {
			t.Errorf("of %s are applied %v, want %v", stream, got, want)
		}
	}
	for at := range events.Revision(3) {
		write("flag-t.bad1", at)
		write("flag-t.bad2", at)
		write("flag-t.good", at)
	}
	settle()
	for _, stream := range []string{"flag-t.bad1", "flag-t.bad2"} {
		want(stream, 1)
	}
	if err := retry("flag-t.good"); !errors.Is(err, projections.ErrNotParked) {
		t.Errorf("retrying a stream that is followed ends with %v", err)
	}
	repaired.Store(2)
	if err := retry("flag-t.bad1"); err == nil || !strings.Contains(err.Error(), "version 3") ||
		!strings.Contains(err.Error(), "out of order") {
		t.Errorf("retrying what cannot be applied ends with %v", err)
	}
	write("flag-t.bad1", 3)
	settle()
	want("flag-t.bad1", 1)

	ordered := p
	ordered.Ordered = true
	if err := projections.Retry(t.Context(), w.url, w.store, ordered, "flag-t.bad1"); !errors.Is(err, projections.ErrOrdered) {
		t.Errorf("retrying where the order counts ends with %v", err)
	}
	repaired.Store(100)
	if err := retry("flag-t.bad1"); err != nil {
		t.Fatal(err)
	}
	want("flag-t.bad1", 4)
	for at := range events.Revision(3) { // the projector is notified
		write("flag-t.bad1", 4+at)
		write("flag-t.bad2", 3+at)
	}
	settle()
	want("flag-t.bad1", 7)
	want("flag-t.bad2", 1)
	want("flag-t.good", 3)
	if err := retry("flag-t.bad2"); err != nil {
		t.Fatal(err)
	}
	want("flag-t.bad2", 6)
	if n := column[int](w, `select count(*) from keep.parked`)[0]; n > 0 {
		t.Errorf("%d streams are still parked", n)
	}
}
