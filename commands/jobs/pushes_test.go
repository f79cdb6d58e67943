package jobs

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/api/option"

	"flagledger/commands/keep/inbox"
	"flagledger/commands/notify"
	"flagledger/commands/push"
	"flagledger/commands/push/pushtest"
	"flagledger/migrations/pgtest"
)

// pushing is an inbox whose notifications are pushed through an FCM of this test.
type pushing struct {
	t      *testing.T
	pool   *pgxpool.Pool
	client *Client
	inbox  *inbox.Inbox
	fcm    *pushtest.Server
	out    shutOut
}

type shutOut struct{ sync.Map }

func (s *shutOut) ShutOut(userID string) bool {
	_, out := s.Load(userID)
	return out
}

func newPushing(t *testing.T) *pushing {
	t.Helper()
	pool := pgtest.Pool(t)
	client := open(t, pool)
	return &pushing{t: t, pool: pool, client: client, inbox: inbox.New(pool, client, time.Now), fcm: pushtest.New(t)}
}

func (p *pushing) run() (stop func()) {
	p.t.Helper()
	fcm, err := push.Open(p.t.Context(), "test", option.WithEndpoint(p.fcm.Endpoint), option.WithoutAuthentication())
	if err != nil {
		p.t.Fatal(err)
	}
	// of the platform: it has no tenant
	return run(p.t, p.client,
		Work{Pushes: &Pushes{Pusher: fcm, Inbox: p.inbox, People: &p.out, Recipients: &notify.Notifications{}}})
}

// person creates a person with devices and returns their tokens.
func (p *pushing) person(devices int) (id string, tokens []string) {
	p.t.Helper()
	id = uuid.NewString()
	if _, err := p.pool.Exec(
		p.t.Context(), `insert into keep.people (user_id, created_at) values ($1, now())`, id,
	); err != nil {
		p.t.Fatal(err)
	}
	for range devices {
		tokens = append(tokens, "token-"+uuid.NewString())
		p.register(id, tokens[len(tokens)-1])
	}
	return id, tokens
}

func (p *pushing) register(userID, token string) {
	p.t.Helper()
	if _, _, err := p.inbox.Register(p.t.Context(), userID, inbox.Device{Token: token, Type: "android"}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pushing) notify(userID, title string) notify.Notification {
	p.t.Helper()
	n, err := p.inbox.Add(p.t.Context(), notify.Notification{ID: uuid.NewString(), UserID: userID, Title: title})
	if err != nil {
		p.t.Error(err)
	}
	return n
}

// gets waits until a device has received exactly the notifications with these titles.
func (p *pushing) gets(token string, titles ...string) {
	p.t.Helper()
	eventually(p.t, "all notifications are pushed", func() bool { return len(p.fcm.Titles(token)) >= len(titles) })
	p.settled()
	if diff := cmp.Diff(titles, p.fcm.Titles(token)); diff != "" {
		p.t.Errorf("a device got (-want +got):\n%s", diff)
	}
}

// settled waits until no push is pending.
func (p *pushing) settled() {
	p.t.Helper()
	eventually(p.t, "all jobs are done", func() bool {
		var waiting int
		if err := p.pool.QueryRow(p.t.Context(), `select (select count(*) from keep.pushes) + (select count(*) from jobs.river_job where finalized_at is null)`).
			Scan(&waiting); err != nil {
			p.t.Fatal(err)
		}
		return waiting == 0
	})
}

func sequence(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("n%02d", i))
	}
	return list
}

// A device that failed at FCM receives everything later, in order and once, and delays no other device. Jobs and their
// errors contain no token and no text.
func TestPushesComeInOrder(t *testing.T) {
	p := newPushing(t)
	me, tokens := p.person(2)
	faults := []pushtest.Answer{{Status: 500, Code: "INTERNAL"}, {Body: "<html>" + tokens[0]}}
	p.fcm.Answer(func(attempt int, m pushtest.Message) pushtest.Answer {
		if m.Token == tokens[0] && attempt <= len(faults) {
			return faults[attempt-1]
		}
		return pushtest.Answer{}
	})
	p.run()
	titles := sequence(6)
	for _, title := range titles {
		p.notify(me, title)
	}
	p.gets(tokens[1], titles...)
	p.gets(tokens[0], titles...)
	var told bool
	err := p.pool.QueryRow(t.Context(), `select bool_or(j::text like any($1)) from jobs.river_job j`, []string{"%" + tokens[0] + "%", "%" + tokens[1] + "%", "%n0_%"}).
		Scan(&told)
	if err != nil || told {
		t.Errorf("a job tells of a token or of words: %v", err)
	}
	if got := states(t, p.pool, "push.device"); got["discarded"]+got["cancelled"] > 0 {
		t.Errorf("the jobs are %v", got)
	}
}

// More notifications arrive while a job ends: none is lost, reordered or pushed twice.
func TestNothingIsForgottenBetweenJobs(t *testing.T) {
	p := newPushing(t)
	me, tokens := p.person(3)
	p.run()
	stop := p.run() // another node
	titles := sequence(40)
	for i, title := range titles {
		p.notify(me, title)
		if i%4 == 0 {
			p.settled() // the next one meets a job that has just ended or is ending
		}
	}
	stop()
	for _, token := range tokens {
		p.gets(token, titles...)
	}
}

// Late notifications of a long outage get as many attempts as others, however often their device was tried before.
func TestAttemptsDoNotRunOut(t *testing.T) {
	p := newPushing(t)
	me, tokens := p.person(1)
	p.fcm.Answer(func(attempt int, _ pushtest.Message) pushtest.Answer {
		if attempt == 1 {
			return pushtest.Answer{Status: 500, Code: "INTERNAL"}
		}
		return pushtest.Answer{}
	})
	p.notify(me, "n00")
	if _, err := p.pool.Exec(t.Context(), `update jobs.river_job set attempt = 80`); err != nil { // ten minutes apart
		t.Fatal(err)
	}
	p.notify(me, "n01")
	p.run()
	eventually(t, "an attempt fails", func() bool { return states(t, p.pool, "push.device")["retryable"] == 1 })
	if _, err := p.pool.Exec(
		t.Context(), `update jobs.river_job set state = 'available', scheduled_at = now()`,
	); err != nil {
		t.Fatal(err)
	}
	p.gets(tokens[0], "n00", "n01")
}

func TestADeviceThatIsGoneIsRemoved(t *testing.T) {
	p := newPushing(t)
	me, tokens := p.person(2)
	p.fcm.Answer(func(_ int, m pushtest.Message) pushtest.Answer {
		switch {
		case m.Token == tokens[0]:
			return pushtest.Answer{Status: 404, Code: "UNREGISTERED"}
		case m.Notification.Title == "bad":
			return pushtest.Answer{Status: 400, Code: "INVALID_ARGUMENT"}
		default:
			return pushtest.Answer{}
		}
	})
	p.run()
	p.notify(me, "bad") // which is refused for good, and holds up nothing
	p.notify(me, "good")
	p.gets(tokens[1], "good")
	p.gets(tokens[0])
	devices, err := p.inbox.Devices(t.Context(), me)
	if err != nil || len(devices) != 1 || devices[0].Token != tokens[1] {
		t.Errorf("the devices are %v, %v", devices, err)
	}
	if n := p.fcm.Tried(tokens[0]); n != 1 {
		t.Errorf("it was tried %d times", n)
	}
}

// A notification is not pushed if it was read, if its person is shut out, or if its device now belongs to another
// person.
func TestWhatIsNotPushed(t *testing.T) {
	p := newPushing(t)
	me, tokens := p.person(2)
	other, _ := p.person(0)
	shut, shutTokens := p.person(1)
	read := p.notify(me, "read")
	p.notify(me, "unread")
	if _, err := p.inbox.Read(t.Context(), me, read.ID); err != nil {
		t.Fatal(err)
	}
	p.register(other, tokens[1])
	p.notify(other, "theirs")
	p.notify(shut, "shut out")
	p.out.Store(shut, true)
	p.run()
	p.gets(tokens[0], "unread")
	p.gets(tokens[1], "theirs")
	p.gets(shutTokens[0])
	if n := p.fcm.Tried(shutTokens[0]); n > 0 {
		t.Errorf("somebody shut out was tried %d times", n)
	}
}

// A node that stops while FCM hangs leaves its pushes to the next one. Only the push in progress, with an unknown
// outcome, may come twice.
func TestPushesOutliveTheirNode(t *testing.T) {
	p := newPushing(t)
	me, tokens := p.person(1)
	hang, hung := make(chan struct{}), atomic.Bool{}
	p.fcm.Answer(func(_ int, m pushtest.Message) pushtest.Answer {
		if m.Notification.Title == "n01" && !hung.Swap(true) {
			return pushtest.Answer{Hang: hang}
		}
		return pushtest.Answer{}
	})
	stop := p.run()
	titles := sequence(4)
	for _, title := range titles {
		p.notify(me, title)
	}
	eventually(t, "FCM hangs", hung.Load)
	stop()
	close(hang)
	p.run()
	eventually(t, "all notifications are pushed", func() bool { return slices.Contains(p.fcm.Titles(tokens[0]), "n03") })
	p.settled()
	if got := slices.Compact(p.fcm.Titles(tokens[0])); !slices.Equal(got, titles) {
		t.Errorf("the device got %v", got)
	}
}

// Another node completes the pushes of a dead node, also those added meanwhile.
func TestPushesOutliveTheDeathOfTheirNode(t *testing.T) {
	p := newPushing(t)
	me, tokens := p.person(1)
	p.notify(me, "n00")
	died, err := p.pool.Exec(
		t.Context(),
		`update jobs.river_job set state = 'running', attempt = 1, attempted_at = now() - interval '2 minutes', attempted_by = '{dead}'`,
	)
	if err != nil || died.RowsAffected() != 1 {
		t.Fatalf("%d jobs: %v", died.RowsAffected(), err)
	}
	p.notify(me, "n01")
	p.run()
	p.gets(tokens[0], "n00", "n01")
}
