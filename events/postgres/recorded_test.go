package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"flagledger/events"
)

// During concurrent appends, copies and a clock that is set back, a new append is recorded after all that are earlier in
// the log, and a copied event keeps its time.
func TestEachAppendHasALaterTime(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	conn := connect(t, s.url)
	copied := map[uuid.UUID]time.Time{}
	start := time.Now().UTC().Truncate(time.Microsecond)
	draw := func(t *rapid.T) (batch []events.Event) {
		for range rapid.IntRange(1, 3).Draw(t, "events") {
			e := deleted()
			if rapid.Bool().Draw(t, "is copied") {
				at := start.Add(time.Duration(rapid.IntRange(-1e6, 1e6).Draw(t, "recorded at")) * time.Millisecond)
				e.Fact = events.Stored{Name: "project.deleted", Version: 1, Data: []byte("{}"), At: at, AcceptUntil: at}
				copied[e.ID] = at
			}
			batch = append(batch, e)
		}
		return batch
	}
	appended := 0
	rapid.Check(t, func(t *rapid.T) {
		if rapid.IntRange(0, 4).Draw(t, "step") == 0 {
			if _, err := conn.Exec(
				ctx, "update events.head set recorded = greatest(recorded, clock_timestamp()) + interval '1 minute'",
			); err != nil {
				t.Fatal(err)
			}
		}
		batches := make([][]events.Event, rapid.IntRange(1, 8).Draw(t, "appenders"))
		errs := make([]error, len(batches))
		for i := range batches {
			batches[i] = draw(t)
			appended += len(batches[i])
		}
		var appending sync.WaitGroup
		for i, batch := range batches {
			appending.Go(func() { _, errs[i] = s.Append(ctx, "project-"+uuid.NewString(), 0, batch) })
		}
		appending.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	})
	var latest time.Time
	n, stream := 0, ""
	for page, err := range s.Subscribe(ctx, events.Position{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Events {
			n++
			if at, isCopy := copied[e.ID]; isCopy && !e.At.Equal(at) {
				t.Errorf("the copy at %v is recorded at %v, want %v", e.Position, e.At, at)
			} else if !isCopy && (e.At.Before(latest) || e.At.Equal(latest) && e.Stream != stream) {
				t.Errorf("the event at %v is recorded at %v, after one at %v", e.Position, e.At, latest)
			}
			stream = e.Stream
			if e.At.After(latest) {
				latest = e.At
			}
		}
		if page.Live {
			break
		}
	}
	if n != appended || len(copied) == 0 {
		t.Errorf("there are %d events, %d of them copies; want %d", n, len(copied), appended)
	}
}

// A caller who wants the first events of a stream does not wait for the rest.
func TestAStreamIsReadInPieces(t *testing.T) {
	t.Parallel()
	s := open(t)
	const n = 700 // several pieces, even of the largest size
	list := make([]events.Event, n)
	for i := range list {
		list[i] = events.Event{
			ID:   uuid.New(),
			Fact: events.ProjectUpdated{Name: &events.Change[string]{To: fmt.Sprint(i + 1)}},
		}
	}
	if _, err := s.Append(t.Context(), "project-1", 0, list); err != nil {
		t.Fatal(err)
	}
	for _, from := range []events.Revision{0, 1, 2, 127, 128, 129, n - 500, n - 128, n - 12, n - 4, n - 3, n, n + 1} {
		next := max(from, 1)
		for e, err := range s.Read(t.Context(), "project-1", from) {
			if err != nil || e.Revision != next || e.Fact.(events.ProjectUpdated).Name.To != fmt.Sprint(next) {
				t.Fatalf("from %d on: revision %d comes, %v; want %d", from, e.Revision, err, next)
			}
			next++
		}
		if next != n+1 && from <= n {
			t.Errorf("from %d on, it ends before revision %d", from, next)
		}
	}
	got := 0
	for _, err := range s.Read(t.Context(), "project-1", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if got++; got == 1 {
			s.exec(t, "alter table events.event disable trigger never_changed; delete from events.event")
		}
	}
	if got != 4 {
		t.Errorf("%d events were read at once, want 4", got)
	}
}
