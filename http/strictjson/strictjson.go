// Package strictjson reads JSON without the leniencies that let two readers understand one body differently: no
// duplicate or unknown members, no trailing data, no invalid UTF-8, nothing nested deeper than 64 levels. It writes
// values in the spelling that they were read in.
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

// MaxDepth is how many levels JSON may be nested.
const MaxDepth = 64

// Write writes a value as JSON: the same value always as the same bytes. Its signature is that of huma.Format.
func Write(w io.Writer, v any) error {
	return jsonv2.MarshalWrite(w, v, jsontext.PreserveRawStrings(true), jsonv2.Deterministic(true))
}

// FieldError says what is wrong with a field of well-formed JSON. Field is as in rules[0].serve, and "body" for the
// whole.
type FieldError struct{ Field, Text string }

func (e FieldError) Error() string { return e.Field + ": " + e.Text }

// Read decodes JSON into v, with the signature of huma.Format. If the JSON is well-formed and does not fit v, the error
// is a FieldError.
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

// errTrailing says that a second value follows.
var errTrailing = errors.New("malformed JSON: there is something after its end")

// malformed words the decoder's errors about malformed JSON.
func malformed(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("malformed JSON: it ends too early")
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("malformed JSON at byte %d: %w", syntactic.ByteOffset, syntactic.Err)
	}
	return err
}

// field writes a JSON pointer as errors name fields: rules[0].serve.
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

// checkText refuses JSON that nests too deep, and NUL in strings, which Postgres cannot store. It does not check the
// syntax otherwise.
func checkText(data []byte) error {
	depth := 0
	escape := -1 // where the next backslash is, once one was looked for
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

// endOfString is where the string whose text begins at i ends: at its quote, or at the end of data. Each byte is looked
// at twice at most, whatever the strings are.
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

// indexFrom is where a byte is next, len(data) where it is not.
func indexFrom(data []byte, from int, b byte) int {
	if from >= len(data) {
		return len(data)
	}
	if i := bytes.IndexByte(data[from:], b); i >= 0 {
		return from + i
	}
	return len(data)
}
