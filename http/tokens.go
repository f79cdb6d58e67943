package http

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"flagledger/commands"
)

// tokens verifies bearer tokens and remembers those that hold until they expire, so that a token's signature is checked once.
type tokens struct {
	identity commands.Identity
	verified *xsync.Map[[sha256.Size]byte, *credential]
}

// maxTokens bounds what is remembered: some 50 MB.
const maxTokens = 100_000

func newTokens(identity commands.Identity) *tokens {
	return &tokens{identity, xsync.NewMap[[sha256.Size]byte, *credential]()}
}

func (t *tokens) verify(ctx context.Context, token string) (*credential, error) {
	key := sha256.Sum256([]byte(token))
	if c, ok := t.verified.Load(key); ok {
		if time.Now().Before(c.expires) {
			return c, nil
		}
		t.verified.Delete(key)
	}
	claims, err := t.identity.Verify(ctx, token)
	if err != nil {
		return nil, err
	}
	c := &credential{claims: claims, expires: claims.ExpiresAt}
	if t.verified.Size() >= maxTokens {
		t.verified.Clear()
	}
	t.verified.Store(key, c)
	return c, nil
}
