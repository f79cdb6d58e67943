package keys

import (
	"context"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"flagledger/commands"
)

const ownAlgorithm = jose.HS256

// NewOwn returns keys that sign and verify own tokens alone, without a database.
func NewOwn(secret Secret, now func() time.Time) (*Keys, error) {
	own, err := secret.ownKeys()
	return &Keys{own: own, now: now}, err
}

// SignOwn returns a token that only this service can verify, on any node. Unlike Sign it returns the same text for the
// same claims on all nodes.
func (k *Keys) SignOwn(kind Kind, subject string, expires time.Time, private any) (string, error) {
	by := k.own[0]
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: ownAlgorithm, Key: by.key},
		(&jose.SignerOptions{}).WithType(jose.ContentType(kind.Type)).WithHeader("kid", by.id))
	if err == nil {
		var text string
		text, err = jwt.Signed(signer).Claims(jwt.Claims{
			Issuer: kind.Issuer, Audience: jwt.Audience{kind.Audience}, Subject: subject, Expiry: jwt.NewNumericDate(expires),
		}).Claims(private).Serialize()
		if err == nil {
			return text, nil
		}
	}
	return "", &commands.Error{Detail: "sign a token of the service", Err: err}
}

// VerifyOwn reads a token of SignOwn into private, as Verify reads one of Sign.
func (k *Keys) VerifyOwn(ctx context.Context, kind Kind, text string, private any) (jwt.Claims, error) {
	return read(ctx, kind, ownAlgorithm, k.now(), text, private, func(_ context.Context, id string) (any, error) {
		for _, by := range k.own {
			if by.id == id {
				return by.key, nil
			}
		}
		return nil, nil
	})
}
