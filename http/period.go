package http

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/events/rules"
	"flagledger/queries"
)

// PeriodInput narrows a list to what is of some time.
type PeriodInput struct {
	From time.Time `query:"from" doc:"Entries of this time and later"`
	To   time.Time `query:"to" doc:"Entries before this time"`
}

// Resolve implements huma.Resolver. It refuses times that Go's own parser takes and RFC 3339 does not have, as with a comma.
func (*PeriodInput) Resolve(ctx huma.Context) (errs []error) {
	for _, name := range []string{"from", "to"} {
		text := ctx.Query(name)
		if _, readable := rules.ParseTime(text); text != "" && !readable {
			errs = append(errs, &huma.ErrorDetail{Location: "query." + name, Message: queries.ErrNotTime.Error()})
		}
	}
	return errs
}
