package http

import (
	"context"
	"errors"
	"net/http"

	"flagledger/commands"
)

// NewPassword is a password that is to be set.
type NewPassword struct {
	NewPassword string `json:"newPassword" minLength:"8" example:"correct horse battery"`
}

// MailedToken is the token of a mailed link.
type MailedToken struct {
	Token string `json:"token" minLength:"1" doc:"That stands in the link" example:"3q2-7wQAAAD..."`
}

const verificationRoute = "/api/v1/auth/resend-verification"

func (a *API) addPasswords() {
	forgot := operation("POST", "/api/v1/auth/forgot-password", "forgot-password", "Authentication",
		"Have a link mailed that sets a new password")
	forgot.Description = "The answer is the same for every address, known or not. The link leads to /reset-password, is " +
		"good for one use and an hour, " +
		"and is mailed only so often. With Firebase it is Firebase that mails, and shows the page."
	register(a, access{who: anyone}, forgot, a.forgotPassword)

	reset := operation("POST", "/api/v1/auth/reset-password", "reset-password", "Authentication",
		"Set a new password with the token of a mailed link")
	reset.Description = "It ends all sessions of the person, and verifies the address. Where the sessions cannot be " +
		"ended nothing changes, and the link stays good. " +
		"If the address was not verified before, somebody else may have made the account: what it made and joined is " +
		"dropped, and the person gets an empty tenant. " +
		"The page /reset-password makes this call."
	reset.Errors = []int{http.StatusForbidden}
	register(a, access{who: anyone}, reset, a.resetPassword)

	verify := operation("POST", "/api/v1/auth/verify-email", "verify-email", "Authentication",
		"Verify an e-mail address with the token of a mailed link")
	verify.Description = "The link is mailed at sign-up, and leads to /verify-email, which makes this call. It takes " +
		"the account's password too, for whoever " +
		"reads the mails may not be who signed up; with a wrong one the link stays good. ID tokens say that the address is " +
		"verified from the next one on. " +
		"A new password through a mailed link verifies the address as well."
	verify.Errors = []int{http.StatusForbidden}
	register(a, access{who: anyone}, verify, a.verifyEmail)

	resend := operation("POST", verificationRoute, "resend-verification", "Authentication",
		"Have another link mailed that verifies the caller's e-mail address")
	resend.Description = "In production an account whose address is not verified signs in and out, reads what is its " +
		"own, and reads and evaluates in the tenants that it created; changes, and other tenants, are 403. How many links " +
		"are mailed in a day is limited, that of the sign-up included: beyond it is 429. An address that is verified is 409."
	resend.Errors = []int{http.StatusConflict}
	register(a, access{who: person, unverified: true}, resend, a.resendVerification)

	update := operation("POST", "/api/v1/auth/update-password", "update-password", "Authentication",
		"Change one's password")
	update.Description = "It ends the person's other sessions on every node; this one goes on, except with Firebase, " +
		"which ends the refresh tokens of all. " +
		"A wrong current password is 422."
	register(a, access{who: person}, update, a.updatePassword)
}

func (a *API) forgotPassword(ctx context.Context, in *struct {
	Body struct {
		Email string `json:"email" example:"ada@example.com"`
	}
}) (*successOutput, error) {
	if in.Body.Email == "" {
		return nil, invalid(map[string]string{"email": "is required"})
	}
	if err := bodyErrors(ctx); err != nil {
		return nil, err
	}
	return succeeded(commands.Done{}), a.limitMails(ctx, func() error {
		return a.Identity.ForgotPassword(ctx,
			in.Body.Email)
	})
}

func (a *API) resetPassword(ctx context.Context, in *struct {
	Body struct {
		MailedToken
		NewPassword
	}
}) (*successOutput, error) {
	if err := bodyErrors(ctx); err != nil {
		return nil, err
	}
	done, err := commands.ResetPassword(ctx, a.Reclaimer, a.Identity, requestBy(ctx), in.Body.Token,
		in.Body.NewPassword.NewPassword)
	return succeeded(done), err
}

func (a *API) verifyEmail(ctx context.Context, in *struct {
	Body struct {
		MailedToken
		Password string `json:"password" minLength:"1" doc:"Of the account" example:"correct horse battery"`
	}
}) (*successOutput, error) {
	missing := map[string]string{}
	if in.Body.Token == "" {
		missing["token"] = "is required"
	}
	if in.Body.Password == "" {
		missing["password"] = "is required"
	}
	if err := withBodyErrors(ctx, wrongFields(missing)); err != nil {
		return nil, err
	}
	return succeeded(commands.Done{}), a.verifyByLink(ctx, in.Body.Token, in.Body.Password)
}

func (a *API) resendVerification(ctx context.Context, _ *struct{}) (*successOutput, error) {
	claims := principalOf(ctx).claims
	if claims.EmailProved() {
		return nil, newProblem(http.StatusConflict, "the e-mail address is verified already")
	}
	return succeeded(commands.Done{}), a.Links.QueueFurtherVerification(ctx, claims.UserID, newID(ctx))
}

func (a *API) updatePassword(ctx context.Context, in *struct {
	Body struct {
		CurrentPassword string `json:"currentPassword" minLength:"1" example:"correct horse"`
		NewPassword
	}
}) (*successOutput, error) {
	current, password := in.Body.CurrentPassword, in.Body.NewPassword.NewPassword
	if err := withBodyErrors(ctx, commands.CheckPasswordChange(current, password)); err != nil {
		return nil, err
	}
	claims := principalOf(ctx).claims
	var done commands.Done
	err := a.limitAttempts(ctx, "password of "+claims.UserID, func() (err error) {
		done, err = commands.UpdatePassword(ctx, a.Writer, a.Identity, requestBy(ctx), claims, current, password)
		return err
	})
	if commands.KindOf(err) == commands.Unauthenticated {
		err = invalid(map[string]string{"currentPassword": "is wrong"})
	}
	return succeeded(done), err
}

// verifyByLink verifies an address, unless too many wrong passwords were tried with the link: whoever reads the mails
// shall not find the password out.
func (a *API) verifyByLink(ctx context.Context, token, password string) error {
	var wrong error
	err := a.limitAttempts(ctx, "link "+token, func() error {
		err := a.Identity.VerifyEmail(ctx, token, password, func(userID string) error {
			return commands.CheckActive(a.Live, userID)
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
