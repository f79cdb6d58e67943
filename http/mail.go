package http

import (
	"context"
	"fmt"
	"time"

	"flagledger/commands"
)

// mailTimeout is how long a mail may take with all attempts to send it.
const mailTimeout = time.Minute

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

// mail sends a mail that nobody waits for. What cannot be sent is logged, without what it says.
func (a *API) mail(ctx context.Context, m commands.Mail) {
	log := requestOf(ctx).log()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mailTimeout)
	go func() {
		defer cancel()
		if err := a.options.Mailer.Send(ctx, m); err != nil {
			log.Warn("a mail was not sent", "subject", m.Subject, "err", err)
		}
	}()
}
