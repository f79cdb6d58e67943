package http

import "testing"

func TestCellsOfSpreadsheetsAreNoFormulas(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "launch day": "launch day", "a=b": "a=b", `=cmd|' /C calc'!A0`: `'=cmd|' /C calc'!A0`, "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": "'\r=1", "＝1": "'＝1",
	} {
		if got := cell(text); got != want {
			t.Errorf("%q is written as %q, want %q", text, got, want)
		}
	}
}
