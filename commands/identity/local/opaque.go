package local

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// tokenBits is how long refresh tokens and the tokens of mailed links are: random bits that say nothing by themselves.
const tokenBits = 256

func newToken() string {
	raw := make([]byte, tokenBits/8)
	_, _ = rand.Read(raw) // never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

// hasTokenLength reports whether a text is as long as newToken makes them.
func hasTokenLength(token string) bool {
	return len(token) == base64.RawURLEncoding.EncodedLen(tokenBits/8)
}

// sum is what is kept of a token: its SHA-256.
func sum(token string) []byte {
	h := sha256.Sum256([]byte(token))
	return h[:]
}
