package main

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"flagledger/commands/keep/directory"
	"flagledger/events"
	"flagledger/migrations/pgtest"
)

// noted counts the pending members that an address is noted for.
func (s *service) noted(email string) (n int) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.databaseURL)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(s.t.Context())) }()
	if err := conn.QueryRow(s.t.Context(), `select count(*) from keep.pending_members where email = $1`, email).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func TestAFewTenantsAreJoinedAtASignIn(t *testing.T) {
	t.Parallel()
	s := newService(t)
	boss := s.signUp(address())
	email := address()
	var tenants []*client
	for range 22 {
		tenant := boss.newTenant("t")
		tenant.call("POST", usersPath(tenant), map[string]string{"email": email, "role": "viewer"}).want(201)
		tenants = append(tenants, tenant)
	}
	colleague := s.signUp(email)
	joined := func() int { return len(colleague.call("GET", "/api/v1/tenants", nil).want(200).list()) - 1 } // one is his own
	same(t, "joined at first", joined(), 20)
	colleague.call("GET", usersPath(tenants[21]), nil, "X-Tenant-ID", tenants[21].tenant).want(200) // who has just been invited does not wait
	account{email: email}.signIn(colleague)
	same(t, "joined then", []int{joined(), s.noted(email)}, []int{22, 0})
}

func TestATenantThatCannotBeJoinedKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	s := newService(t)
	if s.config.EventStoreURL != "" {
		t.Skip("it changes the log of the Postgres engine")
	}
	boss := s.signUp(address())
	email := address()
	tenants := []*client{boss.newTenant("broken"), boss.newTenant("sound")}
	for _, c := range tenants {
		c.call("POST", usersPath(c), map[string]string{"email": email, "role": "viewer"}).want(201)
	}
	rename := func(name string) {
		s.sql(`alter table events.event disable trigger never_changed`)
		s.sql(`update events.event set name = $1 where stream = $2 and revision = 1`, name, events.TenantStream(tenants[0].tenant))
		s.sql(`alter table events.event enable trigger never_changed`)
	}
	rename("of.the.future")
	colleague := s.signUp(email)
	joined := func() []any { return column(colleague.call("GET", "/api/v1/tenants", nil).want(200).list(), "name") }
	same(t, "joined", joined(), []string{"sound", "Personal workspace"})
	rename(events.TenantCreated{}.StoredName())
	account{email: email}.signIn(colleague)
	same(t, "joined at the next sign-in", []any{len(joined()), s.noted(email)}, []any{3, 0})
}

// The address is noted before the fact: whoever signs in between is not forgotten.
func TestSigningInWhileBeingInvited(t *testing.T) {
	t.Parallel()
	s := newService(t)
	boss := s.signUp(address())
	email := address()
	pool, err := openPool(t.Context(), s.databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	_, pending, err := directory.New(pool).FindOrAddPending(t.Context(), boss.tenant, email, uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	colleague := s.signUp(email)
	same(t, "noted while the fact is under way", s.noted(email), 1)
	// Had the fact never come, the note would not stay.
	s.sql(`update keep.pending_members set created_at = now() - interval '1 hour' where id = $1`, pending)
	account{email: email}.signIn(colleague)
	same(t, "noted in vain", s.noted(email), 0)
	_, again, err := directory.New(pool).FindOrAddPending(t.Context(), boss.tenant, email, pending)
	if err != nil || again != "" {
		t.Fatalf("a person with an account is noted as %q (%v)", again, err)
	}
}

// A pending member whose address has been verified since is a member already, although he has not signed in again.
func TestInvitedBeforeTheAddressIsVerified(t *testing.T) {
	t.Parallel()
	s, server := mailed(t, "production")
	boss := s.signUp(address())
	colleague := boss.account()
	_, token := linkTo(t, server, colleague.email, 1)
	invitation := map[string]string{"email": colleague.email, "role": "developer"}
	boss.call("POST", usersPath(boss), invitation).want(201).shows(map[string]any{"pending": true})
	s.anonymous().call("POST", "/api/v1/auth/verify-email", map[string]string{"token": token, "password": password}).want(200)
	boss.call("POST", usersPath(boss), invitation).refused(409)
	colleague.signIn(boss)
	same(t, "members", column(boss.call("GET", usersPath(boss), nil).want(200).list(), "email")[1:], []string{colleague.email})
	boss.call("POST", usersPath(boss), invitation).refused(409)
}

// Whoever was invited and has joined since is shown as he was invited to a request that is made again.
func TestInvitedAgainUnderTheKey(t *testing.T) {
	t.Parallel()
	s := serviceOn(t, pgtest.URL(t))
	boss := s.signUp(address())
	invitation := map[string]string{"email": address(), "role": "developer"}
	first := boss.keyed("k", "POST", usersPath(boss), invitation).want(201)
	s.signUp(invitation["email"])
	s.forgetAnswers()
	boss.keyed("k", "POST", usersPath(boss), invitation).is(first).notReplayed()
	same(t, "members", len(boss.call("GET", usersPath(boss), nil).want(200).list()), 2)
}
