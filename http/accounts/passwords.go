package accounts

import (
	"context"
	"errors"
	"net/http"

	"flagledger/commands"
	"flagledger/commands/people"
	"flagledger/commands/writer"
	"flagledger/http/rest"
)

// NewPassword holds a password to set.
type NewPassword struct {
	NewPassword string `json:"newPassword" minLength:"8" example:"correct horse battery"`
}

// MailedToken holds the token of a mailed link.
type MailedToken struct {
	Token string `json:"token" minLength:"1" doc:"The token in the link" example:"3q2-7wQAAAD..."`
}

func (a *API) addPasswords() {
	forgot := rest.Operation("POST", "/api/v1/auth/forgot-password", "forgot-password", "Authentication",
		"Send a link that sets a new password")
	forgot.Description = "The answer is the same for known and unknown addresses. The link opens /reset-password and is " +
		"valid for one use within an hour. The number of mails is limited. With Firebase, Firebase sends the mail and " +
		"shows the page."
	rest.Register(a.Core, rest.Access{Who: rest.Anyone}, forgot, a.forgotPassword)

	reset := rest.Operation("POST", "/api/v1/auth/reset-password", "reset-password", "Authentication",
		"Set a new password with the token of a mailed link")
	reset.Description = "Ends all sessions of the person and verifies the address. If the sessions cannot be ended, " +
		"nothing changes and the link remains valid. If the address was not verified before, another person may have " +
		"created the account: what it created and joined is removed, and the person gets an empty tenant. The page " +
		"/reset-password makes this call."
	reset.Errors = []int{http.StatusForbidden}
	rest.Register(a.Core, rest.Access{Who: rest.Anyone}, reset, a.resetPassword)

	verify := rest.Operation("POST", "/api/v1/auth/verify-email", "verify-email", "Authentication",
		"Verify an e-mail address with the token of a mailed link")
	verify.Description = "The link is mailed at sign-up and opens /verify-email, which makes this call. The account's " +
		"password is also required, as the owner of the address may not be the person who signed up; the link remains " +
		"valid after a wrong password. The next ID token shows the address as verified. Setting a new password by a " +
		"mailed link also verifies the address."
	verify.Errors = []int{http.StatusForbidden}
	rest.Register(a.Core, rest.Access{Who: rest.Anyone}, verify, a.verifyEmail)

	resend := rest.Operation("POST", rest.VerificationRoute, "resend-verification", "Authentication",
		"Send another link that verifies the caller's e-mail address")
	resend.Description = "In production, an account with an unverified address can sign in and out, read its own data, " +
		"and read and evaluate in the tenants that it created; changes and other tenants are 403. The number of links a " +
		"day is limited, including the one at sign-up (429). If the address is verified already, the answer is 409."
	resend.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Person, Unverified: true}, resend, a.resendVerification)

	update := rest.Operation("POST", "/api/v1/auth/update-password", "update-password", "Authentication",
		"Change the caller's password")
	update.Description = "Ends the person's other sessions on every node. This session continues, except with Firebase, " +
		"which ends all refresh tokens. A wrong current password is 422."
	rest.Register(a.Core, rest.Access{Who: rest.Person, Slow: true}, update, a.updatePassword)
}

func (a *API) forgotPassword(ctx context.Context, in *struct {
	Body struct {
		Email string `json:"email" example:"ada@example.com"`
	}
}) (*rest.SuccessOutput, error) {
	if in.Body.Email == "" {
		return nil, rest.Invalid(map[string]string{"email": "is required"})
	}
	if err := rest.BodyErrors(ctx); err != nil {
		return nil, err
	}
	return rest.SuccessResponse(writer.Done{}), a.LimitMails(ctx, func() error {
		return a.Identity.ForgotPassword(ctx,
			in.Body.Email)
	})
}

func (a *API) resetPassword(ctx context.Context, in *struct {
	Body struct {
		MailedToken
		NewPassword
	}
}) (*rest.SuccessOutput, error) {
	if err := rest.BodyErrors(ctx); err != nil {
		return nil, err
	}
	done, err := people.ResetPassword(ctx, a.Reclaimer, a.Identity, rest.RequestBy(ctx), in.Body.Token,
		in.Body.NewPassword.NewPassword)
	return rest.SuccessResponse(done), err
}

func (a *API) verifyEmail(ctx context.Context, in *struct {
	Body struct {
		MailedToken
		Password string `json:"password" minLength:"1" doc:"The password of the account" example:"correct horse battery"`
	}
}) (*rest.SuccessOutput, error) {
	missing := map[string]string{}
	if in.Body.Token == "" {
		missing["token"] = "is required"
	}
	if in.Body.Password == "" {
		missing["password"] = "is required"
	}
	if err := rest.AddBodyErrors(ctx, rest.WrongFields(missing)); err != nil {
		return nil, err
	}
	return rest.SuccessResponse(writer.Done{}), a.verifyByLink(ctx, in.Body.Token, in.Body.Password)
}

func (a *API) resendVerification(ctx context.Context, _ *struct{}) (*rest.SuccessOutput, error) {
	claims := rest.PrincipalOf(ctx).Claims
	if claims.EmailProved() {
		return nil, rest.NewProblem(http.StatusConflict, "the e-mail address is already verified")
	}
	return rest.SuccessResponse(writer.Done{}), a.Links.QueueFurtherVerification(ctx, claims.UserID, rest.NewID(ctx))
}

func (a *API) updatePassword(ctx context.Context, in *struct {
	Body struct {
		CurrentPassword string `json:"currentPassword" minLength:"1" example:"correct horse"`
		NewPassword
	}
}) (*rest.SuccessOutput, error) {
	current, password := in.Body.CurrentPassword, in.Body.NewPassword.NewPassword
	if err := rest.AddBodyErrors(ctx, people.CheckPasswordChange(current, password)); err != nil {
		return nil, err
	}
	claims := rest.PrincipalOf(ctx).Claims
	var done writer.Done
	err := a.LimitAttempts(ctx, "password of "+claims.UserID, func() (err error) {
		done, err = people.UpdatePassword(ctx, a.Writer, a.Identity, rest.RequestBy(ctx), claims, current, password)
		return err
	})
	if commands.KindOf(err) == commands.Unauthenticated {
		err = rest.Invalid(map[string]string{"currentPassword": "is wrong"})
	}
	return rest.SuccessResponse(done), err
}

// verifyByLink verifies an address. It limits wrong passwords per link, so that a reader of the mail cannot guess the
// password.
func (a *API) verifyByLink(ctx context.Context, token, password string) error {
	var wrong error
	err := a.LimitAttempts(ctx, "link "+token, func() error {
		err := a.Identity.VerifyEmail(ctx, token, password, func(userID string) error {
			return people.CheckActive(a.Live, userID)
		})
		if refusal, ok := errors.AsType[*commands.Error](err); ok && refusal.Fields["password"] != "" {
			wrong = err
			return &commands.Error{Kind: commands.Unauthenticated, Err: err}
		}
		return err
	})
	if wrong != nil {
		return wrong
	}
	return err
}
