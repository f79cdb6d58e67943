package mail

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

const (
	shownName = 60 // characters of a name
	leftOut   = "…"
)

var (
	// linkLike matches what mail programs may turn into a link: URLs, hosts, addresses. A single letter after a dot is
	// an abbreviation, such as e.V. Host names may end in vowel signs, which are marks, or in symbols.
	linkLike = regexp.MustCompile(
		`(?i)//|\\\\|[\p{L}\p{M}\p{N}\p{S}]@|^(https?|hxxps?|ftp|mailto|tel|sms|data|javascript):|^\W*www[.。]|[\p{L}\p{M}\p{N}\p{S}_-][.。]+[\p{L}\p{M}]{2,}|[\p{L}\p{M}\p{N}\p{S}_-][.。]xn--|\d+([.。]\d+){3}|/\S+/|0x[0-9a-f]|\p{Nd}{7}`,
	)
	// brackets around a dot hide it from programs, but not from readers.
	brackets = strings.NewReplacer("[", "", "]", "", "(", "", ")", "", "{", "", "}", "", "<", "", ">", "")
	// phoneLike matches seven digits or more, of any script, with any signs between them.
	phoneLike = regexp.MustCompile(`\+?\p{Nd}([^\p{L}\p{M}\p{Nd}]*\p{Nd}){6,}`)
)

// shown makes any name fit for a mail: on one line, short, without invisible characters, links and telephone numbers.
// Dots of other scripts count as dots.
func shown(name string) string {
	visible := strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r),
			unicode.Is(unicode.Co, r),
			r == unicode.ReplacementChar,
			unicode.Is(unicode.Variation_Selector, r),
			unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
			return -1
		case unicode.IsSpace(r), unicode.IsControl(r), unicode.Is(unicode.Z, r):
			return ' '
		}
		return r
	}, norm.NFKC.String(name))
	words := strings.Fields(phoneLike.ReplaceAllString(norm.NFC.String(visible), leftOut))
	for i, word := range words {
		if linkLike.MatchString(word) || linkLike.MatchString(brackets.Replace(word)) {
			words[i] = leftOut
		}
	}
	if short := []rune(strings.Join(words, " ")); len(short) > shownName {
		return string(short[:shownName]) + leftOut
	}
	return strings.Join(words, " ")
}
