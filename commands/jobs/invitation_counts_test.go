package jobs

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestInvitationsOfADayAreBounded(t *testing.T) {
	pool, now := newOffice(t).pool, time.Date(2026, 3, 14, 23, 59, 0, 0, time.UTC)
	tenant, other, person := OfTenant(uuid.NewString(), 3), OfTenant(uuid.NewString(), 3), OfPerson(uuid.NewString(), 4)
	take := func(now time.Time, want *InvitationBound, bounds ...InvitationBound) {
		t.Helper()
		reached, err := NewInvitationCounts(pool).Take(t.Context(), now, bounds...)
		if err != nil || fmt.Sprint(reached) != fmt.Sprint(want) {
			t.Errorf("reached %v, %v, want %v", reached, err, want)
		}
	}
	var taken atomic.Int64
	var nodes sync.WaitGroup
	for range 8 {
		nodes.Go(func() {
			reached, err := NewInvitationCounts(pool).Take(t.Context(), now, tenant, person)
			if err != nil {
				t.Error(err)
			}
			if reached == nil {
				taken.Add(1)
			}
		})
	}
	nodes.Wait()
	if n := taken.Load(); n != 3 {
		t.Fatalf("%d were made, want 3", n)
	}
	take(now, nil, other, person)
	take(now, &person, other, person)
	take(now, nil, other) // which the refused one has not counted for
	take(now, nil, other)
	take(now, &other, other)
	take(now.Add(time.Minute), nil, tenant, person)
	counts := NewInvitationCounts(pool)
	if err := counts.GiveBack(t.Context(), now, tenant, person); err != nil {
		t.Fatal(err)
	}
	take(now, nil, tenant, person)
	take(now, &tenant, tenant, person)
	if err := counts.RemoveOld(t.Context(), now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := pool.QueryRow(t.Context(), `select count(*) from keep.invitation_counts`).Scan(&left); err != nil || left != 2 {
		t.Errorf("%d counts are left, %v, want those of the second day", left, err)
	}
}
