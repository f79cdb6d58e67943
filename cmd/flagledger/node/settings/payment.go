package settings

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"flagledger/commands/billing"
	"flagledger/commands/payment"
)

// Payment configures payments.
type Payment struct {
	SecretKey     string `env:"STRIPE_SECRET_KEY"`
	WebhookSecret string `env:"STRIPE_WEBHOOK_SECRET"`
	Base          string `env:"STRIPE_API_BASE"`
	PlanPrices    string `env:"STRIPE_PRICES"`
	Currency      string `env:"STRIPE_CURRENCY" envDefault:"usd"`

	ReturnOrigins []string `env:"FLAGLEDGER_RETURN_ORIGINS"`
}

// Stripe returns the settings of Stripe.
func (s Payment) Stripe() payment.Settings {
	return payment.Settings{
		SecretKey:     s.SecretKey,
		WebhookSecret: s.WebhookSecret,
		Base:          s.Base,
		Currency:      strings.ToLower(cmp.Or(s.Currency, "usd")),
	}
}

// check names the first invalid setting.
func (s Payment) check() error {
	if _, err := billing.ParsePlanPrices(s.PlanPrices); err != nil {
		return fmt.Errorf("STRIPE_PRICES must be such as standard=price_123,enhanced=price_456: %w", err)
	}
	if _, err := billing.NewReturnURLs(s.ReturnOrigins, false); err != nil {
		return fmt.Errorf("FLAGLEDGER_RETURN_ORIGINS: %w", err)
	}
	if s.SecretKey == "" {
		if s.WebhookSecret != "" || s.PlanPrices != "" {
			return errors.New("STRIPE_SECRET_KEY is needed where other settings of Stripe are made")
		}
		return nil
	}
	return s.Stripe().Check()
}

// ReturnOrigins returns the configured origins, or else the service's own and the CORS origins.
func (c Config) ReturnOrigins() []string {
	if len(c.Payment.ReturnOrigins) > 0 {
		return c.Payment.ReturnOrigins
	}
	var list []string
	if u, err := url.Parse(c.PublicURL); err == nil {
		list = append(list, u.Scheme+"://"+u.Host)
	}
	for _, origin := range c.Origins {
		// Skip *, and the schemes of apps.
		if strings.HasPrefix(origin, "https://") || strings.HasPrefix(origin, "http://") {
			list = append(list, origin)
		}
	}
	return list
}
