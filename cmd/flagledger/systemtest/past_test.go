package systemtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/queries"
)

// countingStore counts the events read from streams.
type countingStore struct {
	events.Store
	read int
}

func (s *countingStore) Read(
	ctx context.Context, stream string, from events.Revision,
) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for r, err := range s.Store.Read(ctx, stream, from) {
			s.read++
			if !yield(r, err) {
				return
			}
		}
	}
}

// Every state of a flag with several lives is found by version and by time, equal to the fold of its facts.
func TestAnyStateOfAFlagIsFoundAgain(t *testing.T) {
	nodetest.BothEngines(t, testAnyStateOfAFlagIsFoundAgain)
}

func testAnyStateOfAFlagIsFoundAgain(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	pool, err := node.OpenPool(t.Context(), v.api.Service.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	counted := &countingStore{Store: v.store}
	past := queries.New(pool, counted, v.progress.Wait, nil)
	const key, versions = "long", 220
	var flag state.Flag
	var last events.Position
	draw := rapid.Custom(func(rt *rapid.T) commands.Command[state.Flag] { return drawCommand(rt, key, flag) })
	for seed := 0; flag.Version < versions; seed++ {
		command := draw.Example(seed)
		ref := commands.FlagRef{TenantID: "t", Key: key}
		switch { // so that a deleted flag has a stored state
		case flag.Version == 99:
			command = commands.DeleteFlag{FlagRef: ref}
		case flag.Exists && flag.Version >= 90 && flag.Version < 99: // one fact each
			command = commands.UpdateFlag{FlagRef: ref, Name: new(fmt.Sprint("name ", seed))}
		}
		after, done, err := writer.Do(t.Context(), v.writer, tester, command)
		if err != nil && commands.KindOf(err) == commands.Internal {
			t.Fatal(err)
		}
		if done.Position != (events.Position{}) {
			flag, last = after, done.Position
		}
	}
	v.wait(t, last)
	var all []events.Recorded
	for r, err := range v.store.Read(t.Context(), events.FlagStream("t", key), 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	var want state.Flag
	lives := 0
	check := func(m queries.Moment) {
		t.Helper()
		counted.read = 0
		got, err := past.FlagAt(t.Context(), "t", key, m)
		switch {
		case !want.Exists && !errors.Is(err, queries.ErrNotFound):
			t.Fatalf("at %+v there was no flag; it is found: %+v, %v", m, got, err)
		case want.Exists && err != nil:
			t.Fatalf("at %+v: %v", m, err)
		case want.Exists && !events.StoredEqual(want, got):
			t.Fatalf("at %+v the flag is\n%+v\nand its facts add up to\n%+v", m, got, want)
		}
		if whole, err := past.FlagStateAt(t.Context(), "t", key, m); err != nil ||
			!want.Exists && (!whole.UpdatedAt.Equal(want.UpdatedAt) || whole.Version != want.Version) {
			t.Fatalf("at %+v the deleted flag is %+v, %v; want %+v", m, whole, err, want)
		}
		if counted.read > 202 {
			t.Fatalf("at %+v, %d events were read", m, counted.read)
		}
	}
	for i, r := range all {
		want.Apply(r)
		if r.Name == (events.FlagCreated{}).StoredName() {
			lives++
		}
		if around := r.Revision % 100; i%8 == 0 || around < 2 || around == 99 { // a state is stored every 100 versions
			check(queries.Moment{Version: r.Revision})
		}
		if i%16 == 0 && (i+1 == len(all) || all[i+1].At.After(r.At)) {
			check(queries.Moment{At: r.At})
			check(queries.Moment{At: r.At.Add(time.Nanosecond)})
		}
	}
	if _, deleted := all[99].Fact.(events.FlagDeleted); !deleted {
		t.Errorf("version 100 is %s, and was to be a deletion", all[99].Name)
	}
	if lives < 2 {
		t.Errorf("the flag had %d lives", lives)
	}
	flag, last = v.checkReverts(t, past, key, flag, len(all))
	v.wait(t, last)
	v.checkRows(t, key, flag)
	v.checkEvaluation(t, key, flag)
	for _, m := range []queries.Moment{{At: all[0].At.Add(-time.Microsecond)}, {Version: flag.Version + 1}} {
		if _, err := past.FlagAt(t.Context(), "t", key, m); !errors.Is(err, queries.ErrNotFound) {
			t.Errorf("at %+v: %v", m, err)
		}
	}
}

// checkReverts reverts a flag to some of its versions and compares the states.
func (v views) checkReverts(
	t *testing.T, past *queries.Queries, key string, flag state.Flag, versions int,
) (after state.Flag, last events.Position) {
	t.Helper()
	for version := 3; version <= versions; version += 7 {
		to, err := past.FlagAt(t.Context(), "t", key, queries.Moment{Version: events.Revision(version)})
		if errors.Is(err, queries.ErrNotFound) {
			continue // it was deleted then
		}
		if err != nil {
			t.Fatal(err)
		}
		revert := commands.RevertFlag{
			FlagRef:        commands.FlagRef{TenantID: "t", Key: key},
			To:             to,
			Environments:   environments,
			EnvironmentsAt: environments,
		}
		reverted, done, err := writer.Do(t.Context(), v.writer, tester, revert)
		if err != nil {
			t.Fatal(err)
		}
		if done.Position != (events.Position{}) {
			flag, last = reverted, done.Position
		}
		shown := flag
		shown.Version, shown.CreatedVersion = to.Version, to.CreatedVersion
		shown.CreatedAt, shown.UpdatedAt = to.CreatedAt, to.UpdatedAt
		if !events.StoredEqual(shown, to) {
			t.Fatalf("reverted to version %d the flag is\n%+v\nand it was\n%+v", version, shown, to)
		}
	}
	return flag, last
}
