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
	windows := NewWindows(pool)
	tenant, other, person := TenantInvitations(uuid.NewString(), 3), TenantInvitations(uuid.NewString(), 3), PersonInvitations(uuid.NewString(), 4)
	take := func(now time.Time, want *Window, all ...Window) (holder string) {
		t.Helper()
		holder = uuid.NewString()
		full, err := windows.Take(t.Context(), now, holder, all...)
		if err != nil || fmt.Sprint(full) != fmt.Sprint(want) {
			t.Errorf("full is %v, %v, want %v", full, err, want)
		}
		return holder
	}
	var taken atomic.Int64
	var nodes sync.WaitGroup
	for range 8 {
		nodes.Go(func() {
			full, err := NewWindows(pool).Take(t.Context(), now, uuid.NewString(), tenant, person)
			if err != nil {
				t.Error(err)
			}
			if full == nil {
				taken.Add(1)
			}
		})
	}
	nodes.Wait()
	if n := taken.Load(); n != 3 {
		t.Fatalf("%d were made, want 3", n)
	}
	last := take(now, nil, other, person)
	take(now, &person, other, person)
	take(now, nil, other) // the refused one did not count
	take(now, nil, other)
	take(now, &other, other)
	if err := windows.GiveBack(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	take(now, nil, other, person)
	take(now, &person, person)
	take(now.Add(time.Minute), nil, tenant, person)
	if err := windows.RemoveOld(t.Context(), now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := pool.QueryRow(t.Context(), `select count(*) from keep.window_slots`).
		Scan(&left); err != nil ||
		left != 2 {
		t.Errorf("%d slots are left, %v, want only the second day's", left, err)
	}
}

// Nodes that take and give back at once neither block each other for good nor pass the limit, and no slot is lost.
func TestTakingAndGivingBackAtOnce(t *testing.T) {
	pool, now := newOffice(t).pool, time.Now()
	windows, tenant, person := NewWindows(pool), TenantInvitations(uuid.NewString(), 3), PersonInvitations(uuid.NewString(), 2)
	take := func(holder string) *Window {
		full, err := windows.Take(t.Context(), now, holder, tenant, person)
		if err != nil {
			t.Error(err)
		}
		return full
	}
	var holders, taken atomic.Int64
	var nodes sync.WaitGroup
	for range 8 {
		nodes.Go(func() {
			for range 20 {
				holder := uuid.NewString()
				if take(holder) != nil {
					continue
				}
				taken.Add(1)
				if n := holders.Add(1); n > 2 {
					t.Errorf("%d hold a slot at once", n)
				}
				holders.Add(-1)
				if err := windows.GiveBack(t.Context(), holder); err != nil {
					t.Error(err)
				}
			}
		})
	}
	nodes.Wait()
	if full := take("last"); full != nil || taken.Load() == 0 {
		t.Errorf("%v is full at the end, after %d were taken", full, taken.Load())
	}
}
