package keys

import (
	"context"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"flagledger/commands"
)

const sealAlgorithm = jose.HS256

// Seal makes a token that the service alone can verify, on any node. Unlike Sign it gives the same text for the same claims on all nodes.
func (k *Keys) Seal(kind Kind, subject string, expires time.Time, private any) (string, error) {
	by := k.sealing[0]
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: sealAlgorithm, Key: by.key},
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
	return "", &commands.Error{Detail: "seal a token", Err: err}
}

// Unseal reads a token that Seal made into private, as Verify reads one that Sign made.
func (k *Keys) Unseal(ctx context.Context, kind Kind, text string, private any) (jwt.Claims, error) {
	return read(ctx, kind, sealAlgorithm, k.now(), text, private, func(_ context.Context, id string) (any, error) {
		for _, by := range k.sealing {
			if by.id == id {
				return by.key, nil
			}
		}
		return nil, nil
	})
}
