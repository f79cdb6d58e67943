package jobs

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// All nodes share one limit, whatever the case of the address. A node that starts later knows the earlier mails.
func TestAnAddressGetsFewInvitations(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var later atomic.Int64
	o.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	me, you := addresses(1)[0], addresses(1)[0]
	invite := func(times int, email string) {
		for i := range times {
			if i%2 == 0 {
				email = strings.ToUpper(email)
			}
			o.invited(email)
		}
	}
	got := func(email string) (n int) {
		for _, to := range o.mails() {
			if strings.EqualFold(to, email) {
				n++
			}
		}
		return n
	}
	waiting := func(n int) {
		t.Helper()
		eventually(t, "the others wait", func() bool {
			got := states(t, o.pool, MemberInvitation{}.Kind())
			return got["scheduled"] == n && got["available"]+got["running"]+got["retryable"] == 0
		})
	}
	stop, stopOther := o.run(), o.run()
	invite(maxMails+3, me)
	invite(1, you)
	waiting(3)
	if got(me) != maxMails || got(you) != 1 {
		t.Errorf("one address got %d invitations, another %d", got(me), got(you))
	}
	stop()
	stopOther()
	o.run()
	o.wake()
	waiting(3)
	if got(me) != maxMails {
		t.Errorf("the address got %d invitations after another node started", got(me))
	}
	later.Store(int64(mailWindow))
	o.done()
	if got(me) != maxMails+3 {
		t.Errorf("the address got %d invitations after an hour", got(me))
	}
	if _, err := o.pool.Exec(t.Context(), `insert into keep.mailed_invitations values (1, $1, now())`, me); err != nil {
		t.Fatal(err) // as nodes of the previous release do
	}
	if err := NewWindows(o.pool).RemoveOld(t.Context(), o.now()); err != nil {
		t.Fatal(err)
	}
	var kept int
	if err := o.pool.QueryRow(t.Context(), `select (select count(*) from keep.window_slots) + (select count(*) from keep.mailed_invitations)`).
		Scan(&kept); err != nil ||
		kept != 3 {
		t.Errorf("%d invitations are kept in mind: %v", kept, err)
	}
	// No job waits forever.
	invite(3, me)
	waiting(1)
	if _, err := o.pool.Exec(
		t.Context(), `update jobs.river_job set created_at = created_at - $1::interval`, slotWait,
	); err != nil {
		t.Fatal(err)
	}
	o.done()
	if given := states(t, o.pool, MemberInvitation{}.Kind())["cancelled"]; got(me) != maxMails+5 || given != 1 {
		t.Errorf("the address got %d invitations, and %d were given up", got(me), given)
	}
}

// An unsent mail uses no slot. It waits for one until it is sent.
func TestInvitationsThatFailAreNotLost(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var later, postponed atomic.Int64
	o.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	o.attempted = func(_ string, outcome Outcome) {
		if outcome == Postponed {
			postponed.Add(1)
		}
	}
	o.refuse(errors.New("connection refused"))
	me := addresses(1)[0]
	for range maxMails {
		o.invited(me)
	}
	stop := o.run()
	eventually(t, "all mails have failed", func() bool {
		var failed, places int
		err := o.pool.QueryRow(t.Context(), `select (select count(*) from jobs.river_job where errors is not null), (select count(*) from keep.window_slots)`).
			Scan(&failed, &places)
		if err != nil {
			t.Fatal(err)
		}
		return failed == maxMails && places == 0
	})
	stop()
	// Other addresses are invited first meanwhile.
	o.refuse(nil)
	if _, err := o.pool.Exec(
		t.Context(),
		`update jobs.river_job set state = 'retryable', scheduled_at = now() + interval '1 day' where state in ('available', 'retryable')`,
	); err != nil {
		t.Fatal(err)
	}
	o.invited(me)
	o.run()
	eventually(t, "the new mail is sent", func() bool { return len(o.mails()) == 1 })
	o.wake()
	waits := func() bool {
		got := states(t, o.pool, MemberInvitation{}.Kind())
		return got["scheduled"] == 1 && got["completed"] == maxMails && postponed.Load() > 0
	}
	eventually(t, "one waits for a place", waits)
	// The others have been sent; it continues to wait.
	postponed.Store(0)
	o.wake()
	eventually(t, "it waits once more", waits)
	later.Store(int64(mailWindow))
	o.done()
	if n := len(o.mails()); n != maxMails+1 {
		t.Errorf("%d mails were sent", n)
	}
}

// An unsent mail releases its slot.
func TestPlacesOfMails(t *testing.T) {
	t.Parallel()
	windows := NewWindows(newOffice(t).pool)
	const email = "me@example.com"
	take := func(job, email string, want bool) {
		t.Helper()
		full, err := windows.Take(t.Context(), time.Now(), job, mailsTo(email, forInvitation))
		if err != nil || (full == nil) != want {
			t.Errorf("job %s found the window full: %v, want a place: %v: %v", job, full, want, err)
		}
	}
	for job := range maxMails {
		take(strconv.Itoa(job), email, true)
	}
	take("10", strings.ToUpper(email), false)
	stopped, stop := context.WithCancel(t.Context())
	stop() // stops the node
	if err := windows.GiveBack(stopped, "0"); err != nil {
		t.Fatal(err)
	}
	take("10", strings.ToUpper(email), true)
	take("11", email, false)
	take("11", "new@example.com", true)
}

// Sandbox requests with a person's address do not block invitations to it, nor the reverse.
func TestEachPurposeHasItsOwnPlaces(t *testing.T) {
	t.Parallel()
	windows := NewWindows(newOffice(t).pool)
	for _, kind := range []string{forSandbox, forInvitation} {
		for n := range maxMails + 1 {
			full, err := windows.Take(t.Context(), time.Now(), kind+strconv.Itoa(n), mailsTo("me@example.com", kind))
			if err != nil || (full == nil) != (n < maxMails) {
				t.Errorf("mail %d of %s found the window full: %v: %v", n+1, kind, full, err)
			}
		}
	}
}

// Concurrent jobs send no more mails than allowed. A retried job reuses its own slot.
func TestJobsThatInviteAtOnce(t *testing.T) {
	t.Parallel()
	windows := NewWindows(newOffice(t).pool)
	var running sync.WaitGroup
	var mu sync.Mutex
	var places []string
	take := func(job string) bool {
		full, err := windows.Take(t.Context(), time.Now(), job, mailsTo("me@example.com", forInvitation))
		if err != nil {
			t.Error(err)
		}
		return full == nil && err == nil
	}
	for job := range 40 {
		running.Go(func() {
			if taken := take(strconv.Itoa(job)); taken {
				mu.Lock()
				defer mu.Unlock()
				places = append(places, strconv.Itoa(job))
			}
		})
	}
	running.Wait()
	if len(places) != maxMails {
		t.Fatalf("%d jobs may invite", len(places))
	}
	for _, job := range places {
		if !take(job) {
			t.Errorf("the next attempt of job %s has no place", job)
		}
	}
}
