package firebase

import (
	"context"
	"fmt"

	"firebase.google.com/go/v4/auth"
	"google.golang.org/api/identitytoolkit/v1"

	"flagledger/commands"
	"flagledger/commands/jobs"
)

var _ jobs.LinkMailer = (*Provider)(nil)

// ForgotPassword has Firebase mail a link that leads to a page of its own.
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

// unmailed is what an error of Firebase means to the job that asked it to mail a link. An address without an account is
// none, as with any other provider.
func unmailed(err error) error {
	switch code := codeOf(err); code {
	case "EMAIL_NOT_FOUND":
		return nil
	case "INVALID_EMAIL", "USER_DISABLED":
		// anyone may ask for a link to such an address: to try it again would only tell of jobs that fail
		return fmt.Errorf("%w: %s", commands.ErrRecipientRefused, code)
	default:
		return secretless(err)
	}
}

// MailVerificationLink implements jobs.LinkMailer. Firebase mails such a link only to somebody who is signed in, so the
// person is signed in for it: the token of their sign-up cannot be kept.
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
	if in.IsNewUser { // the account was deleted a moment ago, and the sign-in made it again
		return p.Delete(ctx, userID)
	}
	_, err = p.toolkit.Accounts.SendOobCode(&identitytoolkit.GoogleCloudIdentitytoolkitV1GetOobCodeRequest{
		RequestType: "VERIFY_EMAIL", IdToken: in.IdToken,
	}).Context(ctx).Do()
	return unmailed(err)
}
