package writer

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestIDsOfARequest(t *testing.T) {
	began := time.Date(2026, 3, 14, 15, 9, 26, 535_897_932, time.UTC)
	all := func(o *Once) (ids []string) {
		for range 3 {
			ids = append(ids, o.NewID())
		}
		for _, purpose := range [][2]string{{"s", "A"}, {"s", "B"}, {"t", "A"}, {"s", "A"}} {
			next := o.eventIDs(purpose[0], purpose[1])
			ids = append(ids, next(0).String(), next(1).String())
		}
		return ids
	}
	ids := all(NewOnce([]byte("k"), began))
	if repeated := all(NewOnce([]byte("k"), began.Truncate(time.Millisecond))); !slices.Equal(ids, repeated) {
		t.Errorf("made again, the request has other ids: %v, %v", ids, repeated)
	}
	seen := map[string]bool{}
	for _, o := range []*Once{NewOnce([]byte("k"), began), NewOnce([]byte("l"), began), NewOnce([]byte("k"), began.Add(time.Millisecond))} {
		for _, id := range all(o) {
			if seen[id] {
				t.Errorf("%s is there twice", id)
			}
			seen[id] = true
		}
	}
	if !slices.IsSorted(ids[:3]) {
		t.Errorf("later ids do not sort after earlier ones: %v", ids[:3])
	}
	for i, id := range ids {
		parsed := uuid.MustParse(id)
		if want := map[bool]uuid.Version{true: 7, false: 5}[i < 3]; parsed.Version() != want ||
			parsed.Variant() != uuid.RFC4122 {
			t.Errorf("%s is of version %d", id, parsed.Version())
		}
	}
	if seconds, _ := uuid.MustParse(ids[0]).Time().UnixTime(); seconds != began.Unix() {
		t.Errorf("an id says that it is of %v", time.Unix(seconds, 0).UTC())
	}
	if (*Once)(nil).NewID() == "" || (*Once)(nil).eventIDs("s", "A") != nil {
		t.Error("a request that is not made again has ids like one that is")
	}
}
