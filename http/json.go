package http

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deep JSON may nest.
const maxDepth = 64

// strictJSON reads JSON without the leniencies that let two readers understand one body differently, and writes values as they were spelt.
var strictJSON = huma.Format{Marshal: writeJSON, Unmarshal: readJSON}

func writeJSON(w io.Writer, v any) error {
	return jsonv2.MarshalWrite(w, v, jsontext.PreserveRawStrings(true))
}

// fieldError says what is wrong with a field of a body that is well-formed.
type fieldError struct{ field, text string }

func (e fieldError) Error() string { return e.field + ": " + e.text }

// readJSON decodes a body. Where the JSON is well-formed and does not fit, the error is a fieldError.
func readJSON(data []byte, v any) error {
	if err := checkText(data); err != nil {
		return err
	}
	err := jsonv2.Unmarshal(data, v, jsonv2.RejectUnknownMembers(true))
	if semantic, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		if errors.Is(err, jsonv2.ErrUnknownName) {
			return fieldError{field(semantic.JSONPointer), "unexpected property"}
		}
		return fieldError{field(semantic.JSONPointer), "is not of the right type"}
	}
	return malformed(err)
}

// malformed words what the decoder says of JSON that is malformed.
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

// checkText refuses JSON that nests too deep, and NUL in strings, which Postgres cannot keep. It does not check the syntax otherwise.
func checkText(data []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			if strings.HasPrefix(string(data[i:min(i+6, len(data))]), `\u0000`) {
				return fmt.Errorf("malformed JSON at byte %d: strings must not contain the character NUL", i)
			}
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("malformed JSON at byte %d: nested deeper than %d levels", i, maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// timestamp is a time as answers show it: UTC, with milliseconds and Z.
type timestamp time.Time

// MarshalJSON implements json.Marshaler.
func (t timestamp) MarshalJSON() ([]byte, error) {
	return []byte(time.Time(t).UTC().Format(`"2006-01-02T15:04:05.000Z"`)), nil
}

// Schema implements huma.SchemaProvider.
func (timestamp) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Examples: []any{"2026-03-14T15:09:26.535Z"}}
}

// value is the value of a flag: any JSON, in its own spelling. It is nil where it was not sent.
type value []byte

// MarshalJSON implements json.Marshaler.
func (v value) MarshalJSON() ([]byte, error) { return v, nil }

// UnmarshalJSON implements json.Unmarshaler.
func (v *value) UnmarshalJSON(data []byte) error {
	*v = append(value{}, data...)
	return nil
}

// Schema implements huma.SchemaProvider.
func (value) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "A value of the flag's type. Numbers keep their spelling.", Examples: []any{true}}
}

// optional is a member that may be left out. sent is nil where it was left out; null is read as the zero value, which commands refuse together
// with all else that is wrong.
type optional[T any] struct{ sent *T }

// UnmarshalJSON implements json.Unmarshaler.
func (o *optional[T]) UnmarshalJSON(data []byte) error {
	o.sent = new(T)
	return jsonv2.Unmarshal(data, o.sent)
}

// Schema implements huma.SchemaProvider.
func (optional[T]) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[T]())
}

// number is a JSON number that is read without rounding. It is nil where it was not sent.
type number []byte

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(data []byte) error {
	*n = append(number{}, data...)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) { return n, nil }

// Schema implements huma.SchemaProvider.
func (number) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeNumber} }

// clearable is a text that null clears. It is nil where it was not sent, and empty for null; blank says that it was sent as an empty text.
type clearable struct {
	text  *string
	blank bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *clearable) UnmarshalJSON(data []byte) error {
	c.text = new(string)
	if string(data) == "null" {
		return nil
	}
	err := jsonv2.Unmarshal(data, c.text)
	c.blank = *c.text == ""
	return err
}

// Schema implements huma.SchemaProvider.
func (clearable) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Nullable: true, MaxLength: new(2000), Description: "null clears it"}
}
