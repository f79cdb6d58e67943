package events

import (
	"cmp"
	"regexp/syntax"
	"strings"
	"time"
)

// What a condition's values may be is decided here, once for those who write rules and those who evaluate them.

// ParseTime reads a time as RFC 3339 writes it, with an offset or Z, to the nanosecond and without leap seconds. time.Parse would take more than that,
// and allocate.
func ParseTime(text string) (time.Time, bool) {
	const seconds, offset = "0000-00-00T00:00:00", "00:00"
	if len(text) <= len(seconds) || !shaped(text[:len(seconds)], seconds) {
		return time.Time{}, false
	}
	two := func(at int) int { return int(text[at]-'0')*10 + int(text[at+1]-'0') }
	year, month, day, hour, minute, second, nanosecond := two(0)*100+two(2), two(5), two(8), two(11), two(14), two(17), 0
	zone := len(seconds)
	if text[zone] == '.' {
		zone++
		for unit := 100_000_000; zone < len(text) && text[zone] >= '0' && text[zone] <= '9'; unit /= 10 {
			nanosecond += unit * int(text[zone]-'0')
			zone++
		}
		if zone == len(seconds)+1 {
			return time.Time{}, false
		}
	}
	east := 0 // minutes
	if text[zone:] != "Z" {
		if len(text) != zone+1+len(offset) || text[zone] != '+' && text[zone] != '-' || !shaped(text[zone+1:], offset) || two(zone+1) > 23 || two(zone+4) > 59 {
			return time.Time{}, false
		}
		east = two(zone+1)*60 + two(zone+4)
		if text[zone] == '-' {
			east = -east
		}
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, nanosecond, time.UTC)
	if month < 1 || month > 12 || t.Day() != day || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	return t.Add(-time.Duration(east) * time.Minute), true
}

// shaped reports whether a text has digits where a shape has zeros, and is like the shape otherwise.
func shaped(text, shape string) bool {
	if len(text) != len(shape) {
		return false
	}
	for i := range len(text) {
		if shape[i] == '0' && (text[i] < '0' || text[i] > '9') || shape[i] != '0' && text[i] != shape[i] {
			return false
		}
	}
	return true
}

// RegexpSize says what a regular expression of RE2's syntax costs at most once it is compiled: its instructions, and a tenth of the bounds of the
// character ranges in them. Memory grows with it, and time with it and the length of the text. To find out costs no more than to read the expression:
// nothing is compiled. The error says what is wrong with one that would not compile.
func RegexpSize(pattern string) (int, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	instructions, bounds := compiledSize(parsed)
	return 2 + instructions + bounds/10, nil // every program has a match and a failure
}

// compiledSize counts what package syntax compiles an expression to: no less, and hardly more.
func compiledSize(re *syntax.Regexp) (instructions, bounds int) {
	for _, sub := range re.Sub {
		i, b := compiledSize(sub)
		instructions, bounds = instructions+i, bounds+b
	}
	switch re.Op {
	case syntax.OpLiteral:
		instructions, bounds = len(re.Rune), len(re.Rune)
	case syntax.OpCharClass:
		bounds = len(re.Rune)
	case syntax.OpAnyChar:
		bounds = 2
	case syntax.OpAnyCharNotNL:
		bounds = 4
	case syntax.OpCapture, syntax.OpStar:
		instructions += 2
	case syntax.OpPlus, syntax.OpQuest:
		instructions++
	case syntax.OpAlternate:
		instructions += len(re.Sub) - 1
	case syntax.OpRepeat:
		// x{2,} is xx+, x{2,4} is xx(x(x)?)?
		copies, choices := re.Max, re.Max-re.Min
		if re.Max < 0 {
			copies, choices = max(re.Min, 1), 2
		}
		instructions, bounds = copies*instructions+choices, copies*bounds
	}
	return max(instructions, 1), bounds
}

// SemanticVersion is a version as Semantic Versioning 2.0.0 defines it. Its build metadata is left out: it does not count in comparisons.
type SemanticVersion struct {
	major, minor, patch string // digits
	prerelease          string // empty for a release
}

// ParseSemanticVersion reads a version: 1.2.3-beta.1+build, without a v before it.
func ParseSemanticVersion(text string) (v SemanticVersion, ok bool) {
	text, build, built := strings.Cut(text, "+")
	core, prerelease, isPrerelease := strings.Cut(text, "-")
	v.prerelease = prerelease
	var minorFound, patchFound bool
	v.major, core, minorFound = strings.Cut(core, ".")
	v.minor, v.patch, patchFound = strings.Cut(core, ".")
	ok = minorFound && patchFound && plainNumber(v.major) && plainNumber(v.minor) && plainNumber(v.patch) &&
		(!isPrerelease || identifiers(prerelease, false)) && (!built || identifiers(build, true))
	if !ok {
		return SemanticVersion{}, false
	}
	return v, true
}

// Compare is -1, 0 or 1 as v comes before, with or after other.
func (v SemanticVersion) Compare(other SemanticVersion) int {
	if c := cmp.Or(compareNumbers(v.major, other.major), compareNumbers(v.minor, other.minor), compareNumbers(v.patch, other.patch)); c != 0 {
		return c
	}
	a, b := v.prerelease, other.prerelease
	if a == "" || b == "" {
		return cmp.Compare(len(b), len(a)) // a release comes after its prereleases
	}
	for a != "" && b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		if c := compareIdentifiers(x, y); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// compareIdentifiers compares numbers by value, texts as ASCII; numbers come first.
func compareIdentifiers(a, b string) int {
	switch aNumber, bNumber := digits(a), digits(b); {
	case aNumber && bNumber:
		return compareNumbers(a, b)
	case aNumber:
		return -1
	case bNumber:
		return 1
	}
	return cmp.Compare(a, b)
}

// compareNumbers compares digits without leading zeros, however many they are.
func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func plainNumber(text string) bool { return digits(text) && (text == "0" || text[0] != '0') }

func digits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

// identifiers reports whether a text is identifiers with dots between. Leading zeros of numbers are fine in build metadata alone.
func identifiers(text string, zeros bool) bool {
	for id := range strings.SplitSeq(text, ".") {
		if id == "" || !zeros && digits(id) && !plainNumber(id) {
			return false
		}
		for _, c := range []byte(id) {
			if c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
				return false
			}
		}
	}
	return true
}
