package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"
)

// The errors do not contain the value: it may be personal data.
var (
	errMissing = errors.New("is required")
	errScalar  = errors.New("must be a string, a number or a boolean")
	errText    = errors.New("must be a string")
	errPattern = errors.New("must be a string with a regular expression")
	errNumber  = errors.New("must be a number")
	errTime    = errors.New("must be a string with a time as RFC 3339 has it: 2026-03-14T15:09:26Z")
	errVersion = errors.New("must be a string with a semantic version: 1.2.3 or 1.2.3-beta.1")
)

// CheckValue checks that a well-formed JSON value is of a kind; its error says what the value must be. Of a Pattern it
// checks only that it is a string.
func CheckValue(kind Kind, value json.RawMessage) error {
	if len(value) == 0 {
		return errMissing
	}
	switch kind {
	case NoValue:
	case Scalar:
		if first := value[0]; first == '{' || first == '[' || first == 'n' {
			return errScalar
		}
	case Text, SegmentKey:
		_, err := ReadText(value)
		return err
	case Pattern:
		if _, err := ReadText(value); err != nil {
			return errPattern
		}
	case Number:
		if !IsNumber(value) {
			return errNumber
		}
	case Time:
		_, err := ReadTime(value)
		return err
	case Version:
		_, err := ReadVersion(value)
		return err
	}
	return nil
}

// IsNumber reports whether a JSON value is a number.
func IsNumber(value json.RawMessage) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// ReadText decodes a JSON string.
func ReadText(value json.RawMessage) (string, error) {
	if len(value) < 2 || value[0] != '"' {
		return "", errText
	}
	if within := value[1 : len(value)-1]; bytes.IndexByte(within, '\\') < 0 {
		return string(within), nil
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return "", errText
	}
	return text, nil
}

// ReadTime decodes a JSON string with a time.
func ReadTime(value json.RawMessage) (time.Time, error) {
	text, err := ReadText(value)
	if err != nil {
		return time.Time{}, errTime
	}
	t, ok := ParseTime(text)
	if !ok {
		return time.Time{}, errTime
	}
	return t, nil
}

// ReadVersion decodes a JSON string with a semantic version.
func ReadVersion(value json.RawMessage) (SemanticVersion, error) {
	text, err := ReadText(value)
	if err != nil {
		return SemanticVersion{}, errVersion
	}
	v, ok := ParseSemanticVersion(text)
	if !ok {
		return SemanticVersion{}, errVersion
	}
	return v, nil
}
