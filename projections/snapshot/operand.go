package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"flagledger/events"
)

// operands reads the values of a condition as its operator takes them.
func operands[T any](values []json.RawMessage, read func(json.RawMessage) (T, error)) ([]T, error) {
	list := make([]T, len(values))
	for i, value := range values {
		var err error
		if list[i], err = read(value); err != nil {
			return nil, fmt.Errorf("values[%d] %w", i, err) // without the value: it may be about a person
		}
	}
	return list, nil
}

var (
	errNoText   = errors.New("is no string")
	errNoRegexp = errors.New("is no regular expression that RE2 takes")
)

func textOf(value json.RawMessage) (string, error) {
	if len(value) < 2 || value[0] != '"' {
		return "", errNoText
	}
	if within := value[1 : len(value)-1]; bytes.IndexByte(within, '\\') < 0 {
		return string(within), nil
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return "", errNoText
	}
	return text, nil
}

// pattern is a regular expression compiled, and what of its program a text has to go through.
type pattern struct {
	*regexp.Regexp
	size int
}

// patterns are regular expressions that a flag has already. Compiling is slow, and most rules of a list that is replaced stay as they were.
type patterns map[string]*pattern

func (known patterns) compile(value json.RawMessage) (*pattern, error) {
	text, err := textOf(value)
	if err != nil {
		return nil, err
	}
	if known[text] == nil {
		size, err := events.RegexpSize(text)
		if err != nil {
			return nil, errNoRegexp
		}
		compiled, err := regexp.Compile(text)
		if err != nil {
			return nil, errNoRegexp
		}
		known[text] = &pattern{compiled, size}
	}
	return known[text], nil
}

func numberOf(value json.RawMessage) (Number, error) {
	if len(value) == 0 || value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return Number{}, errors.New("is no number")
	}
	return ParseNumber(value), nil
}

func timeOf(value json.RawMessage) (time.Time, error) {
	text, err := textOf(value)
	if err != nil {
		return time.Time{}, err
	}
	t, ok := events.ParseTime(text)
	if !ok {
		return time.Time{}, errors.New("is no time as RFC 3339 writes it")
	}
	return t, nil
}

func versionOf(value json.RawMessage) (events.SemanticVersion, error) {
	text, err := textOf(value)
	if err != nil {
		return events.SemanticVersion{}, err
	}
	v, ok := events.ParseSemanticVersion(text)
	if !ok {
		return events.SemanticVersion{}, errors.New("is no version as semver 2.0.0 writes it")
	}
	return v, nil
}
