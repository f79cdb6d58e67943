package local

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/commands"
)

// A sign-in with the old password that still hashes during the change must not start a session.
func TestOldPasswordBeginsNoSessionOnceItIsChanged(t *testing.T) {
	m := withMail(t, true)
	ctx := t.Context()
	up := must(m.SignUp(ctx, "ada@example.com", secret, ""))(t)
	ends, err := m.prepareChange(ctx, commands.EndSessions{UserID: up.UserID}, `select true`)
	if err != nil {
		t.Fatal(err)
	}
	locked, release, changed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		changed <- m.setPassword(ctx, ends, hash(another, recommendedMemory).String(), func(pgx.Tx) error {
			close(locked)
			<-release
			return nil
		})
	}()
	<-locked
	signedIn, refreshed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := m.SignIn(ctx, "ada@example.com", secret)
		signedIn <- err
	}()
	go func() {
		_, err := m.refresh(ctx, up.RefreshToken)
		refreshed <- err
	}()
	for waiting := 0; waiting < 2; { // both wait for the change
		err := m.pool.QueryRow(ctx, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).
			Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	if err := <-changed; err != nil {
		t.Fatal(err)
	}
	wantKind(t, <-signedIn, commands.Unauthenticated)
	wantKind(t, <-refreshed, commands.Unauthenticated)
	var sessions int
	if err := m.pool.QueryRow(ctx, `select count(*) from keep.refresh_tokens`).
		Scan(&sessions); err != nil ||
		sessions != 0 {
		t.Errorf("%d sessions (%v)", sessions, err)
	}
}

// lapse waits until a new password may no longer be set.
func (m mailing) lapse(t *testing.T) {
	t.Helper()
	if _, err := m.pool.Exec(
		t.Context(), `update keep.passwords set changing_until = changing_until - interval '1 minute'`,
	); err != nil {
		t.Fatal(err)
	}
}

func TestSessionsThatBeginWhileAPasswordIsChanged(t *testing.T) {
	m := withMail(t, true)
	ctx := t.Context()
	up := must(m.SignUp(ctx, "ada@example.com", secret, ""))(t)
	change := must(m.PrepareUpdate(ctx, up.Claims, secret, another))(t)
	m.c.add(5 * time.Second)
	between := must(m.SignIn(ctx, "ada@example.com", secret))(t)
	if !between.AuthTime.Before(change.Ends.Before) {
		t.Errorf("a session that began at %v with the old password outlives those before %v", between.AuthTime,
			change.Ends.Before)
	}
	if err := change.Set(ctx); err != nil {
		t.Fatal(err)
	}
	_, err := m.refresh(ctx, between.RefreshToken)
	wantKind(t, err, commands.Unauthenticated)
	must(m.refresh(ctx, up.RefreshToken))(t) // the session that changed the password
	if after := must(m.SignIn(ctx, "ada@example.com", another))(t); after.AuthTime.Before(change.Ends.Before) {
		t.Errorf("a session of %v with the new password ends with those before %v", after.AuthTime, change.Ends.Before)
	}
}

func TestAPasswordIsNotSetTooLate(t *testing.T) {
	m := withMail(t, true)
	ctx := t.Context()
	up := must(m.SignUp(ctx, "ada@example.com", secret, ""))(t)
	link := m.forgot(t, "ada@example.com")
	change := must(m.PrepareReset(ctx, link, another))(t)
	m.lapse(t)
	since := must(m.SignIn(ctx, "ada@example.com", secret))(t)
	if since.AuthTime.Before(change.Ends.Before) {
		t.Errorf("a session that began at %v is among those before %v, which have ended for nothing", since.AuthTime,
			change.Ends.Before)
	}
	wantKind(t, change.Set(ctx), commands.Unavailable)
	must(m.refresh(ctx, since.RefreshToken))(t)
	must(m.refresh(ctx, up.RefreshToken))(t)
	must(m.SignIn(ctx, "ada@example.com", secret))(t)
	must(m.resetPassword(ctx, link, another))(t)
	must(m.SignIn(ctx, "ada@example.com", another))(t)
}

// Each change ends its own sessions: applied beside the second, the first one would leave sessions that began in
// between.
func TestALaterChangeOfAPasswordGoesFirst(t *testing.T) {
	m := withMail(t, true)
	ctx := t.Context()
	up := must(m.SignUp(ctx, "ada@example.com", secret, ""))(t)
	first := must(m.PrepareUpdate(ctx, up.Claims, secret, "the first password"))(t)
	second := must(m.PrepareReset(ctx, m.forgot(t, "ada@example.com"), another))(t)
	if !second.Ends.Before.After(first.Ends.Before) {
		t.Errorf("they end the sessions before %v and %v", first.Ends.Before, second.Ends.Before)
	}
	wantKind(t, first.Set(ctx), commands.Unavailable)
	if err := second.Set(ctx); err != nil {
		t.Fatal(err)
	}
	wantKind(t, second.Set(ctx), commands.Invalid) // the link has been used
	must(m.SignIn(ctx, "ada@example.com", another))(t)
}

// A session of a node whose clock is ahead ends with the old password too.
func TestClocksOfNodesDiffer(t *testing.T) {
	m := withMail(t, true)
	ctx := t.Context()
	up := must(m.SignUp(ctx, "ada@example.com", secret, ""))(t)
	m.c.add(7500 * time.Millisecond)
	ahead := must(m.SignIn(ctx, "ada@example.com", secret))(t)
	m.c.add(-7500 * time.Millisecond)
	ends := must(m.updatePassword(ctx, up.Claims, secret, another))(t)
	if !ahead.AuthTime.Before(ends.Before) || !ends.Before.Equal(ends.Before.Truncate(time.Second)) {
		t.Errorf("a session that began at %v does not end with those before %v", ahead.AuthTime, ends.Before)
	}
}

func TestPasswordsOfAnErasedPersonAreNotSet(t *testing.T) {
	m := withMail(t, true)
	ctx := t.Context()
	up := must(m.SignUp(ctx, "ada@example.com", secret, ""))(t)
	reset := must(m.PrepareReset(ctx, m.forgot(t, "ada@example.com"), another))(t)
	update := must(m.PrepareUpdate(ctx, up.Claims, secret, another))(t)
	if err := NewAccounts(m.pool).Erase(ctx, up.UserID); err != nil {
		t.Fatal(err)
	}
	wantKind(t, reset.Set(ctx), commands.Invalid)
	wantKind(t, update.Set(ctx), commands.Unauthenticated)
}

// A request ends no session if another uses its link meanwhile.
func TestALinkThatIsUsedTwiceAtOnce(t *testing.T) {
	m := withMail(t, true)
	ctx := t.Context()
	must(m.SignUp(ctx, "ada@example.com", secret, ""))(t)
	link := m.forgot(t, "ada@example.com")
	hashing := m.o.Hash
	m.o.Hash = func(ctx context.Context, hash func()) error { // after the link was looked up
		m.o.Hash = hashing
		must(m.resetPassword(ctx, link, another))(t)
		return hashing(ctx, hash)
	}
	_, err := m.PrepareReset(ctx, link, "a third password")
	wantKind(t, err, commands.Invalid)
	first := must(m.SignIn(ctx, "ada@example.com", another))(t)
	ends := must(m.updatePassword(ctx, first.Claims, another, secret))(t)
	if !first.AuthTime.Before(ends.Before) || ends.Before.Sub(first.AuthTime) > time.Minute {
		t.Errorf("a session began at %v, and a change ends those before %v", first.AuthTime, ends.Before)
	}
	must(m.refresh(ctx, first.RefreshToken))(t)
}

func TestSessionsOfAPersonEnd(t *testing.T) {
	m := withMail(t, true)
	ctx := t.Context()
	up := must(m.SignUp(ctx, "ada@example.com", secret, ""))(t)
	link := m.forgot(t, "ada@example.com")
	change := must(m.PrepareReset(ctx, link, another))(t)
	ends := must(m.EndSessions(ctx, up.UserID, m.c.now()))(t)
	if ends.UserID != up.UserID || !up.AuthTime.Before(ends.Before) || ends.Except != "" {
		t.Errorf("a session that began at %v ends by %+v", up.AuthTime, ends)
	}
	wantKind(t, change.Set(ctx), commands.Invalid)
	_, err := m.resetPassword(ctx, link, another)
	wantKind(t, err, commands.Invalid)
	_, err = m.refresh(ctx, up.RefreshToken)
	wantKind(t, err, commands.Unauthenticated)
	if again := must(m.EndSessions(ctx, up.UserID, up.AuthTime))(t); again != ends {
		t.Errorf("repeated, it ends %+v, and before %+v", again, ends)
	}
	if in := must(m.SignIn(ctx, "ada@example.com", secret))(t); in.AuthTime.Before(ends.Before) {
		t.Errorf("a session that began at %v is among those before %v", in.AuthTime, ends.Before)
	}
	if none := must(m.EndSessions(ctx, "nobody", m.c.now()))(t); none.UserID != "nobody" {
		t.Errorf("got %+v", none)
	}
}
