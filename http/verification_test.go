package http_test

import (
	"slices"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// verifyAddress verifies the address of a person without a mail, and signs them in again.
func verifyAddress(c *nodetest.Client) *nodetest.Client {
	c.Service.T.Helper()
	sql(c.Service, `update keep.people set email_verified = true where user_id = $1`, c.UserID)
	verified := *c
	verified.Token = account{email: c.Email}.signIn(c).token
	return &verified
}

// openToUnverified are the operations beside reads that a person may call whose address is not verified: they change nothing, end the session, or have a
// link mailed.
var openToUnverified = []string{
	"POST /api/v1/flags/{flagKey}/evaluate", "POST /api/v1/flags/evaluate", "POST /ofrep/v1/evaluate/flags", "POST /ofrep/v1/evaluate/flags/{key}",
	"POST /api/v1/auth/logout", "POST /api/v1/auth/resend-verification",
}

// Every operation is tried by somebody whose address is not verified, as admin of their tenant: they read it, and change nothing.
func TestWhatAnUnverifiedAccountMayDo(t *testing.T) {
	t.Parallel()
	nodetest.RunOnce(t)
	s, _ := mailed(t, "production")
	me := s.SignUp(nodetest.Address())
	_, operations := me.Document()
	store := s.Store()
	before, err := store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	isOpen := func(name string) bool {
		return strings.HasPrefix(name, "GET ") || slices.Contains(openToUnverified, current(name))
	}
	refused, let := 0, 0
	tryAll(me, operations, func(name, least string) bool { return least != "anyone" && !isOpen(name) }, func(name, _ string, a *nodetest.Answer) {
		if a.Status != 403 || !strings.Contains(string(a.Body), "verification") {
			t.Errorf("%s: %d: %s", name, a.Status, a.Body)
		}
		refused++
	})
	written := s.Written(store, before, func(e events.Recorded) bool { return e.Actor.ID == me.UserID || strings.Contains(e.Stream, me.Tenant) })
	if len(written) > 0 {
		t.Errorf("calls that were refused have written %v", written)
	}
	tryAll(me, operations, func(name, least string) bool {
		return isOpen(name) && roleRank(least) <= roleRank("admin") && least != "anyone" && !slices.Contains(ending, name)
	}, func(name, _ string, a *nodetest.Answer) {
		if a.Status == 401 || a.Status == 403 || a.Status >= 500 {
			t.Errorf("%s: %d: %s", name, a.Status, a.Body)
		}
		let++
	})
	if refused < 50 || let < 30 {
		t.Errorf("%d operations were refused, and %d were not", refused, let)
	}
	me.Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).Refused(403)
	verifyAddress(me).CreateFlag("k", nil)
	me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Refused(403) // with a token from before
	me.Evaluate("k", `{}`).Want(200)
	me.Call("POST", "/api/v1/auth/logout", nil).Want(200)
}

func TestAnotherLinkThatVerifiesAnAddress(t *testing.T) {
	t.Parallel()
	nodetest.RunOnce(t)
	s, server := mailed(t, "production")
	me := s.SignUp(nodetest.Address())
	_, first := linkTo(t, server, me.Email, 1)
	ask := func(headers ...string) *nodetest.Answer {
		return me.Call("POST", "/api/v1/auth/resend-verification", nil, headers...)
	}
	later := func() { // as if all was asked for and mailed a minute earlier
		sql(s, `update jobs.river_job set created_at = created_at - interval '61 seconds'`)
		sql(s, `update keep.mailed_tokens set issued_at = issued_at - interval '61 seconds'`)
	}
	ask().Refused(429)
	later()
	ask("Idempotency-Key", "k").Want(200).Shows(map[string]any{"success": true})
	ask("Idempotency-Key", "k").Want(200)
	_, second := linkTo(t, server, me.Email, 2)
	for range 3 {
		later()
		ask().Want(200)
	}
	later()
	ask().Refused(429)
	other := s.SignUp(nodetest.Address()) // whom that does not concern
	later()
	other.Call("POST", "/api/v1/auth/resend-verification", nil).Want(200)
	sql(s, `update jobs.river_job set created_at = created_at - interval '1 day'`)
	ask().Want(200)
	if first == second {
		t.Error("the second link is the first one")
	}
	s.Anonymous().Call("POST", "/api/v1/auth/verify-email", map[string]string{"token": second, "password": nodetest.Password}).Want(200)
	(&nodetest.Client{Service: s, Token: account{email: me.Email}.signIn(me).token}).Call("POST", "/api/v1/auth/resend-verification", nil).Refused(409)
}
