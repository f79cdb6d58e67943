package local

import (
	"context"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"flagledger/commands/keep/keys"
	"flagledger/commands/people"
)

const provider = "password"

// idToken holds the private claims of an ID token: Firebase's, and the token's session.
type idToken struct {
	AuthTime      *jwt.NumericDate `json:"auth_time"`
	UserID        string           `json:"user_id"`
	Email         string           `json:"email"`
	EmailVerified bool             `json:"email_verified"`
	Name          string           `json:"name,omitempty"`
	SessionID     string           `json:"sid"`
	Firebase      firebase         `json:"firebase"`
}

type firebase struct {
	Identities     map[string][]string `json:"identities"`
	SignInProvider string              `json:"sign_in_provider"`
}

func (p *Provider) kind() keys.Kind {
	return keys.Kind{Type: "JWT", Issuer: p.o.Issuer, Audience: p.o.Audience}
}

func (p *Provider) sign(who person, s session) (text string, expires time.Time, err error) {
	return p.o.Keys.Sign(p.kind(), who.userID, "", idToken{
		AuthTime: jwt.NewNumericDate(s.authTime), UserID: who.userID, SessionID: s.id,
		Email: who.email, EmailVerified: who.verified, Name: who.displayName,
		Firebase: firebase{Identities: map[string][]string{"email": {who.email}}, SignInProvider: provider},
	})
}

// Verify returns the claims of an ID token of this provider. Each token has exactly one valid text. An invalid token
// is Unauthenticated.
func (p *Provider) Verify(ctx context.Context, text string) (people.Claims, error) {
	var private idToken
	claims, err := p.o.Keys.Verify(ctx, p.kind(), text, &private)
	if err != nil {
		return people.Claims{}, err
	}
	if private.SessionID == "" {
		return people.Claims{}, refuse("the token does not tell whose it is")
	}
	return p.assumeVerified(people.Claims{
		UserID:        claims.Subject,
		Email:         private.Email,
		EmailVerified: private.EmailVerified,
		DisplayName:   private.Name,
		Provider:      private.Firebase.SignInProvider,
		SessionID:     private.SessionID,
		AuthTime:      private.AuthTime.Time().UTC(),
		ExpiresAt:     claims.Expiry.Time().UTC(),
	}), nil
}

// Admit works like Verify, because the service knows which local sessions have ended.
func (p *Provider) Admit(ctx context.Context, text string) (people.Claims, error) {
	return p.Verify(ctx, text)
}
