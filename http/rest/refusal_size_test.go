package rest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAProblemIsSmallerThanWhatItIsAbout(t *testing.T) {
	fields := map[string]string{}
	for i := range 1_000 {
		fields[fmt.Sprintf("field%04d%s", i, strings.Repeat("é", 5000))] = strings.Repeat("w", 5000)
	}
	p := Invalid(fields)
	p.bound()
	if len(p.Errors) != 100 || !strings.HasSuffix(p.Detail, ", and more fields") {
		t.Errorf("it names %d fields: %s", len(p.Errors), p.Detail)
	}
	for name, text := range p.Errors {
		if len(name) > maxFieldName || len(text) > maxFieldText || !utf8.ValidString(name) {
			t.Fatalf("%d bytes of text about a field of %d bytes: %q", len(text), len(name), name)
		}
	}
	if answer, err := json.Marshal(p); err != nil || len(answer) > 100<<10 {
		t.Errorf("the answer has %d bytes: %v", len(answer), err)
	}
	before := p.Detail
	if p.bound(); p.Detail != before {
		t.Errorf("bound twice, it says %s", p.Detail)
	}
}

func TestAPathIsRepeatedInPart(t *testing.T) {
	a := newCore(anonymous(100))
	if w := a.from("192.0.2.1:1", "GET", "/nowhere/"+strings.Repeat("x", 20_000)); w.Code != 404 || w.Body.Len() > 2000 {
		t.Errorf("%d with %d bytes", w.Code, w.Body.Len())
	}
}
