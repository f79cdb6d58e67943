package rest

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// OAuth error codes of RFC 6749.
const (
	InvalidRequest = "invalid_request"
	InvalidClient  = "invalid_client"
)

// grantProblem documents an error of the token endpoint: a problem with the members of an OAuth error.
type grantProblem struct{}

// Schema implements huma.SchemaProvider.
func (grantProblem) Schema(r huma.Registry) *huma.Schema {
	return problemWith(r, struct {
		Error       string `json:"error" enum:"invalid_request,invalid_client,invalid_scope,unsupported_grant_type,temporarily_unavailable,server_error" doc:"OAuth's error code"`
		Description string `json:"error_description" doc:"The same as detail" example:"the client's id or secret is wrong"`
	}{})
}

// OAuthProblem returns a refusal of the token endpoint with an OAuth error code.
func OAuthProblem(name, detail string) *Problem {
	status := http.StatusBadRequest
	if name == InvalidClient {
		status = http.StatusUnauthorized
	}
	p := NewProblem(status, detail)
	p.OAuthError = name
	return p
}

// asOAuth adds the members and headers that RFC 6749 requires of an error of the token endpoint.
func (p *Problem) asOAuth() {
	if p.OAuthError == "" {
		switch {
		case p.Status == http.StatusUnauthorized:
			p.OAuthError = InvalidClient
		case p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable:
			p.OAuthError = "temporarily_unavailable"
		case p.Status >= http.StatusInternalServerError:
			p.OAuthError = "server_error"
		default:
			p.OAuthError = InvalidRequest
		}
	}
	p.OAuthDescription = p.Detail
	if p.Status == http.StatusUnauthorized {
		p.headers.Set("WWW-Authenticate", `Basic realm="flagledger"`)
	}
	p.headers.Set("Cache-Control", "no-store")
}
