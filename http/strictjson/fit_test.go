package strictjson

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"
)

// testRules has nested lists and objects like bodies.
type testRules struct {
	Rules []testRule `json:"rules"`
}

type testRule struct {
	ID         string          `json:"id,omitempty"`
	Name       string          `json:"name,omitempty"`
	Conditions []testCondition `json:"conditions,omitempty"`
	Serve      testServe       `json:"serve,omitzero"`
}

type testCondition struct {
	Attribute string     `json:"attribute,omitempty"`
	Values    []anyValue `json:"values,omitempty"`
	Negate    bool       `json:"negate,omitempty"`
}

type testServe struct {
	Value   anyValue     `json:"value,omitempty"`
	Rollout []testWeight `json:"rollout,omitempty"`
}

type testWeight struct {
	Weight string `json:"weight"`
}

// anyValue may be any JSON.
type anyValue []byte

// UnmarshalJSON implements json.Unmarshaler.
func (v *anyValue) UnmarshalJSON(data []byte) error {
	*v = append(anyValue{}, data...)
	return nil
}

// Schema implements huma.SchemaProvider.
func (anyValue) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

type testFlag struct {
	Name string   `json:"name,omitempty"`
	Tags []string `json:"tags,omitempty"`
	On   *bool    `json:"on,omitempty"`
}

// fitterOf returns the fitter for the schema of a type.
func fitterOf[T any]() func(body string) (fits string, wrong map[string]string, err error) {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	schema := schemas.Schema(reflect.TypeFor[T](), true, "")
	return func(body string) (string, map[string]string, error) {
		fits, wrong, err := Fit([]byte(body), schema, schemas)
		return string(fits), wrong, err
	}
}

func TestFit(t *testing.T) {
	fit := fitterOf[testRules]()
	for _, c := range []struct {
		body, fits string
		wrong      map[string]string
	}{
		{`{ "rules" : null }`, `{ "rules" : null }`, nil},
		{`{"rules":[{"name":"\u00e9","serve":{"value":{"a":[1e999]}}}]}`, `{"rules":[{"name":"\u00e9","serve":{"value":{"a":[1e999]}}}]}`, nil},
		{`{"rules":[],"a":{"b":[]},"Rules":1,"":2}`, `{"rules":[]}` + "\n", map[string]string{"a": "unexpected property", "Rules": "unexpected property", "": "unexpected property"}},
		{
			`{"rules":[1,null,{"name":"\u00e9","conditions":[{"values":[1e999,"a"],"x":1}]}]}`, `{"rules":[null,null,{"name":"\u00e9","conditions":[{"values":[1e999,"a"]}]}]}` + "\n",
			map[string]string{"rules[0]": "expected object", "rules[1]": "expected object", "rules[2].conditions[0].x": "unexpected property"},
		},
	} {
		fits, wrong, err := fit(c.body)
		if err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		if diff := cmp.Diff(c.wrong, wrong); diff != "" {
			t.Errorf("%s: fields differ (-want +got):\n%s", c.body, diff)
		}
		if diff := cmp.Diff(c.fits, fits); diff != "" {
			t.Errorf("%s: what fits differs (-want +got):\n%s", c.body, diff)
		}
	}
	for _, body := range []string{`null`, `[]`, `{"rules":[}`, `{"rules":[]`, `{"rules":[]}1`, `{"rules":[],"rules":[]}`, `{"a":1,"a":1}`, `{"a":{"b":1,"b":2}}`, "{\"a\":\"\xff\"}", `{"a":"\u0000"}`, ``} {
		if fits, wrong, err := fit(body); err == nil {
			t.Errorf("%s: %s fits, %v does not", body, fits, wrong)
		}
	}
}

func TestABodyWithManyWrongFieldsNamesTheFirst(t *testing.T) {
	var body strings.Builder
	body.WriteString(`{"rules":[]`)
	for i := range 10_000 {
		fmt.Fprintf(&body, `,"m%05d":1`, i)
	}
	body.WriteString("}")
	fits, wrong, err := fitterOf[testRules]()(body.String())
	if _, first := wrong["m00000"]; err != nil || fits != `{"rules":[]}`+"\n" || len(wrong) != MaxWrong || !first {
		t.Errorf("%s fits, %d fields are named: %v", fits, len(wrong), err)
	}
}

// FuzzFit checks that a body that fits can be read: commands see it, however invalid the rest is.
func FuzzFit(f *testing.F) {
	for _, body := range []string{
		`{"rules":[]}`, `{"rules":[{"id":1,"name":null,"conditions":[{"attribute":"a","op":"in","values":[1,{}],"negate":0}],"serve":{"rollout":[{"weight":"1"}]}}],"fallthrough":{"value":1}}`,
		`{"rules":[[],{"x":[{}]}]}`, `{"name":1,"tags":["a",2],"weight":"1","on":null}`, `{"Rules":1}`, `[]`, `{"rules":{"0":1}}`,
	} {
		f.Add(body)
	}
	rules, flag := fitterOf[testRules](), fitterOf[testFlag]()
	f.Fuzz(func(t *testing.T, body string) {
		if fits, _, err := rules(body); err == nil {
			if err := Read([]byte(fits), new(testRules)); err != nil {
				t.Errorf("%q fits of %q, and cannot be read: %v", fits, body, err)
			}
		}
		if fits, _, err := flag(body); err == nil {
			if err := Read([]byte(fits), new(testFlag)); err != nil {
				t.Errorf("%q fits of %q, and cannot be read: %v", fits, body, err)
			}
		}
	})
}
