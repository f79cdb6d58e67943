package commands

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
	return NewWriter(store, func(context.Context, events.Position, []string) bool { return true }, time.Now)
}

// Reservations count before their results are shown.
func TestThoseUnderWayAreCounted(t *testing.T) {
	w := countingWriter(t)
	const shown = 500
	for i := range 401 { // up to 900, and the first that is counted exactly
		n, _, err := w.Admit(t.Context(), "projects", 1000, func() int { return shown })
		if err != nil || n != shown+i {
			t.Fatalf("the %d. of them counts %d (%v)", i+1, n, err)
		}
	}
	if n, release, err := w.Admit(t.Context(), "projects of another", 1000, func() int { return 0 }); n != 0 ||
		err != nil {
		t.Errorf("others count %d (%v)", n, err)
	} else {
		release()
	}
}

// At the limit, a result that is shown before its release is not counted twice: the next caller waits for the release.
func TestNothingIsCountedTwiceAtTheBound(t *testing.T) {
	w := countingWriter(t)
	shown := 8
	count := func() int { return shown }
	_, release, err := w.Admit(t.Context(), "projects", 10, count)
	if err != nil {
		t.Fatal(err)
	}
	shown = 9
	counted := make(chan int)
	go func() {
		n, last, err := w.Admit(t.Context(), "projects", 10, count)
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
	if len(w.admitted.things) != 0 {
		t.Errorf("%v are remembered", w.admitted.things)
	}
}

// The flags of all free tenants of a creator stay within their limit, even if no change is shown yet.
func TestBytesUnderWayAreCounted(t *testing.T) {
	w := countingWriter(t)
	const bound, growth = 64 << 20, 30_000
	tooLarge := func(size int) error { return refuse(Conflict, "%d", size) }
	admitted := 0
	for {
		release, err := w.reserve(t.Context(), "bytes", bound, growth, func() int { return 0 }, tooLarge)
		if err != nil {
			t.Fatal(err)
		}
		if admitted += growth; len(w.counting.keys) > 0 { // it is counted exactly, and the next waits for it
			release()
			break
		}
	}
	if margin := countMargin * growth; admitted > bound-margin+growth {
		t.Errorf("%d bytes were admitted at once, %d below the bound", admitted, bound-admitted)
	}
}
