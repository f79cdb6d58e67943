package http

import (
	"context"
	"errors"
	"net/http"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/projections/snapshot/evaluation"
)

// This file has the legacy routes of people and flags whose bodies differ from their successors'. legacyRoutes lists
// all of them.

// Credentials holds an address and its password.
type Credentials struct {
	Email    string `json:"email" example:"ada@example.com"`
	Password string `json:"password" example:"correct horse"`
}

func (a *API) addLegacy() {
	signIn := legacyOperation("POST", "/auth/signin", "legacy-sign-in", "Sign in with a password")
	signIn.Errors = []int{http.StatusUnauthorized, http.StatusForbidden}
	register(
		a,
		access{who: anyone},
		signIn,
		func(ctx context.Context, in *struct{ Body Credentials }) (*sessionOutput, error) {
			missing := map[string]string{}
			if in.Body.Email == "" {
				missing["email"] = "is required"
			}
			if in.Body.Password == "" {
				missing["password"] = "is required"
			}
			if err := addBodyErrors(ctx, wrongFields(missing)); err != nil {
				return nil, err
			}
			var session commands.Session
			err := a.limitAttempts(ctx, personAttemptKey(in.Body.Email), func() (err error) {
				session, err = a.Identity.SignIn(ctx, in.Body.Email, in.Body.Password)
				return err
			})
			if err != nil {
				return nil, err
			}
			return a.openSession(ctx, session)
		},
	)
	signUp := legacyOperation("POST", "/auth/signup", "legacy-sign-up", "Sign up with a password")
	signUp.DefaultStatus = http.StatusCreated
	signUp.Errors = []int{http.StatusConflict}
	register(a, access{who: anyone}, signUp, func(ctx context.Context, in *struct {
		Body struct {
			Credentials
			DisplayName string `json:"displayName,omitempty" maxLength:"200" example:"Ada"`
		}
	}) (*sessionOutput, error) {
		if err := addBodyErrors(
			ctx, commands.CheckSignUp(in.Body.Email, in.Body.Password, in.Body.DisplayName),
		); err != nil {
			return nil, err
		}
		session, err := a.createAccount(ctx, in.Body.Email, in.Body.Password, in.Body.DisplayName)
		if err != nil {
			return nil, err
		}
		return a.openSession(ctx, session)
	})
}

const legacyEvaluateRoute = "/api/flags/{flagKey}/evaluate"

type legacyContextBody struct {
	UserID      string         `json:"userId,omitempty" doc:"The old name of targetingKey" example:"user-42"`
	Attributes  map[string]any `json:"attributes,omitempty" example:"{\"plan\":\"pro\"}"`
	Environment string         `json:"environment,omitempty" doc:"Overrides X-Environment; production without either" example:"production"`
}

func readLegacyEvaluate(e *evaluationRequest) error {
	return e.Object(func(name string) error {
		switch name {
		case "userId":
			return e.String(&e.TargetingKey)
		case "targetingKey":
			return e.Refuse("unexpected property")
		default:
			return e.member(name)
		}
	})
}

// legacyEvaluate evaluates a flag for a userId, the old name of the targetingKey.
func (a *API) legacyEvaluate(w http.ResponseWriter, r *http.Request) {
	err := a.evaluateOne(w, r, readLegacyEvaluate, a.legacyEvaluateSchema)
	if err == nil {
		return
	}
	p := problemOf(r.Context(), err)
	if missing, ok := errors.AsType[*evaluation.NoUnitError](err); ok && missing.Attribute == events.TargetingKey {
		p.Errors = map[string]string{"userId": p.Errors[events.TargetingKey]}
	}
	writeProblem(w, r, p)
}
