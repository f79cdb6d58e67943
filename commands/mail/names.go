package mail

import (
	"regexp"
	"strings"
	"unicode"
)

const (
	shownName = 60 // characters of a name
	leftOut   = "…"
)

// linkLike is what mail programs may turn into a link: an address with a scheme, of a host, or of a person. Dots of other scripts count as dots.
var linkLike = regexp.MustCompile(`(?i)://|\\\\|[\p{L}\p{N}]@|^(https?|hxxps?|ftp|mailto|tel|sms|data|javascript):|^\W*www[.。．｡]|[\p{L}\p{N}_-][.。．｡]+\p{L}{2,}|[\p{L}\p{N}_-][.。．｡]xn--|\d+([.。．｡]\d+){3}|/\S+/`)

// shown makes a name, which may be any text, fit for a mail: on one line, short, without invisible characters, and without words that look like a link.
func shown(name string) string {
	visible := strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), r == unicode.ReplacementChar, unicode.Is(unicode.Variation_Selector, r):
			return -1
		case unicode.IsSpace(r), unicode.IsControl(r), unicode.Is(unicode.Z, r):
			return ' '
		case r >= '！' && r <= '～': // the wide forms of ASCII
			return r - '！' + '!'
		}
		return r
	}, name)
	words := strings.Fields(visible)
	for i, word := range words {
		if linkLike.MatchString(word) {
			words[i] = leftOut
		}
	}
	if short := []rune(strings.Join(words, " ")); len(short) > shownName {
		return string(short[:shownName]) + leftOut
	}
	return strings.Join(words, " ")
}
