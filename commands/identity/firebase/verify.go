package firebase

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"firebase.google.com/go/v4/auth"
	"github.com/go-jose/go-jose/v4/jwt"

	"flagledger/commands/keep/keys"
	"flagledger/commands/people"
)

// privateClaims are Firebase's additional claims of an ID token.
type privateClaims struct {
	AuthTime      *jwt.NumericDate `json:"auth_time"`
	Email         string           `json:"email"`
	EmailVerified bool             `json:"email_verified"`
	Name          string           `json:"name"`
	Firebase      struct {
		SignInProvider string `json:"sign_in_provider"`
	} `json:"firebase"`
}

// Verify returns the claims of an ID token. It checks what the Admin SDK's VerifyIDToken does, but with keys that are
// cached while Google cannot be reached. The SDK asks the emulator about its unsigned tokens.
func (p *Provider) Verify(ctx context.Context, text string) (people.Claims, error) {
	var private privateClaims
	var subject string
	var expires time.Time
	if p.o.Emulator != "" {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		token, err := p.auth.VerifyIDToken(ctx, text)
		if err != nil {
			return people.Claims{}, notAdmitted(err)
		}
		if err := payload(text, &private); err != nil {
			return people.Claims{}, unauthenticated("the token cannot be read")
		}
		subject, expires = token.UID, time.Unix(token.Expires, 0)
	} else {
		claims, err := keys.Verify(ctx, p.kind(), p.keys.find, p.o.Now(), text, &private)
		if err != nil {
			return people.Claims{}, err
		}
		subject, expires = claims.Subject, claims.Expiry.Time()
	}
	if private.AuthTime == nil || private.Firebase.SignInProvider == "" || len(subject) > 128 {
		return people.Claims{}, unauthenticated("the token does not tell whose it is")
	}
	began := private.AuthTime.Time().UTC()
	c := people.Claims{
		UserID: subject, Email: private.Email, EmailVerified: private.EmailVerified, DisplayName: private.Name,
		Provider: private.Firebase.SignInProvider, SessionID: sessionID(began), AuthTime: began, ExpiresAt: expires.UTC(),
	}.Canonical()
	p.note(c)
	return c, nil
}

// kind describes Firebase's ID tokens.
func (p *Provider) kind() keys.Kind {
	return keys.Kind{Type: "JWT", Issuer: "https://securetoken.google.com/" + p.o.ProjectID, Audience: p.o.ProjectID}
}

func payload(token string, into any) error {
	_, rest, _ := strings.Cut(token, ".")
	part, _, _ := strings.Cut(rest, ".")
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// Admit verifies an ID token, and lets the Admin SDK check with Firebase that it is not revoked and the account not
// disabled.
func (p *Provider) Admit(ctx context.Context, text string) (people.Claims, error) {
	c, err := p.Verify(ctx, text) // first, so that invented tokens cause no calls
	if err != nil {
		return people.Claims{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err = p.auth.VerifyIDTokenAndCheckRevoked(ctx, text); err != nil {
		return people.Claims{}, notAdmitted(err)
	}
	return c, nil
}

// notAdmitted turns an error of the Admin SDK about a token into ours.
func notAdmitted(err error) error {
	switch {
	case auth.IsUserDisabled(err):
		return unauthenticated("the account is disabled")
	case auth.IsIDTokenRevoked(err):
		return unauthenticated("the session has ended")
	case auth.IsUserNotFound(err):
		return unauthenticated("the account is gone")
	case auth.IsIDTokenInvalid(err):
		return unauthenticated("the token does not hold")
	}
	return unreachable(err)
}
