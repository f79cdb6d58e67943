package accounts

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/http/rest"
)

// documentJWKS documents the route of jwks.
func (a *API) documentJWKS() {
	op := rest.Operation("GET", rest.JWKSRoute, "get-jwks", "OAuth",
		"The public keys of the service's tokens, as a JWK set (RFC 7517)")
	op.Description = "A key is published a day before it is used for signing."
	example := map[string]any{
		"keys": []any{
			map[string]string{"use": "sig", "kty": "RSA", "kid": "17", "alg": "RS256", "n": "xq7vTn0Yw3bLr...", "e": "AQAB"},
		},
	}
	op.Responses = map[string]*huma.Response{
		"200": {
			Description: "The keys, newest first",
			Content:     map[string]*huma.MediaType{"application/json": {Example: example}},
		},
	}
	a.Huma.OpenAPI().AddOperation(&op)
}

// jwks answers with the public keys that access tokens are signed with.
func (a *API) jwks(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=3600")
	_ = json.NewEncoder(w).Encode(a.Keys.JWKS())
}
