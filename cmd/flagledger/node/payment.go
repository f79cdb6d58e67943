package node

import (
	"log/slog"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands"
	"flagledger/commands/jobs"
	"flagledger/commands/payment"
)

// openBilling returns the billing of tenants, with Stripe if configured.
func openBilling(
	c settings.Config, writer *commands.Writer, followed *jobs.Payments, log *slog.Logger,
) (*commands.Billing, error) {
	prices, err := commands.ParsePlanPrices(c.Payment.PlanPrices)
	if err != nil {
		return nil, err
	}
	returnURLs, err := commands.NewReturnURLs(c.ReturnOrigins(), c.Environment == "development")
	if err != nil {
		return nil, err
	}
	var provider commands.Payments // nil without Stripe
	if c.Payment.SecretKey != "" {
		provider = payment.Open(c.Payment.Stripe())
		if c.Payment.WebhookSecret == "" {
			log.Warn("there is no STRIPE_WEBHOOK_SECRET: what is paid for is seen once a day")
		}
	}
	return &commands.Billing{
		Writer: writer, Payments: provider, Events: followed, Prices: prices, ReturnURLs: returnURLs, Now: c.Now, Log: log,
	}, nil
}
