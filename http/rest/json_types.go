package rest

import (
	"bytes"
	"context"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	jsonv2 "github.com/go-json-experiment/json"

	"flagledger/events"
	"flagledger/http/strictjson"
)

// Timestamp is a time in responses: UTC, with milliseconds and Z.
type Timestamp time.Time

// MarshalJSON implements json.Marshaler.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.String() + `"`), nil
}

// String returns the timestamp as in JSON, without quotes.
func (t Timestamp) String() string { return time.Time(t).UTC().Format("2006-01-02T15:04:05.000Z") }

// Schema implements huma.SchemaProvider.
func (Timestamp) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Examples: []any{"2026-03-14T15:09:26.535Z"}}
}

// RecordedTime is the time when the store recorded a fact: UTC, with microseconds and Z. Sent as at, it includes the
// fact.
type RecordedTime time.Time

// MarshalJSON implements json.Marshaler.
func (t RecordedTime) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.String() + `"`), nil
}

// String returns the time as in JSON, without quotes.
func (t RecordedTime) String() string { return time.Time(t).UTC().Format(events.RecordedFormat) }

// Schema implements huma.SchemaProvider.
func (RecordedTime) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Examples: []any{"2026-03-14T15:09:26.535120Z"}}
}

// TextOrNull returns a text, or nil for an empty one.
func TextOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Value is the value of a flag: any JSON, in its original spelling. It is nil if it was not sent.
type Value []byte

// MarshalJSON implements json.Marshaler.
func (v Value) MarshalJSON() ([]byte, error) { return v, nil }

// UnmarshalJSON implements json.Unmarshaler.
func (v *Value) UnmarshalJSON(data []byte) error {
	*v = append(Value{}, data...)
	return nil
}

// Schema implements huma.SchemaProvider.
func (Value) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "A value of the flag's type. The spelling of numbers is preserved.",
		Examples:    []any{true},
	}
}

// Optional is an optional member of a request; sent is nil if it is absent. null is read as the zero value. With the
// tag nullable it clears the field, otherwise commands refuse it with the other errors.
type Optional[T any] struct {
	Sent *T
	Null bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *Optional[T]) UnmarshalJSON(data []byte) error {
	o.Sent, o.Null = new(T), string(data) == "null"
	return jsonv2.Unmarshal(data, o.Sent)
}

// Schema implements huma.SchemaProvider.
func (Optional[T]) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[T]())
}

// RefuseNull adds null to the request's schema errors, for a member whose zero value would be valid.
func (o *Optional[T]) RefuseNull(ctx context.Context, member string) {
	if req := RequestOf(ctx); o.Null {
		if req.wrong == nil {
			req.wrong = map[string]string{}
		}
		req.wrong[member] = "expected " + o.Schema(nil).Type
	}
}

// Number is a JSON number that is read without rounding. It is nil if it was not sent.
type Number []byte

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(data []byte) error {
	*n = append(Number{}, data...)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) { return n, nil }

// Schema implements huma.SchemaProvider.
func (Number) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeNumber} }

// Weight parses a weight. It returns -1 for an invalid one, which commands refuse.
func (n Number) Weight() events.Weight {
	if n == nil {
		return 0
	}
	w, err := events.ParseWeight(n)
	if err != nil {
		return -1
	}
	return w
}

// OrNull is a nullable member.
type OrNull[T any] struct{ Value *T }

// MarshalJSON implements json.Marshaler.
func (o OrNull[T]) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := strictjson.Write(&b, o.Value)
	return b.Bytes(), err
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *OrNull[T]) UnmarshalJSON(data []byte) error { return jsonv2.Unmarshal(data, &o.Value) }

// Schema implements huma.SchemaProvider.
func (OrNull[T]) Schema(r huma.Registry) *huma.Schema {
	schema := *r.SchemaFromRef(r.Schema(reflect.TypeFor[T](), true, "").Ref)
	schema.Nullable = true
	return &schema
}
