package nodetest

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"flagledger/events"
)

// Drawn is a TB for properties: a failure makes rapid look for a smaller example.
type Drawn struct {
	testing.TB
	Property *rapid.T
}

// Error implements testing.TB.
func (d Drawn) Error(args ...any) { d.Property.Error(args...) }

// Errorf implements testing.TB.
func (d Drawn) Errorf(format string, args ...any) { d.Property.Errorf(format, args...) }

// Fatal implements testing.TB.
func (d Drawn) Fatal(args ...any) { d.Property.Fatal(args...) }

// Fatalf implements testing.TB.
func (d Drawn) Fatalf(format string, args ...any) { d.Property.Fatalf(format, args...) }

// jsonSpace draws white space between the tokens of JSON.
var jsonSpace = rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r\n  "})

// jsonNumber draws numbers in all notations that fit float64.
var jsonNumber = rapid.OneOf(
	rapid.StringMatching(`-?(0|[1-9][0-9]{0,3}|[1-9][0-9]{15,40})(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,2})?`),
	rapid.SampledFrom([]string{"-0", "0e0", "9007199254740993", "1E+2", "1.0", "1.10", "-0.0e-0", "1e-400", "0.1e1"}),
)

// jsonString draws strings with characters of all planes, raw and escaped.
var jsonString = rapid.Map(rapid.SliceOfN(rapid.OneOf(
	rapid.StringMatching(`[ -!#-\[\]-~]{1,4}`),
	rapid.SampledFrom([]string{
		`\"`,
		`\\`,
		`\/`,
		`\b`,
		`\f`,
		`\n`,
		`\r`,
		`\t`,
		`\u0001`,
		`\u001f`,
		`\u007f`,
		`\u00e9`,
		`\u00E9`,
		`\ud83d\ude00`,
		`\uFFFF`,
		`\u2028`,
		`\u003c`,
		`\\u0000`,
		"é",
		"\u2028",
		"\u2029",
		"\ufeff",
		"\x7f",
		"\uffff",
		"\u202e",
		"😀",
		"e\u0301",
		"<&>",
		"\U0010ffff",
		"ﬁ",
		"日本",
	}),
	rapid.Map(rapid.Rune(), func(r rune) string {
		if r < ' ' || r == '"' || r == '\\' {
			return "?"
		}
		return string(r)
	}),
), 0, 6), func(parts []string) string { return `"` + strings.Join(parts, "") + `"` })

// DrawJSON draws any JSON with random white space.
func DrawJSON(t *rapid.T, depth int) string {
	space := func() string { return jsonSpace.Draw(t, "space") }
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth == 0 {
		kind %= 5
	}
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "literal")
	case 1, 2:
		return jsonNumber.Draw(t, "number")
	case 3, 4:
		return jsonString.Draw(t, "string")
	case 5:
		items := make([]string, rapid.IntRange(0, 3).Draw(t, "items"))
		for i := range items {
			items[i] = space() + DrawJSON(t, depth-1) + space()
		}
		return "[" + space() + strings.Join(items, ",") + "]"
	default:
		var members []string
		taken := map[string]bool{}
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			name := jsonString.Draw(t, "name")
			var decoded string
			if err := json.Unmarshal([]byte(name), &decoded); err != nil {
				t.Fatal(err)
			}
			if !taken[decoded] {
				taken[decoded] = true
				members = append(members, space()+name+space()+":"+space()+DrawJSON(t, depth-1)+space())
			}
		}
		return "{" + space() + strings.Join(members, ",") + "}"
	}
}

// DrawValue draws a value of a flag's type.
func DrawValue(t *rapid.T, kind events.FlagType) string {
	switch kind {
	case events.NumberFlag:
		return jsonNumber.Draw(t, "number")
	case events.StringFlag:
		return jsonString.Draw(t, "string")
	case events.BooleanFlag:
		return rapid.SampledFrom([]string{"true", "false"}).Draw(t, "boolean")
	default:
		return DrawJSON(t, 4)
	}
}
