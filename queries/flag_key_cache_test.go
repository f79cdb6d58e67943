package queries

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flagledger/events"
)

func keysOf(list ...string) (keys flagKeys) {
	var text strings.Builder
	for _, key := range list {
		keys.add(&text, key)
	}
	keys.text = text.String()
	return keys
}

func TestPagesOfKeys(t *testing.T) {
	keys := keysOf("a", "bb", "ccc")
	for page, want := range map[Page][]string{
		{}: {"a", "bb", "ccc"}, {Limit: 2}: {"a", "bb"}, {Limit: 2, Offset: 1}: {"bb", "ccc"}, {Limit: 2, Offset: 2}: {"ccc"}, {Limit: 1, Offset: 3}: nil, {Offset: 1 << 62}: nil,
	} {
		if got := keys.page(page); !slices.Equal(got, want) {
			t.Errorf("%+v has the keys %v, want %v", page, got, want)
		}
	}
}

// Lists are kept until a flag changes, or their time is over, and take only so much.
func TestKeptListsOfFlags(t *testing.T) {
	now, first, second := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC), events.Position{Commit: 1}, events.Position{Commit: 2}
	has := func(t *testing.T, f *flagKeyCache, changed events.Position, id string, at time.Time, want bool) {
		t.Helper()
		if _, ok := f.get(listsOf{tenantID: "t"}, changed, id, at); ok != want {
			t.Errorf("%s at %v is kept: %v, want %v", id, at, ok, want)
		}
	}
	t.Run("until a flag changes or their time is over", func(t *testing.T) {
		f := newFlagKeyCache()
		f.put(listsOf{tenantID: "t"}, first, "a", keysOf("k"), now, time.Minute)
		has(t, f, first, "a", now.Add(time.Minute-1), true)
		has(t, f, first, "a", now.Add(time.Minute), false)
		has(t, f, first, "b", now, false)
		has(t, f, second, "a", now, false)
		f.put(listsOf{tenantID: "t"}, second, "b", keysOf("k"), now, time.Minute)
		f.put(listsOf{tenantID: "t"}, first, "a", keysOf("k"), now, time.Minute) // it was begun before the change
		has(t, f, second, "b", now, true)
		has(t, f, first, "a", now, false)
	})
	t.Run("up to a bound of a tenant and one of all", func(t *testing.T) {
		f := newFlagKeyCache()
		large := flagKeys{text: strings.Repeat("x", maxCachedKeysTenant/3)}
		for i := range 4 {
			f.put(listsOf{tenantID: "t"}, first, fmt.Sprint(i), large, now, time.Minute)
		}
		has(t, f, first, "3", now, true)
		has(t, f, first, "0", now, false)
		f.put(listsOf{tenantID: "t"}, first, "huge", flagKeys{text: strings.Repeat("x", maxCachedKeysTenant)}, now, time.Minute)
		has(t, f, first, "huge", now, false)
		for i := range 100 {
			f.put(listsOf{tenantID: fmt.Sprint("tenant", i)}, first, "a", large, now, time.Minute)
			f.put(listsOf{tenantID: fmt.Sprint("tenant", i)}, first, "a", large, now, time.Minute) // in its own place
		}
		sum := 0
		for _, kept := range f.of {
			sum += kept.bytes
		}
		if f.bytes != sum || sum > maxCachedKeys || len(f.of) < 20 {
			t.Errorf("%d lists are kept with %d bytes, and %d are counted", len(f.of), sum, f.bytes)
		}
	})
}

// A list by use that took long to read is kept from then on, and the longer.
func TestListsByUseAreKeptAfterSlowQueries(t *testing.T) {
	t.Parallel()
	pool := withReadModels(t)
	q := New(pool, nil, func(context.Context, events.Position, []string) bool { return true })
	clock, took := time.Time{}, time.Duration(0) // the clock goes on by that whenever it is read
	q.now = func() time.Time {
		clock = clock.Add(took)
		return clock
	}
	begun := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	for i, c := range []struct{ took, until time.Duration }{
		{0, 2 * time.Second}, {100 * time.Millisecond, 2100 * time.Millisecond}, {3 * time.Second, 15 * time.Second}, {10 * time.Second, 50 * time.Second}, {20 * time.Second, time.Minute},
	} {
		tenant := fmt.Sprint("t", i)
		want := func(after time.Duration, flags int) {
			t.Helper()
			l := FlagList{TenantID: tenant, EnvironmentID: "e", Sort: ByLastEvaluatedAt, Stale: Staleness{begun.Add(after), time.Hour}}
			list, err := q.Flags(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			if list.Total != flags {
				t.Errorf("%v after a list that took %v was begun it has %d flags, want %d", after, c.took, list.Total, flags)
			}
		}
		took = c.took
		want(0, 0)
		run(t, pool, newFlags(fmt.Sprintf(`from (values ('%s', 'k', 1)) f (tenant, key, life)`, tenant)))
		want(c.took, 0)
		want(c.until-1, 0)
		want(c.until, 1)
	}
}
