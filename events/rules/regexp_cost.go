package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxRegexpCost limits the cost of parsing all regular expressions of an environment's rules: some 5 ms. See
// RegexpCost.
const MaxRegexpCost = 50_000

// The measured costs in package syntax of parts of an expression, rounded up, in units of RegexpCost.
const (
	unknownTableCost = 1000 // more than for any table of package unicode
	foldedTableCost  = 3    // the factor without case
	foldedGroupCost  = 14   // of \w and the like without case
	foldsPerUnit     = 4    // characters of a range whose other cases are looked up
)

// Package syntax looks up the other cases of the characters in these bounds, unless a range has all of them.
const minFold, maxFold = 0x41, 0x1e943

// RegexpCost returns an upper estimate of the cost of parsing a regular expression, in units of 100 ns. It reads only
// the text, which may be invalid. Classes such as \pL, and large ranges without case, cost hundreds of times their
// length.
func RegexpCost(pattern string) int {
	cost, folds := len(pattern), false
	before, bound := rune(-1), rune(-1) // the last character, and the first one of a range that the next character ends
	for rest := pattern; rest != ""; {
		folds = folds || setsFold(rest)
		r, size := nextRune(rest)
		switch token := rest[:size]; {
		case token == `\p` || token == `\P`:
			ranges := tableRanges(rest[size:])
			if folds {
				ranges *= foldedTableCost
			}
			cost += ranges
		case folds && (r < 0 || strings.HasPrefix(rest, "[:")):
			cost += foldedGroupCost
		}
		if all := bound <= minFold && r >= maxFold; folds && bound >= 0 && r >= 0 && !all {
			cost += max(0, int(min(r, maxFold)-max(bound, minFold))/foldsPerUnit)
		}
		bound = -1
		if rest[:size] == "-" {
			bound = before
		}
		before, rest = r, rest[size:]
	}
	return cost
}

// setsFold reports whether a text begins with a group that may turn off case, such as (?i) or (?s-i:.
func setsFold(text string) bool {
	flags, ok := strings.CutPrefix(text, "(?")
	return ok && strings.Contains(flags[:len(flags)-len(strings.TrimLeft(flags, "imsU-"))], "i")
}

// nextRune returns the first character of a text and the bytes that it is written with. It is -1 for an escape that
// stands for many characters. The text may begin in a class or outside, and between \Q and \E: whatever it reads there,
// a class after them is read from its beginning.
func nextRune(text string) (r rune, size int) {
	if text[0] != '\\' || len(text) == 1 {
		return utf8.DecodeRuneInString(text)
	}
	digits, base := "", rune(8)
	switch c := text[1]; {
	case strings.IndexByte("pPdDsSwW", c) >= 0:
		return -1, 2
	case strings.HasPrefix(text, `\x{`):
		size = strings.IndexByte(text, '}') + 1
		digits, base = text[3:max(3, size-1)], 16
	case c == 'x':
		size = min(4, len(text))
		digits, base = text[2:size], 16
	case '0' <= c && c <= '7':
		for size = 2; size < min(4, len(text)) && '0' <= text[size] && text[size] <= '7'; size++ {
		}
		digits = text[1:size]
	}
	for i := range len(digits) {
		digit := rune(strings.IndexByte("0123456789abcdef", digits[i]|0x20))
		if digit < 0 || r > unicode.MaxRune {
			return utf8.RuneError, 2 // as for an escape that has no such digits
		}
		r = r*base + digit
	}
	if digits != "" {
		return r, size
	}
	r, size = utf8.DecodeRuneInString(text[1:])
	return r, 1 + size
}

// tableRanges is how many ranges a class of Unicode consists of. The text begins with its name, such as L or {Greek}.
func tableRanges(text string) (ranges int) {
	_, size := utf8.DecodeRuneInString(text)
	name := text[:size]
	if name == "{" {
		name, _, _ = strings.Cut(text[size:], "}")
	}
	name = strings.TrimPrefix(name, "^")
	table := unicode.Categories[name]
	if table == nil {
		table = unicode.Scripts[name]
	}
	if table == nil {
		return unknownTableCost
	}
	count := func(lo, hi, stride uint32) {
		if stride == 1 {
			ranges++
		} else {
			ranges += int((hi-lo)/stride) + 1
		}
	}
	for _, r := range table.R16 {
		count(uint32(r.Lo), uint32(r.Hi), uint32(r.Stride))
	}
	for _, r := range table.R32 {
		count(r.Lo, r.Hi, r.Stride)
	}
	return ranges
}
