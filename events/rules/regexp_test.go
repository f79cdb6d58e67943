package rules

import (
	"regexp"
	"regexp/syntax"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

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
		atom := rapid.SampledFrom(
			[]string{
				"",
				"a",
				"abc",
				".",
				"(?s:.)",
				"[a-z]",
				`\pL`,
				"^",
				"$",
				`\b`,
				"(?i:k)",
				"(?i:[a-k])",
				`[^\x00-\x{10FFFF}]`,
			},
		)
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
			repeat := rapid.SampledFrom([]string{"*", "+", "?", "*?", "{0}", "{1}", "{3}", "{0,}", "{1,}", "{2,}", "{0,4}", "{2,5}", "{9}"}).
				Draw(t, "repeat")
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
