package accounts

import (
	"context"
	"net/http"
	"strings"

	"flagledger/commands/people"
	"flagledger/http/rest"
)

// providers lists the identity providers beside passwords: the name in paths, the title, the name in tokens and the
// legacy path.
var providers = []struct{ name, title, tokens, old string }{
	{"google", "Google", "google.com", "/auth/google"},
	{"github", "GitHub", "github.com", ""},
	{"microsoft", "Microsoft", "microsoft.com", "/auth/microsoft"},
}

type providerBody struct {
	IDTokenBody
	ProviderName string `json:"providerName" minLength:"1" doc:"The provider's name, with or without .com"`
}

func (a *API) addProviders() {
	for _, provider := range providers {
		op := rest.Operation("POST", "/api/v1/auth/signin/"+provider.name, "sign-in-"+provider.name, "Authentication",
			"Sign in with "+provider.title)
		op.Description = "The token must be from a sign-in with " + provider.title + "; any other is 422."
		op.Errors = []int{http.StatusUnauthorized, http.StatusForbidden}
		example := providerBody{IDTokenBody{"eyJhbGciOiJSUzI1NiIsImtpZCI6Ij..."}, provider.name}
		rest.Register(
			a.Core,
			rest.Access{Who: rest.Anyone},
			rest.WithExamples(op, example, nil),
			func(ctx context.Context, in *struct{ Body providerBody }) (*bootstrapOutput, error) {
				wrong := map[string]string{}
				if in.Body.IDToken == "" {
					wrong["idToken"] = "is required"
				}
				if name := strings.ToLower(in.Body.ProviderName); name != provider.name && name != provider.tokens {
					wrong["providerName"] = "must be " + provider.name + ", as in the path"
				}
				if err := rest.AddBodyErrors(ctx, rest.WrongFields(wrong)); err != nil {
					return nil, err
				}
				return a.signInWith(ctx, provider.tokens, in.Body.IDToken)
			},
		)
		if provider.old == "" {
			continue
		}
		old := rest.LegacyOperation("POST", provider.old, "legacy-"+op.OperationID, op.Summary)
		old.Errors = op.Errors
		rest.Register(
			a.Core,
			rest.Access{Who: rest.Anyone},
			old,
			func(ctx context.Context, in *struct{ Body IDTokenBody }) (*bootstrapOutput, error) {
				return a.signInWith(ctx, provider.tokens, in.Body.IDToken)
			},
		)
	}
}

// signInWith signs in a person whose ID token is from the given provider.
func (a *API) signInWith(ctx context.Context, provider, idToken string) (*bootstrapOutput, error) {
	claims, err := a.claimsOf(ctx, idToken)
	if err != nil {
		return nil, err
	}
	if claims.Provider != provider {
		return nil, rest.Invalid(
			map[string]string{
				"idToken": "is from a sign-in with " + providerTitle(claims) + ", not with " + provider,
			},
		)
	}
	return a.bootstrap(ctx, claims, "signed in")
}

func providerTitle(c people.Claims) string {
	if c.Provider == "password" {
		return "a password"
	}
	return c.Provider
}
