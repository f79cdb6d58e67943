package http

import (
	"context"
	"fmt"
	"time"

	"flagledger/commands"
	"flagledger/events"
)

const (
	mailTimeout = time.Minute // of a mail with all attempts to send it
	shownName   = 60          // characters
)

const platformMail = `You have been invited to help run the feature flags at %s, as %s.

Sign in there with this address, signing up first if you have no account, and accept the invitation:

    POST %s/api/v1/admin/invitations/accept

It can be accepted until %s.
`

const memberMail = `You have been invited to %q at %s, as %s.

Sign up there with this address: you are a member from your first sign-in on.
`

// mailInvitation tells somebody that he was invited to the platform.
func (a *API) mailInvitation(ctx context.Context, email string, i commands.Invitation) {
	url := a.options.PublicURL
	a.mail(ctx, commands.Mail{
		To: email, Subject: "An invitation",
		Text: fmt.Sprintf(platformMail, url, i.Role, url, i.ExpiresAt.UTC().Format("2 January 2006, 15:04 UTC")),
	})
}

// mailMember tells somebody that a tenant waits for him. What the tenant is called is anybody's choice: it stays on one line, and short.
func (a *API) mailMember(ctx context.Context, email, tenant string, role events.Role) {
	if name := []rune(tenant); len(name) > shownName {
		tenant = string(name[:shownName]) + "…"
	}
	a.mail(ctx, commands.Mail{To: email, Subject: "An invitation", Text: fmt.Sprintf(memberMail, tenant, a.options.PublicURL, role)})
}

// mail sends a mail that nobody waits for, unless its address has got too many of late. What is not sent is logged, without what it says and to whom.
func (a *API) mail(ctx context.Context, m commands.Mail) {
	if a.limiter.Mail(m.To).Exceeded {
		requestOf(ctx).log().Warn("a mail was not sent: its address has got too many within the hour", "subject", m.Subject)
		return
	}
	a.options.Background.Enqueue(ctx, "send a mail", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, mailTimeout)
		defer cancel()
		return a.options.Mailer.Send(ctx, m)
	})
}
