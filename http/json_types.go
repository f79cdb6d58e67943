package http

import (
	"context"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	jsonv2 "github.com/go-json-experiment/json"

	"flagledger/events"
)

// timestamp is a time in responses: UTC, with milliseconds and Z.
type timestamp time.Time

// MarshalJSON implements json.Marshaler.
func (t timestamp) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.String() + `"`), nil
}

// String returns the timestamp as in JSON, without quotes.
func (t timestamp) String() string { return time.Time(t).UTC().Format("2006-01-02T15:04:05.000Z") }

// Schema implements huma.SchemaProvider.
func (timestamp) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Examples: []any{"2026-03-14T15:09:26.535Z"}}
}

// recordedTime is the time when the store recorded a fact: UTC, with microseconds and Z. Sent as at, it includes the
// fact.
type recordedTime time.Time

// MarshalJSON implements json.Marshaler.
func (t recordedTime) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.String() + `"`), nil
}

// String returns the time as in JSON, without quotes.
func (t recordedTime) String() string { return time.Time(t).UTC().Format(events.RecordedFormat) }

// Schema implements huma.SchemaProvider.
func (recordedTime) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Examples: []any{"2026-03-14T15:09:26.535120Z"}}
}

// textOrNull returns a text, or nil for an empty one.
func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// value is the value of a flag: any JSON, in its original spelling. It is nil if it was not sent.
type value []byte

// MarshalJSON implements json.Marshaler.
func (v value) MarshalJSON() ([]byte, error) { return v, nil }

// UnmarshalJSON implements json.Unmarshaler.
func (v *value) UnmarshalJSON(data []byte) error {
	*v = append(value{}, data...)
	return nil
}

// Schema implements huma.SchemaProvider.
func (value) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "A value of the flag's type. The spelling of numbers is preserved.",
		Examples:    []any{true},
	}
}

// optional is an optional member of a request; sent is nil if it is absent. null is read as the zero value. With the
// tag nullable it clears the field, otherwise commands refuse it with the other errors.
type optional[T any] struct {
	sent *T
	null bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *optional[T]) UnmarshalJSON(data []byte) error {
	o.sent, o.null = new(T), string(data) == "null"
	return jsonv2.Unmarshal(data, o.sent)
}

// Schema implements huma.SchemaProvider.
func (optional[T]) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[T]())
}

// refuseNull adds null to the request's schema errors, for a member whose zero value would be valid.
func (o *optional[T]) refuseNull(ctx context.Context, member string) {
	if req := requestOf(ctx); o.null {
		if req.wrong == nil {
			req.wrong = map[string]string{}
		}
		req.wrong[member] = "expected " + o.Schema(nil).Type
	}
}

// number is a JSON number that is read without rounding. It is nil if it was not sent.
type number []byte

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(data []byte) error {
	*n = append(number{}, data...)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) { return n, nil }

// Schema implements huma.SchemaProvider.
func (number) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeNumber} }
