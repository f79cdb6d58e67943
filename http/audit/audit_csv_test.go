package audit

import (
	"testing"
)

func TestCellsOfSpreadsheetsAreNoFormulas(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "launch day": "launch day", "a=b": "a=b", `=cmd|' /C calc'!A0`: `'=cmd|' /C calc'!A0`, "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t'=1", "\r=1": "'\r'=1", "＝1": "'＝1",
		"a;=1": "a;'=1", "a;b": "a;b", ";=1;\t-1": ";'=1;\t'-1", "a\t@x": "a\t'@x", "a;\"=1": "a;\"'=1", "a\n=1": "a\n'=1", "a;＝1": "a;'＝1", "a; =1": "a; =1", `"=1`: `"'=1`,
	} {
		if got := cell(text); got != want {
			t.Errorf("%q is written as %q, want %q", text, got, want)
		}
	}
}

func TestJSONInSpreadsheetsBeginsNoFormula(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":-1,"b":"x=1"}`: `{"a":-1,"b":"x=1"}`, `{"a":"x;=1;-2"}`: `{"a":"x;\u003d1;\u002d2"}`, `{"a;=":"＝"}`: `{"a;\u003d":"＝"}`, `{"a":"x;＝1"}`: `{"a":"x;\uff1d1"}`,
		`{"a":";"}`: `{"a":";"}`, `{"a;":-1}`: `{"a;":-1}`, `{"a":"x;\"=1"}`: `{"a":"x;\"=1"}`,
	} {
		if got := jsonCell(text); got != want {
			t.Errorf("%s is written as %s, want %s", text, got, want)
		}
	}
}
