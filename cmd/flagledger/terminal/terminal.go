// Package terminal escapes text of others, so that it cannot drive the terminal that it is printed on.
package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable escapes non-printable and bidirectional characters as Go does, such as \x1b.
func Printable(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(text[0]), 16))
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[n:]
	}
	return b.String()
}

// PrintableJSON escapes the non-printable characters and invalid bytes that JSON allows as they are.
func PrintableJSON(text []byte) []byte {
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		high, low := utf16.EncodeRune(r)
		switch {
		case strconv.IsPrint(r) && (r != utf8.RuneError || n > 1):
			b = append(b, text[i:i+n]...)
		case r > 0xffff:
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
		i += n
	}
	return b
}
