package commands

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"flagledger/events"
)

func knownType(t events.FlagType) bool { return zeroValue(t) != nil }

// zeroValue returns the default value of a type; nil for an unknown type.
func zeroValue(t events.FlagType) json.RawMessage {
	switch t {
	case events.BooleanFlag:
		return json.RawMessage(`false`)
	case events.StringFlag:
		return json.RawMessage(`""`)
	case events.NumberFlag:
		return json.RawMessage(`0`)
	case events.JSONFlag:
		return json.RawMessage(`{}`)
	}
	return nil
}

// checkValue checks that a value, which is well-formed JSON, has a flag's type. It ignores an unknown type.
func checkValue(wrong FieldErrors, field string, t events.FlagType, value json.RawMessage) {
	wrong.Check(len(value) > 0, field, "is required")
	first := byte(0)
	if len(value) > 0 {
		first = bytes.TrimLeft(value, " \t\r\n")[0]
	}
	switch t {
	case events.BooleanFlag:
		wrong.Check(first == 't' || first == 'f', field, "must be true or false: the flag is of type boolean")
	case events.StringFlag:
		wrong.Check(first == '"', field, "must be a string: the flag is of type string")
	case events.NumberFlag:
		f, err := strconv.ParseFloat(string(bytes.TrimSpace(value)), 64)
		wrong.Check(first == '-' || first >= '0' && first <= '9', field, "must be a number: the flag is of type number")
		wrong.Check(err == nil && !math.IsInf(f, 0), field, "must be a number that fits 64-bit floating point")
	case events.JSONFlag:
		wrong.Check(numbersFit(value), field, unfitNumber)
	}
}

const unfitNumber = "must hold no number beyond 64-bit floating point"

// numbersFit reports whether all numbers in well-formed JSON are within the range of a float64.
func numbersFit(value json.RawMessage) bool {
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			for i++; i < len(value) && value[i] != '"'; i++ {
				if value[i] == '\\' {
					i++
				}
			}
		case c >= '0' && c <= '9':
			begin := i
			for i+1 < len(value) && bytes.IndexByte([]byte("0123456789.eE+-"), value[i+1]) >= 0 {
				i++
			}
			if f, _ := strconv.ParseFloat(string(value[begin:i+1]), 64); math.IsInf(f, 0) {
				return false
			}
		}
	}
	return true
}

// compact removes white space between JSON's tokens and changes nothing else.
func compact(value json.RawMessage) json.RawMessage {
	if !bytes.ContainsAny(value, " \t\r\n") {
		return value // most are: rules have thousands
	}
	var b bytes.Buffer
	if err := json.Compact(&b, value); err != nil {
		return value
	}
	return b.Bytes()
}

// changedValue works like changed for JSON, which is stored without white space.
func changedValue(from, to json.RawMessage) *events.Change[json.RawMessage] {
	if to = compact(to); len(to) == 0 || bytes.Equal(from, to) {
		return nil
	}
	return &events.Change[json.RawMessage]{From: from, To: to}
}
