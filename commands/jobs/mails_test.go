package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
	"flagledger/commands/keep/directory"
	"flagledger/events"
	"flagledger/events/postgres"
	"flagledger/migrations/pgtest"
)

// office is what mails need, over a database of the test's own.
type office struct {
	t      *testing.T
	pool   *pgxpool.Pool
	people *directory.Directory
	store  events.Store
	client *Client
	now    func() time.Time

	mu      sync.Mutex
	sent    []string // to whom
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
	return &office{t: t, pool: pool, people: directory.New(pool, time.Now), store: store, client: open(t, pool), now: time.Now}
}

// Send implements commands.Mailer.
func (o *office) Send(_ context.Context, m commands.Mail) error {
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
	shown := func(context.Context, events.Position, []string) bool { return true }
	return run(o.t, o.client, Work{Mails: &Mails{Mailer: o, Writer: commands.NewWriter(o.store, shown, o.now), Directory: o.people, PublicURL: "http://localhost", Now: o.now}})
}

// invited notes that a tenant has invited addresses, and adds the jobs.
func (o *office) invited(addresses ...string) (tenantID string) {
	o.t.Helper()
	tenantID = uuid.NewString()
	batch := []events.Event{{ID: uuid.New(), Metadata: events.Metadata{Time: time.Now()}, Fact: events.TenantCreated{ID: tenantID, Name: "Acme", Plan: events.FreePlan}}}
	var list []Job
	for _, address := range addresses {
		id := uuid.NewString()
		if _, _, err := o.people.FindOrAddPending(o.t.Context(), tenantID, address, id); err != nil {
			o.t.Fatal(err)
		}
		e := events.Event{ID: uuid.New(), Metadata: events.Metadata{Time: time.Now()}, Fact: events.MemberInvited{ID: id, Role: events.ViewerRole}}
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
	if err := pgx.BeginFunc(o.t.Context(), o.pool, func(tx pgx.Tx) error { return o.client.Add(o.t.Context(), tx, list...) }); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) done() {
	o.t.Helper()
	eventually(o.t, "all mails are done with", func() bool {
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

// A thousand mails of one tenant do not hold up another's one.
func TestMailsAreFairBetweenTenants(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.invited(addresses(1000)...)
	late := addresses(1)
	o.invited(late...)
	stop := o.run()
	eventually(t, "the late mail is sent", func() bool { return slices.Contains(o.mails(), late[0]) })
	stop()
	if before := slices.Index(o.mails(), late[0]); before > 5+mailWorkers {
		t.Errorf("%d mails of a busy tenant went before another's one", before)
	}
}

// What a job was about may be over when its turn comes. Its arguments tell nothing of anybody.
func TestNobodyIsMailedWhoWasErasedMeanwhile(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	list := addresses(2)
	o.invited(list...)
	var rows string
	if err := o.pool.QueryRow(t.Context(), `select string_agg(job::text, ' ') from jobs.river_job job`).Scan(&rows); err != nil || strings.Contains(rows, "@") {
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

// A job that is inserted twice for one fact is one job, also after it has been done.
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

// A mail that fails is tried again; what is refused for good is given up, and the operator may have it tried once more.
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
	o.mu.Lock()
	o.refusal = fmt.Errorf("%w: no such mailbox", commands.ErrMailRefused)
	o.mu.Unlock()
	eventually(t, "the mail is given up", func() bool { return states(t, o.pool, MemberInvitation{}.Kind())["cancelled"] == 1 })
	o.mu.Lock()
	o.refusal = nil
	o.mu.Unlock()
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

// A job that was given up is told of until an operator cancels it.
func TestJobsThatWereGivenUpAreCounted(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.invited(addresses(2)...)
	var id int64
	if err := o.pool.QueryRow(t.Context(), `update jobs.river_job set state = 'discarded', finalized_at = now() where id = (select min(id) from jobs.river_job) returning id`).Scan(&id); err != nil {
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

// A recipient whose mails the server does not take is nobody else's concern; a server that takes none is.
func TestARecipientIsNoReasonToLook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		refusal error
		failing int
	}{{commands.ErrMailDeferred, 0}, {errors.New("connection refused"), 1}} {
		o := newOffice(t)
		o.refusal = fmt.Errorf("%w, RCPT TO: 450 4.2.1", c.refusal)
		o.invited(addresses(1)...)
		for _, state := range []string{"retryable", "discarded"} {
			if _, err := o.pool.Exec(t.Context(), `update jobs.river_job set state = 'available', attempt = max_attempts - $1, finalized_at = null, scheduled_at = now()`,
				map[string]int{"retryable": 3, "discarded": 1}[state]); err != nil {
				t.Fatal(err)
			}
			stop := o.run()
			eventually(t, "the mail has failed", func() bool { return states(t, o.pool, MemberInvitation{}.Kind())[state] == 1 })
			stop()
			counts, err := o.client.Counts(t.Context())
			if err != nil || len(counts) != 1 || counts[0].State != state || counts[0].Failing != c.failing {
				t.Errorf("%v: counted %+v, want %d failing (%v)", c.refusal, counts, c.failing, err)
			}
			list, err := o.client.List(t.Context(), state)
			if err != nil || len(list) != 1 || !strings.Contains(list[0].Error, c.refusal.Error()) {
				t.Errorf("listed are %+v, %v", list, err)
			}
		}
	}
}

// Whoever asks for another link gets one; the same cause makes no second one.
func TestVerificationLinksAreUniqueByCause(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	links := NewLinks(o.client)
	for _, cause := range []string{"sign-up", "request 1", "sign-up", "request 2"} {
		if err := links.Verify(t.Context(), "u1", cause); err != nil {
			t.Fatal(err)
		}
	}
	if n := states(t, o.pool, verificationLink{}.Kind())["available"]; n != 3 {
		t.Errorf("there are %d jobs, want 3", n)
	}
}

// The bound is one for all nodes, in whatever case the address is written. A node that starts later knows what was mailed before.
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
		o.done()
	}
	got := func(email string) (n int) {
		for _, to := range o.mails() {
			if strings.EqualFold(to, email) {
				n++
			}
		}
		return n
	}
	stop, stopOther := o.run(), o.run()
	invite(maxInvitations+3, me)
	invite(1, you)
	if got(me) != maxInvitations || got(you) != 1 {
		t.Errorf("one address got %d invitations, another %d", got(me), got(you))
	}
	stop()
	stopOther()
	o.run()
	invite(2, me)
	if got(me) != maxInvitations {
		t.Errorf("the address got %d invitations after another node started", got(me))
	}
	later.Store(int64(invitationWindow))
	invite(1, me)
	if got(me) != maxInvitations+1 {
		t.Errorf("the address got %d invitations after an hour", got(me))
	}
	if err := NewLinks(o.client).RemoveOld(t.Context(), o.now()); err != nil {
		t.Fatal(err)
	}
	var kept int
	if err := o.pool.QueryRow(t.Context(), `select count(*) from keep.mailed_invitations`).Scan(&kept); err != nil || kept != 1 {
		t.Errorf("%d invitations are kept in mind: %v", kept, err)
	}
}

// Of jobs that run at once no more mail than may. An attempt of a job that has its place already takes none of another's.
func TestJobsThatInviteAtOnce(t *testing.T) {
	t.Parallel()
	m := &Mails{Now: time.Now, pool: newOffice(t).pool}
	var running sync.WaitGroup
	var mu sync.Mutex
	var places []int64
	for job := range int64(40) {
		running.Go(func() {
			may, err := m.mayInvite(t.Context(), job, "me@example.com")
			if err != nil {
				t.Error(err)
			}
			if may {
				mu.Lock()
				defer mu.Unlock()
				places = append(places, job)
			}
		})
	}
	running.Wait()
	if len(places) != maxInvitations {
		t.Fatalf("%d jobs may invite", len(places))
	}
	for _, job := range places {
		if may, err := m.mayInvite(t.Context(), job, "me@example.com"); !may || err != nil {
			t.Errorf("the next attempt of a job: %v, %v", may, err)
		}
	}
}
