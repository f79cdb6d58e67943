package rest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"flagledger/commands"
	"flagledger/http/strictjson"
)

// A body is checked twice. Here its members and their types are checked against the schema, and invalid ones are
// removed; commands then check the values. One response reports all errors.

// heldBody is a body in memory. Its bytes are immutable.
type heldBody struct {
	bytes.Reader
	data []byte
}

func holdBody(data []byte) *heldBody {
	b := &heldBody{data: data}
	b.Reset(data)
	return b
}

// Close implements io.Closer.
func (*heldBody) Close() error { return nil }

// peekBody reports whether a request has a body. If the length is unknown, as with Transfer-Encoding: chunked, it reads
// the first byte and puts it back.
func peekBody(r *http.Request) bool {
	if r.ContentLength >= 0 {
		return r.ContentLength > 0
	}
	var first [1]byte
	n, err := io.ReadFull(r.Body, first[:])
	if n == 0 && errors.Is(err, io.EOF) {
		r.ContentLength, r.Body = 0, http.NoBody
		return false
	}
	r.Body = &resumedBody{io.MultiReader(bytes.NewReader(first[:n]), r.Body), r.Body}
	return true
}

// resumedBody is a body whose first byte was read and put back.
type resumedBody struct {
	io.Reader
	io.Closer
}

// checkEncoding refuses a compressed body.
func checkEncoding(r *http.Request) *Problem {
	encoding := strings.Join(r.Header.Values("Content-Encoding"), ", ")
	if encoding == "" || strings.EqualFold(encoding, "identity") || r.ContentLength == 0 {
		return nil
	}
	p := NewProblem(http.StatusUnsupportedMediaType, "the body must not be compressed: send it without Content-Encoding")
	p.headers.Set("Accept-Encoding", "identity")
	return p
}

// maxSmallBody limits the bodies of forms, and of operations that need no body.
const maxSmallBody = 16 << 10

// SmallBody reads a body of at most maxSmallBody and leaves it readable again. Its error is a problem.
func SmallBody(r *http.Request) ([]byte, error) { return bodyUpTo(r, maxSmallBody) }

// bodyUpTo reads a body of at most limit bytes and leaves it readable again. Its error is a problem.
func bodyUpTo(r *http.Request, limit int) ([]byte, error) {
	if held, ok := r.Body.(*heldBody); ok {
		return held.data, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, int64(limit)))
	if _, exceeded := errors.AsType[*http.MaxBytesError](err); exceeded {
		return nil, NewProblem(http.StatusBadRequest, bodyTooLarge(limit))
	}
	if err != nil {
		return nil, NewProblem(http.StatusBadRequest, UnreadBody)
	}
	r.Body = holdBody(body)
	return body, nil
}

// BodyErrors returns an error if the body does not match its schema. An operation that changes something without a
// command must call it first.
func BodyErrors(ctx context.Context) error {
	return commands.MergeFieldErrors(RequestOf(ctx).wrong, nil)
}

// AddBodyErrors adds the schema errors of the request's body to err. It returns nil if there are no errors.
func AddBodyErrors(ctx context.Context, err error) error {
	if p, ok := errors.AsType[*Problem](err); ok && p.Errors != nil {
		err = &commands.Error{Kind: commands.Invalid, Detail: p.Detail, Fields: p.Errors}
	}
	return commands.MergeFieldErrors(RequestOf(ctx).wrong, err)
}

// WrongFields returns a problem that lists the wrong fields, or nil if there are none.
func WrongFields(wrong map[string]string) error {
	if len(wrong) == 0 {
		return nil
	}
	return Invalid(wrong)
}

// fit stores the schema errors of a request's body and removes the invalid members from it. Its error is a problem.
func (g *guard) fit(r *http.Request) error {
	body, err := bodyUpTo(r, g.need.MaxBody)
	if err != nil {
		return err
	}
	if len(body) > 0 {
		if body, RequestOf(r.Context()).wrong, err = strictjson.Fit(
			body, g.body, g.api.Huma.OpenAPI().Components.Schemas,
		); err != nil {
			return ProblemOfBody(err)
		}
	}
	r.Body = holdBody(body)
	return nil
}

// ProblemOfBody returns the problem for a body that is unreadable or of the wrong type.
func ProblemOfBody(err error) *Problem {
	if wrong, ok := errors.AsType[strictjson.FieldError](err); ok {
		return Invalid(map[string]string{wrong.Field: wrong.Text})
	}
	return NewProblem(http.StatusBadRequest, err.Error())
}
