package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

type document struct {
	Key  string            `json:"key"`
	List []map[string]bool `json:"list"`
}

func TestRead(t *testing.T) {
	for body, want := range map[string]string{
		`{"key":"a","list":[{"b":true}]}`:     "",
		` {"list" : null} `:                   "",
		`{"KEY":"a"}`:                         "KEY: unexpected property",
		`{"key":1}`:                           "key: is not of the right type",
		`{"list":[{},{"b":"c"}]}`:             "list[1].b: is not of the right type",
		`{"key":"a","key":"b"}`:               "malformed JSON at byte 11",
		`{"list":[{"a":true,"\u0061":true}]}`: "malformed JSON at byte 19",
		`{"key":"a"} {}`:                      "malformed JSON at byte 12",
		`{"key":"a"`:                          "malformed JSON: it ends too early",
		``:                                    "malformed JSON: it ends too early",
		"{\"key\":\"\xff\"}":                  "malformed JSON at byte 8",
		`{"key":"a\u0000"}`:                   "malformed JSON at byte 9: strings must not contain the character NUL",
		`{"key":"\\u0000"}`:                   "",
		strings.Repeat("[", 65):               "malformed JSON at byte 64: nested deeper than 64 levels",
	} {
		err := Read([]byte(body), new(document))
		_, isField := errors.AsType[FieldError](err)
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && !strings.HasPrefix(got, want) ||
			isField == strings.HasPrefix(want, "malformed") && want != "" {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// FuzzReader reads JSON token by token and by reflection. Both must agree whether it is malformed, and read the same.
func FuzzReader(f *testing.F) {
	for _, body := range []string{`{"a":"b","c":null}`, `{}`, `[]`, `{"a":1}`, `{"a":"b"`, `{"a":"b"}}`, `{"a":"\u0000"}`, `{"a":"b","a":"c"}`, `null`, ``, `{"a":{"b":1,"b":2}}`} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var r Reader
		got := map[string]string{}
		err := r.Begin(bytes.NewBufferString(body))
		if err == nil {
			err = r.End(r.Object(func(name string) error {
				var text string
				err := r.String(&text)
				got[name] = text
				return err
			}))
		}
		var want map[string]string
		plain := Read([]byte(body), &want)
		if jsontext.Value(strings.TrimSpace(body)).Kind() == 'n' {
			return // a nil map by reflection
		}
		if (err == nil) != (plain == nil) {
			t.Fatalf("%q: %v, by reflection %v", body, err, plain)
		}
		if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, by reflection %v", body, got, want)
		}
	})
}

// Repeated responses about the past have the same bytes.
func TestAMapIsWrittenInOneOrder(t *testing.T) {
	members := map[string]bool{}
	for i := range 20 {
		members[fmt.Sprint("m", i)] = true
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := Write(out, members); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("it is written as %s and as %s", &first, &second)
	}
}

// The search for the ends of strings must equal a check of each byte.
func TestTextIsCheckedAsByteForByte(t *testing.T) {
	byteForByte := func(data []byte) string {
		depth, inString := 0, false
		for i := 0; i < len(data); i++ {
			switch c := data[i]; {
			case inString && c == '\\':
				if bytes.HasPrefix(data[i:], []byte(`\u0000`)) {
					return fmt.Sprintf("malformed JSON at byte %d: strings must not contain the character NUL", i)
				}
				i++
			case c == '"':
				inString = !inString
			case inString:
			case c == '{' || c == '[':
				if depth++; depth > MaxDepth {
					return fmt.Sprintf("malformed JSON at byte %d: nested deeper than %d levels", i, MaxDepth)
				}
			case c == '}' || c == ']':
				depth--
			}
		}
		return "<nil>"
	}
	part := rapid.SampledFrom(
		[]string{`"`, `\`, `\"`, `\\`, `\u0000`, `u0000`, `a`, `{`, `]`, `"b"`, strings.Repeat("[", 30)},
	)
	rapid.Check(t, func(t *rapid.T) {
		data := []byte(strings.Join(rapid.SliceOfN(part, 0, 40).Draw(t, "parts"), ""))
		if got, want := fmt.Sprint(checkText(data)), byteForByte(data); got != want {
			t.Fatalf("%s: %s, want %s", data, got, want)
		}
	})
}
