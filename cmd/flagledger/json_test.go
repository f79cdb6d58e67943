package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"flagledger/events"
)

// drawn lets the helpers of API tests fail a property, which then looks for a smaller example.
type drawn struct {
	testing.TB
	property *rapid.T
}

func (d drawn) Error(args ...any)                 { d.property.Error(args...) }
func (d drawn) Errorf(format string, args ...any) { d.property.Errorf(format, args...) }
func (d drawn) Fatal(args ...any)                 { d.property.Fatal(args...) }
func (d drawn) Fatalf(format string, args ...any) { d.property.Fatalf(format, args...) }

// jsonSpace is what may stand between the tokens of JSON.
var jsonSpace = rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r\n  "})

// jsonNumber are numbers in all spellings, which fit float64.
var jsonNumber = rapid.OneOf(
	rapid.StringMatching(`-?(0|[1-9][0-9]{0,3}|[1-9][0-9]{15,40})(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,2})?`),
	rapid.SampledFrom([]string{"-0", "0e0", "9007199254740993", "1E+2", "1.0", "1.10", "-0.0e-0", "1e-400", "0.1e1"}),
)

// jsonString are strings with characters of all planes, raw and escaped.
var jsonString = rapid.Map(rapid.SliceOfN(rapid.OneOf(
	rapid.StringMatching(`[ -!#-\[\]-~]{1,4}`),
	rapid.SampledFrom([]string{
		`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u0001`, `\u001f`, `\u007f`, `\u00e9`, `\u00E9`, `\ud83d\ude00`, `\uFFFF`, `\u2028`, `\u003c`, `\\u0000`,
		"é", "\u2028", "\u2029", "\ufeff", "\x7f", "\uffff", "\u202e", "😀", "e\u0301", "<&>", "\U0010ffff", "ﬁ", "日本",
	}),
	rapid.Map(rapid.Rune(), func(r rune) string {
		if r < ' ' || r == '"' || r == '\\' {
			return "?"
		}
		return string(r)
	}),
), 0, 6), func(parts []string) string { return `"` + strings.Join(parts, "") + `"` })

// drawJSON draws any JSON, with white space where it may stand.
func drawJSON(t *rapid.T, depth int) string {
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
			items[i] = space() + drawJSON(t, depth-1) + space()
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
				members = append(members, space()+name+space()+":"+space()+drawJSON(t, depth-1)+space())
			}
		}
		return "{" + space() + strings.Join(members, ",") + "}"
	}
}

// drawValueOf draws a value of a flag's type.
func drawValueOf(t *rapid.T, kind events.FlagType) string {
	switch kind {
	case events.NumberFlag:
		return jsonNumber.Draw(t, "number")
	case events.StringFlag:
		return jsonString.Draw(t, "string")
	case events.BooleanFlag:
		return rapid.SampledFrom([]string{"true", "false"}).Draw(t, "boolean")
	default:
		return drawJSON(t, 4)
	}
}

// compacted is JSON without the white space between its tokens, which is all that may be lost of it.
func compacted(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A value comes back byte for byte wherever it is shown.
func TestJSONValuesSurvive(t *testing.T) {
	t.Parallel()
	owner := newService(t).signUp("owner@example.com")
	store := owner.s.store()
	var flags atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		d := drawn{t, rt}
		me := *owner
		me.s = owner.s.in(d)
		kind := rapid.SampledFrom([]events.FlagType{events.JSONFlag, events.JSONFlag, events.StringFlag, events.NumberFlag}).Draw(rt, "type")
		sent := [3]string{drawValueOf(rt, kind), drawValueOf(rt, kind), drawValueOf(rt, kind)}
		want := [3]string{compacted(d, sent[0]), compacted(d, sent[1]), compacted(d, sent[2])}
		shown := func(where, got, want string) {
			if got != want {
				rt.Fatalf("%s shows %s, want %s", where, got, want)
			}
		}
		key := fmt.Sprintf("f%d", flags.Add(1))
		shownBy := func(where string, a *answer, value, variation string) {
			var flag struct {
				DefaultValue json.RawMessage
				Variations   []struct{ Value json.RawMessage }
			}
			a.decode(&flag)
			shown(where, string(flag.DefaultValue), value)
			shown(where, string(flag.Variations[0].Value), variation)
		}
		created := me.call("POST", "/api/v1/flags", fmt.Sprintf(`{"key":%q,"type":%q,"defaultValue": %s , "flag_variations":[ {"name":"v","weight":1,"value": %s }]}`, key, kind, sent[0], sent[1]))
		shownBy("the creation", created.want(201), want[0], want[1])
		shown("an evaluation", me.call("POST", flagPath(key, "/evaluate"), `{}`).want(200).raw("value"), want[0])
		me.call("POST", flagPath(key, "/enable"), nil).want(200)
		shown("an evaluation of a split", me.call("POST", flagPath(key, "/evaluate"), `{"targetingKey":"u"}`).want(200).raw("value"), want[1])
		shownBy("the update", me.call("PATCH", flagPath(key), `{"defaultValue": `+sent[2]+` }`).want(200), want[2], want[1])
		shownBy("the flag", me.call("GET", flagPath(key), nil).want(200), want[2], want[1])
		var list []struct{ DefaultValue json.RawMessage }
		me.call("GET", "/api/v1/flags?q="+key, nil).want(200).decode(&list)
		shown("the list", string(list[0].DefaultValue), want[2])
		var variations []struct{ Value json.RawMessage }
		me.call("GET", flagPath(key, "/variations"), nil).want(200).decode(&variations)
		shown("the list of variations", string(variations[0].Value), want[1])
		if want[0] != want[2] {
			var history []struct {
				Changes map[string]struct{ From, To json.RawMessage }
			}
			me.call("GET", flagPath(key, "/history?action=updated"), nil).want(200).decode(&history)
			shown("the history", string(history[0].Changes["defaultValue"].From), want[0])
			shown("the history", string(history[0].Changes["defaultValue"].To), want[2])
		}
		for e, err := range store.Read(t.Context(), events.FlagStream(me.tenant, key), 0) {
			if err != nil {
				rt.Fatal(err)
			}
			switch fact := e.Fact.(type) {
			case events.FlagCreated:
				shown("the fact", string(fact.DefaultValue), want[0])
				shown("the fact", string(fact.Variations[0].Value), want[1])
			case events.FlagUpdated:
				shown("the fact", string(fact.DefaultValue.To), want[2])
			}
		}
	})
}
