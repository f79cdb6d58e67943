package projections_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"flagledger/events"
	"flagledger/projections"
	"flagledger/projections/models"
)

// parkedStreams returns the revisions of a read model's parked streams.
func (w *world) parkedStreams(projection string) map[string]events.Revision {
	w.t.Helper()
	streams := map[string]events.Revision{}
	for _, p := range w.statuses()[projection].Parked {
		streams[p.Stream] = p.Revision
		if p.Error == "" || p.At.IsZero() {
			w.t.Errorf("%s does not say why and since when it has parked %s: %+v", projection, p.Stream, p)
		}
	}
	return streams
}

// randomText cannot be compressed much.
func randomText(length int) string {
	text := ""
	for len(text) < length {
		text += rand.Text()
	}
	return text
}

func TestAFactThatCannotBeAppliedParksItsStreamAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const goodMetadata = `{"time":"2026-01-02T03:04:05Z","actor":{"kind":"user","id":"u"}}`
	broken := map[string]func(stream string){
		"flag-t.garbled":  func(stream string) { w.appendRaw(stream, 1, "flag.enabled", `{"environment":7}`, goodMetadata) },
		"flag-t.unknown":  func(stream string) { w.appendRaw(stream, 1, "flag.levitated", `{}`, goodMetadata) },
		"flag-t.metadata": func(stream string) { w.appendRaw(stream, 1, "flag.enabled", `{}`, `[]`) },
		"flag-t.huge": func(stream string) { // too large for an index
			w.append(stream, 1, events.FlagEnabled{Environment: events.EnvironmentRef{ID: randomText(20_000), Name: "huge"}})
		},
	}
	atTwo := map[string]events.Revision{}
	for stream := range broken {
		atTwo[stream] = 2
	}
	inAudit := maps.Clone(atTwo) // these do not fail in it:
	delete(inAudit, "flag-t.huge")
	// Broken and valid streams are on one page.
	for stream, breakIt := range broken {
		w.append(stream, 0, newFlag(strings.TrimPrefix(stream, "flag-t.")))
		breakIt(stream)
		w.append(stream, 2, events.FlagUpdated{Name: &events.Change[string]{To: "not followed"}})
		w.append(stream+".other", 0, newFlag("other"))
	}
	stop := w.carryOn()
	w.settle()
	check := func(when string) {
		t.Helper()
		for projection, want := range map[string]map[string]events.Revision{"flags": atTwo, "audit": inAudit, "projects": {}, "tenants": {}} {
			if got := w.parkedStreams(projection); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, %s has parked %v, want %v", when, projection, got, want)
			}
		}
		if n := column[int](w, `select count(*) from read.flags where name = 'not followed'`)[0]; n > 0 {
			t.Errorf("%s, %d streams were followed beyond what could not be applied", when, n)
		}
		for stream := range broken {
			key := strings.TrimPrefix(stream, "flag-t.")
			if n := column[int](w, `select count(*) from read.flags where key = any($1)`, []string{key, key + ".other"})[0]; n != 2 {
				t.Errorf("%s, %d of the flags %s and %[3]s.other are there", when, n, key)
			}
		}
	}
	check("at first")

	w.append("flag-t.later", 0, newFlag("later"))
	w.append("flag-t.garbled", 3, events.FlagUpdated{Name: &events.Change[string]{To: "not followed"}})
	w.settle()
	check("after more events")
	if n := column[int](w, `select count(*) from read.flags where key = 'later'`)[0]; n != 1 {
		t.Error("others do not flow any more")
	}

	stop()
	w.carryOn()
	w.append("flag-t.unknown", 3, events.FlagUpdated{Name: &events.Change[string]{To: "not followed"}})
	w.settle()
	check("after a restart")

	since := w.statuses()["flags"].Parked[0].At
	before := w.dump()
	w.rebuild(models.All()...)
	w.same("a rebuild", before)
	check("after a rebuild")
	if !w.statuses()["flags"].Parked[0].At.After(since) {
		t.Error("the rebuild took over what was parked and did not try it")
	}
	if n := column[int](w, `select count(*) from keep.parked where building`)[0]; n > 0 {
		t.Errorf("the rebuild left %d parked streams of its own", n)
	}
}

// After its handler is fixed, a rebuild includes streams that were parked.
func TestARebuildWithARepairedHandlerParksNothing(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("out of order") },
		"panic": func() error { panic("out of order") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var repaired atomic.Bool
			p := tally(1, "event")
			apply := p.Apply
			p.Apply = func(b *projections.Batch, e events.Recorded) error {
				if err := apply(b, e); err != nil || repaired.Load() || e.Stream != "flag-t.bad" || e.Revision < 2 {
					return err
				}
				return fail() // with a queued statement that must not run
			}
			var want []string
			write := func(stream string, at events.Revision) {
				w.append(stream, at, newFlag("f"))
				want = append(want, fmt.Sprintf("%s@%d", stream, at+1))
			}
			rows := func() []string { return column[string](w, `select event from read.tally order by n`) }
			for at := range events.Revision(3) {
				write("flag-t.good", at)
				write("flag-t.bad", at)
			}
			var reached atomic.Uint64
			w.carryOnOne(p, func(position events.Position) { reached.Store(position.Commit) })
			w.eventually("all is taken in", func() bool { return reached.Load() == 6 })
			if got, want := rows(), []string{
				"flag-t.good@1",
				"flag-t.bad@1",
				"flag-t.good@2",
				"flag-t.good@3",
			}; !slices.Equal(got, want) {
				t.Errorf("applied were %v, want %v", got, want)
			}
			parked := column[string](w,
				`select stream || '@' || revision || ': ' || error from keep.parked where projection = 'tally' and not building`)
			if len(parked) != 1 || !strings.HasPrefix(parked[0], "flag-t.bad@2: ") ||
				!strings.Contains(parked[0], "out of order") {
				t.Errorf("parked is %q, want flag-t.bad@2 with the reason", parked)
			}

			repaired.Store(true)
			w.repair(p)
			write("flag-t.bad", 3)
			w.eventually("the stream is followed again", func() bool { return reached.Load() == 7 })
			if got := rows(); !slices.Equal(got, want) {
				t.Errorf("after the rebuild applied are %v, want %v", got, want)
			}
			if n := column[int](w, `select count(*) from keep.parked`)[0]; n > 0 {
				t.Errorf("%d streams are still parked", n)
			}
		})
	}
}

// A handler is retried twice, each time from the start.
func TestAFailedAttemptLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := tally(1, "event")
	apply, attempts := p.Apply, 0
	p.Apply = func(b *projections.Batch, e events.Recorded) error {
		if err := apply(b, e); err != nil {
			return err
		}
		if attempts++; attempts%3 > 0 {
			return errors.New("not yet")
		}
		return nil
	}
	for at := range events.Revision(4) {
		w.append("flag-t.f", at, newFlag("f"))
	}
	w.rebuild(p)
	if got, want := column[string](w, `select event from read.tally order by n`), []string{
		"flag-t.f@1",
		"flag-t.f@2",
		"flag-t.f@3",
		"flag-t.f@4",
	}; !slices.Equal(got, want) {
		t.Errorf("applied were %v, want %v", got, want)
	}
}
