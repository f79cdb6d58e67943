package http

import (
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/events/rules"
)

// humaContext is huma.Context by a name that can be embedded: that of the type would hide its method Context.
type humaContext huma.Context

// invalidTime is refused by huma with its own message.
const invalidTime = "invalid"

// timesContext parses the query parameters that are times with rules.ParseTime. huma's own parser takes a comma and
// refuses t, z and leap seconds.
type timesContext struct {
	humaContext
	times []string // the names of the parameters
}

// Unwrap returns the context that c reads.
func (c timesContext) Unwrap() huma.Context { return c.humaContext }

// Query returns a time in the spelling that huma reads, or invalidTime. The first moment of the year 1 is a microsecond
// later: operations take a zero time for none.
func (c timesContext) Query(name string) string {
	text := c.humaContext.Query(name)
	if text == "" || !slices.Contains(c.times, name) {
		return text
	}
	at, readable := rules.ParseTime(text)
	switch {
	case !readable:
		return invalidTime
	case at.IsZero(): // which operations take for no time
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
