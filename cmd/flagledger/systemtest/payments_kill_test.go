package systemtest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/payment/paymenttest"
	"flagledger/events"
	"flagledger/migrations/pgtest"
)

// If the server is killed at any point of a checkout, nothing is half done: the repeated request leads to the only
// page. Stripe's events from before a kill take effect after it. The test takes seconds, for five starts of a server.
func TestKillingTheServerLosesNoPayment(t *testing.T) {
	t.Parallel()
	account := paymenttest.New(t, paymenttest.Clock())
	account.AddPrice("price_1", "month")
	stripe := nodetest.FaultyHTTP(t, account.URL())
	database := pgtest.URL(t)
	p := (&nodetest.Program{Binary: os.Args[0]}).In(t)
	settings := []string{
		serveSetting + "=1",
		clockSetting + "=" + time.Until(account.Now()).String(),
		"FLAGLEDGER_DATABASE_URL=" + database,
		"STRIPE_SECRET_KEY=" + paymenttest.SecretKey,
		"STRIPE_WEBHOOK_SECRET=" + paymenttest.WebhookSecret,
		"STRIPE_API_BASE=" + stripe.URL,
		"STRIPE_PRICES=standard=price_1",
	}
	running, s := p.Serve(settings...), p.Service()
	s.DatabaseURL = database
	me := s.SignUp(nodetest.Address())
	restart := func() {
		running.Kill()
		stripe.Mend()
		killed := time.Now()
		running = p.Serve(settings...)
		s.ResumeJobs(killed)
		// Another request with the same key waits half a minute, while the killed server might still respond: that time is
		// over.
		s.Exec(`update keep.idempotency set claimed_until = '-infinity' where answer is null`)
	}
	subscription := func() map[string]any { return me.Call("GET", "/api/v1/billing/subscription", nil).Want(200).Object() }

	const checkout, sessions = "/api/v1/billing/checkout", "/v1/checkout/sessions"
	key, page := uuid.NewString(), fmt.Sprintf(
		`{"type":"subscription","planId":"standard","successUrl":%q,"cancelUrl":%[1]q}`, s.URL+"/docs",
	)
	// Stripe has done its part, and the server is killed before it knows: with the customer created, the page created, or
	// the earlier pages listed.
	for _, call := range []string{"POST /v1/customers", "POST " + sessions, "GET " + sessions} {
		stripe.BreakCall(call, nodetest.AnswerLate)
		answer := startCall(call, func() nodetest.Reply { return me.Attempt("POST", checkout, page, "Idempotency-Key", key) })
		s.Eventually("Stripe is called", func() bool { return stripe.Failed() > 0 })
		restart()
		if r := <-answer.reply; r.Status != 0 && r.Status != 503 { // on a slow machine: Stripe took too long
			t.Errorf("the server is killed at %s, and answers %v", call, r)
		}
		if got := subscription(); got["plan"] != "free" || got["status"] != "none" {
			t.Errorf("after a kill at %s the tenant has %v", call, got)
		}
	}
	first := me.Call("POST", checkout, page, "Idempotency-Key", key).Want(200)
	repeated := me.Call("POST", checkout, page, "Idempotency-Key", key).Want(200)
	url := first.Object()["checkoutUrl"].(string)
	if string(repeated.Body) != string(first.Body) || !account.Payable(url) {
		t.Errorf("the page is %s, and then %s", first.Body, repeated.Body)
	}
	keys := map[string]bool{}
	for _, c := range append(account.Calls("POST", "/v1/customers"), account.Calls("POST", sessions)...) {
		keys[c.Key] = true
	}
	if len(keys) != 2 {
		t.Errorf("Stripe was asked for customers and pages with the keys %v", keys)
	}

	account.Pay(url)
	stripe.Break(nodetest.Hanging)
	// more than are followed at once: some are running when the server is killed, others wait
	for _, e := range account.Events() {
		if status := account.Deliver(s.URL+"/api/v1/billing/webhook", e); status != 200 {
			t.Errorf("the event %s is answered with %d", e.Type, status)
		}
	}
	s.Eventually("Stripe is asked for the subscription", func() bool { return stripe.Failed() > 0 })
	if got := subscription(); got["plan"] != "free" {
		t.Errorf("before Stripe has answered, the tenant has %v", got)
	}
	restart()
	s.JobsDone()
	if got := subscription(); got["plan"] != "standard" || got["status"] != "active" {
		t.Errorf("the tenant has %v", got)
	}
	var noted []string
	for r, err := range s.Store().Read(t.Context(), events.TenantStream(me.Tenant), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if fact, ok := r.Fact.(events.SubscriptionChanged); ok {
			noted = append(noted, fmt.Sprintf("customer %t, %s", fact.To.CustomerID != "", fact.To.Status))
		}
	}
	nodetest.Same(t, "what was noted", noted, []string{"customer true, none", "customer true, active"})
}
