package local

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"

	"flagledger/commands"
)

// passwordHash is a stored password: its argon2id sum (RFC 9106) with the parameters to compute it.
type passwordHash struct {
	memory uint32 // KiB
	passes uint32
	lanes  uint8
	salt   []byte
	sum    []byte
}

// recommendedMemory is OWASP's recommendation for argon2id with two passes, in KiB.
const recommendedMemory = 19 * 1024

// newPasswordHash returns a password hash with a salt but no sum.
func newPasswordHash(memory uint32) passwordHash {
	p := passwordHash{memory: memory, passes: 2, lanes: 1, salt: make([]byte, 16), sum: make([]byte, 32)}
	_, _ = rand.Read(p.salt) // never fails
	return p
}

func (p passwordHash) sumOf(text string) []byte {
	return argon2.IDKey([]byte(text), p.salt, p.passes, p.memory, p.lanes, uint32(len(p.sum)))
}

func hash(text string, memory uint32) passwordHash {
	p := newPasswordHash(memory)
	p.sum = p.sumOf(commands.NormalPassword(text))
	return p
}

// matches compares the composed form of a password, and then the password as typed, which earlier releases stored. The
// time does not depend on the hash.
func (p passwordHash) matches(text string) bool {
	composed := commands.NormalPassword(text)
	return p.matchesExactly(composed) || text != composed && p.matchesExactly(text)
}

func (p passwordHash) matchesExactly(text string) bool {
	return subtle.ConstantTimeCompare(p.sumOf(text), p.sum) == 1
}

// String returns the PHC string format: $argon2id$v=19$m=19456,t=2,p=1$salt$sum.
func (p passwordHash) String() string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.memory, p.passes, p.lanes,
		b64.EncodeToString(p.salt), b64.EncodeToString(p.sum))
}

// parse parses String's format. It refuses more than 64 MiB of memory (the second recommended option of RFC 9106), so
// that a bad row cannot exhaust the service.
func parse(s string) (passwordHash, error) {
	bad := errors.New("not an argon2id hash in PHC format, or parameters out of range")
	part := strings.Split(s, "$")
	if len(s) > 256 || len(part) != 6 {
		return passwordHash{}, bad
	}
	var p passwordHash
	if _, err := fmt.Sscanf(part[3], "m=%d,t=%d,p=%d", &p.memory, &p.passes, &p.lanes); err != nil {
		return passwordHash{}, bad
	}
	var err error
	if p.salt, err = base64.RawStdEncoding.DecodeString(part[4]); err != nil {
		return passwordHash{}, bad
	}
	if p.sum, err = base64.RawStdEncoding.DecodeString(part[5]); err != nil {
		return passwordHash{}, bad
	}
	within := p.lanes >= 1 && p.lanes <= 4 && p.passes >= 1 && p.passes <= 16 && p.memory >= 8*uint32(p.lanes) &&
		p.memory <= 64*1024 &&
		len(p.salt) >= 8 && len(p.salt) <= 64 &&
		len(p.sum) >= 16 &&
		len(p.sum) <= 64
	if !within || p.String() != s {
		return passwordHash{}, bad
	}
	return p, nil
}
