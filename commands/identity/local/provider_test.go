package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
	"flagledger/commands/jobs"
	"flagledger/commands/keep/keys"
	"flagledger/commands/notify"
	"flagledger/commands/people"
	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const secret = "correct horse battery"

// clock is a clock that a test sets.
type clock struct {
	sync.Mutex
	t time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.Lock()
	defer c.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.Lock()
	defer c.Unlock()
	c.t = c.t.Add(d)
}

func options(c *clock) Options {
	return Options{
		Issuer:               "http://localhost:8080",
		Audience:             "flagledger",
		AssumeEmailsVerified: true,
		Mailer:               make(sentMails, 100),
		Now:                  c.now,
		HashMemory:           8,
	}
}

// sentMails are the mails that were sent.
type sentMails chan notify.Mail

func (l sentMails) Send(_ context.Context, m notify.Mail) error {
	l <- m
	return nil
}

func start(t testing.TB, pool *pgxpool.Pool, o Options) *Provider {
	t.Helper()
	secret := must(keys.ParseSecret("a secret of thirty-two characters"))(t)
	o.Keys = must(keys.Open(t.Context(), pool, secret, "", o.Now, slog.New(slog.DiscardHandler)))(t)
	o.Links = jobs.NewLinks(must(jobs.Open(pool))(t))
	return New(pool, o)
}

// must fails the test on an error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// refusal checks that the error is a *commands.Error and returns it.
func refusal(t testing.TB, err error, kind commands.Kind) *commands.Error {
	t.Helper()
	e, ok := errors.AsType[*commands.Error](err)
	if !ok || e.Kind != kind {
		t.Fatalf("got error %v, want kind %d", err, kind)
	}
	return e
}

func wantKind(t testing.TB, err error, kind commands.Kind) {
	t.Helper()
	if e, ok := errors.AsType[*commands.Error](err); !ok || e.Kind != kind {
		t.Errorf("got error %v, want kind %d", err, kind)
	}
}

func TestSignUpThenSignIn(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	o := options(c)
	o.HashMemory = 0 // as in production
	p := start(t, pool, o)

	up := must(p.SignUp(t.Context(), " Ada@Example.com\n", secret, "Ada <Lovelace>"))(t)
	want := people.Claims{
		UserID: up.UserID, Email: "Ada@example.com", EmailVerified: true, EmailAssumed: true, DisplayName: "Ada <Lovelace>",
		Provider: "password", SessionID: up.SessionID, AuthTime: c.now(), ExpiresAt: c.now().Add(time.Hour),
	}
	if diff := cmp.Diff(want, up.Claims); diff != "" {
		t.Error(diff)
	}
	if id, err := uuid.Parse(up.UserID); err != nil || id.Version() != 7 {
		t.Errorf("user id %q is no UUID of version 7", up.UserID)
	}
	if up.ExpiresIn != time.Hour {
		t.Errorf("expires in %v", up.ExpiresIn)
	}
	if diff := cmp.Diff(want, must(p.Verify(t.Context(), up.IDToken))(t)); diff != "" {
		t.Error(diff)
	}

	c.add(90 * time.Minute)
	in := must(p.SignIn(t.Context(), "ada@example.COM ", secret))(t)
	if in.SessionID == up.SessionID {
		t.Error("two sign-ins share a session")
	}
	want.SessionID, want.AuthTime, want.ExpiresAt = in.SessionID, c.now(), c.now().Add(time.Hour)
	if diff := cmp.Diff(want, must(p.Verify(t.Context(), in.IDToken))(t)); diff != "" {
		t.Error(diff)
	}

	var kept string
	if err := pool.QueryRow(t.Context(), `select hash from keep.passwords where user_id = $1`, up.UserID).
		Scan(&kept); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(kept, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("kept %q", kept)
	}
}

func TestAddressesCountAsVerifiedInDevelopmentAlone(t *testing.T) {
	pool := pgtest.Pool(t)
	o := options(newClock())
	o.AssumeEmailsVerified = false
	production, development := start(t, pool, o), start(t, pool, options(newClock()))

	up := must(production.SignUp(t.Context(), "ada@example.com", secret, ""))(t)
	if up.EmailVerified || must(production.Verify(t.Context(), up.IDToken))(t).EmailVerified {
		t.Error("an address without a proof is verified in production")
	}
	if in := must(development.SignIn(t.Context(), "ada@example.com", secret))(t); !in.EmailVerified || !in.EmailAssumed {
		t.Error("an address is not taken to be verified in development")
	}

	up = must(development.SignUp(t.Context(), "bob@example.com", secret, ""))(t)
	for name, c := range map[string]people.Claims{
		"the sign-up": up.Claims, "the token": must(development.Verify(t.Context(), up.IDToken))(t),
		"refreshing": must(development.Refresh(t.Context(), up.RefreshToken, func(people.Claims) error { return nil }))(t).Claims,
	} {
		if !c.EmailVerified || !c.EmailAssumed {
			t.Errorf("an address is not taken to be verified in development by %s", name)
		}
	}
	for name, c := range map[string]people.Claims{
		"by a token from there": must(production.Verify(t.Context(), up.IDToken))(t),
		"by a sign-up there":    must(production.SignIn(t.Context(), "bob@example.com", secret))(t).Claims,
	} {
		if c.EmailVerified || c.EmailAssumed {
			t.Errorf("an address that development has taken on trust is verified in production %s", name)
		}
	}
	if err := development.MarkVerified(t.Context(), up.UserID); err != nil {
		t.Fatal(err)
	}
	if in := must(development.SignIn(t.Context(), "bob@example.com", secret))(t); !in.EmailVerified || in.EmailAssumed {
		t.Error("an address that was proved is only taken to be verified")
	}
}

func TestSignUpNamesEveryBadField(t *testing.T) {
	p := start(t, pgtest.Pool(t), options(newClock()))
	const (
		noEmail = commands.NotAnEmail
		short   = "must be at least 8 characters"
	)
	for name, c := range map[string]struct {
		email, password, displayName string
		want                         map[string]string
	}{
		"both":                   {"", "", "", map[string]string{"email": noEmail, "password": short}},
		"no domain":              {"ada", secret, "", map[string]string{"email": noEmail}},
		"with a name":            {"Ada <ada@example.com>", secret, "", map[string]string{"email": noEmail}},
		"with a comment":         {"ada@example.com (Ada)", secret, "", map[string]string{"email": noEmail}},
		"two":                    {"a@example.com, b@example.com", secret, "", map[string]string{"email": noEmail}},
		"zero byte":              {"a\x00@example.com", secret, "", map[string]string{"email": noEmail}},
		"bad UTF-8":              {"a\xff@example.com", secret, "", map[string]string{"email": noEmail}},
		"long address":           {strings.Repeat("a", 243) + "@example.com", secret, "", map[string]string{"email": "must be at most 254 bytes"}},
		"short password":         {"ada@example.com", "1234567", "", map[string]string{"password": short}},
		"few characters":         {"ada@example.com", "äöüäöüä", "", map[string]string{"password": short}},
		"long password":          {"ada@example.com", strings.Repeat("x", 1025), "", map[string]string{"password": "must be at most 1024 bytes"}},
		"long name":              {"ada@example.com", secret, strings.Repeat("é", 201), map[string]string{"displayName": "must be at most 200 characters"}},
		"zero byte in the name":  {"ada@example.com", secret, "\x00", map[string]string{"displayName": "must be text"}},
		"bad UTF-8 in the name":  {"ada@example.com", secret, "\xff", map[string]string{"displayName": "must be text"}},
		"all but not the lesser": {"ada", "x", "\x00", map[string]string{"email": noEmail, "password": short, "displayName": "must be text"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p.SignUp(t.Context(), c.email, c.password, c.displayName)
			if diff := cmp.Diff(c.want, refusal(t, err, commands.Invalid).Fields); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLongestFieldsMakeATokenThatVerifies(t *testing.T) {
	p := start(t, pgtest.Pool(t), options(newClock()))
	label := strings.Repeat("x", 63)
	email := strings.Repeat("&", 64) + "@" + label + "." + label + "." + label[:61]
	up := must(p.SignUp(t.Context(), email, strings.Repeat("x", 1024), strings.Repeat("\u2028", 200)))(t)
	must(p.Verify(t.Context(), up.IDToken))(t)
	must(p.SignIn(t.Context(), email, strings.Repeat("x", 1024)))(t)
	t.Logf("a token of %d bytes", len(up.IDToken))
}

func TestSignUpsOfOneAddressAtOnceMakeOnePerson(t *testing.T) {
	pool := pgtest.Pool(t)
	nodes := []*Provider{start(t, pool, options(newClock())), start(t, pool, options(newClock()))}
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			email := []string{"ada@example.com", "ADA@example.com"}[i/2%2]
			_, errs[i] = nodes[i%2].SignUp(t.Context(), email, secret, "")
		})
	}
	all.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		} else {
			wantKind(t, err, commands.Conflict)
		}
	}
	var people, passwords, sessions int
	err := pool.QueryRow(t.Context(), `
		select (select count(*) from keep.people), (select count(*) from keep.passwords), (select count(*) from keep.refresh_tokens)`).
		Scan(&people, &passwords, &sessions)
	if err != nil || made != 1 || people != 1 || passwords != 1 || sessions != 1 {
		t.Errorf("made %d; %d people, %d passwords, %d sessions (%v)", made, people, passwords, sessions, err)
	}
}

func TestSignInDoesNotTellWhatIsWrong(t *testing.T) {
	pool := pgtest.Pool(t)
	p := start(t, pool, options(newClock()))
	must(p.SignUp(t.Context(), "ada@example.com", secret, ""))(t)
	// A person who signed up with another provider has no password here.
	if _, err := pool.Exec(
		t.Context(), `insert into keep.people (user_id, email, created_at) values ('x', 'bob@example.com', now())`,
	); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ email, password string }{
		"wrong password":   {"ada@example.com", "wrong horse battery"},
		"no password":      {"ada@example.com", ""},
		"unknown address":  {"eve@example.com", secret},
		"no password kept": {"bob@example.com", secret},
		"no address":       {"\x00\xff", secret},
		"long password":    {"ada@example.com", strings.Repeat("x", 1<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p.SignIn(t.Context(), c.email, c.password)
			if got := refusal(t, err, commands.Unauthenticated).Error(); got != "the e-mail address or the password is wrong" {
				t.Errorf("got %q", got)
			}
		})
	}

	// An unknown address waits for a hashing slot, as a known one does.
	busy := &commands.Error{Kind: commands.Unavailable, Detail: "too many sign-ins"}
	p.o.Hash = func(context.Context, func()) error { return busy }
	for _, email := range []string{"ada@example.com", "eve@example.com"} {
		if _, err := p.SignIn(t.Context(), email, secret); !errors.Is(err, busy) {
			t.Errorf("%s: got %v", email, err)
		}
	}
}

func TestPasswordThatCannotBeReadIsAFault(t *testing.T) {
	pool := pgtest.Pool(t)
	p := start(t, pool, options(newClock()))
	must(p.SignUp(t.Context(), "ada@example.com", secret, ""))(t)
	if _, err := pool.Exec(
		t.Context(),
		`update keep.passwords set hash = '$argon2id$v=19$m=4294967295,t=2,p=1$c29tZXNhbHQ$c29tZXNhbHRzb21lc2FsdA'`,
	); err != nil {
		t.Fatal(err)
	}
	_, err := p.SignIn(t.Context(), "ada@example.com", secret)
	if wantKind(t, err, commands.Internal); strings.Contains(err.Error(), "c29tZX") {
		t.Errorf("the error shows the hash: %v", err)
	}
}

func TestDatabaseTrouble(t *testing.T) {
	pool := pgtest.Pool(t)
	p := start(t, pool, options(newClock()))
	up := must(p.SignUp(t.Context(), "ada@example.com", secret, ""))(t)

	if _, err := pool.Exec(t.Context(), `alter table keep.people rename to folk`); err != nil {
		t.Fatal(err)
	}
	_, err := p.SignIn(t.Context(), "ada@example.com", secret)
	wantKind(t, err, commands.Internal)
	readOnly := fmt.Sprintf("alter database %s set default_transaction_read_only = on",
		pgx.Identifier{pool.Config().ConnConfig.Database}.Sanitize())
	if _, err := pool.Exec(t.Context(), `alter table keep.folk rename to people; `+readOnly); err != nil {
		t.Fatal(err)
	}
	pool.Reset() // a standby, as after a failover
	_, err = p.SignIn(t.Context(), "ada@example.com", secret)
	wantKind(t, err, commands.Unavailable)

	pool.Close()
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"sign up": func() error { _, err := p.SignUp(ctx, "bob@example.com", secret, ""); return err },
		"sign in": func() error { _, err := p.SignIn(ctx, "ada@example.com", secret); return err },
		"refresh": func() error { _, err := p.refresh(ctx, up.RefreshToken); return err },
		"revoke":  func() error { return p.Revoke(ctx, up.UserID, up.SessionID) },
	} {
		t.Run(name, func(t *testing.T) {
			if refusal(t, call(), commands.Unavailable).Err == nil {
				t.Error("the error does not tell its cause")
			}
		})
	}
	must(p.Verify(ctx, up.IDToken))(t) // needs no database
}

func TestErrorsTellNoSecrets(t *testing.T) {
	pool := pgtest.Pool(t)
	p := start(t, pool, options(newClock()))
	ctx := t.Context()
	up := must(p.SignUp(ctx, "ada@example.com", secret, ""))(t)
	next := must(p.refresh(ctx, up.RefreshToken))(t)

	var told []error
	note := func(_ any, err error) {
		t.Helper()
		if err == nil {
			t.Error("an error was due")
		}
		told = append(told, err)
	}
	note(p.SignUp(ctx, "ada@example.com", secret, ""))
	note(p.SignUp(ctx, "ada", secret, ""))
	note(p.SignIn(ctx, "ada@example.com", secret+"!"))
	note(p.refresh(ctx, up.RefreshToken)) // again
	if err := p.Revoke(ctx, up.UserID, up.SessionID); err != nil {
		t.Fatal(err)
	}
	note(p.refresh(ctx, next.RefreshToken))
	note(p.refresh(ctx, next.RefreshToken+"!"))
	note(p.Verify(ctx, next.IDToken+"AAAA"))
	note(p.Verify(ctx, strings.ToLower(next.IDToken)))
	if _, err := pool.Exec(ctx, `drop table keep.refresh_tokens`); err != nil {
		t.Fatal(err)
	}
	note(p.SignIn(ctx, "ada@example.com", secret))
	note(p.SignUp(ctx, "bob@example.com", secret, ""))
	note(p.refresh(ctx, next.RefreshToken))

	var text string
	for _, err := range told {
		text += fmt.Sprintf("%v\n%+v\n", err, err)
	}
	for _, hidden := range []string{secret, up.RefreshToken, next.RefreshToken, up.IDToken, next.IDToken, "argon2id"} {
		for part := range strings.SplitSeq(hidden, ".") {
			if strings.Contains(strings.ToLower(text), strings.ToLower(part)) {
				t.Errorf("an error tells %q:\n%s", part, text)
			}
		}
	}
}
