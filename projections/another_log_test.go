package projections_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"flagledger/events"
	"flagledger/events/eventstore"
	"flagledger/events/eventstore/esdbtest"
	"flagledger/projections"
)

// engines opens a log of its own each time.
var engines = map[string]func(t *testing.T) events.Store{
	"postgres": func(t *testing.T) events.Store { return newWorld(t).store },
	"eventstore": func(t *testing.T) events.Store {
		store, err := eventstore.Open(t.Context(), esdbtest.New(t).URL(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		return store
	},
}

// tallied is a read model over any log.
type tallied struct {
	*world
	p projections.Projection
}

func newTallied(t *testing.T) tallied { return tallied{newWorld(t), tally(1, "event")} }

// run updates the read model from a log, and reports its progress.
func (w tallied) run(store events.Store) (progress *projections.Progress, stop func()) {
	list := []projections.Projection{w.p}
	progress = projections.NewProgress(list, 0)
	stopReading := w.readAsSnapshot(store, progress)
	stopProjecting := w.background(func(ctx context.Context) {
		if err := projections.Run(ctx, w.url, store, list, progress, w.log); err != nil {
			w.t.Error(err)
		}
	})
	return progress, func() {
		stopProjecting()
		stopReading()
	}
}

// add appends flags to a log and returns the position of the last one.
func (w tallied) add(store events.Store, keys ...string) (last events.Position) {
	w.t.Helper()
	for _, key := range keys {
		appended, err := store.Append(w.t.Context(), "flag-t."+key, 0, []events.Event{event(newFlag(key))})
		if err != nil {
			w.t.Fatal(err)
		}
		last = appended.Position
	}
	return last
}

// wantRows waits until progress reports a position, and checks the rows.
func (w tallied) wantRows(progress *projections.Progress, position events.Position, keys ...string) {
	w.t.Helper()
	w.eventually("the read model shows the last fact",
		func() bool { return progress.Wait(w.t.Context(), position, ofFlags) })
	var want []string
	for _, key := range keys {
		want = append(want, "flag-t."+key+"@1")
	}
	if rows := column[string](w.world, `select event from read.tally order by n`); !slices.Equal(rows, want) {
		w.t.Fatalf("the rows are %v, want %v", rows, want)
	}
}

// table returns the live table, a new one after each rebuild.
func (w tallied) table() uint32 {
	return column[uint32](w.world, `select 'read.tally'::regclass::oid`)[0]
}

func (w tallied) built(store events.Store) bool {
	w.t.Helper()
	list, err := projections.Statuses(w.t.Context(), w.pool, []projections.Projection{w.p}, store)
	if err != nil {
		w.t.Fatal(err)
	}
	return list[0].Built
}

const saysAnotherLog = "the event store holds a different log than the read model was built from"

// If a node restarts on another log with the same position numbers, the rows of a read model come from different facts.
func TestAReadModelOfAnotherLogIsRebuilt(t *testing.T) {
	t.Parallel()
	for engine, open := range engines {
		for name, held := range map[string][]string{"shorter": {"x"}, "longer": {"v", "w", "x", "y", "z"}, "empty": nil} {
			t.Run(fmt.Sprintf("%s, %s", engine, name), func(t *testing.T) {
				t.Parallel()
				w, store, other := newTallied(t), open(t), open(t)
				progress, stop := w.run(store)
				w.wantRows(progress, w.add(store, "a", "b", "c"), "a", "b", "c")
				stop()
				if !w.built(store) {
					t.Error("the read model is not taken for one of its own log")
				}

				w.add(other, held...)
				if w.built(other) {
					t.Error("the read model is taken for one of the other log")
				}
				progress, stop = w.run(other)
				w.wantRows(progress, w.add(other, "new"), append(held, "new")...)
				stop()
				if !w.logged.has(saysAnotherLog) {
					t.Error("the log output does not tell of it")
				}

				table := w.table()
				progress, _ = w.run(other)
				w.wantRows(progress, w.add(other, "newer"), append(held, "new", "newer")...)
				if w.table() != table {
					t.Error("the read model is rebuilt once more")
				}
			})
		}
	}
}

// A log that was restored from an older copy ends before the checkpoint.
func TestAReadModelThatIsAheadOfItsLogIsRebuilt(t *testing.T) {
	t.Parallel()
	for engine, open := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w, store := newTallied(t), open(t)
			progress, stop := w.run(store)
			w.wantRows(progress, w.add(store, "a", "b"), "a", "b")
			stop()
			w.exec(`insert into read.tally (event) values ('of a fact that the restore took back')`)
			w.exec(`update read.checkpoints set commit = commit + 1000000, prepare = prepare + 1000000`)
			progress, _ = w.run(store)
			w.wantRows(progress, w.add(store, "c"), "a", "b", "c")
			if !w.logged.has(saysAnotherLog) {
				t.Error("the log output does not tell of it")
			}
		})
	}
}

// A restored log starts with the same event, and may have grown past the checkpoint since.
func TestAReadModelOfEventsThatARestoreTookBackIsRebuilt(t *testing.T) {
	t.Parallel()
	for engine, open := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w, store, restored := newTallied(t), open(t), open(t)
			progress, stop := w.run(store)
			w.wantRows(progress, w.add(store, "a", "b"), "a", "b")
			stop()
			for e, err := range store.Read(t.Context(), "flag-t.a", 1) {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := restored.Append(t.Context(), e.Stream, 0, []events.Event{e.Event}); err != nil {
					t.Fatal(err)
				}
			}
			w.add(restored, "x", "y", "z")
			before, _ := store.Log(t.Context())
			if after, err := restored.Log(t.Context()); err != nil || after.ID != before.ID ||
				after.End.Compare(before.End) <= 0 {
				t.Fatalf("the log %+v is restored as %+v, %v", before, after, err)
			}
			if w.built(restored) {
				t.Error("the read model is taken for one of the restored log")
			}
			progress, stop = w.run(restored)
			w.wantRows(progress, w.add(restored, "new"), "a", "x", "y", "z", "new")
			stop()
			if !w.logged.has(saysAnotherLog) || !w.built(restored) {
				t.Error("the log output does not tell of it, or the rebuilt read model is not taken for one of the restored log")
			}
		})
	}
}

// An earlier release wrote checkpoints without the log's id, and tables without a column for it.
func TestACheckpointOfAnEarlierReleaseIsAdopted(t *testing.T) {
	t.Parallel()
	for engine, open := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w, store := newTallied(t), open(t)
			progress, stop := w.run(store)
			w.wantRows(progress, w.add(store, "a", "b"), "a", "b")
			stop()
			table := w.table()
			w.exec(
				`alter table read.checkpoints drop column log, drop column last_event; alter table read_next.checkpoints drop column log, drop column last_event`,
			)
			if !w.built(store) {
				t.Error("the read model does not count as built")
			}

			progress, stop = w.run(store)
			w.wantRows(progress, w.add(store, "c"), "a", "b", "c")
			stop()
			log, err := store.Log(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if ids := column[string](w.world, `select log from read.checkpoints`); !slices.Equal(ids, []string{log.ID}) {
				t.Errorf("the checkpoint is of the log %q, want %q", ids, log.ID)
			}
			if w.table() != table || w.logged.has(saysAnotherLog) {
				t.Error("the read model is rebuilt")
			}
			w.rebuild(w.p)
		})
	}
}

// The first fact identifies the log of a read model that started on an empty log.
func TestAReadModelThatBeganOnAnEmptyLogKnowsIt(t *testing.T) {
	t.Parallel()
	for engine, open := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w, store := newTallied(t), open(t)
			progress, _ := w.run(store)
			w.eventually("the read model is built", func() bool { return w.built(store) })
			w.wantRows(progress, w.add(store, "a"), "a")
			log, err := store.Log(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if ids := column[string](w.world, `select log from read.checkpoints`); !slices.Equal(ids, []string{log.ID}) {
				t.Errorf("the checkpoint is of the log %q, want %q", ids, log.ID)
			}
		})
	}
}
