// Package payment implements the payment provider with Stripe.
package payment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v76"

	"flagledger/commands"
	"flagledger/commands/billing"
)

const (
	callTimeout = 8 * time.Second
	maxAnswer   = 4 << 20 // bytes; a list of 100 subscriptions has half a MiB
)

// Settings configure an account at Stripe.
type Settings struct {
	SecretKey     string
	WebhookSecret string // verifies Stripe's events; empty if it sends none
	Base          string // the address of Stripe's API; its own if empty
	Currency      string // of payments for products, such as usd
}

var (
	secretKeyPattern     = regexp.MustCompile(`^(sk|rk)_(test|live)_[A-Za-z0-9]+$`)
	webhookSecretPattern = regexp.MustCompile(`^whsec_[A-Za-z0-9+/=]+$`)
	currencyPattern      = regexp.MustCompile(`^[a-z]{3}$`)
)

// Check names the first invalid setting. It does not repeat a secret.
func (s Settings) Check() error {
	switch {
	case !secretKeyPattern.MatchString(s.SecretKey):
		return errors.New("STRIPE_SECRET_KEY must be a secret or restricted key of Stripe, which begins with sk_ or rk_")
	case s.WebhookSecret != "" && !webhookSecretPattern.MatchString(s.WebhookSecret):
		return errors.New("STRIPE_WEBHOOK_SECRET must be the signing secret of a webhook endpoint, which begins with whsec_")
	case !currencyPattern.MatchString(s.Currency):
		return fmt.Errorf("STRIPE_CURRENCY must be the three letters of a currency in lower case, such as usd; it is %q",
			s.Currency)
	case s.Base == "":
		return nil
	}
	u, err := url.Parse(s.Base)
	if err != nil || u.Host == "" || u.User != nil ||
		u.Scheme != "https" && (u.Scheme != "http" || !billing.Loopback(u.Hostname())) {
		return errors.New("STRIPE_API_BASE must be a URL that begins with https://; http:// is for this machine alone")
	}
	return nil
}

// Stripe is an account at Stripe. It is safe for concurrent use.
type Stripe struct {
	settings Settings
	backend  stripe.Backend
}

var _ billing.Payments = (*Stripe)(nil)

// Open returns the account of checked settings. It does not call Stripe.
func Open(s Settings) *Stripe {
	config := &stripe.BackendConfig{
		HTTPClient: &http.Client{
			Timeout:       callTimeout,
			Transport:     bounded{http.DefaultTransport.(*http.Transport).Clone()},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull}, // its log would write bodies to stderr
		MaxNetworkRetries: stripe.Int64(0),                                // the caller retries
		EnableTelemetry:   stripe.Bool(false),
	}
	if s.Base != "" {
		config.URL = stripe.String(strings.TrimSuffix(s.Base, "/"))
	}
	return &Stripe{s, stripe.GetBackendWithConfig(stripe.APIBackend, config)}
}

// bounded limits answers, because the library reads them whole.
type bounded struct{ http.RoundTripper }

// RoundTrip implements net/http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	}
	return answer, err
}

// params returns the parameters of a call, with an idempotency key if it has an effect.
func params(ctx context.Context, key string) stripe.Params {
	p := stripe.Params{Context: ctx}
	if key != "" {
		p.IdempotencyKey = stripe.String(key)
	}
	return p
}

var errUnreadable = errors.New("its answer cannot be read")

// unavailable returns the error of a failed call.
func unavailable(err error) error {
	detail := "the payment provider cannot be reached at the moment"
	if refusal, ok := errors.AsType[*stripe.Error](err); ok && refusal.HTTPStatusCode < http.StatusInternalServerError {
		detail = "the payment provider does not take the request at the moment"
	}
	return &commands.Error{Kind: commands.Unavailable, Detail: detail, Err: nameless(err)}
}

// nameless returns an error without request and response bodies, which may hold addresses.
func nameless(err error) error {
	if refusal, ok := errors.AsType[*stripe.Error](err); ok {
		return fmt.Errorf("Stripe answers %d %s %s %s to its request %s", refusal.HTTPStatusCode, refusal.Type, refusal.Code,
			refusal.Param, refusal.RequestID)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return errUnreadable
}

// asFound returns the error of a call about an object, NotFound if Stripe does not have it.
func asFound(what string, err error) error {
	if refusal, ok := errors.AsType[*stripe.Error](err); ok && refusal.HTTPStatusCode == http.StatusNotFound &&
		refusal.Code == stripe.ErrorCodeResourceMissing {
		return &commands.Error{
			Kind:   commands.NotFound,
			Detail: "the payment provider does not know the " + what,
			Err:    nameless(err),
		}
	}
	return unavailable(err)
}
