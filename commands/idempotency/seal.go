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

// Answers may hold secrets that nobody but the caller is to have, such as an OAuth client's. They are encrypted with a key that is derived from
// the caller's Idempotency-Key, which is not kept: who reads the database does not read the answers, as long as the keys are hard to guess.

const saltBytes = 16

func seal(r Request, a Answer) ([]byte, error) {
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
	return box.Seal(salt, nil, text, bound(r)), nil //nolint:gosec // the box draws a nonce by itself
}

func unseal(r Request, sealed []byte) (*Answer, error) {
	if len(sealed) < saltBytes {
		return nil, errors.New("the answer kept for an Idempotency-Key is cut off")
	}
	box, err := boxOf(r, sealed[:saltBytes])
	if err != nil {
		return nil, err
	}
	text, err := box.Open(nil, nil, sealed[saltBytes:], bound(r))
	if err != nil {
		return nil, err
	}
	a := &Answer{}
	return a, json.Unmarshal(text, a)
}

func boxOf(r Request, salt []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(r.Key), salt, "flagledger answer", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// bound is what an answer belongs to.
func bound(r Request) []byte { return slices.Concat(r.scope(), r.content()) }
