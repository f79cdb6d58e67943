package http

import (
	"context"
	"net/http"

	"flagledger/commands/people"
	"flagledger/http/accounts"
	"flagledger/http/rest"
)

// This file has the legacy routes of people and flags whose bodies differ from their successors'. legacyRoutes lists
// all of them.

// Credentials holds an address and its password.
type Credentials struct {
	Email    string `json:"email" example:"ada@example.com"`
	Password string `json:"password" example:"correct horse"`
}

func (a *API) addLegacy() {
	signIn := rest.LegacyOperation("POST", "/auth/signin", "legacy-sign-in", "Sign in with a password")
	signIn.Errors = []int{http.StatusUnauthorized, http.StatusForbidden}
	rest.Register(
		a.Core,
		rest.Access{Who: rest.Anyone},
		signIn,
		func(ctx context.Context, in *struct{ Body Credentials }) (*accounts.SessionOutput, error) {
			missing := map[string]string{}
			if in.Body.Email == "" {
				missing["email"] = "is required"
			}
			if in.Body.Password == "" {
				missing["password"] = "is required"
			}
			if err := rest.AddBodyErrors(ctx, rest.WrongFields(missing)); err != nil {
				return nil, err
			}
			var session people.Session
			err := a.LimitAttempts(ctx, rest.PersonAttemptKey(in.Body.Email), func() (err error) {
				session, err = a.Identity.SignIn(ctx, in.Body.Email, in.Body.Password)
				return err
			})
			if err != nil {
				return nil, err
			}
			return a.accounts.OpenSession(ctx, session)
		},
	)
	signUp := rest.LegacyOperation("POST", "/auth/signup", "legacy-sign-up", "Sign up with a password")
	signUp.DefaultStatus = http.StatusCreated
	signUp.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Anyone}, signUp, func(ctx context.Context, in *struct {
		Body struct {
			Credentials
			DisplayName string `json:"displayName,omitempty" maxLength:"200" example:"Ada"`
		}
	}) (*accounts.SessionOutput, error) {
		if err := rest.AddBodyErrors(
			ctx, people.CheckSignUp(in.Body.Email, in.Body.Password, in.Body.DisplayName),
		); err != nil {
			return nil, err
		}
		session, err := a.accounts.CreateAccount(ctx, in.Body.Email, in.Body.Password, in.Body.DisplayName)
		if err != nil {
			return nil, err
		}
		return a.accounts.OpenSession(ctx, session)
	})
}
