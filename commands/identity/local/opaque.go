package local

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// tokenBits is the length of refresh tokens and tokens of mailed links, which are random bits.
const tokenBits = 256

func newToken() string {
	raw := make([]byte, tokenBits/8)
	_, _ = rand.Read(raw) // never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

// hasTokenLength reports whether a text has the length of newToken's tokens.
func hasTokenLength(token string) bool {
	return len(token) == base64.RawURLEncoding.EncodedLen(tokenBits/8)
}

// sum returns the SHA-256 of a token, which is stored in its place.
func sum(token string) []byte {
	h := sha256.Sum256([]byte(token))
	return h[:]
}
