package commands

import (
	"strings"

	"golang.org/x/net/idna"
)

const (
	// MaxEmail is the longest address, in bytes (RFC 5321).
	MaxEmail     = 254
	maxLocalPart = 64 // bytes, before the @
)

// ParseAddress returns the canonical form of an e-mail address, in which addresses are stored, compared and mailed to; ok is false for a text that has
// none. Before the @ stands a dot-atom of ASCII characters (RFC 5321), in the case that was typed; the domain is in ASCII (IDNA 2008) and lower case.
// Two addresses are the same where their ASCII lower case is, in Go as in Postgres: lower(email collate "C").
func ParseAddress(text string) (address string, ok bool) {
	at := strings.LastIndexByte(text, '@')
	if at < 1 || at > maxLocalPart || len(text) > MaxEmail || !isDotAtom(text[:at]) {
		return "", false
	}
	typed := lowerASCII(text[at+1:])
	domain, err := idna.Registration.ToASCII(typed) // which maps nothing: letters that fold to others are refused, and those that look alike are domains of their own
	if err != nil || strings.HasSuffix(domain, ".") || isASCII(typed) && domain != typed {
		return "", false
	}
	address = text[:at+1] + domain
	return address, len(address) <= MaxEmail
}

// AddressKey is the same text for all spellings of an address, and empty for a text that is none.
func AddressKey(text string) string {
	address, _ := ParseAddress(text)
	return lowerASCII(address)
}

func (f fields) checkAddress(field, text string) {
	_, ok := ParseAddress(text)
	f.check(len(text) <= MaxEmail, field, "must be at most %d bytes", MaxEmail)
	f.check(ok, field, "%s", NotAnAddress)
}

// NotAnAddress says what is wrong with a text that is no address.
const NotAnAddress = "must be an e-mail address, with letters of ASCII alone before the @"

// isDotAtom reports whether a text is a Dot-string of RFC 5321.
func isDotAtom(text string) bool {
	for atom := range strings.SplitSeq(text, ".") {
		if atom == "" || strings.ContainsFunc(atom, func(r rune) bool { return !isAtext(r) }) {
			return false
		}
	}
	return true
}

func isAtext(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r)
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 })
}

// lowerASCII leaves all but A to Z as it is.
func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
