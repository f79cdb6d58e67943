package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/wI2L/jsondiff"

	"flagledger/http/strictjson"
	"flagledger/queries"
)

// ChangeBody is a field that differs between two versions.
type ChangeBody struct {
	Field       string  `json:"field" doc:"As in the history" example:"name"`
	Environment *string `json:"environment" nullable:"true" doc:"null for the whole flag, and for a segment" example:"production"`
	From        Value   `json:"from" example:"\"Checkout\""`
	To          Value   `json:"to" example:"\"New checkout\""`
}

// DiffBody is the difference between two versions of a flag or a segment.
type DiffBody struct {
	From    uint64       `json:"from" doc:"The version at that time" example:"3"`
	To      uint64       `json:"to" example:"7"`
	Changes []ChangeBody `json:"changes"`
	Patch   []PatchBody  `json:"patch" doc:"RFC 6902: turns what /versions/{version} shows at from into what it shows at to. A patch longer than that replaces it as a whole"`
}

// PatchBody is an operation of RFC 6902.
type PatchBody struct {
	Op    string `json:"op" enum:"add,remove,replace,move,copy,test" example:"replace"`
	Path  string `json:"path" example:"/name"`
	From  string `json:"from,omitzero" example:"/tags/0"`
	Value Value  `json:"value,omitzero" example:"\"New checkout\""`
}

// smallPatch is the size above which a patch that is longer than what it makes replaces the whole. Shifting a list of
// thousands of values would need a step with a long path for each.
const smallPatch = 64 << 10

// NewDiff returns the difference between two versions with their patch, and without changes.
func NewDiff(from, to uint64, before, after any) (d DiffBody, err error) {
	d = DiffBody{From: from, To: to, Changes: []ChangeBody{}, Patch: []PatchBody{}}
	texts := [2][]byte{EncodeJSON(before), EncodeJSON(after)}
	patch, err := jsondiff.CompareJSON(texts[0], texts[1], jsondiff.UnmarshalFunc(unmarshalExactly))
	if err != nil {
		return d, err
	}
	written, err := json.Marshal(patch)
	switch {
	case err != nil || len(patch) == 0:
	case len(written) > max(smallPatch, len(texts[1])):
		d.Patch = []PatchBody{{Op: "replace", Value: texts[1]}}
	default:
		err = strictjson.Read(written, &d.Patch)
	}
	return d, err
}

// Add adds a field if its values differ.
func (d *DiffBody) Add(field string, environment *string, from, to any) {
	if a, b := EncodeJSON(from), EncodeJSON(to); !bytes.Equal(a, b) {
		d.Changes = append(d.Changes, ChangeBody{field, environment, a, b})
	}
}

// ListOf indexes a list by id and preserves its order.
type ListOf struct {
	ids []string
	by  map[string]any
}

// ByID returns the index of a list.
func ByID[T any](list []T, id func(T) string) ListOf {
	l := ListOf{ids: []string{}, by: map[string]any{}}
	for _, element := range list {
		l.ids = append(l.ids, id(element))
		l.by[id(element)] = element
	}
	return l
}

// AddLists adds each added, removed or changed element as a whole, and the list of ids if it differs.
func (d *DiffBody) AddLists(field string, environment *string, from, to ListOf) {
	for _, id := range from.ids {
		d.Add(field+"."+id, environment, from.by[id], to.by[id])
	}
	for _, id := range to.ids {
		if from.by[id] == nil {
			d.Add(field+"."+id, environment, nil, to.by[id])
		}
	}
	d.Add(field+".order", environment, from.ids, to.ids)
}

// EncodeJSON returns the JSON of a value as in responses. It panics if the value cannot be encoded.
func EncodeJSON(v any) []byte {
	var b bytes.Buffer
	if err := strictjson.Write(&b, v); err != nil {
		panic(err) // the types are part of the program
	}
	return b.Bytes()
}

// unmarshalExactly preserves the spelling of numbers.
func unmarshalExactly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}

// DiffInput names two moments to compare.
type DiffInput struct {
	From string `query:"from" required:"true" doc:"A version, or an RFC 3339 time that is past by the store's clock" example:"3"`
	To   string `query:"to" required:"true" doc:"A version, or an RFC 3339 time that is past by the store's clock" example:"7"`
}

// DiffEnd is one of two moments to compare.
type DiffEnd struct {
	Name string // of the parameter
	queries.Moment
}

// Ends reads the moments, and waits until the read models of the named facts are current. Its error is a problem or
// that of a query.
func (in DiffInput) Ends(ctx context.Context, a *Core, names ...string) (ends [2]DiffEnd, err error) {
	wrong := map[string]string{}
	for i, sent := range []struct{ name, text string }{{"from", in.From}, {"to", in.To}} {
		m, err := queries.ParseMoment(sent.text, a.Now())
		if err != nil {
			wrong[sent.name] = err.Error()
		}
		ends[i] = DiffEnd{sent.name, m}
	}
	if len(wrong) > 0 {
		return ends, Invalid(wrong)
	}
	for _, end := range ends {
		switch err := a.Queries.WaitUntilCurrent(ctx, end.At, names...); {
		case errors.Is(err, queries.ErrFuture):
			wrong[end.Name] = queries.ErrFuture.Error()
		case err != nil:
			return ends, err
		}
	}
	return ends, WrongFields(wrong)
}
