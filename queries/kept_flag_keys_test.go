package queries

import (
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
	has := func(t *testing.T, f *flagLists, changed events.Position, id string, at time.Time, want bool) {
		t.Helper()
		if _, ok := f.get(listsOf{tenantID: "t"}, changed, id, at); ok != want {
			t.Errorf("%s at %v is kept: %v, want %v", id, at, ok, want)
		}
	}
	t.Run("until a flag changes or their time is over", func(t *testing.T) {
		f := newFlagLists()
		f.keep(listsOf{tenantID: "t"}, first, "a", keysOf("k"), now, time.Minute)
		has(t, f, first, "a", now.Add(time.Minute-1), true)
		has(t, f, first, "a", now.Add(time.Minute), false)
		has(t, f, first, "b", now, false)
		has(t, f, second, "a", now, false)
		f.keep(listsOf{tenantID: "t"}, second, "b", keysOf("k"), now, time.Minute)
		f.keep(listsOf{tenantID: "t"}, first, "a", keysOf("k"), now, time.Minute) // it was begun before the change
		has(t, f, second, "b", now, true)
		has(t, f, first, "a", now, false)
	})
	t.Run("up to a bound of a tenant and one of all", func(t *testing.T) {
		f := newFlagLists()
		large := flagKeys{text: strings.Repeat("x", maxKeptKeysTenant/3)}
		for i := range 4 {
			f.keep(listsOf{tenantID: "t"}, first, fmt.Sprint(i), large, now, time.Minute)
		}
		has(t, f, first, "3", now, true)
		has(t, f, first, "0", now, false)
		f.keep(listsOf{tenantID: "t"}, first, "huge", flagKeys{text: strings.Repeat("x", maxKeptKeysTenant)}, now, time.Minute)
		has(t, f, first, "huge", now, false)
		for i := range 100 {
			f.keep(listsOf{tenantID: fmt.Sprint("tenant", i)}, first, "a", large, now, time.Minute)
			f.keep(listsOf{tenantID: fmt.Sprint("tenant", i)}, first, "a", large, now, time.Minute) // in its own place
		}
		sum := 0
		for _, kept := range f.of {
			sum += kept.bytes
		}
		if f.bytes != sum || sum > maxKeptKeys || len(f.of) < 20 {
			t.Errorf("%d lists are kept with %d bytes, and %d are counted", len(f.of), sum, f.bytes)
		}
	})
}
