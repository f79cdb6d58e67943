package rules

import "regexp/syntax"

// RegexpSize returns an upper bound for the size of a compiled regular expression (RE2 syntax), which determines
// memory and matching time: its instructions, plus a tenth of the bounds of its character ranges. It parses the
// expression at RegexpCost without compiling; the error says why it would not compile.
func RegexpSize(pattern string) (int, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	instructions, bounds := compiledSize(parsed)
	return 2 + instructions + bounds/10, nil // every program has a match and a failure
}

// compiledSize counts the instructions that package syntax would compile, or slightly more.
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
		// x{2,} means xx+, x{2,4} means xx(x(x)?)?.
		copies, choices := re.Max, re.Max-re.Min
		if re.Max < 0 {
			copies, choices = max(re.Min, 1), 2
		}
		instructions, bounds = copies*instructions+choices, copies*bounds
	}
	return max(instructions, 1), bounds
}
