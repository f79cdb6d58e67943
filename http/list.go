package http

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

func (p PageInput) page() queries.Page { return queries.Page{Limit: p.Limit, Offset: p.Offset} }

// listOutput is a page of a list.
type listOutput[T any] struct {
	Total string   `header:"X-Total-Count" doc:"The number of entries in all pages"`
	Link  []string `header:"Link" doc:"The next page, if there is one: rel=\"next\""`
	Body  entries[T]
}

// entries is the body of a list: an array that is held in memory one piece at a time.
type entries[T any] struct {
	pieces *pieces
	empty  bool
}

// Schema implements huma.SchemaProvider.
func (entries[T]) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[[]T]())
}

func (e entries[T]) writeTo(w io.Writer) { e.pieces.writeTo(w) }

// pieces holds the text of an array that was read so far, and reads the rest.
type pieces struct {
	text bytes.Buffer
	next func() (more bool, err error) // appends the next piece to text; nil if there is none
	fail func(error)                   // logs why the rest cannot be read
}

// writeTo writes the array. If reading fails it aborts the response, as the status has been sent.
func (p *pieces) writeTo(w io.Writer) {
	for {
		if _, err := w.Write(p.text.Bytes()); err != nil {
			abortResponse()
		}
		if p.next == nil {
			return
		}
		p.text.Reset()
		more, err := p.next()
		if err != nil {
			p.fail(err)
			abortResponse()
		}
		if !more {
			p.next = nil
		}
	}
}

// writeLongTo is writeTo for a response that may take up to longest. The client must read each piece within
// answerTimeout.
func (p *pieces) writeLongTo(w http.ResponseWriter, longest time.Duration) {
	control, end := http.NewResponseController(w), time.Now().Add(longest)
	if next := p.next; next != nil {
		p.next = func() (bool, error) {
			if time.Now().After(end) {
				return false, errors.New("the response has taken too long")
			}
			more, err := next()
			_ = control.SetWriteDeadline(time.Now().Add(answerTimeout)) // in-memory writers of tests have no deadline
			return more, err
		}
	}
	p.writeTo(w)
}

// writeBody writes the body of a response as JSON, for huma.
func writeBody(w io.Writer, body any) error {
	if list, ok := body.(interface{ writeTo(w io.Writer) }); ok {
		list.writeTo(w)
		return nil
	}
	return strictjson.Write(w, body)
}

// listResponse returns the response of a list. A list of one piece is read and encoded before it is sent.
func listResponse[R, T any](
	ctx context.Context, in PageInput, list *queries.List[R], err error, show func(R) T,
) (*listOutput[T], error) {
	if err != nil {
		return nil, err
	}
	places := list.Places
	p, err := piecesOf(ctx, list, show)
	if err != nil {
		return nil, err
	}
	if p.next != nil {
		if places = list.Total - in.Offset; in.Limit > 0 {
			places = min(places, in.Limit)
		}
	}
	out := &listOutput[T]{Total: strconv.Itoa(list.Total), Body: entries[T]{p, len(list.Rows) == 0 && p.next == nil}}
	if next := in.Offset + places; in.Limit > 0 && places > 0 && next < list.Total {
		out.Link = nextPage(ctx, "offset", strconv.Itoa(next))
	}
	return out, nil
}

// nextPage returns the Link to the next page: the request's URL with one parameter changed.
func nextPage(ctx context.Context, parameter, value string) []string {
	query := requestOf(ctx).url.Query()
	query.Set(parameter, value)
	return nextLink(ctx, query)
}

// nextLink returns the Link to a page with the path of the request.
func nextLink(ctx context.Context, query url.Values) []string {
	path := publicPath(ctx, requestOf(ctx).url.EscapedPath())
	return []string{fmt.Sprintf("<%s?%s>; rel=%q", path, query.Encode(), "next")}
}

// piecesOf returns the array of a list, with the first piece already encoded.
func piecesOf[R, T any](ctx context.Context, list *queries.List[R], show func(R) T) (*pieces, error) {
	p := newPieces(ctx)
	separator := "["
	write := func(rows []R) error {
		for _, row := range rows {
			p.text.WriteString(separator)
			separator = ","
			if err := strictjson.Write(&p.text, show(row)); err != nil {
				return err
			}
		}
		if list.More() {
			return nil
		}
		if separator == "[" {
			p.text.WriteString(separator)
		}
		p.text.WriteString("]")
		return nil
	}
	if err := write(list.Rows); err != nil {
		return nil, err
	}
	list.Rows = nil
	if list.More() {
		p.next = withReadSlot(ctx, func() (bool, error) {
			rows, err := list.Next(ctx)
			return list.More(), errors.Join(err, write(rows))
		})
	}
	return p, nil
}

func newPieces(ctx context.Context) *pieces {
	return &pieces{fail: func(err error) {
		if ctx.Err() == nil {
			requestOf(ctx).log().Warn("a list was cut off", "err", err)
		}
	}}
}

// withReadSlot returns a function that calls read in the request's read slot.
func withReadSlot(ctx context.Context, read func() (more bool, err error)) func() (bool, error) {
	return func() (bool, error) {
		slot := requestOf(ctx).readSlot
		if err := slot.Resume(ctx); err != nil {
			return false, err
		}
		defer slot.Leave()
		return read()
	}
}
