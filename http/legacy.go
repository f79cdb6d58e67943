package http

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// The legacy routes are the old names of operations, as far as their shapes differ. They are to go.

// Credentials is an address with its password.
type Credentials struct {
	Email    string `json:"email"`
	Password string `json:"password"`
}

// legacy marks an operation as deprecated in favour of another, in the document and in each answer.
func legacy(op huma.Operation, successor string) huma.Operation {
	op.Deprecated = true
	op.Description = "Deprecated: use " + successor + "."
	op.Middlewares = append(op.Middlewares, func(ctx huma.Context, next func(huma.Context)) {
		ctx.SetHeader("Deprecation", deprecated)
		ctx.SetHeader("Link", "<"+successor+`>; rel="successor-version"`)
		next(ctx)
	})
	return op
}

// deprecated is since when the legacy routes are, as RFC 9745 has it: 2026-01-01.
const deprecated = "@1767225600"

func (a *API) addLegacy() {
	signIn := legacy(operation("POST", "/auth/signin", "legacy-sign-in", "Legacy", "Sign in with a password"), "/api/v1/auth/login")
	signIn.Errors = []int{http.StatusUnauthorized}
	register(a, access{who: anyone}, signIn, func(ctx context.Context, in *struct{ Body Credentials }) (*sessionOutput, error) {
		missing := map[string]string{}
		if in.Body.Email == "" {
			missing["email"] = "is required"
		}
		if in.Body.Password == "" {
			missing["password"] = "is required"
		}
		if len(missing) > 0 {
			return nil, invalid(missing)
		}
		session, err := a.identity.SignIn(ctx, in.Body.Email, in.Body.Password)
		if err != nil {
			return nil, err
		}
		return a.showSession(ctx, session)
	})
	signUp := legacy(operation("POST", "/auth/signup", "legacy-sign-up", "Legacy", "Sign up with a password"), "/api/v1/auth/signup")
	signUp.DefaultStatus = http.StatusCreated
	signUp.Errors = []int{http.StatusConflict}
	register(a, access{who: anyone}, signUp, func(ctx context.Context, in *struct {
		Body struct {
			Credentials
			DisplayName string `json:"displayName,omitempty" maxLength:"200"`
		}
	}) (*sessionOutput, error) {
		session, err := a.identity.SignUp(ctx, in.Body.Email, in.Body.Password, in.Body.DisplayName)
		if err != nil {
			return nil, err
		}
		return a.showSession(ctx, session)
	})
}
