package jobs

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestInvitationsOfADayAreBounded(t *testing.T) {
	pool, now := newOffice(t).pool, time.Date(2026, 3, 14, 23, 59, 0, 0, time.UTC)
	tenant, other, person := TenantInvitationBound(uuid.NewString(), 3), TenantInvitationBound(uuid.NewString(), 3), PersonInvitationBound(uuid.NewString(), 4)
	take := func(now time.Time, want *InvitationBound, bounds ...InvitationBound) {
		t.Helper()
		reached, err := NewDailyInvitations(pool).Take(t.Context(), now, bounds...)
		if err != nil || fmt.Sprint(reached) != fmt.Sprint(want) {
			t.Errorf("reached %v, %v, want %v", reached, err, want)
		}
	}
	var taken atomic.Int64
	var nodes sync.WaitGroup
	for range 8 {
		nodes.Go(func() {
			reached, err := NewDailyInvitations(pool).Take(t.Context(), now, tenant, person)
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
	take(now, nil, other) // the refused one did not count
	take(now, nil, other)
	take(now, &other, other)
	take(now.Add(time.Minute), nil, tenant, person)
	daily := NewDailyInvitations(pool)
	if err := daily.GiveBack(t.Context(), now, tenant, person); err != nil {
		t.Fatal(err)
	}
	take(now, nil, tenant, person)
	take(now, &tenant, tenant, person)
	if err := daily.RemoveOld(t.Context(), now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := pool.QueryRow(t.Context(), `select count(*) from keep.invitation_counts`).
		Scan(&left); err != nil ||
		left != 2 {
		t.Errorf("%d counts are left, %v, want those of the second day", left, err)
	}
}

func TestGivingBackAnInvitationLocksLikeTakingOne(t *testing.T) {
	pool, now := newOffice(t).pool, time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	daily, tenant, person := NewDailyInvitations(pool), TenantInvitationBound(uuid.NewString(), 3), PersonInvitationBound(uuid.NewString(), 3)
	if _, err := daily.Take(t.Context(), now, tenant, person); err != nil {
		t.Fatal(err)
	}
	taking, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taking.Rollback(context.WithoutCancel(t.Context())) }()
	lock := func(b InvitationBound) {
		t.Helper()
		if _, err := taking.Exec(
			t.Context(), `update keep.invitation_counts set invitations = invitations where counted = $1`, b.counted,
		); err != nil {
			t.Fatal(err)
		}
	}
	lock(tenant)
	var holder int
	if err := taking.QueryRow(t.Context(), `select pg_backend_pid()`).Scan(&holder); err != nil {
		t.Fatal(err)
	}
	gaveBack := make(chan error, 1)
	go func() { gaveBack <- daily.GiveBack(t.Context(), now, tenant, person) }()
	eventually(t, "it waits for who takes", func() bool {
		var waits bool
		err := pool.QueryRow(t.Context(), `select exists (select from pg_stat_activity where $1 = any(pg_blocking_pids(pid)))`, holder).
			Scan(&waits)
		return err == nil && waits
	})
	lock(person)
	if err := taking.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-gaveBack; err != nil {
		t.Error(err)
	}
}
