package flagd

import (
	"encoding/json"
	"errors"
	"regexp/syntax"

	"flagledger/events/rules"
)

const (
	// maxTexts limits the texts that a regular expression stands for.
	maxTexts = 32
	// longestText is the longest text, in characters, that regular expressions surely are matched with: evaluation
	// matches none of over 4 KiB.
	longestText = 1024
)

var errPattern = errors.New("it is a regular expression that flagd cannot express")

// matches translates regular expressions that stand for a few texts, which a value equals, contains, starts with or
// ends with.
func matches(values []json.RawMessage, e logic) (condition, error) {
	var tests []logic
	long := false
	for _, value := range values {
		pattern, err := rules.ReadText(value)
		if err != nil {
			return condition{}, err
		}
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			return condition{}, errPattern
		}
		branches := []*syntax.Regexp{parsed}
		if parsed.Op == syntax.OpAlternate {
			branches = parsed.Sub
		}
		for _, branch := range branches {
			more, whole, err := branchTests(branch, e)
			if err != nil {
				return condition{}, err
			}
			tests, long = append(tests, more...), long || !whole
		}
		if len(tests) > maxTexts {
			return condition{}, errPattern
		}
	}
	c := condition{holds: op("and", isString(e), anyOf(tests))}
	if long {
		c.undecidable = op("and", isString(e), op("!==", op("substr", e, 0, longestText), e))
	}
	return c, nil
}

// branchTests returns the tests for one of the alternatives of a regular expression. whole says that all of a value
// must equal a text.
func branchTests(branch *syntax.Regexp, e logic) (tests []logic, whole bool, err error) {
	parts := []*syntax.Regexp{branch}
	if branch.Op == syntax.OpConcat {
		parts = branch.Sub
	}
	begins, ends := false, false
	if parts[0].Op == syntax.OpBeginText {
		begins, parts = true, parts[1:]
	}
	if n := len(parts); n > 0 && parts[n-1].Op == syntax.OpEndText {
		ends, parts = true, parts[:n-1]
	}
	texts := []string{""}
	for _, part := range parts {
		if texts, err = appendTexts(texts, part); err != nil {
			return nil, false, err
		}
	}
	for _, text := range texts {
		test := op("===", e, text)
		switch {
		case begins && ends:
		case begins:
			test, err = contains(rules.StartsWith, text, e)
		case ends:
			test, err = contains(rules.EndsWith, text, e)
		default:
			test, err = contains(rules.Contains, text, e)
		}
		if err != nil {
			return nil, false, err
		}
		tests = append(tests, test)
	}
	return tests, begins && ends, nil
}

// appendTexts appends each text that a regular expression stands for to each of some texts.
func appendTexts(before []string, re *syntax.Regexp) (after []string, err error) {
	var each []string
	switch re.Op {
	case syntax.OpEmptyMatch:
		return before, nil
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return nil, errPattern
		}
		each = []string{string(re.Rune)}
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			if len(each)+int(re.Rune[i+1]-re.Rune[i]) >= maxTexts {
				return nil, errPattern
			}
			for c := re.Rune[i]; c <= re.Rune[i+1]; c++ {
				each = append(each, string(c))
			}
		}
	case syntax.OpCapture:
		return appendTexts(before, re.Sub[0])
	case syntax.OpQuest:
		if each, err = appendTexts([]string{""}, re.Sub[0]); err != nil {
			return nil, err
		}
		each = append(each, "")
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if before, err = appendTexts(before, sub); err != nil {
				return nil, err
			}
		}
		return before, nil
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			texts, err := appendTexts([]string{""}, sub)
			if err != nil {
				return nil, err
			}
			each = append(each, texts...)
		}
	default:
		return nil, errPattern
	}
	if len(before)*len(each) > maxTexts {
		return nil, errPattern
	}
	for _, text := range before {
		for _, more := range each {
			after = append(after, text+more)
		}
	}
	return after, nil
}
