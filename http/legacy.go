package http

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/projections/snapshot"
)

// The legacy routes are old names of operations, and will be removed. Here are those whose shapes differ; the others are aliases, named where their
// operation is registered.

// Credentials is an address with its password.
type Credentials struct {
	Email    string `json:"email" example:"ada@example.com"`
	Password string `json:"password" example:"correct horse"`
}

// alias is an operation under an old path, which from its first parameter on is as the new one.
func alias(op huma.Operation, path string) huma.Operation {
	successor := op.Path
	_, tail, _ := strings.Cut(path, "{")
	if _, same, _ := strings.Cut(successor, "{"); tail != same {
		panic(path + " is no alias of " + successor)
	}
	op.Path, op.OperationID, op.Tags = path, "legacy-"+op.OperationID, []string{"Legacy"}
	return legacy(op, successor)
}

// legacy marks an operation as deprecated in favour of another, in the document and in each answer.
func legacy(op huma.Operation, successor string) huma.Operation {
	op.Deprecated = true
	op.Description = "Deprecated: use " + successor + "."
	old, _, _ := strings.Cut(op.Path, "{")
	current, _, parameterized := strings.Cut(successor, "{")
	op.Middlewares = slices.Concat(op.Middlewares, huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
		r, w := unwrap(ctx)
		target := successor
		if parameterized {
			target = current + strings.TrimPrefix(r.URL.EscapedPath(), old)
		}
		deprecate(w, target)
		next(ctx)
	}})
	return op
}

// deprecate says in an answer that its route is deprecated, and where to go instead.
func deprecate(w http.ResponseWriter, successor string) {
	w.Header().Set("Deprecation", deprecated)
	w.Header().Add("Link", "<"+successor+`>; rel="successor-version"`)
}

// deprecated is since when the legacy routes are, as RFC 9745 has it: 2026-01-01.
const deprecated = "@1767225600"

func (a *API) addLegacy() {
	signIn := legacy(operation("POST", "/auth/signin", "legacy-sign-in", "Legacy", "Sign in with a password"), "/api/v1/auth/login")
	signIn.Errors = []int{http.StatusUnauthorized, http.StatusForbidden}
	register(a, access{who: anyone}, signIn, func(ctx context.Context, in *struct{ Body Credentials }) (*sessionOutput, error) {
		missing := map[string]string{}
		if in.Body.Email == "" {
			missing["email"] = "is required"
		}
		if in.Body.Password == "" {
			missing["password"] = "is required"
		}
		if err := withBodyErrors(ctx, wrongFields(missing)); err != nil {
			return nil, err
		}
		var session commands.Session
		err := a.limitGuesses(ctx, "person "+strings.TrimSpace(in.Body.Email), func() (err error) {
			session, err = a.Identity.SignIn(ctx, in.Body.Email, in.Body.Password)
			return err
		})
		if err != nil {
			return nil, err
		}
		return a.openSession(ctx, session)
	})
	signUp := legacy(operation("POST", "/auth/signup", "legacy-sign-up", "Legacy", "Sign up with a password"), "/api/v1/auth/signup")
	signUp.DefaultStatus = http.StatusCreated
	signUp.Errors = []int{http.StatusConflict}
	register(a, access{who: anyone}, signUp, func(ctx context.Context, in *struct {
		Body struct {
			Credentials
			DisplayName string `json:"displayName,omitempty" maxLength:"200" example:"Ada"`
		}
	}) (*sessionOutput, error) {
		if err := withBodyErrors(ctx, commands.CheckSignUp(in.Body.Email, in.Body.Password, in.Body.DisplayName)); err != nil {
			return nil, err
		}
		session, err := a.Identity.SignUp(ctx, in.Body.Email, in.Body.Password, in.Body.DisplayName)
		if err != nil {
			return nil, err
		}
		return a.openSession(ctx, session)
	})
}

const legacyEvaluateRoute = "/api/flags/{flagKey}/evaluate"

type legacyContextBody struct {
	UserID      string         `json:"userId,omitempty" doc:"What is now targetingKey" example:"user-42"`
	Attributes  map[string]any `json:"attributes,omitempty" example:"{\"plan\":\"pro\"}"`
	Environment string         `json:"environment,omitempty" doc:"Goes before X-Environment; production without either" example:"production"`
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

// legacyEvaluate answers what a flag serves to a userId, which is the targetingKey.
func (a *API) legacyEvaluate(w http.ResponseWriter, r *http.Request) {
	deprecate(w, "/api/v1"+strings.TrimPrefix(r.URL.EscapedPath(), "/api"))
	err := a.evaluateOne(w, r, readLegacyEvaluate, a.legacyEvaluateSchema)
	if err == nil {
		return
	}
	p := problemOf(r.Context(), err)
	if missing, ok := errors.AsType[*snapshot.NoUnitError](err); ok && missing.Attribute == events.TargetingKey {
		p.Errors = map[string]string{"userId": p.Errors[events.TargetingKey]}
	}
	writeProblem(w, r, p)
}
