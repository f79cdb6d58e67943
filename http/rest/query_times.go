package rest

import (
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/events/rules"
)

// humaContext is huma.Context under another name: embedding it as Context would hide its method Context.
type humaContext huma.Context

// invalidTime is a text that huma refuses with its own message.
const invalidTime = "invalid"

// timesContext parses the query parameters that are times with rules.ParseTime. huma's own parser takes a comma and
// refuses t, z and leap seconds.
type timesContext struct {
	humaContext
	times []string // the names of the parameters
}

// Unwrap returns the context that c reads.
func (c timesContext) Unwrap() huma.Context { return c.humaContext }

// Query returns a time in a format that huma parses, or invalidTime. It shifts the zero time by a microsecond, as
// operations treat the zero time as absent.
func (c timesContext) Query(name string) string {
	text := c.humaContext.Query(name)
	if text == "" || !slices.Contains(c.times, name) {
		return text
	}
	at, readable := rules.ParseTime(text)
	switch {
	case !readable:
		return invalidTime
	case at.IsZero(): // operations treat it as absent
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
