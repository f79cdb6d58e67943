package firebase

import (
	"context"
	"fmt"

	"firebase.google.com/go/v4/auth"
	"google.golang.org/api/identitytoolkit/v1"

	"flagledger/commands"
	"flagledger/commands/jobs"
	"flagledger/commands/notify"
)

var _ jobs.LinkMailer = (*Provider)(nil)

// ForgotPassword lets Firebase mail a link to a page of its own.
func (p *Provider) ForgotPassword(ctx context.Context, email string) error {
	if err := p.withPasswords(); err != nil {
		return err
	}
	address, ok := commands.ParseEmail(email)
	if !ok {
		return nil
	}
	return p.o.Links.QueueReset(ctx, address, p.o.Now())
}

// MailResetLink implements jobs.LinkMailer.
func (p *Provider) MailResetLink(ctx context.Context, email string, _ int64) error {
	if err := p.withPasswords(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := p.toolkit.Accounts.SendOobCode(&identitytoolkit.GoogleCloudIdentitytoolkitV1GetOobCodeRequest{
		RequestType: "PASSWORD_RESET", Email: email,
	}).Context(ctx).Do()
	return unmailed(err)
}

// unmailed turns an error of Firebase into the result of the mail job. An address without an account is no error, as
// with other providers.
func unmailed(err error) error {
	switch code := codeOf(err); code {
	case "EMAIL_NOT_FOUND":
		return nil
	case "INVALID_EMAIL", "USER_DISABLED":
		// Anyone may enter such an address: retrying would only report failing jobs.
		return fmt.Errorf("%w: %s", notify.ErrRecipientRefused, code)
	default:
		return secretless(err)
	}
}

// MailVerificationLink implements jobs.LinkMailer. Firebase mails the link only to a signed-in person, so this signs
// them in: the token of their sign-up must not be stored.
func (p *Provider) MailVerificationLink(ctx context.Context, userID string, _ int64) error {
	if err := p.withPasswords(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	user, err := p.auth.GetUser(ctx, userID)
	if auth.IsUserNotFound(err) || err == nil && (user.EmailVerified || user.Disabled) {
		return nil
	}
	if err != nil {
		return unreachable(err)
	}
	custom, err := p.auth.CustomToken(ctx, userID)
	if err != nil {
		return secretless(err)
	}
	in, err := p.toolkit.Accounts.SignInWithCustomToken(&identitytoolkit.GoogleCloudIdentitytoolkitV1SignInWithCustomTokenRequest{
		Token: custom, ReturnSecureToken: true,
	}).
		Context(ctx).
		Do()
	if err != nil {
		return secretless(err)
	}
	if in.IsNewUser { // the sign-in created a just-deleted account again
		return p.Delete(ctx, userID)
	}
	_, err = p.toolkit.Accounts.SendOobCode(&identitytoolkit.GoogleCloudIdentitytoolkitV1GetOobCodeRequest{
		RequestType: "VERIFY_EMAIL", IdToken: in.IdToken,
	}).Context(ctx).Do()
	return unmailed(err)
}
