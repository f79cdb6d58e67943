package events

import (
	"regexp"
	"regexp/syntax"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The order is the one that semver.org gives as its examples, and more.
func TestSemanticVersionsInOrder(t *testing.T) {
	ordered := []string{
		"0.0.0-0", "0.0.0-1", "0.0.0-9", "0.0.0-10", "0.0.0-99999999999999999999998", "0.0.0-99999999999999999999999", "0.0.0--", "0.0.0-0a", "0.0.0", "0.0.4", "0.9.0",
		"1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.2.0", "1.10.0",
		"2.0.0-A", "2.0.0-a", "2.0.0-a.0", "2.0.0-a.0.0", "2.0.0-a-b", "2.0.0", "99999999999999999999998.0.0", "99999999999999999999999.0.0",
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
	suggested := regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[01]{1,2}\.[0-9]{1,2}\.[02]{1,2}[-+.a0]{0,6}`).Draw(t, "text")
		if _, ok := ParseSemanticVersion(text); ok != suggested.MatchString(text) {
			t.Errorf("%q is taken for a version: %v", text, ok)
		}
	})
}

func TestTimes(t *testing.T) {
	want := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for text, ok := range map[string]bool{
		"2026-03-04T05:06:07Z": true, "2026-03-04T05:06:07+00:00": true, "2026-03-04T07:06:07+02:00": true, "2026-03-03T23:36:07-05:30": true,
		"2026-03-04T05:06:07.000000000Z": true, "2026-03-04T05:06:07.0+00:00": true,
		"2026-03-04T5:06:07Z": false, "2026-03-04T05:06:07,0Z": false, "2026-03-05T05:06:07+24:00": false, "2026-03-04T06:06:07+00:60": false, "2026-03-04T05:06:07": false,
		"2026-03-04 05:06:07Z": false, "2026-03-04t05:06:07z": false, "2026-03-04": false, "": false, "Z": false, "2026-02-30T00:00:00Z": false, "2026-03-04T24:00:00Z": false,
		"2024-02-29T00:00:00Z x": false, "2026-03-04T05:06:07.": false, "2026-03-04T05:06:07.Z": false, "2026-03-04T05:06:07.1": false, "2026-00-04T05:06:07Z": false,
		"2026-13-04T05:06:07Z": false, "2026-03-00T05:06:07Z": false, "2026-03-04T05:06:07+": false, "2026-03-04T05:06:07±02:00": false, "2026-03-04T05:06:07+02:00Z": false,
		"2026-03-04T05:06:07+0000": false, "2026-03-04T05:06:60Z": false, "1772600767": false,
	} {
		got, took := ParseTime(text)
		if took != ok || ok && !got.Equal(want) {
			t.Errorf("%q is read as %v, %v", text, got, took)
		}
	}
}

func TestTimesAsPackageTimeReadsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := time.FixedZone("", 60*rapid.IntRange(-23*60, 23*60).Draw(t, "minutes east"))
		at := time.Unix(rapid.Int64Range(-62_000_000_000, 253_000_000_000).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).In(zone)
		for _, layout := range []string{time.RFC3339, time.RFC3339Nano, "2006-01-02T15:04:05.000Z07:00", "2006-01-02T15:04:05.000000000Z07:00"} {
			text := at.Format(layout)
			want, err := time.Parse(time.RFC3339, text)
			if got, ok := ParseTime(text); !ok || err != nil || !got.Equal(want) {
				t.Fatalf("%s is read as %s, %v, package time says %s, %v", text, got, ok, want, err)
			}
		}
	})
}

// The grammar is RFC 3339's; package time knows how many days a month has.
func TestTimesAreThoseOfTheGrammar(t *testing.T) {
	grammar := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]([01]\d|2[0-3]):[0-5]\d)$`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`2026-0[12]-0[12]T[012]?[0-9]:[0-6]0:[0-6]0([.,][0-9]{0,2})?(Z|z|[-+][012][0-9]:[0-6][0-9])`).Draw(t, "text")
		want, err := time.Parse(time.RFC3339, text)
		if got, ok := ParseTime(text); ok != (err == nil && grammar.MatchString(text)) || ok && !got.Equal(want) {
			t.Errorf("%q is read as %v, %v; package time says %v, %v", text, got, ok, want, err)
		}
	})
}

func TestRegexpSize(t *testing.T) {
	for pattern, want := range map[string]bool{
		``: true, `^a.*z$`: true, `\pL+\d{1,3}(?i:x)`: true, `(?P<name>a|b)`: true, strings.Repeat("a", 10_000): true,
		`(`: false, `a{1001}`: false, `(a{100}){100}`: false, `(?=a)`: false, `(a)\1`: false, `\C`: false, `*`: false, "\xff": false, `[z-a]`: false, strings.Repeat("(", 2_000) + strings.Repeat(")", 2_000): false,
	} {
		size, err := RegexpSize(pattern)
		_, compiled := regexp.Compile(pattern)
		if (err == nil) != want || (compiled == nil) != want || want == (size == 0) {
			t.Errorf("%.20q has the size %d, %v; regexp says %v", pattern, size, err, compiled)
		}
	}
	small, _ := RegexpSize(`a{10}`)
	large, _ := RegexpSize(`a{1000}`)
	if large < 50*small {
		t.Errorf("a hundred times the expression has the size %d, once %d", large, small)
	}
	if classes, _ := RegexpSize(`^\pL{1000}$`); classes < 50*large {
		t.Errorf("classes of many ranges have the size %d, single characters %d", classes, large)
	}
}

func TestRegexpSizeIsAtLeastThatOfTheCompiled(t *testing.T) {
	compiledSize := func(pattern string) int {
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			return 0
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		bounds := 0
		for i := range program.Inst {
			bounds += len(program.Inst[i].Rune)
		}
		return len(program.Inst) + bounds/10
	}
	for _, pattern := range []string{`^[^@]+@example\.com$`, `a{1000}`, `^\pL{100}$`, `(?i)(free|pro)-\d{4}(x?y){2,5}`, `\bv[0-9]+\.[0-9]+$`} {
		if size, _ := RegexpSize(pattern); size != compiledSize(pattern) {
			t.Errorf("%s has the size %d, compiled %d", pattern, size, compiledSize(pattern))
		}
	}
	var expression func(depth int) *rapid.Generator[string]
	expression = func(depth int) *rapid.Generator[string] {
		atom := rapid.SampledFrom([]string{"", "a", "abc", ".", "(?s:.)", "[a-z]", `\pL`, "^", "$", `\b`, "(?i:k)", "(?i:[a-k])", `[^\x00-\x{10FFFF}]`})
		if depth == 0 {
			return atom
		}
		return rapid.Custom(func(t *rapid.T) string {
			one, other := expression(depth-1).Draw(t, "one"), expression(depth-1).Draw(t, "other")
			switch rapid.IntRange(0, 3).Draw(t, "shape") {
			case 0:
				return one + other
			case 1:
				return "(?:" + one + "|" + other + ")"
			case 2:
				return "(" + one + ")"
			}
			repeat := rapid.SampledFrom([]string{"*", "+", "?", "*?", "{0}", "{1}", "{3}", "{0,}", "{1,}", "{2,}", "{0,4}", "{2,5}", "{9}"}).Draw(t, "repeat")
			return "(?:" + one + ")" + repeat
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		pattern := expression(5).Draw(t, "pattern")
		size, err := RegexpSize(pattern)
		if compiled := compiledSize(pattern); err == nil && size < compiled {
			t.Errorf("%s has the size %d, compiled %d", pattern, size, compiled)
		}
	})
}

func TestSizingARegexpCostsWhatItsTextDoes(t *testing.T) {
	pattern := "(" + strings.Repeat("a", 990) + "){1000}"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	size, err := RegexpSize(pattern)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || size < 990_000 || took > 1<<20 {
		t.Errorf("the size %d, %v, has taken %d bytes", size, err, took)
	}
}

func TestReadingVersionsAndTimesAllocatesNothing(t *testing.T) {
	texts := []string{"1.2.3-rc.1+build", "1.2", "2026-03-14T15:09:26.535+02:00", "2026-03-14T15:09:26", strings.Repeat("9", 100)}
	if n := testing.AllocsPerRun(100, func() {
		for _, text := range texts {
			v, _ := ParseSemanticVersion(text)
			_ = v.Compare(v)
			_, _ = ParseTime(text)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
