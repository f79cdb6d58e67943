package rules

import (
	"cmp"
	"strings"
)

// SemanticVersion is a version as Semantic Versioning 2.0.0 defines it, without build metadata, which does not count in
// comparisons.
type SemanticVersion struct {
	major, minor, patch string // digits
	prerelease          string // empty for a release
}

// ParseSemanticVersion parses a version, such as 1.2.3-beta.1+build. A leading v is not allowed.
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

// PlainVersion returns a version without build metadata, and false for a text that is no version. Versions of the same
// precedence have the same.
func PlainVersion(text string) (plain string, ok bool) {
	if _, ok = ParseSemanticVersion(text); !ok {
		return "", false
	}
	plain, _, _ = strings.Cut(text, "+")
	return plain, true
}

// String returns the version as ParseSemanticVersion reads it, without build metadata.
func (v SemanticVersion) String() string {
	text := v.major + "." + v.minor + "." + v.patch
	if v.prerelease != "" {
		text += "-" + v.prerelease
	}
	return text
}

// Compare returns -1, 0 or 1 if v is before, equal to or after other.
func (v SemanticVersion) Compare(other SemanticVersion) int {
	if c := cmp.Or(
		compareNumbers(v.major, other.major), compareNumbers(v.minor, other.minor), compareNumbers(v.patch, other.patch),
	); c != 0 {
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

// compareIdentifiers compares numbers by value and texts as ASCII. Numbers come first.
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

// identifiers reports whether a text is a list of identifiers, separated by dots. Only in build metadata may numbers
// have leading zeros.
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
