package node

import (
	"context"
	"fmt"
	"log/slog"

	"google.golang.org/api/option"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands"
	"flagledger/commands/billing"
	"flagledger/commands/identity/firebase"
	"flagledger/commands/identity/local"
	"flagledger/commands/jobs"
	"flagledger/commands/mail"
	"flagledger/commands/notify"
	"flagledger/commands/payment"
	"flagledger/commands/people"
	"flagledger/commands/push"
	"flagledger/commands/writer"
	"flagledger/http/rest"
)

// Audience is the audience of the local identity provider's tokens.
const Audience = "flagledger"

// provider is an identity provider.
type provider interface {
	people.Identity
	jobs.LinkMailer
}

// openIdentity opens Firebase if a project is set, and the local identity provider otherwise. While run runs,
// Firebase's provider calls end for sessions that have ended there, and erase for people whose account was deleted
// there.
func openIdentity(
	ctx context.Context, c settings.Config, s stores, mailer notify.Mailer,
	end func(context.Context, commands.EndSessions) error, erase func(ctx context.Context, userID string) error,
	log *slog.Logger,
) (p provider, run func(context.Context), err error) {
	if c.Firebase.ProjectID != "" {
		outside, err := openFirebase(ctx, c, s.links, end, erase, log)
		if err != nil {
			return nil, nil, err
		}
		return outside, outside.Run, nil
	}
	return local.New(s.pool, local.Options{
		Keys:                 s.signing,
		Issuer:               c.PublicURL,
		Audience:             Audience,
		AssumeEmailsVerified: c.Environment == "development",
		Links:                s.links,
		Mailer:               mailer,
		Now:                  c.Now,
		HashMemory:           c.HashMemory,
		Hash:                 rest.NewHashing(c.WaitTimeout).Run,
	}), func(context.Context) {}, nil
}

func openFirebase(
	ctx context.Context, c settings.Config, links *jobs.Links, end func(context.Context, commands.EndSessions) error,
	erase func(ctx context.Context, userID string) error, log *slog.Logger,
) (*firebase.Provider, error) {
	p, err := firebase.New(ctx, firebase.Options{
		ProjectID:  c.Firebase.ProjectID,
		APIKey:     c.Firebase.APIKey,
		Emulator:   c.Firebase.EmulatorHost,
		End:        end,
		Gone:       erase,
		Links:      links,
		CheckEvery: c.Firebase.CheckEvery,
		Now:        c.Now,
		Log:        log,
	})
	if err != nil {
		return nil, fmt.Errorf("FIREBASE_PROJECT_ID needs GOOGLE_APPLICATION_CREDENTIALS: %w", err)
	}
	return p, nil
}

// openMailer returns a mailer for the configured server, or one that logs.
func openMailer(c settings.Config, log *slog.Logger) (notify.Mailer, error) {
	if c.Mail.URL != "" {
		return mail.Open(c.Mail.URL)
	}
	if c.Environment == "production" {
		log.Warn("mails are not sent: there is no FLAGLEDGER_SMTP_URL; each is logged without its link")
	}
	return mail.ToLog(log, c.Environment == "development"), nil
}

// openPusher pushes through FCM of the configured Firebase project, or to the log. Firebase's emulator has no FCM.
func openPusher(ctx context.Context, c settings.Config, log *slog.Logger) (notify.Pusher, error) {
	if c.PushEndpoint != "" {
		return push.Open(ctx, "test", option.WithEndpoint(c.PushEndpoint), option.WithoutAuthentication())
	}
	if c.Firebase.ProjectID == "" || c.Firebase.EmulatorHost != "" {
		return push.ToLog(log), nil
	}
	p, err := push.Open(ctx, c.Firebase.ProjectID)
	if err != nil {
		return nil, fmt.Errorf("FIREBASE_PROJECT_ID needs GOOGLE_APPLICATION_CREDENTIALS: %w", err)
	}
	return p, nil
}

// openBilling returns the billing of tenants, with Stripe if configured.
func openBilling(
	c settings.Config, w *writer.Writer, followed *jobs.Payments, log *slog.Logger,
) (*billing.Billing, error) {
	prices, err := billing.ParsePlanPrices(c.Payment.PlanPrices)
	if err != nil {
		return nil, err
	}
	returnURLs, err := billing.NewReturnURLs(c.ReturnOrigins(), c.Environment == "development")
	if err != nil {
		return nil, err
	}
	var provider billing.Payments // nil without Stripe
	if c.Payment.SecretKey != "" {
		provider = payment.Open(c.Payment.Stripe())
		if c.Payment.WebhookSecret == "" {
			log.Warn("there is no STRIPE_WEBHOOK_SECRET: what is paid for is seen once a day")
		}
	}
	return &billing.Billing{
		Writer: w, Payments: provider, Events: followed, Prices: prices, ReturnURLs: returnURLs, Now: c.Now, Log: log,
	}, nil
}
