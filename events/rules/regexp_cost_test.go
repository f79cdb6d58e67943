package rules

import (
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestRegexpCost(t *testing.T) {
	fill := func(before, part, after string) string {
		return before + strings.Repeat(part, (1000-len(before)-len(after))/len(part)) + after
	}
	for pattern, bounds := range map[string][2]int{
		"":                                 {0, 0},
		`^[^@]+@example\.com$`:             {20, 20},
		"(":                                {1, 1},
		`\`:                                {1, 1},
		"\xff-\xff":                        {3, 3},
		fill("", "a*b|", ""):               {1000, 1000},
		fill("[", "a-z", "]"):              {990, 1000},
		"[B-\U0001e942]":                   {8, 8},
		`[\p{Han}\p{Hiragana}]+`:           {30, 100},
		`^[\p{L}\p{M}' -]+$`:               {900, 1200},
		`\p{Letter}`:                       {1000, 1100},
		`\p`:                               {2, 1100},
		`\p{L`:                             {600, 1100},
		"(?i)[а-я]":                        {10, 30},
		"(?i)[a-z一-龥]":                     {5200, 5300},
		`(?i)[\x{4e00}-\x{9fa5}]`:          {5200, 5300},
		`(?i)[\x00-\x{10FFFF}]`:            {10, 30},
		`(?i)[\101-\x{1e942}]`:             {31_000, 32_000},
		`(?P<i>x)[\101-\x{1e942}]`:         {20, 30},
		`(?s:.)(?m-i:[B-` + "\U0001e942])": {31_000, 32_000},
		fill("(?i)", `\w`, ""):             {7000, 9000},
		fill("(?i)", "[[:^ascii:]]", ""):   {1500, 3000},
		// These take 20 ms or more.
		fill("[", `\pC\PC`, "]"):           {200_000, 400_000},
		fill("(?i)[", `\PL`, "]"):          {200_000, 900_000},
		fill("[", `\p{^C}`, "]"):           {100_000, 400_000},
		fill("(?i)[", "一-龥", "]"):          {600_000, 1_000_000},
		fill("(?i)[", "B-\U0001e942", "]"): {3_000_000, 6_000_000},
		fill("(?i)[", `A-\x{1e942}`, "]"):  {2_000_000, 3_000_000},
	} {
		if cost := RegexpCost(pattern); cost < bounds[0] || cost > bounds[1] {
			t.Errorf("%.40q costs %d, want %d to %d", pattern, cost, bounds[0], bounds[1])
		}
	}
}

func TestNoClassOfUnicodeCostsMoreThanAnUnknownOne(t *testing.T) {
	for _, tables := range []map[string]*unicode.RangeTable{unicode.Categories, unicode.Scripts} {
		for name := range tables {
			if ranges := tableRanges("{" + name + "}"); ranges == 0 || ranges > unknownTableCost {
				t.Errorf("%s has %d ranges", name, ranges)
			}
		}
	}
}

// A class is read from its beginning, whatever precedes it, and known to be folded: that makes a large range expensive.
func TestTheCostOfALargeRangeIsAlwaysSeen(t *testing.T) {
	part := rapid.SampledFrom([]string{
		`\Q`,
		`\E`,
		`\\`,
		`\`,
		"[",
		"]",
		"-",
		"^",
		"(?i)",
		"(?s:a)",
		"a",
		"E",
		"}",
		`\x{`,
		`\x{e}`,
		`\x{E}`,
		`\x4`,
		`\x41`,
		`\101`,
		`\0`,
		`\p`,
		`\pL`,
		`\p{L}`,
		`\p{`,
		`\d`,
		`\n`,
		`\-`,
		`\]`,
		"[:alpha:]",
		"[:",
		"é",
		"{2}",
		"*",
		"(",
		")",
	})
	var large func(re *syntax.Regexp) bool
	large = func(re *syntax.Regexp) bool {
		return re.Op == syntax.OpCharClass && re.Flags&syntax.FoldCase != 0 &&
			(slices.Contains(re.Rune, 0x9fa5) || slices.Contains(re.Rune, 0x9fa6)) ||
			slices.ContainsFunc(re.Sub, large)
	}
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		before := strings.Join(rapid.SliceOfN(part, 0, 6).Draw(t, "before"), "")
		pattern := before + rapid.SampledFrom([]string{"(?i)[一-龥]", "(?i:[^一-龥])", `(?i)[a\x{4E00}-龥-]`, `(?i)[\n一-\x{9fa5}]`}).
			Draw(t, "class")
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil || !large(parsed) {
			return
		}
		if found++; RegexpCost(pattern) < 5000 {
			t.Errorf("%q costs %d", pattern, RegexpCost(pattern))
		}
	})
	if found == 0 {
		t.Error("no expression has the range")
	}
}
