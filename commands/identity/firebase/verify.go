package firebase

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"firebase.google.com/go/v4/auth"
	"github.com/go-jose/go-jose/v4/jwt"

	"flagledger/commands"
	"flagledger/commands/keep/keys"
)

// privateClaims are those of an ID token of Firebase beside those that every token has.
type privateClaims struct {
	AuthTime      *jwt.NumericDate `json:"auth_time"`
	Email         string           `json:"email"`
	EmailVerified bool             `json:"email_verified"`
	Name          string           `json:"name"`
	Firebase      struct {
		SignInProvider string `json:"sign_in_provider"`
	} `json:"firebase"`
}

// Verify returns the claims of an ID token. It checks what the Admin SDK's VerifyIDToken does with keys that are
// fetched in the background and kept while Google cannot be reached; the emulator's tokens are not signed, so the SDK
// asks the emulator about them.
func (p *Provider) Verify(ctx context.Context, text string) (commands.Claims, error) {
	var private privateClaims
	var subject string
	var expires time.Time
	if p.o.Emulator != "" {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		token, err := p.auth.VerifyIDToken(ctx, text)
		if err != nil {
			return commands.Claims{}, notAdmitted(err)
		}
		if err := payload(text, &private); err != nil {
			return commands.Claims{}, unauthenticated("the token cannot be read")
		}
		subject, expires = token.UID, time.Unix(token.Expires, 0)
	} else {
		claims, err := keys.Verify(ctx, p.kind(), p.keys.find, p.o.Now(), text, &private)
		if err != nil {
			return commands.Claims{}, err
		}
		subject, expires = claims.Subject, claims.Expiry.Time()
	}
	if private.AuthTime == nil || private.Firebase.SignInProvider == "" || len(subject) > 128 {
		return commands.Claims{}, unauthenticated("the token does not tell whose it is")
	}
	began := private.AuthTime.Time().UTC()
	c := commands.Claims{
		UserID: subject, Email: private.Email, EmailVerified: private.EmailVerified, DisplayName: private.Name,
		Provider: private.Firebase.SignInProvider, SessionID: sessionID(began), AuthTime: began, ExpiresAt: expires.UTC(),
	}.Canonical()
	p.note(c)
	return c, nil
}

// kind is what Firebase says of its ID tokens.
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

// Admit verifies an ID token, and has the Admin SDK verify it as well and ask Firebase whether it has been revoked and
// the account disabled.
func (p *Provider) Admit(ctx context.Context, text string) (commands.Claims, error) {
	c, err := p.Verify(ctx, text) // first, so that nobody makes calls with a token that was made up
	if err != nil {
		return commands.Claims{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err = p.auth.VerifyIDTokenAndCheckRevoked(ctx, text); err != nil {
		return commands.Claims{}, notAdmitted(err)
	}
	return c, nil
}

// notAdmitted makes an error of the Admin SDK about a token our own.
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
