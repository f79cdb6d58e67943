// Package eventstest is the conformance suite of events.Store.
package eventstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"flagledger/events"
)

// Engine gives the suite access to an engine.
type Engine struct {
	// Open returns an empty store that is closed after the test.
	Open func(t *testing.T) events.Store
	// Disrupt breaks all connections between a store and its server, even during a call. It is nil if the engine has no
	// connections.
	Disrupt func(t *testing.T, s events.Store)
	// Begin appends an event to a new stream in a transaction that stays open until commit is called. It is nil if the
	// engine has no slow commits.
	Begin func(t *testing.T, s events.Store, stream string, e events.Event) (commit func())
}

// Run runs the suite.
func Run(t *testing.T, engine Engine) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Engine)
	}{
		{"what is appended is read", testRoundTrip},
		{"an event is found by its id", testFind},
		{"JSON values keep their bytes", testExactJSON},
		{"events are recorded at the time of the append", testRecorded},
		{"copies keep the time at which they were recorded", testCopies},
		{"copies from the future are refused", testCopiesFromTheFuture},
		{"a watermark is between what was recorded and what will be", testWatermark},
		{"an append expects a revision", testOptimisticConcurrency},
		{"one of many appends at one revision wins", testRace},
		{"several events are appended all or none", testAtomic},
		{"a repeated append is applied once", testIdempotent},
		{"an event over the limit is refused", testLarge},
		{"a slow commit is not passed over", testSlowCommit},
		{"a subscription begins after any position", testResume},
		{"catching up turns live without gap or repeat", testHandOver},
		{"many writers, one subscriber, nothing lost", testManyWriters},
		{"broken connections lose and repeat nothing", testDisruption},
		{"a position from another log is refused", testForeignPosition},
		{"a log is told apart from others", testLog},
		{"a checkpoint is held by the log that has its last event", testHolds},
		{"cancellation ends calls", testCancellation},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, engine)
		})
	}
}

func event(fact events.Fact) events.Event {
	return events.Event{
		ID: uuid.Must(uuid.NewV7()),
		Metadata: events.Metadata{
			Time:      time.Date(2026, 3, 14, 15, 9, 26, 535_000_000, time.UTC),
			Actor:     events.Actor{Kind: events.UserActor, ID: "u1"},
			RequestID: "r1",
			Reason:    "why <not> & \"so\"",
		},
		Fact: fact,
	}
}

func renamed(to string) events.Event {
	return event(events.ProjectUpdated{Name: &events.Change[string]{To: to}})
}

func testRoundTrip(t *testing.T, engine Engine) {
	s, ctx := engine.Open(t), t.Context()
	if got := collect(t, s.Read(ctx, "project-none", 0)); len(got) > 0 {
		t.Fatalf("a missing stream has events: %v", got)
	}
	a, b, c := renamed("a"), renamed("b"), event(events.ProjectDeleted{})
	first := mustAppend(t, s, "project-1", 0, a)
	last := mustAppend(t, s, "project-1", 1, b, c)
	if first.Compare(last) >= 0 {
		t.Errorf("position %v is not before %v", first, last)
	}
	got := collect(t, s.Read(ctx, "project-1", 0))
	if diff := cmp.Diff([]events.Event{a, b, c}, justEvents(got)); diff != "" {
		t.Errorf("read differs (-appended +read):\n%s", diff)
	}
	for i, r := range got {
		if r.Revision != events.Revision(i+1) || r.Stream != "project-1" || r.Name != r.Fact.StoredName() {
			t.Errorf("event %d is recorded as %v %s@%d", i, r.Name, r.Stream, r.Revision)
		}
	}
	if got[0].Position != first || got[2].Position != last {
		t.Errorf("positions %v and %v, want %v and %v as at the appends", got[0].Position, got[2].Position, first, last)
	}
	if tail := collect(t, s.Read(ctx, "project-1", 3)); len(tail) != 1 || tail[0].ID != c.ID {
		t.Errorf("read from revision 3 gave %d events", len(tail))
	}
	if head, err := s.Head(ctx); err != nil || head != last {
		t.Errorf("head is %v, %v, want %v", head, err, last)
	}
}

func testFind(t *testing.T, engine Engine) {
	s := engine.Open(t)
	a, b, c := renamed("a"), renamed("b"), renamed("c")
	mustAppend(t, s, "project-1", 0, a, b)
	mustAppend(t, s, "project-2", 0, c)
	for _, test := range []struct {
		stream string
		id     uuid.UUID
		want   events.Revision
	}{{"project-1", a.ID, 1}, {"project-1", b.ID, 2}, {"project-1", c.ID, 0}, {"project-2", c.ID, 1},
		{"project-none", a.ID, 0}} {
		if got, err := s.Find(t.Context(), test.stream, test.id); got != test.want || err != nil {
			t.Errorf("Find in %s returned %d, %v; want %d", test.stream, got, err, test.want)
		}
	}
}

func testExactJSON(t *testing.T, engine Engine) {
	s := engine.Open(t)
	for i, value := range []string{
		`9007199254740993`, `1.0`, `-0`, `1e2`, `0.1000`, `"<&>\u2028\u00e9é\/"`, `{"b":1,"a":[1.50,{"z":null}]}`, `""`, `"😀"`, `"\ud83d\ude00"`,
	} {
		stream := fmt.Sprintf("flag-t.f%d", i)
		mustAppend(t, s, stream, 0,
			event(events.FlagCreated{Key: "f", Type: events.JSONFlag, DefaultValue: json.RawMessage(value)}))
		got := collect(t, s.Read(t.Context(), stream, 0))[0].Fact.(events.FlagCreated)
		if string(got.DefaultValue) != value {
			t.Errorf("%s came back as %s", value, got.DefaultValue)
		}
	}
}

func testOptimisticConcurrency(t *testing.T, engine Engine) {
	s := engine.Open(t)
	refused := func(expected events.Revision) {
		t.Helper()
		if _, err := s.Append(t.Context(), "project-1", expected, []events.Event{renamed("x")}); !errors.Is(err,
			events.ErrConflict) {
			t.Errorf("append at %d: %v, want ErrConflict", expected, err)
		}
	}
	refused(1)
	mustAppend(t, s, "project-1", 0, renamed("a"))
	refused(0)
	refused(2)
	mustAppend(t, s, "project-1", 1, renamed("b"))
	refused(1)
	if got := collect(t, s.Read(t.Context(), "project-1", 0)); len(got) != 2 {
		t.Errorf("the stream has %d events, want 2", len(got))
	}
}

func testRace(t *testing.T, engine Engine) {
	s := engine.Open(t)
	for round := range events.Revision(5) {
		var won atomic.Int32
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				_, err := s.Append(t.Context(), "project-1", round, []events.Event{renamed("x")})
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, events.ErrConflict):
					t.Errorf("append: %v", err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d of 16 appends at revision %d succeeded", won.Load(), round)
		}
	}
}

func testAtomic(t *testing.T, engine Engine) {
	s := engine.Open(t)
	mustAppend(t, s, "project-1", 0, renamed("a"))
	if _, err := s.Append(
		t.Context(), "project-1", 0, []events.Event{renamed("b"), renamed("c"), renamed("d")},
	); !errors.Is(err, events.ErrConflict) {
		t.Fatalf("append: %v, want ErrConflict", err)
	}
	tooLarge := renamed(strings.Repeat("x", events.MaxEventBytes))
	if _, err := s.Append(t.Context(), "project-1", 1, []events.Event{renamed("b"), tooLarge}); err == nil {
		t.Fatal("an append with an event over the limit succeeded")
	}
	if got := collect(t, s.Read(t.Context(), "project-1", 0)); len(got) != 1 {
		t.Errorf("the stream has %d events after failed appends, want 1", len(got))
	}
}

func testIdempotent(t *testing.T, engine Engine) {
	s := engine.Open(t)
	a, b, c := renamed("a"), renamed("b"), renamed("c")
	mustAppend(t, s, "project-1", 0, a)
	first := mustAppend(t, s, "project-1", 1, b, c)
	repeated := mustAppend(t, s, "project-1", 1, b, c)
	if first != repeated {
		t.Errorf("the repeated append is at %v, the first was at %v", repeated, first)
	}
	mustAppend(t, s, "project-1", 3, renamed("d"))
	if late := mustAppend(t, s, "project-1", 1, b, c); late != first {
		t.Errorf("repeated after another append it is at %v, the first was at %v", late, first)
	}
	for name, same := range map[string][]events.Event{
		"in another order":    {c, b},
		"with one of its own": {b, renamed("x")},
		"with more after it":  {b, c, renamed("x")},
	} {
		if _, err := s.Append(t.Context(), "project-1", 1, same); !errors.Is(err, events.ErrConflict) {
			t.Errorf("the same ids %s: %v, want ErrConflict", name, err)
		}
	}
	if got := collect(t, s.Read(t.Context(), "project-1", 0)); len(got) != 4 {
		t.Errorf("the stream has %d events, want 4", len(got))
	}
}

func testLarge(t *testing.T, engine Engine) {
	s := engine.Open(t)
	if _, err := s.Append(
		t.Context(), "project-1", 0, []events.Event{renamed(strings.Repeat("x", events.MaxEventBytes))},
	); !errors.Is(err, events.ErrTooLarge) {
		t.Errorf("append: %v, want ErrTooLarge", err)
	}
	mustAppend(t, s, "project-1", 0, renamed(strings.Repeat("x", events.MaxEventBytes-1000)))
	for r := range subscribed(t, s, events.Position{}) {
		if len(r.Fact.(events.ProjectUpdated).Name.To) != events.MaxEventBytes-1000 {
			t.Error("a large event came back changed")
		}
		break
	}
}

func testLog(t *testing.T, engine Engine) {
	s, other := engine.Open(t), engine.Open(t)
	identify := func(s events.Store) events.Log {
		t.Helper()
		log, err := s.Log(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return log
	}
	if log := identify(s); log.Engine != s.Engine() || log.ID != "" {
		t.Errorf("a log without events has the identity %+v", log)
	}
	var last events.Position
	for i := range 3 {
		last = mustAppend(t, s, fmt.Sprintf("project-%d", i), 0, renamed("a"))
		mustAppend(t, other, fmt.Sprintf("project-%d", i), 0, renamed("a"))
	}
	all := subscribed(t, s, events.Position{})
	var first events.Recorded
	for e := range all {
		first = e
		break
	}
	log := identify(s)
	if log.ID != events.LogID(first) || log.End.Compare(last) < 0 {
		t.Errorf("the log from %v to %v has the identity %+v", events.LogID(first), last, log)
	}
	mustAppend(t, s, "project-0", 1, renamed("b"))
	if later := identify(s); later.ID != log.ID || later.End.Compare(log.End) <= 0 {
		t.Errorf("the log's identity changed from %+v to %+v", log, later)
	}
	if log := identify(other); log.ID == events.LogID(first) {
		t.Errorf("a different log has the same identity %+v", log)
	}
}

func testHolds(t *testing.T, engine Engine) {
	s := engine.Open(t)
	mustAppend(t, s, "project-1", 0, renamed("a"))
	position := mustAppend(t, s, "project-1", 1, renamed("b"))
	mustAppend(t, s, "project-1", 2, renamed("c"))
	log, err := s.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list := collect(t, s.Read(t.Context(), "project-1", 1))
	before := events.LogPosition{Engine: log.Engine, LogID: log.ID}
	for what, test := range map[string]struct {
		last events.EventRef
		want bool
	}{
		"an event that it holds": {events.RefTo(list[1]), true},
		"an event at the place of another": {events.EventRef{Stream: "project-1", Revision: 2,
			ID: list[2].ID.String()}, false},
		"an event of a longer stream": {events.EventRef{Stream: "project-1", Revision: 4,
			ID: list[1].ID.String()}, false},
		"an event of a stream that is not there": {events.EventRef{Stream: "project-2", Revision: 1,
			ID: list[1].ID.String()}, false},
	} {
		c := before.After(list[:2], position)
		c.Last = test.last
		if held, err := log.Holds(t.Context(), s, c); held != test.want || err != nil {
			t.Errorf("a checkpoint after %s: %v, %v, want %v", what, held, err, test.want)
		}
	}
	if c := before.After(list[:2], position); c.Last != events.RefTo(list[1]) || c.Position != position {
		t.Errorf("the checkpoint after the second event is %+v", c)
	}
}

func mustAppend(
	t *testing.T, s events.Store, stream string, expected events.Revision, facts ...events.Event,
) events.Position {
	t.Helper()
	return mustAppendAll(t, s, stream, expected, facts...).Position
}

func mustAppendAll(
	t *testing.T, s events.Store, stream string, expected events.Revision, facts ...events.Event,
) events.Appended {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	appended, err := s.Append(ctx, stream, expected, facts)
	for errors.Is(err, events.ErrUnavailable) && ctx.Err() == nil { // the machine may be too busy
		appended, err = s.Append(ctx, stream, expected, facts)
	}
	if err != nil {
		t.Errorf("append to %s at %d: %v", stream, expected, err)
	}
	return appended
}

func collect(t *testing.T, all iter.Seq2[events.Recorded, error]) (list []events.Recorded) {
	t.Helper()
	for r, err := range all {
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		if r.Err != nil {
			t.Fatalf("decode: %v", r.Err)
		}
		list = append(list, r)
	}
	return list
}

func justEvents(recorded []events.Recorded) (list []events.Event) {
	for _, r := range recorded {
		list = append(list, r.Event)
	}
	return list
}
