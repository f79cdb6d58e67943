package projections_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"

	"flagledger/events"
	"flagledger/projections"
	"flagledger/projections/models"
)

// countingStore counts reads of a log.
type countingStore struct {
	events.Store
	subscriptions, delivered atomic.Int64
}

func (s *countingStore) Subscribe(ctx context.Context, after events.Position) iter.Seq2[events.Page, error] {
	s.subscriptions.Add(1)
	return func(yield func(events.Page, error) bool) {
		for page, err := range s.Store.Subscribe(ctx, after) {
			s.delivered.Add(int64(len(page.Events)))
			if !yield(page, err) {
				return
			}
		}
	}
}

func TestReadModelsThatAreBuiltTogetherReadTheLogOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	newWorkload(1).run(t, w.store, 400)
	w.switchFlag("a", 1800) // more than the projections' feed caches
	head, err := w.store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	once := func(what string, s *countingStore) {
		t.Helper()
		if n := s.delivered.Load(); n != int64(head.Commit) {
			t.Errorf("%s read %d events over %d subscriptions, the log has %d", what, n, s.subscriptions.Load(), head.Commit)
		}
	}
	rebuilding := &countingStore{Store: w.store}
	if err := projections.Rebuild(
		t.Context(), w.url, rebuilding, models.All(), projections.RebuildOptions{}, w.log,
	); err != nil {
		t.Fatal(err)
	}
	once("a rebuild of all", rebuilding)
	before := w.dump()

	w.exec(`drop schema read cascade`)
	starting := &countingStore{Store: w.store}
	w.background(func(ctx context.Context) {
		if err := projections.Run(ctx, w.url, starting, models.All(), w.progress, w.log); err != nil {
			t.Error(err)
		}
	})
	w.settle()
	once("a start without read models", starting)
	w.same("a start", before)
}

func TestAPageOfOthersMovesNoCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.carryOn()
	w.settle()
	n := 0
	w.eventually("a checkpoint stays behind", func() bool { // it advances every few seconds
		n++
		key := fmt.Sprintf("f%d", n)
		position := w.append("flag-t."+key, 0, newFlag(key))
		if !w.progress.Wait(t.Context(), position, ofFlags) {
			return false
		}
		s := w.statuses()
		return s["flags"].Position == position && s["users"].Position.Compare(position) < 0 && s["users"].Lag == 0
	})
}

func TestASlowReadModelHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow, quick := tally(1, "event"), tally(1, "event")
	quick.Name, quick.Tables, quick.Schema = "quick", []string{"quick"}, `create table quick (event text not null)`
	table := &projections.Table{Name: "quick", Columns: []string{"event"}}
	quick.Apply = func(b *projections.Batch, e events.Recorded) error {
		b.Insert(table, fmt.Sprintf("%s@%d", e.Stream, e.Revision))
		return nil
	}
	var held atomic.Bool
	release := make(chan struct{})
	apply := slow.Apply
	slow.Apply = func(b *projections.Batch, e events.Recorded) error {
		if held.Load() {
			<-release
		}
		return apply(b, e)
	}
	list := []projections.Projection{slow, quick}
	progress := projections.NewProgress(list, 0)
	w.background(func(ctx context.Context) {
		if err := projections.Run(ctx, w.url, w.store, list, progress, w.log); err != nil {
			t.Error(err)
		}
	})
	var want []string
	write := func(stream string, facts int) {
		t.Helper()
		var list []events.Fact
		for i := range facts {
			list = append(list, newFlag("f"))
			want = append(want, fmt.Sprintf("%s@%d", stream, i+1))
		}
		w.append(stream, 0, list...)
	}
	holds := func(table string) func() bool {
		return func() bool {
			return column[bool](w, `select to_regclass('read.'||$1) is not null`, table)[0] &&
				slices.Equal(column[string](w, `select event from read.`+table), want)
		}
	}
	write("flag-t.first", 3)
	w.eventually("both are up to date", func() bool { return holds("quick")() && holds("tally")() })

	held.Store(true)
	for i := range 6 {
		write(fmt.Sprintf("flag-t.%d", i), 500) // more than the feed caches, and a page
	}
	w.eventually("one goes on without the other", holds("quick"))
	if n := len(column[string](w, `select event from read.tally`)); n != 3 {
		t.Errorf("the slow one has taken in %d events, want none of the new ones", n-3)
	}
	held.Store(false)
	close(release)
	w.eventually("the slow one has caught up", holds("tally"))
	write("flag-t.last", 1)
	w.eventually("both follow", func() bool { return holds("quick")() && holds("tally")() })
}
