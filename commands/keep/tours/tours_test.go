package tours

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A person has at most 500 tours, also with concurrent calls.
func TestAPersonsToursAreBounded(t *testing.T) {
	pool := pgtest.Pool(t)
	tours, me, now := New(pool), uuid.NewString(), time.Now()
	if _, err := pool.Exec(
		t.Context(), `insert into keep.people (user_id, created_at) values ($1, now())`, me,
	); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `insert into keep.product_tours (user_id, tour_key, created_at, updated_at)
		select $1, 'old' || i, now(), now() from generate_series(1, $2) i`, me, maxTours-1); err != nil {
		t.Fatal(err)
	}
	var (
		writers sync.WaitGroup
		made    atomic.Int32
	)
	for i := range 4 {
		writers.Go(func() {
			_, err := tours.Set(t.Context(), me, fmt.Sprintf("new%d", i), &now, true, now)
			if err == nil {
				made.Add(1)
			} else if commands.KindOf(err) != commands.Conflict || !strings.Contains(err.Error(), "500") {
				t.Errorf("a tour too many: %v", err)
			}
		})
	}
	writers.Wait()
	if made.Load() != 1 {
		t.Errorf("%d tours were made, want 1", made.Load())
	}
	if _, err := tours.Set(t.Context(), me, "old1", &now, true, now); err != nil {
		t.Errorf("a tour that there is: %v", err)
	}
	if err := tours.Reset(t.Context(), me, "old1"); err != nil {
		t.Fatal(err)
	}
	if _, err := tours.Set(t.Context(), me, "another", nil, true, now); err != nil {
		t.Errorf("a tour in place of one that was reset: %v", err)
	}
	if _, err := tours.Set(t.Context(), me, "of others", nil, false, now); err != nil {
		t.Errorf("what the person has set keeps others from setting one: %v", err)
	}
	if _, err := tours.Set(t.Context(), me, "of others", nil, true, now); commands.KindOf(err) != commands.Conflict {
		t.Errorf("the person takes up one tour too many: %v", err)
	}
	if err := tours.Erase(t.Context(), me); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := pool.QueryRow(t.Context(), `select count(*) from keep.product_tours where user_id = $1`, me).
		Scan(&left); err != nil ||
		left != 0 {
		t.Errorf("%d tours are left, %v", left, err)
	}
	if _, err := tours.Set(t.Context(), uuid.NewString(), "tour", nil, true, now); commands.KindOf(err) != commands.NotFound {
		t.Errorf("a tour of somebody unknown: %v", err)
	}
}

// Admins of a person's tenants cannot prevent them from recording tours.
func TestToursThatOthersSetTakeNoRoom(t *testing.T) {
	pool := pgtest.Pool(t)
	tours, me, now := New(pool), uuid.NewString(), time.Now()
	if _, err := pool.Exec(
		t.Context(), `insert into keep.people (user_id, created_at) values ($1, now())`, me,
	); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `insert into keep.product_tours (user_id, tour_key, created_at, updated_at, own)
		select $1, 'other' || i, $3, $3, false from generate_series(1, $2) i`, me, maxTours, now); err != nil {
		t.Fatal(err)
	}
	if _, err := tours.Set(t.Context(), me, "more", nil, false, now); commands.KindOf(err) != commands.Conflict {
		t.Errorf("others set one tour too many: %v", err)
	}
	for _, key := range []string{"mine", "other1", "other1"} {
		if _, err := tours.Set(t.Context(), me, key, nil, true, now); err != nil {
			t.Errorf("the person sets %s: %v", key, err)
		}
	}
	for _, key := range []string{"mine", "other1", "other2", "more"} { // the person has started one of them
		if _, err := tours.Set(t.Context(), me, key, nil, false, now); err != nil {
			t.Errorf("others set %s: %v", key, err)
		}
	}
}
