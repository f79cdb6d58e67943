package local

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
	"flagledger/commands/identity/identitytest"
	"flagledger/commands/jobs"
	"flagledger/commands/notify"
	"flagledger/commands/people"
	"flagledger/migrations/pgtest"
)

// mailing is a provider with running jobs and the mails that it sends.
type mailing struct {
	*Provider
	c    *clock
	pool *pgxpool.Pool
	sent sentMails
}

func withMail(t *testing.T, verified bool) mailing {
	t.Helper()
	m := mailing{c: newClock(), pool: pgtest.Pool(t), sent: make(sentMails, 100)}
	o := options(m.c)
	o.AssumeEmailsVerified, o.Mailer = verified, m.sent
	m.Provider = start(t, m.pool, o)
	client := must(jobs.Open(m.pool))(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := client.Run(
			ctx,
			jobs.Work{
				Mails:     &jobs.Mails{Links: m.Provider},
				Attempted: func(string, jobs.Outcome) {},
				Log:       slog.New(slog.DiscardHandler),
			},
		); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return m
}

var link = regexp.MustCompile(`http://localhost:8080(/[a-z-]+)\?token=([A-Za-z0-9_-]{43})\n`)

// token returns the token of the only mail that was sent, and checks its address and page.
func (m mailing) token(t *testing.T, to, page string) string {
	t.Helper()
	m.settle(t)
	if len(m.sent) != 1 {
		t.Fatalf("%d mails", len(m.sent))
	}
	mail := <-m.sent
	found := link.FindStringSubmatch(mail.Text)
	if mail.To != to || found == nil || found[1] != page {
		t.Fatalf("got %+v", mail)
	}
	return found[2]
}

// settle waits until all requested mails are sent.
func (m mailing) settle(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for waiting := 1; waiting > 0; {
		if err := m.pool.QueryRow(t.Context(), `select count(*) from jobs.river_job where finalized_at is null`).
			Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d jobs are not done", waiting)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (m mailing) forgot(t *testing.T, email string) string {
	t.Helper()
	if err := m.ForgotPassword(t.Context(), email); err != nil {
		t.Fatal(err)
	}
	return m.token(t, "ada@example.com", "/reset-password")
}

// resetPassword sets a password and returns the ended sessions.
func (m mailing) resetPassword(ctx context.Context, token, password string) (commands.EndSessions, error) {
	return set(ctx)(m.PrepareReset(ctx, token, password))
}

func (m mailing) updatePassword(
	ctx context.Context, c people.Claims, current, password string,
) (commands.EndSessions, error) {
	return set(ctx)(m.PrepareUpdate(ctx, c, current, password))
}

func set(ctx context.Context) func(people.PasswordChange, error) (commands.EndSessions, error) {
	return func(change people.PasswordChange, err error) (commands.EndSessions, error) {
		if err != nil {
			return commands.EndSessions{}, err
		}
		return change.Ends, change.Set(ctx)
	}
}

const another = "another horse battery"

func TestResetPassword(t *testing.T) {
	m := withMail(t, true)
	ctx := t.Context()
	up := must(m.SignUp(ctx, "ada@example.com", secret, ""))(t)
	other := must(m.SignUp(ctx, "bob@example.com", secret, ""))(t)
	token := m.forgot(t, " ADA@example.com")

	_, err := m.resetPassword(ctx, token, "short")
	if diff := cmp.Diff(
		map[string]string{"newPassword": "must be at least 8 characters"}, refusal(t, err, commands.Invalid).Fields,
	); diff != "" {
		t.Error(diff)
	}
	ended := must(m.resetPassword(ctx, token, another))(t)
	if want := (commands.EndSessions{UserID: up.UserID, Before: m.c.now().Add(time.Second)}); ended.Before.UTC() != want.Before ||
		ended.UserID != want.UserID ||
		ended.Except != "" {
		t.Errorf("got %+v, want %+v", ended, want)
	}
	_, err = m.SignIn(ctx, "ada@example.com", secret)
	wantKind(t, err, commands.Unauthenticated)
	_, err = m.refresh(ctx, up.RefreshToken)
	wantKind(t, err, commands.Unauthenticated)
	must(m.refresh(ctx, other.RefreshToken))(t)

	in := must(m.SignIn(ctx, "ada@example.com", another))(t)
	if in.AuthTime.Before(ended.Before) {
		t.Errorf("a session that began at %v is among those that ended before %v", in.AuthTime, ended.Before)
	}
	if c := must(m.Verify(ctx, in.IDToken))(t); !c.AuthTime.Equal(in.AuthTime) {
		t.Errorf("the token says %v", c.AuthTime)
	}
	refreshed := must(m.refresh(ctx, in.RefreshToken))(t)
	if !refreshed.AuthTime.Equal(in.AuthTime) {
		t.Errorf("refreshed, the session began at %v", refreshed.AuthTime)
	}
	_, err = m.resetPassword(ctx, token, secret)
	if got := refusal(t, err, commands.Invalid).Fields; len(got) != 1 || got["token"] == "" {
		t.Errorf("a link used twice: %v", got)
	}

	// Another change in the same second ends that session too.
	later := must(m.updatePassword(ctx, other.Claims, secret, another))(t)
	latest := must(m.updatePassword(ctx, other.Claims, another, secret))(t)
	if !latest.Before.After(later.Before) || latest.Except != other.SessionID {
		t.Errorf("two changes end the sessions before %v and %v", later.Before, latest.Before)
	}
}

func TestResetLinksAreGoodOnceForAnHour(t *testing.T) {
	m := withMail(t, true)
	ctx := t.Context()
	must(m.SignUp(ctx, "ada@example.com", secret, ""))(t)
	old := m.forgot(t, "ada@example.com")
	if err := m.ForgotPassword(ctx, "ada@example.com"); err != nil {
		t.Fatal(err)
	}
	m.settle(t)
	if len(m.sent) != 0 {
		t.Error("two mails went out within a minute")
	}
	m.c.add(time.Minute)
	newer := m.forgot(t, "ada@example.com")
	m.c.add(59 * time.Minute)
	_, err := m.resetPassword(ctx, old, "x")
	if got := refusal(t, err, commands.Invalid).Fields; len(got) != 2 || got["token"] == "" || got["newPassword"] == "" {
		t.Errorf("an expired link and a short password: %v", got)
	}
	for _, token := range []string{old, "", "nonsense", strings.Repeat("A", 43), strings.Repeat("\x00", 43), newer + "x"} {
		_, err := m.resetPassword(ctx, token, another)
		if got := refusal(t, err, commands.Invalid).Fields; len(got) != 1 || got["token"] == "" {
			t.Errorf("%q: %v", token, got)
		}
		wantKind(t, m.VerifyEmail(ctx, token, secret, anyone), commands.Invalid)
	}
	wantKind(t, m.VerifyEmail(ctx, newer, secret, anyone), commands.Invalid) // the token is for a different purpose
	results := make([]error, 4)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() {
			for { // a change that was prepared later wins
				if _, results[i] = m.resetPassword(ctx, newer, another); commands.KindOf(results[i]) != commands.Unavailable {
					return
				}
			}
		})
	}
	all.Wait()
	set := 0
	for _, err := range results {
		if err == nil {
			set++
		} else {
			wantKind(t, err, commands.Invalid)
		}
	}
	if set != 1 {
		t.Errorf("a link set %d passwords", set)
	}
	var kept int
	if err := m.pool.QueryRow(ctx, `select count(*) from keep.mailed_tokens`).Scan(&kept); err != nil || kept != 0 {
		t.Errorf("%d tokens are left (%v)", kept, err)
	}
}

func TestNobodyGetsAResetMailWithoutAnAccount(t *testing.T) {
	m := withMail(t, true)
	if _, err := m.pool.Exec(
		t.Context(), `insert into keep.people (user_id, email, created_at) values ('x', 'bob@example.com', now())`,
	); err != nil {
		t.Fatal(err)
	}
	for _, email := range []string{"eve@example.com", "bob@example.com", "", "nobody", "\x00\xff", strings.Repeat("a", 1<<20) + "@example.com"} {
		if err := m.ForgotPassword(t.Context(), email); err != nil {
			t.Errorf("%q: %v", email, err)
		}
	}
	m.settle(t)
	if len(m.sent) != 0 {
		t.Errorf("got %+v", <-m.sent)
	}
}

func TestMailedTokensAreKeptAsHashes(t *testing.T) {
	m := withMail(t, false)
	ctx := t.Context()
	must(m.SignUp(ctx, "ada@example.com", secret, ""))(t)
	tokens := []string{m.token(t, "ada@example.com", "/verify-email"), m.forgot(t, "ada@example.com")}
	var kept string
	if err := m.pool.QueryRow(ctx, `select string_agg(t::text, ' ') || string_agg(encode(hash, 'escape'), ' ') from keep.mailed_tokens t`).
		Scan(&kept); err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		if strings.Contains(kept, token) {
			t.Errorf("%s is kept in %s", token, kept)
		}
	}
}

func TestVerifyEmail(t *testing.T) {
	m := withMail(t, false)
	ctx := t.Context()
	up := must(m.SignUp(ctx, "ada@example.com", secret, ""))(t)
	if up.EmailVerified {
		t.Error("an address is taken on trust")
	}
	token := m.token(t, "ada@example.com", "/verify-email")
	_, err := m.resetPassword(ctx, token, another)
	wantKind(t, err, commands.Invalid) // the token is for a different purpose
	m.c.add(3*24*time.Hour - time.Second)
	if err := m.VerifyEmail(ctx, token, secret, anyone); err != nil {
		t.Fatal(err)
	}
	wantKind(t, m.VerifyEmail(ctx, token, secret, anyone), commands.Invalid)
	in := must(m.refresh(ctx, up.RefreshToken))(t)
	if !in.EmailVerified || !must(m.Verify(ctx, in.IDToken))(t).EmailVerified {
		t.Error("the address is not verified")
	}

	must(m.SignUp(ctx, "bob@example.com", secret, ""))(t)
	late := m.token(t, "bob@example.com", "/verify-email")
	m.c.add(3 * 24 * time.Hour)
	wantKind(t, m.VerifyEmail(ctx, late, secret, anyone), commands.Invalid)
	if err := m.ForgotPassword(ctx, "bob@example.com"); err != nil {
		t.Fatal(err)
	}
	must(m.resetPassword(ctx, m.token(t, "bob@example.com", "/reset-password"), another))(t)
	if !must(m.SignIn(ctx, "bob@example.com", another))(t).EmailVerified {
		t.Error("a link that was opened does not verify the address that it was mailed to")
	}
}

func TestUpdatePassword(t *testing.T) {
	m := withMail(t, true)
	ctx := t.Context()
	one := must(m.SignUp(ctx, "ada@example.com", secret, ""))(t)
	two := must(m.SignIn(ctx, "ada@example.com", secret))(t)
	link := m.forgot(t, "ada@example.com")

	_, err := m.updatePassword(ctx, two.Claims, another, another)
	wantKind(t, err, commands.Unauthenticated)
	_, err = m.updatePassword(ctx, two.Claims, strings.Repeat("x", 1<<20), another)
	wantKind(t, err, commands.Unauthenticated)
	_, err = m.updatePassword(ctx, two.Claims, "", "short")
	if got := refusal(t, err, commands.Invalid).Fields; len(got) != 2 {
		t.Errorf("got %v", got)
	}
	_, err = m.updatePassword(ctx, people.Claims{UserID: "nobody"}, secret, another)
	wantKind(t, err, commands.Unauthenticated)

	ended := must(m.updatePassword(ctx, two.Claims, secret, another))(t)
	if ended.UserID != two.UserID || ended.Except != two.SessionID || !ended.Before.After(m.c.now()) {
		t.Errorf("got %+v", ended)
	}
	must(m.refresh(ctx, two.RefreshToken))(t)
	_, err = m.refresh(ctx, one.RefreshToken)
	wantKind(t, err, commands.Unauthenticated)
	_, err = m.SignIn(ctx, "ada@example.com", secret)
	wantKind(t, err, commands.Unauthenticated)
	must(m.SignIn(ctx, "ada@example.com", another))(t)
	_, err = m.resetPassword(ctx, link, secret)
	wantKind(t, err, commands.Invalid)
}

// fragile accepts mails, but reports a failure for the first.
type fragile struct {
	sentMails
	tries *atomic.Int64
}

func (f fragile) Send(ctx context.Context, m notify.Mail) error {
	_ = f.sentMails.Send(ctx, m)
	if f.tries.Add(1) == 1 {
		return errors.New("the line broke")
	}
	return nil
}

// A failed mail may have arrived. The next attempt has a new link and removes the old one.
func TestAnAttemptDropsTheLinkOfTheOneBefore(t *testing.T) {
	m := withMail(t, true)
	m.o.Mailer = fragile{m.sent, &atomic.Int64{}}
	ctx := t.Context()
	must(m.SignUp(ctx, "ada@example.com", secret, ""))(t)
	if err := m.ForgotPassword(ctx, "ada@example.com"); err != nil {
		t.Fatal(err)
	}
	m.settle(t)
	if len(m.sent) != 2 {
		t.Fatalf("%d mails", len(m.sent))
	}
	failed, second := link.FindStringSubmatch((<-m.sent).Text)[2], link.FindStringSubmatch((<-m.sent).Text)[2]
	_, err := m.resetPassword(ctx, failed, another)
	wantKind(t, err, commands.Invalid)
	must(m.resetPassword(ctx, second, another))(t)
}

// A request does the same for every address, so it reveals nothing: a job with only an id looks the address up.
func TestAskingForALinkDoesTheSameForEachAddress(t *testing.T) {
	m := withMail(t, true)
	must(m.SignUp(t.Context(), "ada@example.com", secret, ""))(t)
	for _, email := range []string{"ada@example.com", "eve@example.com", "ADA@example.com"} {
		if err := m.ForgotPassword(t.Context(), email); err != nil {
			t.Fatal(err)
		}
	}
	m.settle(t)
	var requests, jobs int
	var args string
	err := m.pool.QueryRow(t.Context(), `select (select count(*) from keep.reset_requests), count(*), string_agg(job::text, ' ') from jobs.river_job job where kind = 'mail.reset_link'`).
		Scan(&requests, &jobs, &args)
	if err != nil {
		t.Fatal(err)
	}
	if requests != 2 || jobs != 2 || strings.Contains(args, "@") || len(m.sent) != 1 {
		t.Errorf("%d requests, %d mails and %d jobs: %s", requests, len(m.sent), jobs, args)
	}
}

func TestConformance(t *testing.T) {
	m := withMail(t, false)
	identitytest.Run(t, identitytest.Subject{
		Identity: m, KnowsFirst: true,
		Token: func(t testing.TB, email string, verify bool, _ string) string {
			t.Helper()
			page := map[bool]string{true: "/verify-email", false: "/reset-password"}[verify]
			for deadline := time.After(time.Minute); ; {
				select {
				case mail := <-m.sent:
					if found := link.FindStringSubmatch(mail.Text); mail.To == email && found != nil && found[1] == page {
						return found[2]
					}
				case <-deadline:
					t.Fatalf("no link was mailed to %s", email)
				}
			}
		},
		Later: func(testing.TB) { m.c.add(time.Second) },
	})
}

// anyone lets any person verify their address.
func anyone(string) error { return nil }
