package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
	"flagledger/commands/people"
	"flagledger/migrations/pgtest"
)

// refresh refreshes a session without a check.
func (p *Provider) refresh(ctx context.Context, token string) (people.Session, error) {
	return p.Refresh(ctx, token, func(people.Claims) error { return nil })
}

func count(t testing.TB, pool *pgxpool.Pool, where string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `select count(*) from keep.refresh_tokens where `+where, args...).
		Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRefresh(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	p := start(t, pool, options(c))
	up := must(p.SignUp(t.Context(), "ada@example.com", secret, "Ada"))(t)
	signedUp := c.now()

	c.add(2 * time.Hour)
	if _, err := pool.Exec(
		t.Context(), `update keep.people set display_name = 'Countess', email = 'ada@example.org'`,
	); err != nil {
		t.Fatal(err)
	}
	next := must(p.refresh(t.Context(), up.RefreshToken))(t)
	want := up.Claims
	want.DisplayName, want.Email, want.ExpiresAt = "Countess", "ada@example.org", c.now().Add(time.Hour)
	if diff := cmp.Diff(want, next.Claims); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, must(p.Verify(t.Context(), next.IDToken))(t)); diff != "" {
		t.Error(diff)
	}
	if got := payloadOf(t, next.IDToken)["auth_time"]; got != float64(signedUp.Unix()) {
		t.Errorf("auth_time %v, want that of the sign-up, %d", got, signedUp.Unix())
	}
	if next.RefreshToken == up.RefreshToken {
		t.Error("the refresh token was not rotated")
	}

	// Each token is valid for 30 days.
	c.add(29 * 24 * time.Hour)
	next = must(p.refresh(t.Context(), next.RefreshToken))(t)
	c.add(30*24*time.Hour - time.Second)
	next = must(p.refresh(t.Context(), next.RefreshToken))(t)
	c.add(30 * 24 * time.Hour)
	_, err := p.refresh(t.Context(), next.RefreshToken)
	wantKind(t, err, commands.Unauthenticated)
}

func TestRefreshTokenUsedTwiceEndsItsSessionAlone(t *testing.T) {
	pool := pgtest.Pool(t)
	p := start(t, pool, options(newClock()))
	first := must(p.SignUp(t.Context(), "ada@example.com", secret, ""))(t)
	other := must(p.SignIn(t.Context(), "ada@example.com", secret))(t)
	second := must(p.refresh(t.Context(), first.RefreshToken))(t)
	third := must(p.refresh(t.Context(), second.RefreshToken))(t)

	for _, used := range []string{first.RefreshToken, second.RefreshToken, first.RefreshToken} {
		_, err := p.refresh(t.Context(), used)
		wantKind(t, err, commands.Unauthenticated)
		if reused, ok := errors.AsType[*people.ReusedTokenError](err); !ok ||
			*reused != (people.ReusedTokenError{UserID: first.UserID, SessionID: first.SessionID}) {
			t.Errorf("the session to end is not told: %v", err)
		}
	}
	if err := p.Revoke(t.Context(), first.UserID, first.SessionID); err != nil {
		t.Fatal(err)
	}
	for _, dead := range []string{first.RefreshToken, third.RefreshToken, second.RefreshToken} {
		_, err := p.refresh(t.Context(), dead)
		wantKind(t, err, commands.Unauthenticated)
	}
	if n := count(t, pool, "session_id = $1", first.SessionID); n != 0 {
		t.Errorf("%d tokens of the session are left", n)
	}
	must(p.refresh(t.Context(), other.RefreshToken))(t)
}

func TestRefreshesOfOneTokenAtOnce(t *testing.T) {
	pool := pgtest.Pool(t)
	nodes := []*Provider{start(t, pool, options(newClock())), start(t, pool, options(newClock()))}
	for range 10 {
		if _, err := pool.Exec(t.Context(), `truncate keep.people, keep.passwords`); err != nil {
			t.Fatal(err)
		}
		up := must(nodes[0].SignUp(t.Context(), "ada@example.com", secret, ""))(t)
		got := make([]people.Session, 6)
		errs := make([]error, len(got))
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() { got[i], errs[i] = nodes[i%2].refresh(t.Context(), up.RefreshToken) })
		}
		all.Wait()
		succeeded := 0
		for i, err := range errs {
			if err == nil {
				succeeded++
				if got[i].SessionID != up.SessionID {
					t.Errorf("the session is said to be %q", got[i].SessionID)
				}
			} else if reused, ok := errors.AsType[*people.ReusedTokenError](err); !ok || reused.SessionID != up.SessionID {
				t.Errorf("the session to end is not told: %v", err)
			}
		}
		if succeeded != 1 {
			t.Errorf("%d refreshes succeeded, want 1", succeeded)
		}
	}
}

// The end of a session must also end the token that a concurrent refresh has added, which is not committed yet.
func TestRevokeWaitsForARefreshUnderWay(t *testing.T) {
	pool := pgtest.Pool(t)
	p := start(t, pool, options(newClock()))
	up := must(p.SignUp(t.Context(), "ada@example.com", secret, ""))(t)
	s := session{id: up.SessionID, userID: up.UserID, authTime: p.now()}

	tx := must(pool.Begin(t.Context()))(t)
	defer tx.Rollback(context.Background()) //nolint:errcheck // already committed
	if err := lock(t.Context(), tx, s); err != nil {
		t.Fatal(err)
	}
	added := must(grant(t.Context(), tx, s, p.now()))(t)
	revoked := make(chan error, 1)
	go func() { revoked <- p.Revoke(t.Context(), up.UserID, up.SessionID) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // at most, on a busy machine
	defer cancel()
	for waiting := false; !waiting; time.Sleep(5 * time.Millisecond) {
		if len(revoked) > 0 {
			t.Fatal("it did not wait")
		}
		err := pool.QueryRow(ctx, `select exists (select from pg_locks where not granted and database = (select oid from pg_database where datname = current_database()))`).
			Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-revoked; err != nil {
		t.Fatal(err)
	}
	_, err := p.refresh(t.Context(), added)
	wantKind(t, err, commands.Unauthenticated)
}

func TestRevoke(t *testing.T) {
	p := start(t, pgtest.Pool(t), options(newClock()))
	ctx := t.Context()
	ended := must(p.SignUp(ctx, "ada@example.com", secret, ""))(t)
	other := must(p.SignIn(ctx, "ada@example.com", secret))(t)
	bob := must(p.SignUp(ctx, "bob@example.com", secret, ""))(t)

	for _, who := range []struct{ user, session string }{
		{bob.UserID, ended.SessionID}, {ended.UserID, "none"}, {"", ""},
	} {
		if err := p.Revoke(ctx, who.user, who.session); err != nil {
			t.Fatal(err)
		}
	}
	ended = must(p.refresh(ctx, ended.RefreshToken))(t)
	for range 2 {
		if err := p.Revoke(ctx, ended.UserID, ended.SessionID); err != nil {
			t.Fatal(err)
		}
	}
	_, err := p.refresh(ctx, ended.RefreshToken)
	wantKind(t, err, commands.Unauthenticated)
	must(p.refresh(ctx, other.RefreshToken))(t)
	must(p.refresh(ctx, bob.RefreshToken))(t)
	must(p.Verify(ctx, ended.IDToken))(t) // until it expires
}

func TestRefreshTokensAreKeptAsHashesAlone(t *testing.T) {
	pool := pgtest.Pool(t)
	p := start(t, pool, options(newClock()))
	up := must(p.SignUp(t.Context(), "ada@example.com", secret, ""))(t)
	sum := sha256.Sum256([]byte(up.RefreshToken))
	if len(up.RefreshToken) != 43 || count(t, pool, "hash = $1", sum[:]) != 1 {
		t.Errorf("a token of %d characters is not kept as its hash", len(up.RefreshToken))
	}
	if n := count(t, pool, "to_jsonb(refresh_tokens)::text like '%' || $1 || '%'", up.RefreshToken); n != 0 {
		t.Error("the token itself is kept")
	}
}

func TestRefreshRefusesGarbage(t *testing.T) {
	p := start(t, pgtest.Pool(t), options(newClock()))
	for _, garbage := range []string{"", "x", strings.Repeat("A", 43), strings.Repeat("\x00", 43), strings.Repeat("A", 1<<20)} {
		_, err := p.refresh(t.Context(), garbage)
		wantKind(t, err, commands.Unauthenticated)
	}
}

func TestRefreshOfAnErasedPerson(t *testing.T) {
	pool := pgtest.Pool(t)
	p := start(t, pool, options(newClock()))
	up := must(p.SignUp(t.Context(), "ada@example.com", secret, ""))(t)
	if _, err := pool.Exec(t.Context(), `update keep.people set email = null, display_name = ''`); err != nil {
		t.Fatal(err)
	}
	_, err := p.refresh(t.Context(), up.RefreshToken)
	wantKind(t, err, commands.Unauthenticated)
	_, err = p.SignIn(t.Context(), "ada@example.com", secret)
	wantKind(t, err, commands.Unauthenticated)
}

func TestRefreshThatFailsUsesNothingUp(t *testing.T) {
	p := start(t, pgtest.Pool(t), options(newClock()))
	up := must(p.SignUp(t.Context(), "ada@example.com", secret, ""))(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.refresh(cancelled, up.RefreshToken)
	wantKind(t, err, commands.Unavailable)
	if !errors.Is(err, context.Canceled) || errors.Is(err, pgx.ErrNoRows) {
		t.Errorf("got %v", err)
	}
	must(p.refresh(t.Context(), up.RefreshToken))(t)
}
