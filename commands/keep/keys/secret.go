package keys

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	// MinSecret is the shortest secret, in characters.
	MinSecret = 32
	keyBytes  = 32 // of a derived key
)

// Secret holds the values that the service's keys are derived from with HKDF (RFC 5869), one key per purpose. The
// first value encrypts and signs; the older ones only decrypt and verify.
type Secret struct {
	values   []string
	ofTokens []string // the values that sign and verify own tokens
}

// ParseSecret parses values separated by commas, newest first; each needs at least 32 characters. The error does not
// repeat them.
func ParseSecret(text string) (Secret, error) {
	var s Secret
	for value := range strings.SplitSeq(text, ",") {
		value = strings.TrimSpace(value)
		if len(value) < MinSecret {
			return s, fmt.Errorf(
				"must have at least %d characters, such as those of `openssl rand -hex 32`; where one value follows another "+
					"there is a comma between: new,old",
				MinSecret,
			)
		}
		s.values = append(s.values, value)
	}
	s.ofTokens = s.values
	return s, nil
}

// OnlyDecrypt returns a secret whose weak older values only decrypt: tokens signed with them are refused, because
// anyone might have made them.
func (s Secret) OnlyDecrypt(weak func(value string) bool) Secret {
	s.ofTokens = nil
	for i, value := range s.values {
		if i == 0 || !weak(value) {
			s.ofTokens = append(s.ofTokens, value)
		}
	}
	return s
}

// derive derives a key for a purpose from each value of a secret.
func derive(values []string, purpose string) ([][]byte, error) {
	var keys [][]byte
	for _, value := range values {
		key, err := hkdf.Key(sha256.New, []byte(value), nil, "flagledger "+purpose, keyBytes)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Box encrypts and authenticates short texts for one purpose, with AES-256-GCM and random nonces. All nodes with the
// secret can decrypt them.
type Box struct{ ciphers []cipher.AEAD }

// Box returns the box of a purpose.
func (s Secret) Box(purpose string) (Box, error) {
	var b Box
	keys, err := derive(s.values, purpose)
	if err != nil {
		return b, err
	}
	for _, key := range keys {
		block, err := aes.NewCipher(key)
		if err != nil {
			return b, err
		}
		box, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return b, err
		}
		b.ciphers = append(b.ciphers, box)
	}
	return b, nil
}

// Encrypt encrypts a text with a new nonce. Decrypting needs the same additionalData, which is not encrypted.
func (b Box) Encrypt(text, additionalData []byte) []byte {
	return b.ciphers[0].Seal(nil, nil, text, additionalData) //nolint:gosec // the cipher draws the nonce
}

// Decrypt decrypts a text of Encrypt. ok is false for a different secret, different additionalData or a changed text;
// current reports whether the newest value of the secret encrypted it.
func (b Box) Decrypt(encrypted, additionalData []byte) (text []byte, current, ok bool) {
	for i, box := range b.ciphers {
		if text, err := box.Open(nil, nil, encrypted, additionalData); err == nil {
			return text, i == 0, true
		}
	}
	return nil, false, false
}

// SigningSecrets derives the signing secret with an id from each value of FLAGLEDGER_SECRET, the newest first. It is
// stored nowhere.
func (s Secret) SigningSecrets(id string) ([]string, error) {
	keys, err := derive(s.ofTokens, "signed contexts "+id)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = base64.RawURLEncoding.EncodeToString(key)
	}
	return texts, nil
}

// ownKey signs tokens that only this service can verify.
type ownKey struct {
	id  string
	key []byte
}

// ownKeys derives the keys of own tokens. Their purposes determine the keys, so they never change.
func (s Secret) ownKeys() ([]ownKey, error) {
	ids, err := derive(s.ofTokens, "sealed token id")
	if err != nil {
		return nil, err
	}
	keys, err := derive(s.ofTokens, "sealed token")
	if err != nil {
		return nil, err
	}
	var list []ownKey
	for i := range keys {
		list = append(list, ownKey{hex.EncodeToString(ids[i][:8]), keys[i]})
	}
	return list, nil
}
