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

// PageInput is how lists are paged. Without a limit a list comes whole.
type PageInput struct {
	Limit  int `query:"limit" minimum:"1" maximum:"1000" doc:"The most entries to answer; all without it"`
	Offset int `query:"offset" minimum:"0" doc:"How many entries to leave out at the beginning. What comes or goes between two pages shifts the later one, so that entries are skipped or come twice; in lists that take at, the same at for all pages makes the walk stable"`
}

func (p PageInput) page() queries.Page { return queries.Page{Limit: p.Limit, Offset: p.Offset} }

// listOutput is a page of a list.
type listOutput[T any] struct {
	Total string   `header:"X-Total-Count" doc:"The number of entries in all pages"`
	Link  []string `header:"Link" doc:"The next page, where there is one: rel=\"next\""`
	Body  entries[T]
}

// entries is the body of a list: an array, of which one piece at a time is in memory.
type entries[T any] struct {
	pieces *pieces
	empty  bool
}

// Schema implements huma.SchemaProvider.
func (entries[T]) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[[]T]())
}

func (e entries[T]) writeTo(w io.Writer) { e.pieces.writeTo(w) }

// pieces is the text of an array as far as it has been read, and how to read on.
type pieces struct {
	text bytes.Buffer
	next func() (more bool, err error) // appends the next piece to text; nil where there is none
	fail func(error)                   // notes why the rest cannot be read
}

// writeTo writes the array. Where it cannot be read to its end, the answer is broken off: its status has been sent.
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

// writeLongTo is writeTo for an answer that may take so long, of which each piece must be read within answerTimeout.
func (p *pieces) writeLongTo(w http.ResponseWriter, longest time.Duration) {
	control, end := http.NewResponseController(w), time.Now().Add(longest)
	if next := p.next; next != nil {
		p.next = func() (bool, error) {
			if time.Now().After(end) {
				return false, errors.New("the answer has taken too long")
			}
			more, err := next()
			_ = control.SetWriteDeadline(time.Now().Add(answerTimeout)) // which in-memory writers of tests do not have
			return more, err
		}
	}
	p.writeTo(w)
}

// writeBody writes the body of an answer as JSON: huma calls it.
func writeBody(w io.Writer, body any) error {
	if list, ok := body.(interface{ writeTo(w io.Writer) }); ok {
		list.writeTo(w)
		return nil
	}
	return strictjson.Write(w, body)
}

// listed makes the answer of a list. What fits into one piece is read and written whole before it is sent.
func listed[R, T any](
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

// nextPage is the Link to the next page, which is that of the request but for one parameter.
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

// piecesOf makes the array of a list. Its first piece, which has been read, is written.
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
		p.next = inSlot(ctx, func() (bool, error) {
			rows, err := list.Next(ctx)
			return list.More(), errors.Join(err, write(rows))
		})
	}
	return p, nil
}

func newPieces(ctx context.Context) *pieces {
	return &pieces{fail: func(err error) {
		if ctx.Err() == nil {
			requestOf(ctx).log().Warn("a list was broken off", "err", err)
		}
	}}
}

// inSlot waits for the slot of a read whenever a further piece is read.
func inSlot(ctx context.Context, read func() (more bool, err error)) func() (bool, error) {
	return func() (bool, error) {
		slot := requestOf(ctx).readSlot
		if err := slot.Resume(ctx); err != nil {
			return false, err
		}
		defer slot.Leave()
		return read()
	}
}
