package systemtest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/identity/firebase/emulator"
	"flagledger/commands/mail/mailtest"
	"flagledger/commands/payment/paymenttest"
	"flagledger/commands/push/pushtest"
)

const (
	outageCallers = 32 // who call at the start of the outage
	outageRate    = 10 // further ones a second
	floodRate     = 1000
)

// bystander makes calls that need no provider, one after another, and records the durations by kind.
type bystander struct {
	b    *testing.B
	me   *nodetest.Client
	on   bool
	took map[string]*nodetest.Samples
}

// round makes some calls of each kind.
func (y *bystander) round() {
	call := func(kind, method, path, body string) {
		r := y.me.Attempt(method, path, body)
		if r.Status != 200 {
			y.b.Errorf("%s: %v", kind, r)
		}
		y.took[kind].Add(r.Took)
	}
	for range 5 {
		call("evaluate", "POST", nodetest.FlagPath("k", "/evaluate"), `{"targetingKey":"u"}`)
	}
	y.on = !y.on
	call("toggle", "POST", nodetest.FlagPath("k", map[bool]string{true: "/enable", false: "/disable"}[y.on]), "")
	call("list", "GET", "/api/v1/flags", "")
}

func (y *bystander) reset() {
	y.took = map[string]*nodetest.Samples{"evaluate": {}, "toggle": {}, "list": {}}
}

// benchBeside reports how much slower a bystander's calls become beside some load: times-quiet is the ratio of p99, and
// should be at most 1.5.
func benchBeside(b *testing.B, me *nodetest.Client, begin func() (end func())) {
	b.Helper()
	y := &bystander{b: b, me: me}
	y.reset()
	for range 50 { // until connections are open
		y.round()
	}
	y.reset()
	for b.Loop() {
		y.round()
	}
	quiet := y.took
	y.reset()
	end := begin()
	for range b.N {
		y.round()
	}
	end()
	for kind, beside := range y.took {
		b.ReportMetric(float64(beside.Percentile(99))/float64(quiet[kind].Percentile(99)), kind+"-times-quiet")
		b.ReportMetric(float64(quiet[kind].Percentile(99).Microseconds())/1000, kind+"-p99-ms")
	}
}

// keepCalling makes calls at a rate, each by its own caller, until stop is called.
func keepCalling(rate int, call func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var calls sync.WaitGroup
	calls.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				calls.Go(call)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		calls.Wait()
	}
}

// BenchmarkOutage measures calls that need no provider while a provider fails and other callers still use it.
func BenchmarkOutage(b *testing.B) {
	const ours = "https://app.example.com"
	account, fcm, mails := paymenttest.New(b, time.Now), pushtest.New(b), mailtest.New(b, mailtest.Options{})
	account.AddPrice("price_1", "month")
	emulated := emulator.Start(b)
	stripe, push := nodetest.FaultyHTTP(b, account.URL()), nodetest.FaultyHTTP(b, strings.TrimSuffix(fcm.Endpoint, "/v1"))
	smtp, firebase := nodetest.FaultySMTP(b, mails.Addr), nodetest.FaultyHTTP(b, "http://"+emulated.Host)
	b.Setenv("FIREBASE_AUTH_EMULATOR_HOST", firebase.Addr)
	s := nodetest.Start(b, nodetest.Database(b), settings.Config{
		Environment: "development", Origins: []string{ours}, PushEndpoint: push.URL + "/v1",
		Mail:     settings.Mail{URL: "smtp://" + smtp.Addr + "?from=flags@example.com"},
		Firebase: settings.Firebase{ProjectID: emulator.Project, APIKey: "any", EmulatorHost: firebase.Addr},
		Payment: settings.Payment{
			SecretKey:     paymenttest.SecretKey,
			WebhookSecret: paymenttest.WebhookSecret,
			Base:          stripe.URL,
			PlanPrices:    "standard=price_1",
		},
	}, nodetest.Log(b))
	me := s.SignUp(nodetest.Address())
	me.CreateEnabledFlag("k", nil)
	var payer *nodetest.Client // new for each run, because one tenant's calls to providers have an hourly limit
	for _, provider := range []struct {
		name   string
		fails  *nodetest.FaultyProvider
		status int // of a call during the failure
		call   func() nodetest.Reply
	}{
		{"stripe", stripe, 503, func() nodetest.Reply {
			return payer.Attempt("POST", "/api/v1/billing/checkout", fmt.Sprintf(`{"type":"subscription","planId":"standard","successUrl":%q,"cancelUrl":%q}`, ours, ours))
		}},
		{"fcm", push, 201, func() nodetest.Reply {
			return payer.Attempt("POST", "/api/v1/notifications/send", fmt.Sprintf(`{"userId":%q,"tenantId":%q,"title":"x","type":"x"}`, payer.UserID, payer.Tenant))
		}},
		{"smtp", smtp, 202, func() nodetest.Reply {
			return payer.Attempt("POST", "/api/v1/sandbox/subscribe", fmt.Sprintf(`{"email":%q,"name":"x"}`, nodetest.Address()))
		}},
		{"firebase", firebase, 503, func() nodetest.Reply {
			return payer.Attempt("POST", "/auth/signin", fmt.Sprintf(`{"email":%q,"password":%q}`, uuid.NewString()+"@example.com", nodetest.Password))
		}},
	} {
		for _, f := range nodetest.Faults[:4] {
			b.Run(provider.name+"/"+string(f), func(b *testing.B) {
				payer = s.SignUp(nodetest.Address())
				payer.Call("POST", "/api/v1/notifications/device-tokens", map[string]string{"deviceToken": payer.UserID, "deviceType": "web"}).
					Want(201)
				var calls atomic.Int64
				var over atomic.Bool
				call := func() {
					// One caller may have a limited number of pending calls. Calls that hang at the end of the fault succeed.
					if r := provider.call(); r.Status != provider.status && r.Status != 429 && !over.Load() {
						b.Errorf("a call while %s is %s: %v", provider.name, f, r)
					}
					calls.Add(1)
				}
				benchBeside(b, me, func() (end func()) {
					began := time.Now()
					provider.fails.Break(f)
					var first sync.WaitGroup
					for range outageCallers {
						first.Go(call)
					}
					s.Eventually("it is called", func() bool { return provider.fails.Failed() > 0 })
					stop := keepCalling(outageRate, call)
					return func() {
						took := time.Since(began)
						over.Store(true)
						provider.fails.Mend()
						stop()
						first.Wait()
						b.ReportMetric(float64(calls.Load())/took.Seconds(), "calls/s")
						drain(b, s)
					}
				})
			})
		}
	}
	b.Run("webhooks", func(b *testing.B) { // not signed by Stripe
		body := fmt.Sprintf(
			`{"id":"evt_forged","type":"customer.subscription.updated","data":{"object":{"customer":"cus_1","description":%q}}}`,
			strings.Repeat("x", 4000),
		)
		signature := paymenttest.Sign([]byte("another"), time.Now())
		flooding := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: floodRate}}
		defer flooding.CloseIdleConnections()
		var calls atomic.Int64
		benchBeside(b, me, func() (end func()) {
			began := time.Now()
			stop := keepCalling(floodRate, func() {
				r, err := http.NewRequest(http.MethodPost, s.URL+"/api/v1/billing/webhook", strings.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				r.Header.Set("Stripe-Signature", signature)
				answer, err := flooding.Do(r)
				if err != nil {
					b.Error(err)
					return
				}
				_ = answer.Body.Close()
				if answer.StatusCode != http.StatusBadRequest && answer.StatusCode != http.StatusTooManyRequests {
					b.Errorf("a webhook is answered with %d", answer.StatusCode)
				}
				calls.Add(1)
			})
			return func() {
				took := time.Since(began)
				stop()
				b.ReportMetric(float64(calls.Load())/took.Seconds(), "calls/s")
			}
		})
	})
}

// drain removes the jobs left by an outage, which would run during the next measurement.
func drain(b *testing.B, s *nodetest.Service) {
	b.Helper()
	pool, err := node.OpenPool(b.Context(), s.DatabaseURL)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	s.Eventually("no job is left", func() bool {
		if _, err := pool.Exec(b.Context(), `delete from jobs.river_job where state <> 'running'`); err != nil {
			b.Fatal(err)
		}
		var left int
		if err := pool.QueryRow(b.Context(), `select count(*) from jobs.river_job`).Scan(&left); err != nil {
			b.Fatal(err)
		}
		return left == 0
	})
}
