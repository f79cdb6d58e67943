package http

import (
	"reflect"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"
)

// fitterOf fits bodies to the schema of a type.
func fitterOf[T any]() func(body string) (fits string, wrong map[string]string, err error) {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	schema := schemas.Schema(reflect.TypeFor[T](), true, "")
	return func(body string) (string, map[string]string, error) {
		fits, wrong, err := fit([]byte(body), schema, schemas)
		return string(fits), wrong, err
	}
}

func TestWhatDoesNotFitABodyIsNotedAndTakenOut(t *testing.T) {
	fit := fitterOf[newRulesBody]()
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

// FuzzFit holds that what fits can be read: commands see it, however bad the rest is.
func FuzzFit(f *testing.F) {
	for _, body := range []string{
		`{"rules":[]}`, `{"rules":[{"id":1,"name":null,"conditions":[{"attribute":"a","op":"in","values":[1,{}],"negate":0}],"serve":{"rollout":[{"weight":"1"}]}}],"fallthrough":{"value":1}}`,
		`{"rules":[[],{"x":[{}]}]}`, `{"Rules":1}`, `[]`, `{"rules":{"0":1}}`,
	} {
		f.Add(body)
	}
	rules, flag := fitterOf[newRulesBody](), fitterOf[updateFlagBody]()
	f.Fuzz(func(t *testing.T, body string) {
		if fits, _, err := rules(body); err == nil {
			if err := readJSON([]byte(fits), new(newRulesBody)); err != nil {
				t.Errorf("%q fits of %q, and cannot be read: %v", fits, body, err)
			}
		}
		if fits, _, err := flag(body); err == nil {
			if err := readJSON([]byte(fits), new(updateFlagBody)); err != nil {
				t.Errorf("%q fits of %q, and cannot be read: %v", fits, body, err)
			}
		}
	})
}
