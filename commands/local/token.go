package local

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"flagledger/commands"
)

const (
	algorithm  = jose.RS256
	tokenLives = time.Hour
	maxToken   = 8 << 10          // bytes
	leeway     = 10 * time.Second // between the clocks of two nodes
	provider   = "password"
)

// idToken is what an ID token says, in the shape of Firebase's, and the session that it belongs to.
type idToken struct {
	jwt.Claims
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

func (p *Provider) sign(who person, s session, now time.Time) (text string, expires time.Time, err error) {
	now = now.Truncate(time.Second)
	expires = now.Add(tokenLives)
	text, err = jwt.Signed(p.keys.held.Load().signer).Claims(idToken{
		Claims: jwt.Claims{
			Issuer: p.o.Issuer, Audience: jwt.Audience{p.o.Audience}, Subject: who.userID,
			IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(expires),
		},
		AuthTime: jwt.NewNumericDate(s.authTime), UserID: who.userID, SessionID: s.id,
		Email: who.email, EmailVerified: who.verified, Name: who.displayName,
		Firebase: firebase{Identities: map[string][]string{"email": {who.email}}, SignInProvider: provider},
	}).Serialize()
	return text, expires, err
}

// Verify tells whom an ID token of this provider speaks of; exactly one text passes for each token. A token that does not hold, for
// whatever reason, is Unauthenticated. Tokens are signed with RS256 (RFC 7518); clocks may differ by 10 s.
func (p *Provider) Verify(ctx context.Context, text string) (commands.Claims, error) {
	if len(text) > maxToken {
		return commands.Claims{}, refuse("the token is too long")
	}
	token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{algorithm})
	if _, other := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); other {
		return commands.Claims{}, refuse("the token is not signed with " + string(algorithm))
	}
	if err != nil || !canonical(text) {
		return commands.Claims{}, refuse("the token cannot be read")
	}
	kid := token.Headers[0].KeyID
	if kid == "" {
		return commands.Claims{}, refuse("the token does not name its key")
	}
	key, err := p.keys.find(ctx, kid)
	if err != nil {
		return commands.Claims{}, err
	}
	if key == nil {
		return commands.Claims{}, refuse("the token is signed with an unknown key")
	}
	var said idToken
	if err := token.Claims(key, &said); errors.Is(err, jose.ErrCryptoFailure) {
		return commands.Claims{}, refuse("the token's signature does not hold")
	} else if err != nil {
		return commands.Claims{}, refuse("the token cannot be read")
	}
	if wrong := p.wrong(said); wrong != "" {
		return commands.Claims{}, refuse(wrong)
	}
	return commands.Claims{
		UserID: said.Subject, Email: said.Email, EmailVerified: said.EmailVerified, DisplayName: said.Name,
		Provider: said.Firebase.SignInProvider, SessionID: said.SessionID, ExpiresAt: said.Expiry.Time().UTC(),
	}, nil
}

// wrong tells what is wrong with a token's claims, nothing where they hold.
func (p *Provider) wrong(said idToken) string {
	now := p.now()
	switch {
	case said.Issuer != p.o.Issuer:
		return "the token is from another issuer"
	case !said.Audience.Contains(p.o.Audience):
		return "the token is for another audience"
	case said.Expiry == nil || said.IssuedAt == nil:
		return "the token does not tell when it was issued and when it expires"
	case !now.Before(said.Expiry.Time().Add(leeway)):
		return "the token has expired"
	case now.Add(leeway).Before(said.IssuedAt.Time()) || now.Add(leeway).Before(said.NotBefore.Time()):
		return "the token is not valid yet"
	case said.Subject == "" || said.SessionID == "":
		return "the token does not tell whose it is"
	}
	return ""
}

// canonical tells whether a token is spelled the one way that its signer spells it. Go's base64 decoding also takes line breaks and stray
// bits at a segment's end, so a token would pass under many texts, and hide from who keeps track of revoked ones by their text.
func canonical(text string) bool {
	for segment := range strings.SplitSeq(text, ".") {
		raw, err := base64.RawURLEncoding.DecodeString(segment)
		if err != nil || base64.RawURLEncoding.EncodeToString(raw) != segment {
			return false
		}
	}
	return true
}

// JWKS are the public keys that tokens can be verified with (RFC 7517), the newest first, as this node last read them.
func (p *Provider) JWKS() jose.JSONWebKeySet { return p.keys.held.Load().publics }
