package http

import (
	"context"
	"fmt"
	"strconv"

	"flagledger/queries"
)

// PageInput is how lists are paged. Without a limit a list comes whole.
type PageInput struct {
	Limit  int `query:"limit" minimum:"1" maximum:"1000" doc:"The most entries to answer; all without it"`
	Offset int `query:"offset" minimum:"0" doc:"How many entries to leave out at the beginning"`
}

func (p PageInput) page() queries.Page { return queries.Page{Limit: p.Limit, Offset: p.Offset} }

// listOutput is a page of a list.
type listOutput[T any] struct {
	Total string   `header:"X-Total-Count" doc:"The number of entries in all pages"`
	Link  []string `header:"Link" doc:"The next page, where there is one: rel=\"next\""`
	Body  []T
}

// listed makes the answer of a list out of rows.
func listed[R, T any](ctx context.Context, in PageInput, rows []R, total int, show func(R) T) *listOutput[T] {
	out := &listOutput[T]{Total: strconv.Itoa(total), Body: make([]T, len(rows))}
	for i, row := range rows {
		out.Body[i] = show(row)
	}
	if next := in.Offset + len(rows); in.Limit > 0 && len(rows) > 0 && next < total {
		target := requestOf(ctx).url
		query := target.Query()
		query.Set("offset", strconv.Itoa(next))
		out.Link = []string{fmt.Sprintf("<%s?%s>; rel=%q", target.EscapedPath(), query.Encode(), "next")}
	}
	return out
}
