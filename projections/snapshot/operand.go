package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"flagledger/events/rules"
)

// operands decodes the values of a condition.
func operands[T any](values []json.RawMessage, read func(json.RawMessage) (T, error)) ([]T, error) {
	list := make([]T, len(values))
	for i, value := range values {
		var err error
		if list[i], err = read(value); err != nil {
			return nil, fmt.Errorf("values[%d] %w", i, err)
		}
	}
	return list, nil
}

// pattern is a compiled regular expression, with its rules.RegexpSize.
type pattern struct {
	*regexp.Regexp
	size int
}

// patterns are the regular expressions that a flag already has. Compiling is slow, and most expressions of a rule that changes stay the same.
type patterns map[string]*pattern

func (known patterns) read(value json.RawMessage) (*pattern, error) {
	text, err := rules.ReadText(value)
	if err != nil {
		return nil, err
	}
	return known.compile(text)
}

func (known patterns) compile(text string) (*pattern, error) {
	if known[text] == nil {
		size, err := rules.RegexpSize(text)
		if err != nil {
			return nil, errPattern
		}
		compiled, err := regexp.Compile(text)
		if err != nil {
			return nil, errPattern
		}
		known[text] = &pattern{compiled, size}
	}
	return known[text], nil
}

// The errors do not contain the value: it may be personal data.
var (
	errPattern = errors.New("must be a regular expression of RE2's syntax")
	errNumber  = errors.New("must be a number")
)

func readNumber(value json.RawMessage) (Number, error) {
	if !rules.IsNumber(value) {
		return Number{}, errNumber
	}
	return ParseNumber(value), nil
}
