package strictjson

import (
	"bytes"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Reader reads JSON token by token, which is much faster than Read. It can be reused: Begin starts over.
type Reader struct{ jsontext.Decoder }

// Begin starts to read a body. The body must not change before End.
func (r *Reader) Begin(body *bytes.Buffer) error {
	if err := checkText(body.Bytes()); err != nil {
		return err
	}
	r.Reset(body)
	return nil
}

// End checks that nothing follows the value that was read. err is the error of reading it; End returns it in Read's
// words.
func (r *Reader) End(err error) error {
	if err == nil {
		if _, err = r.ReadToken(); err == io.EOF { //nolint:errorlint // as the decoder documents it
			return nil
		}
		if err == nil {
			err = errTrailing
		}
	}
	return malformed(err)
}

// Object reads an object. It calls member for each name, and member must read the value.
func (r *Reader) Object(member func(name string) error) error {
	if r.PeekKind() != '{' {
		return r.TypeMismatch()
	}
	if _, err := r.ReadToken(); err != nil {
		return err
	}
	for {
		name, err := r.ReadToken()
		if err != nil {
			return err
		}
		if name.Kind() == '}' {
			return nil
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
}

// Array reads an array. It calls element for each element, and element must read it.
func (r *Reader) Array(element func() error) error {
	if r.PeekKind() != '[' {
		return r.TypeMismatch()
	}
	if _, err := r.ReadToken(); err != nil {
		return err
	}
	for r.PeekKind() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := r.ReadToken()
	return err
}

// String reads a string; null is read as an empty one.
func (r *Reader) String(to *string) error {
	switch r.PeekKind() {
	case '"':
		token, err := r.ReadToken()
		if err == nil {
			*to = token.String()
		}
		return err
	case 'n':
		*to = ""
		return r.SkipValue()
	default:
		return r.TypeMismatch()
	}
}

// Strings reads an array of strings; null is read as nil.
func (r *Reader) Strings(to *[]string) error {
	if r.PeekKind() == 'n' {
		*to = nil
		return r.SkipValue()
	}
	*to = []string{}
	return r.Array(func() error {
		if r.PeekKind() != '"' {
			return r.TypeMismatch()
		}
		token, err := r.ReadToken()
		*to = append(*to, token.String())
		return err
	})
}

// TypeMismatch skips a value and returns the error of its wrong type: a FieldError, unless the JSON is malformed.
func (r *Reader) TypeMismatch() error {
	if err := r.SkipValue(); err != nil {
		return err
	}
	return r.Refuse("is not of the right type")
}

// Refuse returns a FieldError about the value that was read last.
func (r *Reader) Refuse(text string) error {
	name := field(r.StackPointer())
	if name == "" {
		name = "body"
	}
	return FieldError{name, text}
}
