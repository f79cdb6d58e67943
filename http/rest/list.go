package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/http/strictjson"
	"flagledger/queries"
)

// PageInput is the page of a list. Without a limit it is the whole list.
type PageInput struct {
	Limit  int `query:"limit" minimum:"1" maximum:"1000" doc:"The maximum number of entries; all by default"`
	Offset int `query:"offset" minimum:"0" doc:"How many entries to skip. Entries that are added or removed between two pages shift the second page, so that entries are missed or repeated. In lists that take at, send the same at for all pages to avoid that"`
}

// Page returns the page of a query.
func (p PageInput) Page() queries.Page { return queries.Page{Limit: p.Limit, Offset: p.Offset} }

// ListOutput is a page of a list.
type ListOutput[T any] struct {
	Total string   `header:"X-Total-Count" doc:"The number of entries in all pages"`
	Link  []string `header:"Link" doc:"The next page, if there is one: rel=\"next\""`
	Body  Entries[T]
}

// Entries is the body of a list: an array that is held in memory one piece at a time.
type Entries[T any] struct {
	Pieces *Pieces
	Empty  bool
}

// Schema implements huma.SchemaProvider.
func (Entries[T]) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[[]T]())
}

// WritePieces writes the JSON array piece by piece.
func (e Entries[T]) WritePieces(w io.Writer) { e.Pieces.Send(w) }

// Pieces holds the text of an array that was read so far, and reads the rest.
type Pieces struct {
	Text bytes.Buffer
	Next func() (more bool, err error) // appends the next piece to text; nil if there is none
	fail func(error)                   // logs why the rest cannot be read
}

// Send writes the array. If reading fails it aborts the response, as the status has been sent.
func (p *Pieces) Send(w io.Writer) {
	for {
		if _, err := w.Write(p.Text.Bytes()); err != nil {
			AbortResponse()
		}
		if p.Next == nil {
			return
		}
		p.Text.Reset()
		more, err := p.Next()
		if err != nil {
			p.fail(err)
			AbortResponse()
		}
		if !more {
			p.Next = nil
		}
	}
}

// SendLong is Send for a response that may take up to longest. The client must read each piece within
// AnswerTimeout.
func (p *Pieces) SendLong(w http.ResponseWriter, longest time.Duration) {
	control, end := http.NewResponseController(w), time.Now().Add(longest)
	if next := p.Next; next != nil {
		p.Next = func() (bool, error) {
			if time.Now().After(end) {
				return false, errors.New("the response has taken too long")
			}
			more, err := next()
			_ = control.SetWriteDeadline(time.Now().Add(AnswerTimeout)) // in-memory writers of tests have no deadline
			return more, err
		}
	}
	p.Send(w)
}

// WriteBody writes the body of a response as JSON, for huma.
func WriteBody(w io.Writer, body any) error {
	if list, ok := body.(interface{ WritePieces(w io.Writer) }); ok {
		list.WritePieces(w)
		return nil
	}
	return strictjson.Write(w, body)
}

// ListResponse returns the response of a list. A list of one piece is read and encoded before it is sent.
func ListResponse[R, T any](
	ctx context.Context, in PageInput, list *queries.List[R], err error, show func(R) T,
) (*ListOutput[T], error) {
	if err != nil {
		return nil, err
	}
	places := list.Places
	p, err := PiecesOf(ctx, list, show)
	if err != nil {
		return nil, err
	}
	if p.Next != nil {
		if places = list.Total - in.Offset; in.Limit > 0 {
			places = min(places, in.Limit)
		}
	}
	out := &ListOutput[T]{Total: strconv.Itoa(list.Total), Body: Entries[T]{p, len(list.Rows) == 0 && p.Next == nil}}
	if next := in.Offset + places; in.Limit > 0 && places > 0 && next < list.Total {
		out.Link = NextPage(ctx, "offset", strconv.Itoa(next))
	}
	return out, nil
}

// NextPage returns the Link to the next page: the request's URL with one parameter changed.
func NextPage(ctx context.Context, parameter, value string) []string {
	query := RequestOf(ctx).URL.Query()
	query.Set(parameter, value)
	return NextLink(ctx, query)
}

// NextLink returns the Link to a page with the path of the request.
func NextLink(ctx context.Context, query url.Values) []string {
	path := PublicPath(ctx, RequestOf(ctx).URL.EscapedPath())
	return []string{fmt.Sprintf("<%s?%s>; rel=%q", path, query.Encode(), "next")}
}

// PiecesOf returns the array of a list, with the first piece already encoded.
func PiecesOf[R, T any](ctx context.Context, list *queries.List[R], show func(R) T) (*Pieces, error) {
	p := NewPieces(ctx)
	separator := "["
	write := func(rows []R) error {
		for _, row := range rows {
			p.Text.WriteString(separator)
			separator = ","
			if err := strictjson.Write(&p.Text, show(row)); err != nil {
				return err
			}
		}
		if list.More() {
			return nil
		}
		if separator == "[" {
			p.Text.WriteString(separator)
		}
		p.Text.WriteString("]")
		return nil
	}
	if err := write(list.Rows); err != nil {
		return nil, err
	}
	list.Rows = nil
	if list.More() {
		p.Next = WithReadSlot(ctx, func() (bool, error) {
			rows, err := list.Next(ctx)
			return list.More(), errors.Join(err, write(rows))
		})
	}
	return p, nil
}

// NewPieces returns pieces without a source. A read that fails aborts the response.
func NewPieces(ctx context.Context) *Pieces {
	return &Pieces{fail: func(err error) {
		if ctx.Err() == nil {
			RequestOf(ctx).Log().Warn("a list was cut off", "err", err)
		}
	}}
}

// WithReadSlot returns a function that calls read in the request's read slot.
func WithReadSlot(ctx context.Context, read func() (more bool, err error)) func() (bool, error) {
	return func() (bool, error) {
		slot := RequestOf(ctx).readSlot
		if err := slot.Resume(ctx); err != nil {
			return false, err
		}
		defer slot.Leave()
		return read()
	}
}
