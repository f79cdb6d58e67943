package writer

import (
	"context"
	"testing"
	"time"

	"flagledger/events"
)

// countingWriter is a writer whose snapshot shows all appended events.
func countingWriter(t *testing.T) *Writer {
	t.Helper()
	store, _ := newMemory()
	return NewWriter(store, func(context.Context, events.Position, []string) bool { return true }, NoQuotas{}, time.Now)
}

// Reservations count before their results are shown.
func TestThoseUnderWayAreCounted(t *testing.T) {
	w := countingWriter(t)
	const shown = 500
	for i := range 401 { // up to 900, and the first that is counted exactly
		n, _, err := w.Reserve(t.Context(), "projects", 1000, func() int { return shown })
		if err != nil || n != shown+i {
			t.Fatalf("the %d. of them counts %d (%v)", i+1, n, err)
		}
	}
	if n, release, err := w.Reserve(t.Context(), "projects of another", 1000, func() int { return 0 }); n != 0 ||
		err != nil {
		t.Errorf("others count %d (%v)", n, err)
	} else {
		release()
	}
}

// At the limit, a result that is shown before its release is not counted twice: the next caller waits for the release.
func TestNothingIsCountedTwiceAtTheLimit(t *testing.T) {
	w := countingWriter(t)
	shown := 8
	count := func() int { return shown }
	_, release, err := w.Reserve(t.Context(), "projects", 10, count)
	if err != nil {
		t.Fatal(err)
	}
	shown = 9
	counted := make(chan int)
	go func() {
		n, last, err := w.Reserve(t.Context(), "projects", 10, count)
		if err != nil {
			t.Error(err)
		} else {
			last()
		}
		counted <- n
	}()
	release()
	if n := <-counted; n != 9 {
		t.Errorf("the last one counts %d", n)
	}
	if len(w.reserved.things) != 0 {
		t.Errorf("%v are remembered", w.reserved.things)
	}
}

// The flags of all free tenants of a creator stay within their limit, even if no change is shown yet.
func TestBytesUnderWayAreCounted(t *testing.T) {
	w := countingWriter(t)
	const limit, growth = 64 << 20, 30_000
	reserved := 0
	for {
		release, err := w.reserveGrowth(t.Context(), "bytes", growth, limit, func() int { return 0 }, "too large")
		if err != nil {
			t.Fatal(err)
		}
		if reserved += growth; len(w.counting.keys) > 0 { // it is counted exactly, and the next waits for it
			release()
			break
		}
	}
	if margin := countMargin * growth; reserved > limit-margin+growth {
		t.Errorf("%d bytes were reserved at once, %d below the limit", reserved, limit-reserved)
	}
}
