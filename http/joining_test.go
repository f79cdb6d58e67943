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

// noted counts the pending members recorded for an address.
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
	// a person who was just invited does not wait
	colleague.Call("GET", usersPath(tenants[21]), nil, "X-Tenant-ID", tenants[21].Tenant).Want(200)
	account{email: email}.signIn(colleague)
	nodetest.Same(t, "joined then", []int{joined(), noted(s, email)}, []int{22, 0})
}

// The address is stored before the fact, so that a concurrent sign-in does not lose the invitation.
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
	// If the fact had never followed, the stored address would be removed.
	sql(s, `update keep.pending_members set created_at = now() - interval '1 hour' where id = $1`, pending)
	account{email: email}.signIn(colleague)
	nodetest.Same(t, "noted in vain", noted(s, email), 0)
}

// A pending member with a newly verified address is a member already, before they sign in again.
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

// A repeated invitation request shows the person as invited, even if they have joined since.
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
