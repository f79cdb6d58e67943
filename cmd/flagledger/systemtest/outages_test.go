package systemtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/mail/mailtest"
	"flagledger/commands/payment/paymenttest"
	"flagledger/events"
)

// longestWait is longer than any wait for a provider, on a busy machine.
const longestWait = time.Minute

// waiting is a call that waits for a provider.
type waiting struct {
	name  string
	reply chan nodetest.Reply
}

func startCall(name string, call func() nodetest.Reply) waiting {
	w := waiting{name, make(chan nodetest.Reply, 1)}
	go func() { w.reply <- call() }()
	return w
}

// refused checks that the call returns 503 in limited time.
func (w waiting) refused(t *testing.T) {
	t.Helper()
	if r := <-w.reply; r.Status != 503 || r.Header.Get("Retry-After") == "" || r.Took > longestWait ||
		strings.Contains(r.Body, "somebody@") {
		t.Errorf("%s: %v", w.name, r)
	}
}

// othersGoOn makes calls that need no provider.
func othersGoOn(me *nodetest.Client) {
	me.Service.T.Helper()
	for range 5 {
		for _, name := range []string{"enable", "disable"} {
			if r := me.Attempt("POST", nodetest.FlagPath("k", "/"+name), ""); r.Status != 200 || r.Took > longestWait {
				me.Service.T.Errorf("%s: %v", name, r)
			}
		}
		for path, body := range map[string]string{nodetest.FlagPath("k", "/evaluate"): `{"targetingKey":"u"}`, "/api/v1/flags": "", "/api/v1/notifications": ""} {
			method := map[bool]string{true: "GET", false: "POST"}[body == ""]
			if r := me.Attempt(method, path, body); r.Status != 200 || r.Took > longestWait {
				me.Service.T.Errorf("%s: %v", path, r)
			}
		}
	}
}

// outages runs a test for each failure of a provider. The test gets a person with a flag, and breaks the provider
// itself.
func outages(t *testing.T, c settings.Config, test func(t *testing.T, me *nodetest.Client, f nodetest.Fault)) {
	t.Helper()
	c.Environment = "development"
	s := nodetest.Start(t, nodetest.Database(t), c, nodetest.Log(t))
	for _, f := range nodetest.Faults {
		t.Run(string(f), func(t *testing.T) {
			me := s.In(t).SignUp(nodetest.Address())
			me.CreateFlag("k", nil)
			test(t, me, f)
		})
	}
}

// If Stripe fails in any way, checkout returns 503 in limited time, and the same request succeeds later: repeated calls
// to Stripe had one key. Events are accepted meanwhile, and followed after Stripe returns.
func TestOutagesOfStripe(t *testing.T) {
	t.Parallel()
	account := paymenttest.New(t, paymenttest.Clock())
	account.AddPrice("price_1", "month")
	stripe := nodetest.FaultyHTTP(t, account.URL())
	const checkout, sessions = "/api/v1/billing/checkout", "/v1/checkout/sessions"
	outages(t, settings.Config{Now: account.Now, Origins: []string{"https://app.example.com"}, Payment: settings.Payment{
		SecretKey:     paymenttest.SecretKey,
		WebhookSecret: paymenttest.WebhookSecret,
		Base:          stripe.URL,
		PlanPrices:    "standard=price_1",
	}}, func(t *testing.T, payer *nodetest.Client, f nodetest.Fault) {
		s := payer.Service
		me := s.SignUp(nodetest.Address())
		page := fmt.Sprintf(`{"type":"subscription","planId":"standard","successUrl":%q,"cancelUrl":%[1]q}`,
			"https://app.example.com")
		deliver := func() {
			for _, e := range account.Events() {
				if status := account.Deliver(s.URL+"/api/v1/billing/webhook", e); status != 200 {
					t.Errorf("the event %s is answered with %d", e.Type, status)
				}
			}
		}
		statuses := func() (list []events.SubscriptionStatus) {
			for r, err := range s.Store().Read(t.Context(), events.TenantStream(payer.Tenant), 0) {
				if err != nil {
					t.Fatal(err)
				}
				if fact, ok := r.Fact.(events.SubscriptionChanged); ok && fact.To.Status != fact.From.Status {
					list = append(list, fact.To.Status)
				}
			}
			return list
		}
		subscription := account.Pay(payer.Call("POST", checkout, page).Want(200).Object()["checkoutUrl"].(string))
		deliver()
		s.JobsDone()

		stripe.Break(f)
		key := uuid.NewString()
		call := startCall("checkout",
			func() nodetest.Reply { return me.Attempt("POST", checkout, page, "Idempotency-Key", key) })
		account.FailPayment(subscription)
		deliver()
		othersGoOn(payer)
		call.refused(t)
		s.Eventually("Stripe is asked for the subscription", func() bool { return stripe.Failed() > 1 })
		stripe.Mend()
		me.Call("POST", checkout, page, "Idempotency-Key", key).Want(200)
		s.JobsRetried()
		nodetest.Same(t, "what the tenant's subscription was", statuses(), []string{"active", "past_due"})

		customers, keys := map[string]bool{}, map[string]bool{}
		for _, c := range account.Calls("POST", sessions) {
			if c.Form.Get("metadata[flagledger_tenant]") == me.Tenant {
				customers[c.Form.Get("customer")], keys[c.Key] = true, true
			}
		}
		for _, c := range account.Calls("POST", "/v1/customers") {
			if c.Form.Get("metadata[flagledger_tenant]") == me.Tenant {
				keys["customer "+c.Key] = true
			}
		}
		if len(customers) != 1 || len(keys) != 2 || keys[""] || keys["customer "] {
			t.Errorf("the tenant is the customers %v, made with the keys %v", customers, keys)
		}
	})
}

// If the mail server fails in any way, no call waits for it. The mail is sent once it returns: once, and again for each
// time that the server accepted it without a response.
func TestOutagesOfSMTP(t *testing.T) {
	t.Parallel()
	server := mailtest.New(t, mailtest.Options{})
	smtp := nodetest.FaultySMTP(t, server.Addr)
	outages(
		t,
		settings.Config{Mail: settings.Mail{URL: "smtp://" + smtp.Addr + "?from=flags@example.com"}},
		func(t *testing.T, me *nodetest.Client, f nodetest.Fault) {
			s, invited := me.Service, nodetest.Address()
			sent := func() map[string]int {
				counts := map[string]int{invited: 0, me.Email: 0}
				for _, m := range server.Mails() {
					if _, ours := counts[m.To]; ours {
						counts[m.To]++
					}
				}
				return counts
			}
			smtp.Break(f)
			me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/users", map[string]string{"email": invited, "role": "viewer"}).
				Want(201)
			me.Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": me.Email}).Want(200)
			othersGoOn(me)
			s.Eventually("both mails are tried", func() bool { return smtp.Failed() > 1 })
			failed := smtp.Failed()
			smtp.Mend()
			s.Eventually("both mails are sent", func() bool {
				s.RetryJobs()
				counts := sent()
				return counts[invited] > 0 && counts[me.Email] > 0
			})
			s.JobsRetried()
			for address, n := range sent() {
				if f != nodetest.AnswerLost && n != 1 || n > 1+int(failed) {
					t.Errorf("%d mails to %s, after %d failures", n, address, failed)
				}
			}
		},
	)
}
