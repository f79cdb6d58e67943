package strictjson

import (
	"bytes"
	"cmp"
	"errors"
	"io"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxWrong is how many wrong fields Fit names: what is wrong beyond them takes no memory.
const MaxWrong = 101

// Fit checks a body's members and their types against a schema. fitting is the body without what does not fit, and
// wrong says by field what that is, of MaxWrong fields at most.
//
// The error is a FieldError if the whole body is of another type, and any other if the JSON is malformed.
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

// decoderOf reads a body without copying it.
func decoderOf(body []byte) *jsontext.Decoder { return jsontext.NewDecoder(bytes.NewBuffer(body)) }

// fitter reads JSON, and copies it as far as it fits a schema.
type fitter struct {
	schemas huma.Registry
	in      *jsontext.Decoder
	out     *jsontext.Encoder // nil where nothing is copied
	wrong   map[string]string
}

// value reads and copies a value, and null for one of another type than the schema's. If that is the whole body, the
// error is a FieldError.
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
			err = f.copy() // as a member that is not sent, or one that null clears
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

// note says what is wrong with the value that was read last.
func (f *fitter) note(text string) {
	if len(f.wrong) < MaxWrong {
		f.wrong[field(f.in.StackPointer())] = text
	}
}

// fits reports whether a schema takes values of a kind. One without a type takes any.
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
