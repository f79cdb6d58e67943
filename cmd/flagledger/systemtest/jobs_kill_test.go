package systemtest

import (
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/mail/mailtest"
	"flagledger/migrations/pgtest"
)

// awaitedMail is a mail that must be sent.
type awaitedMail struct {
	to, subject string
	kills       int // since it was requested
}

// A mail is sent even if the server is killed before its job exists, before the mail is sent or meanwhile. Each kill
// causes at most one repetition.
func TestKillingTheServerLosesNoMail(t *testing.T) {
	t.Parallel()
	var answer atomic.Pointer[func() error] // of the mail server
	answerWith := func(f func() error) { answer.Store(&f) }
	accept := func() error { return nil }
	answerWith(accept)
	mails := mailtest.New(t, mailtest.Options{Refuse: func(int) error { return (*answer.Load())() }})
	database := pgtest.URL(t)
	settings := []string{
		serveSetting + "=1",
		"FLAGLEDGER_DATABASE_URL=" + database,
		"FLAGLEDGER_ENVIRONMENT=production",
		"FLAGLEDGER_PUBLIC_URL=https://flags.example.com",
		"FLAGLEDGER_SMTP_URL=smtp://" + mails.Addr + "?from=flags@example.com",
	}
	p := (&nodetest.Program{Binary: os.Args[0]}).In(t)
	running := p.Serve(settings...)
	connect := func() *pgx.Conn {
		db, err := pgx.Connect(t.Context(), database)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := connect()
	defer func() { _ = db.Close(t.Context()) }()
	exec := func(sql string, args ...any) {
		if _, err := db.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	me := p.Service().SignUp(nodetest.Address())
	exec(`update keep.people set email_verified = true where user_id = $1`, me.UserID)
	me.Token = me.Service.Anonymous().Call("POST", "/auth/signin", map[string]string{"email": me.Email, "password": nodetest.Password}).Want(200).Object()["token"].(string)

	var all []*awaitedMail
	ask := func() (asked []*awaitedMail) {
		invited, person := nodetest.Address(), nodetest.Address()
		me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/users", map[string]string{"email": invited, "role": "viewer"}).
			Want(201)
		me.Service.Anonymous().
			Call("POST", "/auth/signup", map[string]string{"email": person, "password": nodetest.Password}).
			Want(201)
		me.Service.Anonymous().Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": person}).Want(200)
		asked = []*awaitedMail{
			{to: invited, subject: "An invitation"},
			{to: person, subject: "Confirm your e-mail address"},
			{to: person, subject: "A new password"},
		}
		all = append(all, asked...)
		return asked
	}
	sent := func(a *awaitedMail) (n int) {
		for _, m := range mails.Mails() {
			if m.To == a.to && m.Subject == a.subject {
				n++
			}
		}
		return n
	}
	kill := func() {
		running.Kill()
		for _, a := range all {
			a.kills++
		}
	}
	restart := func() {
		killed := time.Now()
		running = p.Serve(settings...)
		s := p.Service()
		s.DatabaseURL = database
		s.ResumeJobs(killed)
		s.RetryJobs()
	}

	underWay, goOn := make(chan struct{}, 100), make(chan struct{})
	answerWith(func() error {
		underWay <- struct{}{}
		<-goOn
		return nil
	})
	interrupted := ask()
	for range interrupted {
		select {
		case <-underWay:
		case <-time.After(time.Minute):
			t.Fatal("not all mails are under way")
		}
	}
	kill()
	answerWith(accept)
	close(goOn) // the mails arrived anyway
	restart()

	// No jobs are created from facts while the test holds the lock of reactions.
	lock := connect()
	defer func() { _ = lock.Close(t.Context()) }()
	me.Service.Eventually("the test has the lock", func() (locked bool) {
		exec(`select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted and pid <> $1
			and database = (select oid from pg_database where datname = current_database())`, lock.PgConn().PID())
		if err := lock.QueryRow(t.Context(), `select pg_try_advisory_lock(hashtext('flagledger reactions'))`).
			Scan(&locked); err != nil {
			t.Fatal(err)
		}
		return locked
	})
	answerWith(func() error {
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "come back later"}
	})
	notYet := ask()
	kill()
	var invitations int
	if err := db.QueryRow(t.Context(), `select count(*) from jobs.river_job where kind = 'mail.member_invitation'`).
		Scan(&invitations); err != nil {
		t.Fatal(err)
	}
	if invitations != 1 || slices.ContainsFunc(notYet, func(a *awaitedMail) bool { return sent(a) > 0 }) {
		t.Errorf("two invitations have %d jobs, and there are the mails %v: the kill is not between facts and what follows",
			invitations, mails.Mails())
	}
	if err := lock.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	answerWith(accept)
	restart()

	for range killCount(2) {
		ask()
		kill()
		restart()
	}
	me.Service.Eventually("all mails are sent", func() bool {
		return !slices.ContainsFunc(all, func(a *awaitedMail) bool { return sent(a) == 0 })
	})
	me.Service.Eventually("the mails that were under way are sent again", func() bool {
		return !slices.ContainsFunc(interrupted, func(a *awaitedMail) bool { return sent(a) < 2 })
	})
	for _, a := range all {
		if n := sent(a); n > 1+a.kills {
			t.Errorf("the mail %q was sent %d times, with %d kills", a.subject, n, a.kills)
		}
	}
}
