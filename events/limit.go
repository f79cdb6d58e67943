package events

import (
	"fmt"
	"strconv"
	"time"
)

// Limit describes a limit for docs/operate/limits.md. Each package that enforces limits lists them in its limits.go.
type Limit struct {
	Group  LimitGroup
	Name   string   // what is limited
	Fields []string // members and parameters of requests with this limit; a test compares the OpenAPI document
	Max    int
	Unit   string // of Max: UnitBytes, or words such as "a day"
	Value  string // replaces Max and Unit if the limit is not one number
	Per    string // what is counted separately: a tenant, a person, a network
	Nodes  Nodes
	Status int    // of the refusal; 0 if nothing is refused
	Beyond string // what happens beyond the limit, if it is not or not only a refusal
}

// RequestLimit returns a limit of a request, an answer or a connection.
func RequestLimit(name, value string, status int, beyond string) Limit {
	return Limit{Group: RequestLimits, Name: name, Value: value, Status: status, Beyond: beyond}
}

// FieldLimit returns a limit of members, parameters or headers of requests.
func FieldLimit(most int, unit string, status int, fields ...string) Limit {
	return Limit{Group: FieldLimits, Fields: fields, Max: most, Unit: unit, Status: status}
}

// LimitGroup is a heading of docs/operate/limits.md.
type LimitGroup string

// The groups of limits, in the order of the page.
const (
	TenantLimits      LimitGroup = "Quotas of a tenant"
	PersonLimits      LimitGroup = "Quotas of a person"
	RateLimits        LimitGroup = "Rates"
	ConcurrencyLimits LimitGroup = "Concurrency"
	RequestLimits     LimitGroup = "Requests and answers"
	FieldLimits       LimitGroup = "" // in the OpenAPI document
)

// LimitGroups lists the groups of the page in order.
var LimitGroups = []LimitGroup{TenantLimits, PersonLimits, RateLimits, ConcurrencyLimits, RequestLimits}

// Nodes says whether a limit holds for all nodes together. It is empty for limits of a single request.
type Nodes string

// The scopes of limits.
const (
	AllNodes Nodes = "all"
	EachNode Nodes = "each"
)

// Units of limits: sizes, and texts as people count them.
const (
	UnitBytes      = "bytes"
	UnitCharacters = "characters"
)

// Text returns the limit as the page shows it.
func (l Limit) Text() string {
	switch {
	case l.Value != "":
		return l.Value
	case l.Unit == UnitBytes:
		return SizeText(l.Max)
	case l.Unit != "":
		return CountText(l.Max) + " " + l.Unit
	default:
		return CountText(l.Max)
	}
}

// CountText writes a number with a comma before each three digits.
func CountText(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// SizeText writes a number of bytes in GiB, MiB or KiB if they are a whole number below 1,024 of one, otherwise in
// bytes.
func SizeText(bytes int) string {
	for shift, unit := range map[int]string{30: "GiB", 20: "MiB", 10: "KiB"} {
		if n := bytes >> shift; n > 0 && n < 1<<10 && n<<shift == bytes {
			return fmt.Sprintf("%d %s", n, unit)
		}
	}
	return CountText(bytes) + " bytes"
}

// PeriodText writes a time in the largest unit that leaves a whole number. One day is written 24 h.
func PeriodText(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "days"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if n := int64(d / unit.length); d%unit.length == 0 && (n > 1 || unit.name != "days") && n > 0 {
			return fmt.Sprintf("%d %s", n, unit.name)
		}
	}
	return d.String()
}
