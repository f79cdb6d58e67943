package commands

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

const (
	// maxEmail is the longest address, in bytes (RFC 5321).
	maxEmail     = 254
	maxLocalPart = 64 // bytes, before the @
)

// ParseEmail returns the canonical form of an e-mail address, as it is stored and mailed to. The local part is a
// dot-atom of ASCII (RFC 5321) as typed, the domain is ASCII (IDNA 2008) in lower case. Surrounding blanks are
// ignored.
//
// Two addresses are the same if their ASCII lower case is: EmailKey in Go, lower(email collate "C") in Postgres.
func ParseEmail(text string) (address string, ok bool) {
	text = strings.TrimSpace(text)
	at := strings.LastIndexByte(text, '@')
	if at < 1 || at > maxLocalPart || len(text) > maxEmail || !isDotAtom(text[:at]) {
		return "", false
	}
	typed := lowerDomain(text[at+1:])
	domain, err := idna.Registration.ToASCII(typed) // without mapping: similar letters make different domains
	if err != nil || strings.HasSuffix(domain, ".") || isASCII(typed) && domain != typed {
		return "", false
	}
	address = text[:at+1] + domain
	return address, len(address) <= maxEmail
}

// EmailKey returns the same key for all spellings of an address, and "" for an invalid one.
func EmailKey(text string) string {
	address, _ := ParseEmail(text)
	return lowerASCII(address)
}

// CheckEmail notes a text that is not an address, or too long.
func (f FieldErrors) CheckEmail(field, text string) {
	_, ok := ParseEmail(text)
	f.Check(len(strings.TrimSpace(text)) <= maxEmail, field, "must be at most %d bytes", maxEmail)
	f.Check(ok, field, "%s", NotAnEmail)
}

// NotAnEmail is the message for a text that is not an address.
const NotAnEmail = "must be an e-mail address, with only ASCII letters before the @"

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
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
		strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r)
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 })
}

// lowerDomain returns a domain in lower case and composed, as IDNA 2008 requires. A letter that would change into
// another, such as the Kelvin sign, stays, and is refused.
func lowerDomain(domain string) string {
	lower := func(r rune) rune {
		small := unicode.ToLower(r)
		if r >= utf8.RuneSelf && (small < utf8.RuneSelf || unicode.ToUpper(small) != r) {
			return r
		}
		return small
	}
	if strings.ContainsRune(domain, '\u212A') { // composing would turn it into a K
		return domain
	}
	return norm.NFC.String(strings.Map(lower, norm.NFC.String(domain)))
}

// lowerASCII changes only A to Z to lower case.
func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
