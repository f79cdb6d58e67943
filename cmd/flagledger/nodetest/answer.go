package nodetest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Answer is the response to a call.
type Answer struct {
	T      testing.TB
	Call   string
	Status int
	Header http.Header
	Body   []byte
}

// Want ends the test unless the answer has this status.
func (a *Answer) Want(status int) *Answer {
	a.T.Helper()
	if a.Status != status {
		a.T.Fatalf("%s: %d, want %d: %s", a.Call, a.Status, status, a.Body)
	}
	return a
}

// Decode decodes the body, which must be JSON.
func (a *Answer) Decode(v any) {
	a.T.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		a.T.Fatalf("%s: %v in %s", a.Call, err, a.Body)
	}
}

// Object returns the body as a JSON object.
func (a *Answer) Object() (o map[string]any) {
	a.T.Helper()
	a.Decode(&o)
	return o
}

// List returns the body as a JSON array of objects.
func (a *Answer) List() (l []map[string]any) {
	a.T.Helper()
	a.Decode(&l)
	return l
}

// JSON returns the body as any JSON value.
func (a *Answer) JSON() (v any) {
	a.T.Helper()
	a.Decode(&v)
	return v
}

// Raw returns the text of a member of the body.
func (a *Answer) Raw(name string) string {
	a.T.Helper()
	var members map[string]json.RawMessage
	a.Decode(&members)
	return string(members[name])
}

// Shows checks these members of the body and ignores others.
func (a *Answer) Shows(want map[string]any) *Answer {
	a.T.Helper()
	body := a.Object()
	for name, value := range want {
		if diff := cmp.Diff(asJSON(a.T, value), body[name]); diff != "" {
			a.T.Errorf("%s: %s is wrong (-want +got):\n%s", a.Call, name, diff)
		}
	}
	return a
}

// Refused checks that the response is a well-formed problem with a status and exactly these fields in errors. A 429
// must have the documented wording, and equal values in its two headers that say how long to wait.
func (a *Answer) Refused(status int, fields ...string) *Answer {
	a.T.Helper()
	a.Want(status)
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		a.T.Errorf("%s: the problem has the media type %q", a.Call, got)
	}
	var p struct {
		Type, Title, Detail, Instance string
		Status                        int
		Errors                        map[string]string
	}
	a.Decode(&p)
	if p.Status != status || p.Type == "" || p.Title == "" || p.Detail == "" ||
		p.Instance != "urn:uuid:"+a.Header.Get("X-Request-ID") {
		a.T.Errorf("%s: an incomplete problem: %s", a.Call, a.Body)
	}
	if status == http.StatusTooManyRequests &&
		(!strings.HasPrefix(p.Detail, "the rate limit is exceeded") || !strings.Contains(p.Detail, "; try again later") ||
			a.Header.Get("Retry-After") == "" || a.Header.Get("Retry-After") != a.Header.Get("RateLimit-Reset")) {
		a.T.Errorf("%s: refused with %v %s", a.Call, a.Header, a.Body)
	}
	for _, field := range fields {
		if p.Errors[field] == "" {
			a.T.Errorf("%s: errors does not name %s: %s", a.Call, field, a.Body)
		}
	}
	if len(p.Errors) != len(fields) {
		a.T.Errorf("%s: errors does not name exactly %v: %s", a.Call, fields, a.Body)
	}
	return a
}

// Members checks that an object has exactly these members.
func Members(t testing.TB, what string, object any, want ...string) {
	t.Helper()
	o, ok := object.(map[string]any)
	if got := slices.Sorted(maps.Keys(o)); !ok || !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("%s has the members %v, want %v", what, got, want)
	}
}

// Column returns one member of each entry of a list.
func Column(list []map[string]any, name string) []any {
	values := make([]any, len(list))
	for i, entry := range list {
		values[i] = entry[name]
	}
	return values
}

// Same checks that two values have the same JSON.
func Same(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func asJSON(t testing.TB, v any) (plain any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err != nil {
		t.Fatal(err)
	}
	return plain
}
