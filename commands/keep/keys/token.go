package keys

import (
	"context"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"flagledger/commands"
)

// TokenTTL is how long a token is valid.
const TokenTTL = time.Hour

const (
	algorithm = jose.RS256
	maxToken  = 8 << 10          // bytes
	leeway    = 10 * time.Second // between the clocks of two nodes
)

const undated = "the token does not tell when it was issued and when it expires"

// Kind is a kind of token. A token of one kind is refused as another.
type Kind struct {
	Type     string // typ of its header
	Issuer   string
	Audience string
}

// Sign returns a signed token with a subject and private claims (RFC 7519, 4.3). id may be empty.
func (k *Keys) Sign(kind Kind, subject, id string, private any) (text string, expires time.Time, err error) {
	now := k.now().UTC().Truncate(time.Second)
	expires = now.Add(TokenTTL)
	by := k.signer()
	if by.private == nil {
		return "", expires, errVerifyOnly
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: by.private, KeyID: by.id}},
		(&jose.SignerOptions{}).WithType(jose.ContentType(kind.Type)))
	if err != nil {
		return "", expires, &commands.Error{Detail: "sign a token", Err: err}
	}
	text, err = jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: kind.Issuer, Audience: jwt.Audience{kind.Audience}, Subject: subject, ID: id,
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(expires),
	}).Claims(private).Serialize()
	if err != nil {
		return "", expires, &commands.Error{Detail: "sign a token", Err: err}
	}
	return text, expires, nil
}

// Verify reads a token of a kind into private, and returns the standard claims. Each token has exactly one valid text;
// an invalid token is Unauthenticated. Tokens are signed with RS256 (RFC 7518), and clocks may differ by 10 s.
func (k *Keys) Verify(ctx context.Context, kind Kind, text string, private any) (jwt.Claims, error) {
	return Verify(ctx, kind, func(ctx context.Context, id string) (*rsa.PublicKey, error) {
		by, err := k.find(ctx, id)
		if by == nil {
			return nil, err
		}
		return by.public, nil
	}, k.now(), text, private)
}

// Verify works like Keys.Verify at a time, with keys from find, which returns nil for an unknown id.
func Verify(
	ctx context.Context, kind Kind, find func(ctx context.Context, id string) (*rsa.PublicKey, error), now time.Time,
	text string, private any,
) (jwt.Claims, error) {
	claims, err := read(ctx, kind, algorithm, now, text, private, func(ctx context.Context, id string) (any, error) {
		public, err := find(ctx, id)
		if public == nil {
			return nil, err
		}
		return public, nil
	})
	if err == nil && claims.IssuedAt == nil {
		err = refuse(undated)
	}
	return claims, err
}

// read reads a token of a kind that was signed with an algorithm. find returns the verifying key by id, nil for an
// unknown one.
func read(
	ctx context.Context, kind Kind, algorithm jose.SignatureAlgorithm, now time.Time, text string, private any,
	find func(ctx context.Context, id string) (any, error),
) (jwt.Claims, error) {
	var claims jwt.Claims
	if len(text) > maxToken {
		return claims, refuse("the token is too long")
	}
	token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{algorithm})
	if _, other := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); other {
		return claims, refuse("the token is not signed with " + string(algorithm))
	}
	if err != nil || !canonical(text) {
		return claims, refuse("the token cannot be read")
	}
	header := token.Headers[0]
	if header.KeyID == "" {
		return claims, refuse("the token does not name its key")
	}
	by, err := find(ctx, header.KeyID)
	if err != nil {
		return claims, err
	}
	if by == nil {
		return claims, refuse("the token is signed with an unknown key")
	}
	if err := token.Claims(by, &claims, private); errors.Is(err, jose.ErrCryptoFailure) {
		return claims, refuse("the token's signature does not hold")
	} else if err != nil {
		return claims, refuse("the token cannot be read")
	}
	if typ, _ := header.ExtraHeaders[jose.HeaderType].(string); typ != kind.Type {
		return claims, refuse("the token is of another kind")
	}
	if wrong := kind.wrong(claims, now); wrong != "" {
		return claims, refuse(wrong)
	}
	return claims, nil
}

// wrong returns what is wrong with a token's claims, or "".
func (kind Kind) wrong(claims jwt.Claims, now time.Time) string {
	switch {
	case claims.Issuer != kind.Issuer:
		return "the token is from another issuer"
	case !claims.Audience.Contains(kind.Audience):
		return "the token is for another audience"
	case claims.Expiry == nil:
		return undated
	case !now.Before(claims.Expiry.Time().Add(leeway)):
		return "the token has expired"
	case now.Add(leeway).Before(claims.IssuedAt.Time()) || now.Add(leeway).Before(claims.NotBefore.Time()):
		return "the token is not valid yet"
	case claims.Subject == "":
		return "the token does not tell whose it is"
	}
	return ""
}

// canonical reports whether a token is spelled exactly as its signer spells it. Go's base64 decoder also accepts line
// breaks and stray bits at a segment's end, so that a list of revoked texts would miss another spelling.
func canonical(text string) bool {
	if strings.ContainsAny(text, "\r\n") {
		return false
	}
	for segment := range strings.SplitSeq(text, ".") {
		if _, err := strict.DecodeString(segment); err != nil {
			return false
		}
	}
	return true
}

var strict = base64.RawURLEncoding.Strict()

// TypeOf returns the typ of a token's header without verifying it; "" if there is none.
func TypeOf(text string) string {
	header, _, _ := strings.Cut(text, ".")
	if len(header) > maxToken {
		return ""
	}
	raw, err := base64.RawURLEncoding.DecodeString(header)
	if err != nil {
		return ""
	}
	var typed struct {
		Type string `json:"typ"`
	}
	if json.Unmarshal(raw, &typed) != nil {
		return ""
	}
	return typed.Type
}

func refuse(detail string) error {
	return &commands.Error{Kind: commands.Unauthenticated, Detail: detail}
}
