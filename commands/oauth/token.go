// Package oauth issues the access tokens of OAuth clients and verifies them (RFC 9068).
package oauth

import (
	"context"
	"strings"
	"time"

	"flagledger/commands"
	"flagledger/commands/keep/keys"
	"flagledger/events"
)

// Type is the typ of an access token's header.
const Type = "at+jwt"

// Tokens issues and verifies access tokens.
type Tokens struct {
	Keys   *keys.Keys
	Issuer string // the service's public URL, also the audience
}

// Token holds the claims of an access token.
type Token struct {
	ClientID  string
	TenantID  string
	Scopes    []events.Scope
	ExpiresAt time.Time
}

// privateClaims are the additional claims of an access token.
type privateClaims struct {
	ClientID string `json:"client_id"`
	TenantID string `json:"tenant_id"`
	Scope    string `json:"scope"`
}

func (t *Tokens) kind() keys.Kind { return keys.Kind{Type: Type, Issuer: t.Issuer, Audience: t.Issuer} }

// Issue returns a token that is valid for keys.TokenTTL.
func (t *Tokens) Issue(clientID, tenantID string, scopes []events.Scope) (string, error) {
	text, _, err := t.Keys.Sign(t.kind(), clientID, commands.NewID(), privateClaims{clientID, tenantID, Join(scopes)})
	return text, err
}

// Verify reads a token, without I/O once its key is cached; an invalid token is Unauthenticated. It does not check
// whether the client and its tenant still exist.
func (t *Tokens) Verify(ctx context.Context, text string) (Token, error) {
	var private privateClaims
	claims, err := t.Keys.Verify(ctx, t.kind(), text, &private)
	if err != nil {
		return Token{}, err
	}
	if private.ClientID != claims.Subject || private.TenantID == "" {
		return Token{}, &commands.Error{Kind: commands.Unauthenticated, Detail: "the token does not tell whose it is"}
	}
	token := Token{ClientID: private.ClientID, TenantID: private.TenantID, ExpiresAt: claims.Expiry.Time().UTC()}
	for scope := range strings.FieldsSeq(private.Scope) {
		token.Scopes = append(token.Scopes, events.Scope(scope))
	}
	return token, nil
}

// Join formats scopes as OAuth does: separated by spaces.
func Join(scopes []events.Scope) string {
	var b strings.Builder
	for i, scope := range scopes {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(scope))
	}
	return b.String()
}
