package rules

import "regexp/syntax"

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
