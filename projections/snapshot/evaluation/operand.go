package evaluation

import (
	"encoding/json"
	"errors"
	"fmt"

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

func readPlainVersion(value json.RawMessage) (string, error) {
	v, err := rules.ReadVersion(value)
	return v.String(), err
}
