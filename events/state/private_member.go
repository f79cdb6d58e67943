package state

import (
	"crypto/sha256"
	"encoding/base64"
)

const (
	// MaxMember limits a member of a segment, in bytes.
	MaxMember = 256
	// SaltBytes is the size of the salt of a private segment.
	SaltBytes = 16

	hashBytes = 16
)

// MemberHash is a member in the lists of a private segment: the first 16 bytes of SHA-256(salt, 0, member), as
// base64url.
type MemberHash [(hashBytes*8 + 5) / 6]byte

// HashMember returns the hash of a member, and false for a text that is too long for one. It does not allocate.
func HashMember(salt []byte, member string) (hash MemberHash, ok bool) {
	if len(member) > MaxMember || len(salt) != SaltBytes {
		return hash, false
	}
	var text [SaltBytes + 1 + MaxMember]byte
	n := copy(text[:], salt) + 1
	n += copy(text[n:], member)
	sum := sha256.Sum256(text[:n])
	base64.RawURLEncoding.Encode(hash[:], sum[:hashBytes])
	return hash, true
}
