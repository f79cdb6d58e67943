// Package strictjson reads JSON strictly, so that no two readers understand a body differently: no duplicate or unknown
// members, no trailing data, no invalid UTF-8, at most 64 levels. It preserves the spelling of values.
package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is the maximum nesting of JSON.
const MaxDepth = 64

// Write writes a value as deterministic JSON. Its signature matches huma.Format.
func Write(w io.Writer, v any) error {
	return jsonv2.MarshalWrite(w, v, jsontext.PreserveRawStrings(true), jsonv2.Deterministic(true))
}

// FieldError is an error in a field of well-formed JSON. Field is a path such as rules[0].serve, or "body".
type FieldError struct{ Field, Text string }

func (e FieldError) Error() string { return e.Field + ": " + e.Text }

// Read decodes JSON into v. Its signature matches huma.Format. The error is a FieldError if the JSON is well-formed but
// does not match v.
func Read(data []byte, v any) error {
	if err := checkText(data); err != nil {
		return err
	}
	err := jsonv2.Unmarshal(data, v, jsonv2.RejectUnknownMembers(true))
	if semantic, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		if errors.Is(err, jsonv2.ErrUnknownName) {
			return FieldError{field(semantic.JSONPointer), "unexpected property"}
		}
		return FieldError{field(semantic.JSONPointer), "is not of the right type"}
	}
	return malformed(err)
}

// errTrailing reports data after the value.
var errTrailing = errors.New("malformed JSON: there is data after its end")

// malformed converts the decoder's errors about malformed JSON.
func malformed(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("malformed JSON: it ends too early")
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("malformed JSON at byte %d: %w", syntactic.ByteOffset, syntactic.Err)
	}
	return err
}

// field converts a JSON pointer to the name of a field, such as rules[0].serve.
func field(pointer jsontext.Pointer) string {
	var b strings.Builder
	for token := range pointer.Tokens() {
		switch {
		case token != "" && strings.Trim(token, "0123456789") == "":
			b.WriteString("[" + token + "]")
		case b.Len() > 0:
			b.WriteString("." + token)
		default:
			b.WriteString(token)
		}
	}
	return b.String()
}

// checkText refuses JSON that is nested too deep, and NUL in strings, which Postgres cannot store. It does not check
// the rest of the syntax.
func checkText(data []byte) error {
	depth := 0
	escape := -1 // index of the next backslash, or -1 before the first search
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			end, err := endOfString(data, i+1, &escape)
			if err != nil {
				return err
			}
			i = end
		case '{', '[':
			if depth++; depth > MaxDepth {
				return fmt.Errorf("malformed JSON at byte %d: nested deeper than %d levels", i, MaxDepth)
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}

// endOfString returns the index where the string that begins at i ends: its quote, or the end of data. It reads each
// byte twice at most.
func endOfString(data []byte, i int, escape *int) (end int, err error) {
	for quote := -1; ; i = *escape + 2 {
		if quote < i {
			quote = indexFrom(data, i, '"')
		}
		if *escape < i {
			*escape = indexFrom(data, i, '\\')
		}
		if quote <= *escape {
			return quote, nil
		}
		if bytes.HasPrefix(data[*escape:], []byte(`\u0000`)) {
			return 0, fmt.Errorf("malformed JSON at byte %d: strings must not contain the character NUL", *escape)
		}
	}
}

// indexFrom returns the next index of a byte, or len(data).
func indexFrom(data []byte, from int, b byte) int {
	if from >= len(data) {
		return len(data)
	}
	if i := bytes.IndexByte(data[from:], b); i >= 0 {
		return from + i
	}
	return len(data)
}
