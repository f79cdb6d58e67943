package http

import (
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/events/rules"
)

type humaContext huma.Context

// timesContext has rules.ParseTime read the query parameters that are times. huma's own parser takes a comma and
// refuses t, z and leap seconds.
type timesContext struct {
	humaContext
	times []string // the names of the parameters
}

// Unwrap returns the context that c reads.
func (c timesContext) Unwrap() huma.Context { return c.humaContext }

// Query returns a time in the spelling that huma reads, and for a wrong one a text that huma refuses.
func (c timesContext) Query(name string) string {
	text := c.humaContext.Query(name)
	if text == "" || !slices.Contains(c.times, name) {
		return text
	}
	at, readable := rules.ParseTime(text)
	switch {
	case !readable:
		return "unreadable"
	case at.IsZero(): // operations take the year 1 for no time
		return at.Add(time.Microsecond).Format(time.RFC3339Nano)
	case text[len("2006-01-02T15:04:")] == '6': // a leap second
		return at.Format(time.RFC3339Nano)
	default:
		return strings.ToUpper(text)
	}
}

// timesOf lists the query parameters of an operation that are times.
func timesOf(op *huma.Operation) (names []string) {
	for _, p := range op.Parameters {
		if p.In == "query" && p.Schema.Format == "date-time" {
			names = append(names, p.Name)
		}
	}
	return names
}
