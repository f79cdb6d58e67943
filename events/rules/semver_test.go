package rules

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The order contains semver.org's examples and more.
func TestSemanticVersionsInOrder(t *testing.T) {
	ordered := []string{
		"0.0.0-0",
		"0.0.0-1",
		"0.0.0-9",
		"0.0.0-10",
		"0.0.0-99999999999999999999998",
		"0.0.0-99999999999999999999999",
		"0.0.0--",
		"0.0.0-0a",
		"0.0.0",
		"0.0.4",
		"0.9.0",
		"1.0.0-alpha",
		"1.0.0-alpha.1",
		"1.0.0-alpha.beta",
		"1.0.0-beta",
		"1.0.0-beta.2",
		"1.0.0-beta.11",
		"1.0.0-rc.1",
		"1.0.0",
		"1.2.0",
		"1.10.0",
		"2.0.0-A",
		"2.0.0-a",
		"2.0.0-a.0",
		"2.0.0-a.0.0",
		"2.0.0-a-b",
		"2.0.0",
		"99999999999999999999998.0.0",
		"99999999999999999999999.0.0",
	}
	versions := make([]SemanticVersion, len(ordered))
	for i, text := range ordered {
		var ok bool
		if versions[i], ok = ParseSemanticVersion(text); !ok {
			t.Fatalf("%s is not taken for a version", text)
		}
	}
	for i, a := range versions {
		for j, b := range versions {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := a.Compare(b); got != want {
				t.Errorf("%s against %s is %d, want %d", ordered[i], ordered[j], got, want)
			}
		}
	}
}

func TestBuildMetadataDoesNotCount(t *testing.T) {
	a, _ := ParseSemanticVersion("1.0.0-a+001.x--")
	b, ok := ParseSemanticVersion("1.0.0-a")
	if !ok || a != b || a.Compare(b) != 0 {
		t.Errorf("%v and %v differ", a, b)
	}
	for text, want := range map[string]string{"1.0.0": "1.0.0", "1.0.0+1": "1.0.0", "1.0.0-a.1+b-c.d": "1.0.0-a.1", "1.0+1": "", "1.0.0+": ""} {
		if plain, ok := PlainVersion(text); plain != want || ok != (want != "") {
			t.Errorf("%s without build metadata is %q, %t", text, plain, ok)
		}
	}
}

func TestNoSemanticVersions(t *testing.T) {
	for _, text := range []string{
		"", "1", "1.2", "1.2.3.4", "v1.2.3", "V1.2.3", "=1.2.3", " 1.2.3", "1.2.3 ", "01.2.3", "1.02.3", "1.2.03", "1.2.3-", "1.2.3-01", "1.2.3-a..b", "1.2.3-.", "1.2.3-a.",
		"1.2.3+", "1.2.3+a..b", "1.2.3+a+b", "1.2.3-é", "1.2.3-a_b", "1.2.x", "-1.2.3", "1.-2.3", "+1.2.3", "1.2.3-\x00", "٣.0.0",
	} {
		if v, ok := ParseSemanticVersion(text); ok {
			t.Errorf("%q is taken for the version %v", text, v)
		}
	}
}

// The expression is the one that semver.org suggests.
func TestSemanticVersionsAreThoseOfTheSuggestedExpression(t *testing.T) {
	suggested := regexp.MustCompile(
		`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$`,
	)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[01]{1,2}\.[0-9]{1,2}\.[02]{1,2}[-+.a0]{0,6}`).Draw(t, "text")
		if _, ok := ParseSemanticVersion(text); ok != suggested.MatchString(text) {
			t.Errorf("%q is taken for a version: %v", text, ok)
		}
	})
}

func TestReadingVersionsAllocatesNothing(t *testing.T) {
	texts := []string{"1.2.3-rc.1+build", "1.2", strings.Repeat("9", 100)}
	if n := testing.AllocsPerRun(100, func() {
		for _, text := range texts {
			v, _ := ParseSemanticVersion(text)
			_ = v.Compare(v)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
