package http_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/keep/directory"
)

// noted counts the pending members that an address is noted for.
func noted(s *nodetest.Service, email string) (n int) {
	s.T.Helper()
	conn, err := pgx.Connect(s.T.Context(), s.DatabaseURL)
	if err != nil {
		s.T.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(s.T.Context())) }()
	if err := conn.QueryRow(s.T.Context(), `select count(*) from keep.pending_members where email = $1`, email).
		Scan(&n); err != nil {
		s.T.Fatal(err)
	}
	return n
}

func TestAFewTenantsAreJoinedAtASignIn(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	boss := s.SignUp(nodetest.Address())
	email := nodetest.Address()
	var tenants []*nodetest.Client
	for range 22 {
		tenant := boss.NewTenant("t")
		tenant.Call("POST", usersPath(tenant), map[string]string{"email": email, "role": "viewer"}).Want(201)
		tenants = append(tenants, tenant)
	}
	colleague := s.SignUp(email)
	// one is their own
	joined := func() int { return len(colleague.Call("GET", "/api/v1/tenants", nil).Want(200).List()) - 1 }
	nodetest.Same(t, "joined at first", joined(), 20)
	// who has just been invited does not wait
	colleague.Call("GET", usersPath(tenants[21]), nil, "X-Tenant-ID", tenants[21].Tenant).Want(200)
	account{email: email}.signIn(colleague)
	nodetest.Same(t, "joined then", []int{joined(), noted(s, email)}, []int{22, 0})
}

// The address is noted before the fact: whoever signs in between is not forgotten.
func TestSigningInWhileBeingInvited(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	boss := s.SignUp(nodetest.Address())
	email := nodetest.Address()
	pool, err := node.OpenPool(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	pending, err := directory.New(pool, time.Now).AddPending(t.Context(), boss.Tenant, email, uuid.NewString(), false)
	if err != nil {
		t.Fatal(err)
	}
	colleague := s.SignUp(email)
	nodetest.Same(t, "noted while the fact is under way", noted(s, email), 1)
	// Had the fact never come, the note would not stay.
	sql(s, `update keep.pending_members set created_at = now() - interval '1 hour' where id = $1`, pending)
	account{email: email}.signIn(colleague)
	nodetest.Same(t, "noted in vain", noted(s, email), 0)
}

// A pending member whose address has been verified since is a member already, although they have not signed in again.
func TestInvitedBeforeTheAddressIsVerified(t *testing.T) {
	t.Parallel()
	s, server := mailed(t, "production")
	boss := verifyAddress(s.SignUp(nodetest.Address()))
	colleague := newAccount(boss)
	_, token := linkTo(t, server, colleague.email, 1)
	invitation := map[string]string{"email": colleague.email, "role": "developer"}
	boss.Call("POST", usersPath(boss), invitation).Want(201).Shows(map[string]any{"pending": true})
	s.Anonymous().
		Call("POST", "/api/v1/auth/verify-email", map[string]string{"token": token, "password": nodetest.Password}).
		Want(200)
	boss.Call("POST", usersPath(boss), invitation).Refused(409)
	colleague.signIn(boss)
	nodetest.Same(t, "members", nodetest.Column(boss.Call("GET", usersPath(boss), nil).Want(200).List(), "email")[1:],
		[]string{colleague.email})
	boss.Call("POST", usersPath(boss), invitation).Refused(409)
}

// Whoever was invited and has joined since is shown as they were invited to a request that is made again.
func TestInvitedAgainUnderTheKey(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	boss := s.SignUp(nodetest.Address())
	invitation := map[string]string{"email": nodetest.Address(), "role": "developer"}
	first := keyed(boss, "k", "POST", usersPath(boss), invitation).Want(201)
	s.SignUp(invitation["email"])
	forgetAnswers(s)
	carriedOutAgain(keyed(boss, "k", "POST", usersPath(boss), invitation), first)
	nodetest.Same(t, "members", len(boss.Call("GET", usersPath(boss), nil).Want(200).List()), 2)
}
