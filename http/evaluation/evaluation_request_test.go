package evaluation

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"flagledger/http/rest"
	"flagledger/http/strictjson"
	"flagledger/projections/snapshot/evaluation"
)

// decoded reads a body as an evaluation does.
func decoded(t *testing.T, body string, read func(*evaluationRequest) error) (q evaluationRequest, err error) {
	t.Helper()
	r, unread := new(API).readEvaluationBody(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)), nil)
	if unread != nil {
		return q, unread
	}
	defer r.release()
	err = r.decode(read)
	q.TargetingKey, q.environment, q.flagKeys = r.TargetingKey, r.environment, r.flagKeys
	q.Attributes = map[string]any{}
	for name, value := range r.Attributes {
		q.Attributes[name] = value
	}
	return q, err
}

func TestAnEvaluationRequestIsReadWhole(t *testing.T) {
	number := func(text string) evaluation.Number { return evaluation.ParseNumber([]byte(text)) }
	want := map[string]any{
		"text":    "a\"é🚀\n",
		"empty":   "",
		"yes":     true,
		"no":      false,
		"nothing": nil,
		"exact":   number("9007199254740993"),
		"large":   number("1e999"),
		"list": []any{
			number("1"),
			"two",
			nil,
			[]any{},
			map[string]any{"deep": []any{true}},
		},
		"object": map[string]any{"a": map[string]any{}},
		"":       "no name",
	}
	for range 3 { // reuses memory
		q, err := decoded(
			t,
			` { "targetingKey" : "u\u00e9", "attributes":{"text":"a\"\u00e9\ud83d\ude80\n","empty":"","yes":true,"no":false,"nothing":null,
			"exact":9007199254740993,"large":1e999,"list":[1,"two",null,[],{"deep":[true]}],"object":{"a":{}},"":"no name"}, "environment":"e" } `,
			readEvaluate,
		)
		if err != nil || q.TargetingKey != "ué" || q.environment != "e" {
			t.Errorf("read: %q %q %v", q.TargetingKey, q.environment, err)
		}
		if diff := cmp.Diff(want, q.Attributes, cmp.Comparer(func(a, b evaluation.Number) bool { return a == b })); diff != "" {
			t.Errorf("the attributes (-want +got):\n%s", diff)
		}
		q, err = decoded(t, `{"flagKeys":["a","b"],"targetingKey":null,"attributes":null}`, readEvaluateMany)
		if err != nil || q.TargetingKey != "" || len(q.Attributes) > 0 || !cmp.Equal(q.flagKeys, []string{"a", "b"}) {
			t.Errorf("read: %q %v %v %v", q.TargetingKey, q.Attributes, q.flagKeys, err)
		}
		if q, err = decoded(t, `{}`, readEvaluateMany); err != nil || q.flagKeys != nil || len(q.Attributes) > 0 {
			t.Errorf("something is left of the body before: %v %v %v", q.flagKeys, q.Attributes, err)
		}
	}
}

// FuzzEvaluationRequest reads bodies token by token and by reflection: both must agree whether a body is malformed,
// does not fit, or is valid.
func FuzzEvaluationRequest(f *testing.F) {
	for _, body := range []string{
		``, ` `, `null`, `{}`, `[]`, `{"targetingKey":"u","attributes":{"a":{"b":[true,{"c":1e400}]}},"environment":"production"}`, `{"flagKeys":["a",null]}`, `{"flagKeys":["a",["b"]]}`,
		`{"targetingKey":5,"x":1}`, `{"targetingKey":5,"x":1`, `{"x":{"a":1,"a":2}}`, `{"attributes":{"a":1,"\u0061":2}}`, `{"attributes":{"a":"\u0000"}}`, `{"attributes":{"a":"\ud800"}}`,
		`{"TargetingKey":"u"}`, `{} {}`, `{"a":1}}`, `{"attributes":[]}`, `{"attributes":{"a":01}}`, "{\"attributes\":{\"a\":\"\xff\"}}", `{"attributes":{"a":` + strings.Repeat("[", 70), `{"environment":{}}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if body == "" || len(body) > rest.LargeBody {
			return
		}
		_, err := decoded(t, body, readEvaluateMany)
		var plain struct {
			TargetingKey string                `json:"targetingKey"`
			Attributes   map[string]rest.Value `json:"attributes"`
			Environment  string                `json:"environment"`
			FlagKeys     []rest.Value          `json:"flagKeys"`
		}
		other := strictjson.Read([]byte(body), &plain)
		for _, key := range plain.FlagKeys {
			if other == nil && key[0] != '"' {
				other = strictjson.FieldError{Field: "flagKeys", Text: "is not of the right type"}
			}
		}
		if strings.TrimSpace(body) == "null" {
			other = strictjson.FieldError{Field: "body", Text: "is not of the right type"}
		}
		// Each reader stops at its first fault, which may differ, so one of them may not find that the body is malformed.
		if (err == nil) != (other == nil) {
			t.Errorf("%q: %v, by reflection %v", body, err, other)
		}
		_, mismatch := errors.AsType[strictjson.FieldError](err)
		_, otherMismatch := errors.AsType[strictjson.FieldError](other)
		if err != nil && other != nil && mismatch != otherMismatch && strictjson.Read([]byte(body), new(any)) == nil {
			t.Errorf("%q: %v, by reflection %v", body, err, other)
		}
	})
}
