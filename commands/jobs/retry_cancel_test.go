package jobs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flagledger/commands/notify"
)

// A discarded job is reported until an operator cancels it.
func TestJobsThatWereGivenUpAreCounted(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.invited(addresses(2)...)
	var id int64
	if err := o.pool.QueryRow(t.Context(), `update jobs.river_job set state = 'discarded', finalized_at = now() where id = (select min(id) from jobs.river_job) returning id`).
		Scan(&id); err != nil {
		t.Fatal(err)
	}
	kind := MemberInvitation{}.Kind()
	for _, want := range [][]Count{
		{{kind, "available", 1, 0}, {kind, "discarded", 1, 1}},
		{{kind, "available", 1, 0}, {kind, "cancelled", 1, 0}},
	} {
		got, err := o.client.Counts(t.Context())
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("counted %v, want %v (%v)", got, want, err)
		}
		if err := o.client.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
}

// reason is what health reports about a mail that failed.
func TestWhenMailsThatFailAreCounted(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	deferred := fmt.Sprintf("%v, sending SMTP RCPT TO command: 450 4.2.1", notify.ErrRecipientDeferred)
	const down = "connection refused"
	member := MemberInvitation{}.Kind()
	insert := func(kind, state string, age time.Duration, failure string) {
		t.Helper()
		_, err := o.pool.Exec(
			t.Context(),
			`insert into jobs.river_job (kind, args, queue, max_attempts, attempt, state, attempted_at, finalized_at, errors) values
			($1, '{}', $2, 12, 5, $3::jobs.river_job_state, now() - $4::interval, case when $3 in ('completed', 'discarded') then now() - $4::interval end,
			case when $5 <> '' then array[jsonb_build_object('error', 'an older one'), jsonb_build_object('error', $5::text)] end)`,
			kind,
			mailQueue,
			state,
			age,
			failure,
		)
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		insert func()
		want   int
	}{
		"the server cannot be reached": {func() { insert(member, "retryable", time.Hour, down); insert(member, "completed", 0, "") }, 1},
		"two recipients":               {func() { insert(member, "retryable", 0, deferred); insert(member, "discarded", 0, deferred) }, 0},
		"three recipients": {func() {
			insert(member, "retryable", 0, deferred)
			insert(member, "discarded", time.Minute, deferred)
			insert(PlatformInvitation{}.Kind(), "retryable", time.Hour, deferred)
			insert(member, "completed", 2*time.Hour, "")
			insert(resetLink{}.Kind(), "completed", 0, "")
		}, 3},
		"three recipients, before others have got theirs": {func() {
			for range 3 {
				insert(member, "discarded", time.Hour, deferred)
			}
			insert(member, "completed", time.Minute, "")
		}, 0},
		"three recipients, after some that have been given up": {func() {
			insert(member, "discarded", 3*time.Hour, deferred)
			insert(member, "completed", time.Hour, "")
			for range 3 {
				insert(member, "retryable", time.Minute, deferred)
			}
		}, 3},
		"three recipients, days ago": {func() {
			for range 3 {
				insert(member, "discarded", 30*time.Hour, deferred)
			}
		}, 0},
		"two recipients, and a server that cannot be reached": {func() {
			insert(member, "retryable", 0, deferred)
			insert(member, "retryable", 0, deferred)
			insert(member, "discarded", 30*time.Hour, down)
		}, 1},
	} {
		if _, err := o.pool.Exec(t.Context(), `delete from jobs.river_job`); err != nil {
			t.Fatal(err)
		}
		c.insert()
		counts, err := o.client.Counts(t.Context())
		failing := 0
		for _, n := range counts {
			failing += n.Failing
		}
		if err != nil || failing != c.want {
			t.Errorf("%s: counted %+v, want %d failing (%v)", name, counts, c.want, err)
		}
	}
}

// If a relay refuses every recipient, the mails fail until it is repaired, and are counted.
func TestARelayThatRefusesAllIsCounted(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.refusal = fmt.Errorf("%w, sending SMTP RCPT TO command: 550", notify.ErrRecipientDeferred)
	o.invited(addresses(deferredMails)...)
	if _, err := o.pool.Exec(t.Context(), `update jobs.river_job set attempt = max_attempts - 1`); err != nil {
		t.Fatal(err)
	}
	o.run()
	eventually(t, "the mails are given up",
		func() bool { return states(t, o.pool, MemberInvitation{}.Kind())["discarded"] == deferredMails })
	counts, err := o.client.Counts(t.Context())
	if err != nil || len(counts) != 1 || counts[0].Failing != deferredMails {
		t.Errorf("counted %+v, %v", counts, err)
	}
	list, err := o.client.List(t.Context(), "discarded")
	if err != nil || len(list) != deferredMails || !strings.Contains(list[0].Error, "550") {
		t.Errorf("listed are %+v, %v", list, err)
	}
}
