package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands/keep/directory"
	"flagledger/commands/notify"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/postgres"
	"flagledger/migrations/pgtest"
)

// office provides what mails need, over a database of this test.
type office struct {
	t      *testing.T
	pool   *pgxpool.Pool
	people *directory.Directory
	store  events.Store
	client *Client
	now    func() time.Time

	attempted func(string, Outcome)

	mu      sync.Mutex
	sent    []string // recipients
	refusal error
}

func newOffice(t *testing.T) *office {
	t.Helper()
	pool := pgtest.Pool(t)
	store, err := postgres.Open(t.Context(), pool.Config().ConnString(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return &office{
		t:      t,
		pool:   pool,
		people: directory.New(pool, time.Now),
		store:  store,
		client: open(t, pool),
		now:    time.Now,
	}
}

// Send implements notify.Mailer.
func (o *office) Send(_ context.Context, m notify.Mail) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refusal != nil {
		return o.refusal
	}
	o.sent = append(o.sent, m.To)
	return nil
}

func (o *office) mails() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.sent)
}

func (o *office) run() (stop func()) {
	o.t.Helper()
	shown := writer.NoWait
	return run(
		o.t,
		o.client,
		Work{
			Mails: &Mails{
				Mailer:    o,
				Writer:    writer.NewWriter(o.store, shown, writer.NoQuotas{}, o.now),
				Directory: o.people,
				PublicURL: "http://localhost",
				Now:       o.now,
			},
			Attempted: o.attempted,
		},
	)
}

// invited records that a tenant has invited addresses, and adds the jobs.
func (o *office) invited(addresses ...string) (tenantID string) {
	o.t.Helper()
	tenantID = uuid.NewString()
	batch := []events.Event{
		{
			ID:       uuid.New(),
			Metadata: events.Metadata{Time: time.Now()},
			Fact:     events.TenantCreated{ID: tenantID, Name: "Acme", Plan: events.FreePlan},
		},
	}
	var list []Job
	for _, address := range addresses {
		id := uuid.NewString()
		if _, err := o.people.AddPending(o.t.Context(), tenantID, address, id, false); err != nil {
			o.t.Fatal(err)
		}
		e := events.Event{
			ID:       uuid.New(),
			Metadata: events.Metadata{Time: time.Now()},
			Fact:     events.MemberInvited{ID: id, Role: events.ViewerRole},
		}
		batch, list = append(batch, e), append(list, MemberInvitation{EventID: e.ID.String(), TenantID: tenantID, MemberID: id})
	}
	if _, err := o.store.Append(o.t.Context(), events.TenantStream(tenantID), 0, batch); err != nil {
		o.t.Fatal(err)
	}
	o.add(list...)
	return tenantID
}

func (o *office) add(list ...Job) {
	o.t.Helper()
	if err := pgx.BeginFunc(
		o.t.Context(), o.pool, func(tx pgx.Tx) error { return o.client.Add(o.t.Context(), tx, list...) },
	); err != nil {
		o.t.Fatal(err)
	}
}

// wake runs waiting jobs now.
func (o *office) wake() {
	o.t.Helper()
	if _, err := o.pool.Exec(
		o.t.Context(),
		`update jobs.river_job set state = 'available', scheduled_at = now() where state in ('scheduled', 'retryable')`,
	); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) refuse(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refusal = err
}

// done waits until all mails are processed. It wakes those that wait for a slot.
func (o *office) done() {
	o.t.Helper()
	eventually(o.t, "all mails are done with", func() bool {
		o.wake()
		counts := states(o.t, o.pool, MemberInvitation{}.Kind())
		return counts["available"]+counts["running"]+counts["retryable"]+counts["scheduled"] == 0
	})
}

func addresses(n int) (list []string) {
	for range n {
		list = append(list, uuid.NewString()+"@example.com")
	}
	return list
}

// A thousand mails of one tenant do not delay a mail of another.
func TestMailsAreFairBetweenTenants(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.invited(addresses(1000)...)
	late := addresses(1)
	o.invited(late...)
	stop := o.run()
	eventually(t, "the late mail is sent", func() bool { return slices.Contains(o.mails(), late[0]) })
	stop()
	// of 1000: others are sent before the late one
	if before := slices.Index(o.mails(), late[0]); before > 100 {
		t.Errorf("%d mails of a busy tenant went before another's one", before)
	}
}

// The subject of a job may be gone when it runs. Its arguments contain no personal data.
func TestNobodyIsMailedWhoWasErasedMeanwhile(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	list := addresses(2)
	o.invited(list...)
	var rows string
	if err := o.pool.QueryRow(t.Context(), `select string_agg(job::text, ' ') from jobs.river_job job`).
		Scan(&rows); err != nil ||
		strings.Contains(rows, "@") {
		t.Errorf("the jobs hold an address: %s (%v)", rows, err)
	}
	if _, err := o.pool.Exec(t.Context(), `delete from keep.pending_members where email = $1`, list[0]); err != nil {
		t.Fatal(err)
	}
	o.run()
	o.done()
	if sent := o.mails(); !slices.Equal(sent, list[1:]) {
		t.Errorf("mails went to %v, want %v", sent, list[1:])
	}
	if n := states(t, o.pool, MemberInvitation{}.Kind())["completed"]; n != 2 {
		t.Errorf("%d jobs are completed", n)
	}
}

// A job that is inserted twice for one fact runs once, even if the first has finished.
func TestAJobIsDoneOnceForItsCause(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.run()
	job := PlatformInvitation{EventID: uuid.NewString(), InvitationID: uuid.NewString()}
	for range 3 {
		o.add(job)
		eventually(t, "the job is done", func() bool { return states(t, o.pool, job.Kind())["completed"] == 1 })
	}
	if got := states(t, o.pool, job.Kind()); len(got) != 1 {
		t.Errorf("the jobs are %v", got)
	}
}

// A failed mail is retried. A permanently refused one is discarded, and the operator may retry it.
func TestMailsThatFail(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.refusal = errors.New("come back later")
	o.invited(addresses(1)...)
	o.run()
	failed := func() []Entry {
		list, err := o.client.List(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(list, func(e Entry) bool { return e.Error == "" })
	}
	eventually(t, "the mail has failed", func() bool { return len(failed()) == 1 })
	o.refuse(fmt.Errorf("%w: no such mailbox", notify.ErrRecipientRefused))
	eventually(t, "the mail is given up",
		func() bool { return states(t, o.pool, MemberInvitation{}.Kind())["cancelled"] == 1 })
	o.refuse(nil)
	id := failed()[0].ID
	if err := o.client.Retry(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the mail is sent", func() bool { return len(o.mails()) == 1 })
	o.done()
	if err := o.client.Retry(t.Context(), id+1000); err == nil {
		t.Error("a job that there is not is retried")
	}
}

// A request for another link sends one; a repetition for the same cause sends none.
func TestVerificationLinksAreUniqueByCause(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	links := NewLinks(o.client)
	for _, cause := range []string{"sign-up", "request 1", "sign-up", "request 2"} {
		if err := links.QueueVerification(t.Context(), "u1", cause); err != nil {
			t.Fatal(err)
		}
	}
	if n := states(t, o.pool, verificationLink{}.Kind())["available"]; n != 3 {
		t.Errorf("there are %d jobs, want 3", n)
	}
}
