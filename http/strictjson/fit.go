package strictjson

import (
	"bytes"
	"cmp"
	"errors"
	"io"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxWrong is the maximum number of wrong fields that Fit reports.
const MaxWrong = 101

// Fit checks a body's members and their types against a schema. fitting is the body without the invalid members; wrong
// has their errors by field, MaxWrong at most.
//
// The error is a FieldError if the body itself has the wrong type, and another error if the JSON is malformed.
func Fit(body []byte, schema *huma.Schema, schemas huma.Registry) (fitting []byte, wrong map[string]string, err error) {
	if err := checkText(body); err != nil {
		return nil, nil, err
	}
	f := fitter{schemas: schemas, in: decoderOf(body), wrong: map[string]string{}}
	mismatch := f.value(schema)
	if _, whole := errors.AsType[FieldError](mismatch); mismatch != nil && !whole {
		return nil, nil, malformed(mismatch)
	}
	if _, err := f.in.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, nil, malformed(cmp.Or(err, errTrailing))
	}
	if mismatch != nil || len(f.wrong) == 0 {
		return body, nil, mismatch
	}
	var out bytes.Buffer
	f.in, f.out = decoderOf(body), jsontext.NewEncoder(&out, jsontext.PreserveRawStrings(true))
	if err := f.value(schema); err != nil {
		return nil, nil, err
	}
	return out.Bytes(), f.wrong, nil
}

// decoderOf returns a decoder that reads a body without copying it.
func decoderOf(body []byte) *jsontext.Decoder { return jsontext.NewDecoder(bytes.NewBuffer(body)) }

// fitter reads JSON and copies the parts that match a schema.
type fitter struct {
	schemas huma.Registry
	in      *jsontext.Decoder
	out     *jsontext.Encoder // nil if nothing is copied
	wrong   map[string]string
}

// value reads and copies a value, or writes null if its type differs from the schema's. For the body itself that is a
// FieldError.
func (f *fitter) value(s *huma.Schema) error {
	if s.Ref != "" {
		s = f.schemas.SchemaFromRef(s.Ref)
	}
	kind := f.in.PeekKind()
	switch {
	case kind == '{' && s.Type == huma.TypeObject && s.Properties != nil:
		return f.object(s)
	case kind == '[' && s.Type == huma.TypeArray:
		return f.array(s)
	case kind == jsontext.KindInvalid || fits(kind, s):
		return f.copy()
	}
	if err := f.in.SkipValue(); err != nil {
		return err
	}
	if f.in.StackDepth() == 0 {
		return FieldError{"body", "expected " + s.Type}
	}
	f.note("expected " + s.Type)
	return f.write(jsontext.Null)
}

func (f *fitter) object(s *huma.Schema) error {
	if err := f.token(); err != nil {
		return err
	}
	for f.in.PeekKind() == '"' {
		name, err := f.in.ReadToken()
		if err != nil {
			return err
		}
		member, known := s.Properties[name.String()]
		if !known {
			if err := f.in.SkipValue(); err != nil {
				return err
			}
			f.note("unexpected property")
			continue
		}
		if err := f.write(name); err != nil {
			return err
		}
		if f.in.PeekKind() == 'n' {
			err = f.copy() // null means not sent, or clears the member
		} else {
			err = f.value(member)
		}
		if err != nil {
			return err
		}
	}
	return f.token()
}

func (f *fitter) array(s *huma.Schema) error {
	if err := f.token(); err != nil {
		return err
	}
	for kind := f.in.PeekKind(); kind != ']' && kind != jsontext.KindInvalid; kind = f.in.PeekKind() {
		if err := f.value(s.Items); err != nil {
			return err
		}
	}
	return f.token()
}

func (f *fitter) copy() error {
	value, err := f.in.ReadValue()
	if err != nil || f.out == nil {
		return err
	}
	return f.out.WriteValue(value)
}

func (f *fitter) token() error {
	token, err := f.in.ReadToken()
	if err != nil {
		return err
	}
	return f.write(token)
}

func (f *fitter) write(token jsontext.Token) error {
	if f.out == nil {
		return nil
	}
	return f.out.WriteToken(token)
}

// note records an error of the value that was read last.
func (f *fitter) note(text string) {
	if len(f.wrong) < MaxWrong {
		f.wrong[field(f.in.StackPointer())] = text
	}
}

// fits reports whether a schema allows values of a kind. A schema without a type allows any.
func fits(kind jsontext.Kind, s *huma.Schema) bool {
	switch s.Type {
	case "":
		return true
	case huma.TypeString:
		return kind == '"'
	case huma.TypeNumber, huma.TypeInteger:
		return kind == '0'
	case huma.TypeBoolean:
		return kind == 't' || kind == 'f'
	case huma.TypeObject:
		return kind == '{'
	}
	return false
}
