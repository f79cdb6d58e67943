package http

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"flagledger/commands"
)

// What is wrong with a body is told all at once, although two find it: its members and their types are looked over here, against the schema that
// the document shows, and what they may say is the commands' to check. The former is noted and taken out; the commands see the rest, and
// refuse the request with both.

// wholeBody reads a body of at most 1 MiB. Its error is a problem.
func wholeBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody-1))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, newProblem(http.StatusBadRequest, "the body is larger than 1 MiB")
	}
	if err != nil {
		return nil, newProblem(http.StatusBadRequest, unreadBody)
	}
	return body, nil
}

// bodyErrors is the refusal of what of a request's body does not fit its schema; nil where all fits. What changes anything other than by a command
// asks for it before.
func bodyErrors(ctx context.Context) error {
	return commands.MergeFieldErrors(requestOf(ctx).wrong, nil)
}

// withBodyErrors adds what of a request's body does not fit its schema to what err says of it; it is nil where nothing is wrong.
func withBodyErrors(ctx context.Context, err error) error {
	if p, ok := errors.AsType[*problem](err); ok && p.Errors != nil {
		err = &commands.Error{Kind: commands.Invalid, Detail: p.Detail, Fields: p.Errors}
	}
	return commands.MergeFieldErrors(requestOf(ctx).wrong, err)
}

// wrongFields is the refusal of a request for what is wrong with it, by field: nil where nothing is.
func wrongFields(wrong map[string]string) error {
	if len(wrong) == 0 {
		return nil
	}
	return invalid(wrong)
}

// fitBody notes what does not fit the schema of a request's body, and leaves the rest to be read. Its error is a problem.
func (a *API) fitBody(r *http.Request, schema *huma.Schema) error {
	body, err := wholeBody(r)
	if err != nil {
		return err
	}
	if len(body) > 0 {
		if body, requestOf(r.Context()).wrong, err = fit(body, schema, a.huma.OpenAPI().Components.Schemas); err != nil {
			return problemOfBody(err)
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// problemOfBody is the problem of a body that cannot be read, or is of another type as a whole.
func problemOfBody(err error) *problem {
	if misfit, ok := errors.AsType[fieldError](err); ok {
		return invalid(map[string]string{misfit.field: misfit.text})
	}
	return newProblem(http.StatusBadRequest, err.Error())
}

// fit looks over a body's members and their types. It returns what fits, with null for what is of another type and without members that
// the schema does not have, and by field what does not. Its error is a fieldError where the whole body is of another type, and else of JSON that
// is malformed.
func fit(body []byte, schema *huma.Schema, schemas huma.Registry) (fitting []byte, wrong map[string]string, err error) {
	if err := checkText(body); err != nil {
		return nil, nil, err
	}
	var out bytes.Buffer
	f := fitter{
		schemas: schemas, in: jsontext.NewDecoder(bytes.NewReader(body)), wrong: map[string]string{},
		out: jsontext.NewEncoder(&out, jsontext.PreserveRawStrings(true)),
	}
	misfit := f.value(schema)
	if _, whole := errors.AsType[fieldError](misfit); misfit != nil && !whole {
		return nil, nil, malformed(misfit)
	}
	if _, err := f.in.ReadToken(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("malformed JSON: there is something after its end")
		}
		return nil, nil, malformed(err)
	}
	if misfit != nil || len(f.wrong) == 0 {
		return body, nil, misfit
	}
	return out.Bytes(), f.wrong, nil
}

// fitter copies JSON as far as it fits a schema.
type fitter struct {
	schemas huma.Registry
	in      *jsontext.Decoder
	out     *jsontext.Encoder
	wrong   map[string]string
}

// value copies a value, and null for one of another type than the schema's. If that is the whole body, the error is a fieldError.
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
		return fieldError{"body", "expected " + s.Type}
	}
	f.note("expected " + s.Type)
	return f.out.WriteToken(jsontext.Null)
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
		if err := f.out.WriteToken(name); err != nil {
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
	if err != nil {
		return err
	}
	return f.out.WriteValue(value)
}

func (f *fitter) token() error {
	token, err := f.in.ReadToken()
	if err != nil {
		return err
	}
	return f.out.WriteToken(token)
}

// note says what is wrong with the value that was read last.
func (f *fitter) note(text string) {
	f.wrong[field(f.in.StackPointer())] = text
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
