package queries

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/projections/models/modelstest"
)

// A cached list of keys expires with the next change of a flag, or after its time.
func TestFlagKeyCacheExpires(t *testing.T) {
	now, cache := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC), newFlagKeyCache()
	id := cachedListID{tenantID: "t", changed: events.Position{Commit: 1}, list: "a"}
	want := func(id cachedListID, at time.Time, cached bool) {
		t.Helper()
		if keys, ok := cache.get(id, at); ok != cached || ok && !slices.Equal(keys, []string{"k"}) {
			t.Errorf("%+v at %v has the keys %v, %v; want %v", id, at, keys, ok, cached)
		}
	}
	cache.put(id, []string{"k"}, now.Add(time.Minute))
	want(id, now.Add(time.Minute-1), true)
	want(id, now.Add(time.Minute), false)
	for _, other := range []cachedListID{{"t", id.changed, "b"}, {"t", events.Position{Commit: 2}, "a"}, {"other", id.changed, "a"}} {
		want(other, now, false)
	}
}

// The cache of keys stays within its limits, for one list and in total.
func TestFlagKeyCacheIsBounded(t *testing.T) {
	now, cache := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC), newFlagKeyCache()
	huge := cachedListID{list: "huge"}
	cache.put(huge, []string{strings.Repeat("x", maxListBytes)}, now.Add(time.Minute))
	if _, ok := cache.get(huge, now); ok {
		t.Error("a list over the limit is cached")
	}
	large := []string{strings.Repeat("x", maxListBytes/2)}
	for i := range 100 {
		cache.put(cachedListID{tenantID: fmt.Sprint("tenant", i)}, large, now.Add(time.Minute))
	}
	for i := range 100 {
		cache.put(cachedListID{tenantID: "eager", list: fmt.Sprint(i)}, []string{"k"}, now.Add(time.Minute))
	}
	cache.lists.CleanUp()
	held := 0
	for slot := range cache.lists.Keys() {
		if slot.tenantID == "eager" {
			held++
		}
	}
	if held > tenantLists {
		t.Errorf("a tenant has %d lists in the cache", held)
	}
	if bytes := cache.lists.WeightedSize(); bytes > maxCacheBytes || bytes < maxCacheBytes/2 {
		t.Errorf("the cache has %d bytes, at most %d are allowed", bytes, maxCacheBytes)
	}
}

// A list sorted by use that took long to read is cached from then on, for a longer time.
func TestListsByUseAreKeptAfterSlowQueries(t *testing.T) {
	t.Parallel()
	pool := modelstest.Pool(t)
	q := New(pool, nil, holdsAll, nil)
	clock, took := time.Time{}, time.Duration(0) // the clock advances by that with each reading
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
			l := FlagList{
				TenantID:      tenant,
				EnvironmentID: "e",
				Sort:          ByLastEvaluatedAt,
				Stale:         Staleness{Now: begun.Add(after), After: time.Hour},
			}
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
		modelstest.Run(t, pool, modelstest.NewFlags(fmt.Sprintf(`from (values ('%s', 'k', 1)) f (tenant, key, life)`, tenant)))
		want(c.took, 0)
		want(c.until-1, 0)
		want(c.until, 1)
	}
}
