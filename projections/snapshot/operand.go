package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"flagledger/events/rules"
)

// operands reads the values of a condition as its operator takes them.
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

// pattern is a regular expression compiled, and what of its program a text has to go through.
type pattern struct {
	*regexp.Regexp
	size int
}

// patterns are regular expressions that a flag has already. Compiling is slow, and most rules of a list that is replaced stay as they were.
type patterns map[string]*pattern

func (known patterns) compile(value json.RawMessage) (*pattern, error) {
	text, err := rules.ReadText(value)
	if err != nil {
		return nil, err
	}
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

// Errors leave out the value: it may be about a person.
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
