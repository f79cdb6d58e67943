package projections_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"flagledger/events"
	"flagledger/projections"
	"flagledger/projections/models"
)

// flagsModel is the read model of flags.
func flagsModel(t *testing.T) []projections.Projection {
	t.Helper()
	list, err := models.ByName([]string{"flags"})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// different ends the test unless a rebuild is refused for these differences.
func (w *world) different(options projections.RebuildOptions, want ...projections.Difference) {
	w.t.Helper()
	err := projections.Rebuild(w.t.Context(), w.url, w.store, flagsModel(w.t), options, w.log)
	e, ok := errors.AsType[*projections.DifferentError](err)
	if !ok {
		w.t.Fatalf("the rebuild ended with %v", err)
	}
	if diff := cmp.Diff(want, e.Tables); diff != "" {
		w.t.Fatalf("the differences are others (-want +got):\n%s", diff)
	}
}

// leftTables lists the tables that rebuilds have left behind.
func (w *world) leftTables() []string {
	return column[string](
		w,
		`select schemaname || '.' || tablename from pg_tables where schemaname in ('read_next', 'read_old') and tablename <> 'checkpoints'`,
	)
}

// Tables that differ from the facts are not replaced without force.
func TestARebuildTellsWhatDiffers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, key := range []string{"a", "b", "c"} {
		w.append("flag-t."+key, 0, newFlag(key))
	}
	w.carryOn()
	w.settle()
	right := w.dump()
	verify, keep := projections.RebuildOptions{CompareOnly: true}, projections.RebuildOptions{}
	if err := projections.Rebuild(t.Context(), w.url, w.store, models.All(), verify, w.log); err != nil {
		t.Fatal(err)
	}
	w.exec(`delete from read.flags where key in ('a', 'b')`)
	w.exec(`update read.flags set name = 'x' where key = 'c'`)
	w.exec(`insert into read.flag_environments values ('t', 'a', 'e')`)
	wrong := w.dump()
	want := []projections.Difference{{Table: "flags", Missing: 3, Surplus: 1}, {Table: "flag_environments", Surplus: 1}}

	w.different(verify, want...)
	w.same("verifying", wrong)
	if left := w.leftTables(); len(left) > 0 {
		t.Errorf("verifying left tables behind: %v", left)
	}
	for range 2 { // the second time it continues with its tables
		w.different(keep, want...)
		w.same("a rebuild that was refused", wrong)
	}
	w.append("flag-t.b", 1, events.FlagDeleted{}) // the live projector goes on, and so do the new tables
	w.append("flag-t.b", 2, newFlag("b"))
	w.settle()
	w.different(keep, projections.Difference{Table: "flags", Missing: 2, Surplus: 1}, want[1])
	w.repair(flagsModel(t)[0])
	if left := w.leftTables(); len(left) > 0 {
		t.Errorf("rebuilds left tables behind: %v", left)
	}
	w.sameFromScratch()
	if len(w.dump()["flags"]) != len(right["flags"]) {
		t.Error("flags are missing")
	}
}

// Two rows may have each other's value.
func TestARebuildTellsWhatWasExchanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := []string{"a", "b", "c", "d", "e", "f"}
	for _, key := range keys {
		w.append("flag-t."+key, 0, newFlag(key))
	}
	w.carryOn()
	w.settle()
	for _, key := range keys[1:] {
		exchange := `update read.flags f set id = other.id from read.flags other where f.key in ('a', '` + key + `') and other.key in ('a', '` + key + `') and other.key <> f.key`
		w.exec(exchange)
		w.different(projections.RebuildOptions{CompareOnly: true},
			projections.Difference{Table: "flags", Missing: 2, Surplus: 2})
		w.exec(exchange)
	}
}

// Rows are compared at one position even if the log grows, and if no projector updates the live tables.
func TestRowsAreComparedAtOnePlaceInTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.carryOn()
	w.switchFlag("a", 700)
	w.settle()
	var written atomic.Int64
	stopWriting := w.background(func(ctx context.Context) {
		for i := events.Revision(0); ctx.Err() == nil; i++ {
			if _, err := w.store.Append(context.Background(), "flag-t.busy", i, []events.Event{event(busy(i))}); err != nil {
				t.Errorf("append: %v", err)
				return
			}
			written.Add(1)
			pause(ctx)
		}
	})
	verify := projections.RebuildOptions{CompareOnly: true}
	for range 3 {
		before := written.Load()
		if err := projections.Rebuild(t.Context(), w.url, w.store, flagsModel(t), verify, w.log); err != nil {
			t.Fatal(err)
		}
		w.eventually("some more is written", func() bool { return written.Load() > before || t.Failed() })
	}
	stop()
	w.eventually("the live tables are behind", func() bool { return w.statuses()["flags"].Lag > 0 || t.Failed() })
	stopWriting()
	if err := projections.Rebuild(t.Context(), w.url, w.store, models.All(), verify, w.log); err != nil {
		t.Fatal(err)
	}
	w.rebuild(models.All()...)
	w.sameFromScratch()
}

// busy creates a flag and toggles it.
func busy(i events.Revision) events.Fact {
	environment := events.EnvironmentRef{ID: "e", Name: "production"}
	switch {
	case i == 0:
		return newFlag("busy")
	case i%2 == 1:
		return events.FlagEnabled{Environment: environment}
	default:
		return events.FlagDisabled{Environment: environment}
	}
}

// switchFlag creates a flag and toggles it, n events in total.
func (w *world) switchFlag(key string, n events.Revision) {
	w.t.Helper()
	var facts []events.Fact
	for i := range n {
		facts = append(facts, busy(i))
	}
	w.append("flag-t."+key, 0, facts...)
}

// An interrupted rebuild resumes.
func TestARebuildGoesOnWhereItWasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.carryOn()
	w.switchFlag("a", 1300)
	w.settle()
	stop()
	before := w.dump()
	list, err := models.ByName([]string{"flags", "audit"})
	if err != nil {
		t.Fatal(err)
	}
	table := func(schema string) uint32 {
		return column[uint32](w, `select to_regclass($1)::oid`, schema+".flags")[0]
	}
	for _, afresh := range []bool{false, true} {
		ended, end := context.WithTimeout(t.Context(), time.Minute)
		var left atomic.Int64
		left.Store(int64(len(list)))
		first := map[string]func(){}
		for _, model := range list {
			first[model.Name] = sync.OnceFunc(func() {
				if left.Add(-1) == 0 {
					end()
				}
			})
		}
		report := func(projection string, reached events.Position, _ int) {
			if reached.Commit > 0 {
				first[projection]()
				<-ended.Done() // both start before either continues
			}
		}
		_ = projections.Rebuild(ended, w.url, w.store, list, projections.RebuildOptions{Rate: 1000, Report: report}, w.log)
		end()
		at := column[int64](w, `select commit from read_next.checkpoints where projection = 'flags'`)
		if len(at) != 1 || at[0] == 0 || at[0] >= 1300 {
			t.Fatalf("the rebuild was ended at %v", at)
		}
		tables := table("read_next")
		if err := projections.Rebuild(
			t.Context(), w.url, w.store, list, projections.RebuildOptions{Afresh: afresh}, w.log,
		); err != nil {
			t.Fatal(err)
		}
		w.same("a rebuild after one that was ended", before)
		if wentOn := table("read") == tables; wentOn == afresh {
			t.Errorf("asked to begin afresh: %t; it went on with the tables that were left: %t", afresh, wentOn)
		}
	}
}

func TestARebuildReadsNoFasterThanItMay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.switchFlag("a", 700) // more events than one read may return
	began := time.Now()
	head, err := w.store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const rate = 400
	if err := projections.Rebuild(
		t.Context(), w.url, w.store, flagsModel(t), projections.RebuildOptions{Rate: rate}, w.log,
	); err != nil {
		t.Fatal(err)
	}
	if least := time.Duration(head.Commit-rate) * time.Second / rate; time.Since(began) < least {
		t.Errorf("%d events took %s, want %s at least", head.Commit, time.Since(began), least)
	}
}

// Another process replaces the live tables with tables of an earlier position during a rebuild. The rebuild ends, and
// does not compare rows of different positions.
func TestRebuildEndsIfLiveTablesWentBack(t *testing.T) {
	t.Parallel()
	for name, grows := range map[string]bool{"at the end of the log": false, "with more to read": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			stop := w.carryOn()
			w.append("flag-t.a", 0, newFlag("a"))
			w.settle()
			w.exec(`create table earlier as select * from read.checkpoints where projection = 'flags'`)
			last := w.append("flag-t.b", 0, newFlag("b"))
			w.settle()
			stop()
			replace := sync.OnceFunc(func() {
				w.exec(`delete from read.flags where key = 'b'`)
				w.exec(`update read.checkpoints c set (commit, prepare, last_event) = (e.commit, e.prepare, e.last_event)
					from earlier e where c.projection = e.projection`)
				if grows {
					w.append("flag-t.c", 0, newFlag("c"))
				}
			})
			report := func(_ string, reached events.Position, _ int) {
				if reached.Compare(last) >= 0 {
					replace()
				}
			}
			options := projections.RebuildOptions{CompareOnly: true, Report: report}
			err := projections.Rebuild(t.Context(), w.url, w.store, flagsModel(t), options, w.log)
			if !errors.Is(err, projections.ErrMoved) {
				t.Errorf("the rebuild ended with %v, want ErrMoved", err)
			}
		})
	}
}
