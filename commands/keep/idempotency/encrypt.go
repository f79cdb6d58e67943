package idempotency

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
)

// Requests and answers may hold secrets, such as a password, so only a MAC of a request is stored, and answers are
// encrypted. Both keys are derived from the Idempotency-Key, which is not stored: the database alone reveals neither.

const saltBytes = 16

func encrypt(r Request, a Answer) ([]byte, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails
	box, err := boxOf(r, salt)
	if err != nil {
		return nil, err
	}
	return box.Seal(salt, nil, text, belongsTo(r)), nil //nolint:gosec // the box draws a nonce by itself
}

func decrypt(r Request, encrypted []byte) (*Answer, error) {
	if len(encrypted) < saltBytes {
		return nil, errors.New("the stored answer of an Idempotency-Key is truncated")
	}
	box, err := boxOf(r, encrypted[:saltBytes])
	if err != nil {
		return nil, err
	}
	text, err := box.Open(nil, nil, encrypted[saltBytes:], belongsTo(r))
	if err != nil {
		return nil, err
	}
	a := &Answer{}
	return a, json.Unmarshal(text, a)
}

func boxOf(r Request, salt []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(r.derive(salt, "flagledger answer"))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// belongsTo returns the additional data of an encrypted answer.
func belongsTo(r Request) []byte { return slices.Concat(r.storedScope(), r.contentMAC()) }

// derive derives a 32-byte key for a purpose from the caller's key.
func (r Request) derive(salt []byte, purpose string) []byte {
	secret := sha256.Sum256([]byte(r.Key)) // so that no key is too short
	key, err := hkdf.Key(sha256.New, secret[:], salt, purpose, sha256.Size)
	if err != nil {
		panic(err) // only if it were asked for too many bytes
	}
	return key
}
