package rest

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"flagledger/commands/keep/keys"
	"flagledger/commands/oauth"
	"flagledger/commands/people"
)

// tokenVerifier verifies bearer tokens and caches valid ones until they expire, so that each signature is checked once.
type tokenVerifier struct {
	identity people.Identity
	Machines *oauth.Tokens
	now      func() time.Time
	verified *xsync.Map[[sha256.Size]byte, *Credential]
}

// maxTokens limits the cache: some 50 MB.
const maxTokens = 100_000

func newTokenVerifier(o Options) *tokenVerifier {
	return &tokenVerifier{
		o.Identity,
		&oauth.Tokens{Keys: o.Keys, Issuer: o.PublicURL},
		o.Now,
		xsync.NewMap[[sha256.Size]byte, *Credential](),
	}
}

func (t *tokenVerifier) verify(ctx context.Context, token string) (*Credential, error) {
	key := hash(token)
	if c, ok := t.verified.Load(key); ok {
		if t.now().Before(c.Expires) {
			return c, nil
		}
		t.verified.Delete(key)
	}
	c, err := t.check(ctx, token)
	if err != nil {
		return nil, err
	}
	t.cache(key, c)
	return c, nil
}

func (t *tokenVerifier) cache(key [sha256.Size]byte, c *Credential) {
	if t.verified.Size() >= maxTokens {
		t.verified.Clear()
	}
	t.verified.Store(key, c)
}

var tokenBuffers = sync.Pool{New: func() any { return new([]byte) }}

// hash returns the SHA-256 of a token. It copies the token to pooled memory.
func hash(token string) [sha256.Size]byte {
	text := tokenBuffers.Get().(*[]byte)
	defer tokenBuffers.Put(text)
	*text = append((*text)[:0], token...)
	return sha256.Sum256(*text)
}

// check verifies a token of either kind.
func (t *tokenVerifier) check(ctx context.Context, token string) (*Credential, error) {
	if keys.TypeOf(token) == oauth.Type {
		claims, err := t.Machines.Verify(ctx, token)
		return &Credential{
			Machine: &Machine{ClientID: claims.ClientID, TenantID: claims.TenantID, scopes: claims.Scopes},
			Expires: claims.ExpiresAt,
		}, err
	}
	claims, err := t.identity.Verify(ctx, token)
	return &Credential{Claims: claims, Expires: claims.ExpiresAt}, err
}
