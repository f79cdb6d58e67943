package evaluation

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// plainValue is a JSON value in a form that does not depend on its spelling: numbers are equal by value, objects
// whatever the order of their members.
type plainValue struct {
	kind   byte   // as kindOf returns it; 0 for no value
	number Number // zero for other kinds
	text   []byte // the text of a string, and a hash of an object or an array
}

// numberKind is the kind of all numbers.
const numberKind = '0'

// kindOf returns the kind of a value by its first byte: numberKind, or that byte.
func kindOf(first byte) byte {
	if first != '-' && (first < '0' || first > '9') {
		return first
	}
	return numberKind
}

// newPlainValue returns the plain form of a value, which must not be empty. It allocates only for objects, arrays,
// texts with escapes and numbers of more than 19 digits.
func newPlainValue(value json.RawMessage) plainValue {
	v := plainValue{kind: kindOf(value[0])}
	switch v.kind {
	case numberKind:
		v.number = ParseNumber(value)
	case '"':
		if v.text = value[1 : len(value)-1]; bytes.IndexByte(v.text, '\\') >= 0 {
			var text string
			_ = json.Unmarshal(value, &text) // facts hold valid JSON
			v.text = []byte(text)
		}
	case '{', '[':
		sum := sha256.Sum256(spell(value))
		v.text = sum[:]
	}
	return v
}

// spell returns an object or an array in the spelling that all of its spellings share: that of RFC 8785, but with exact
// numbers.
func spell(value json.RawMessage) []byte {
	sorted := jsontext.Value(bytes.Clone(value))
	_ = sorted.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) // facts hold valid JSON
	spelt, inText := make(digits, 0, len(sorted)), false
	for i := 0; i < len(sorted); {
		c, end := sorted[i], i+1
		switch {
		case inText && c == '\\':
			end++
		case c == '"':
			inText = !inText
		case !inText && kindOf(sorted[i]) == numberKind:
			for bytes.IndexByte([]byte("+-.0123456789Ee"), sorted[end]) >= 0 { // the value ends with a bracket
				end++
			}
			spelt = writeNumber(ParseNumber(sorted[i:end]), spelt)
			i = end
			continue
		}
		spelt = append(spelt, sorted[i:end]...)
		i = end
	}
	return spelt
}

// plainEffort is the cost of newPlainValue.
func plainEffort(value json.RawMessage) effort {
	switch n := effort(len(value)); kindOf(value[0]) {
	case numberKind:
		return 3 * n
	case '"':
		if bytes.IndexByte(value, '\\') < 0 {
			return n >> 6
		}
		return 5 * n
	case '{', '[':
		return 20 * n
	}
	return 0
}

// compareEffort is the cost of comparing a text with another one of its length.
func compareEffort(text []byte) effort { return effort(len(text)) >> 6 }
