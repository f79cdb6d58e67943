package http_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// compacted returns JSON without white space between tokens, the only permitted loss.
func compacted(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A value is returned byte for byte wherever it is shown.
func TestJSONValuesSurvive(t *testing.T) {
	t.Parallel()
	owner := nodetest.Shared(t).SignUp(nodetest.Address())
	store := owner.Service.Store()
	var flags atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		d := nodetest.Drawn{TB: t, Property: rt}
		me := *owner
		me.Service = owner.Service.In(d)
		kind := rapid.SampledFrom([]events.FlagType{events.JSONFlag, events.JSONFlag, events.StringFlag, events.NumberFlag}).
			Draw(rt, "type")
		sent := [3]string{nodetest.DrawValue(rt, kind), nodetest.DrawValue(rt, kind), nodetest.DrawValue(rt, kind)}
		want := [3]string{compacted(d, sent[0]), compacted(d, sent[1]), compacted(d, sent[2])}
		shown := func(where, got, want string) {
			if got != want {
				rt.Fatalf("%s shows %s, want %s", where, got, want)
			}
		}
		key := fmt.Sprintf("f%d", flags.Add(1))
		shownBy := func(where string, a *nodetest.Answer, value, variation string) {
			var flag struct {
				DefaultValue json.RawMessage
				Variations   []struct{ Value json.RawMessage }
			}
			a.Decode(&flag)
			shown(where, string(flag.DefaultValue), value)
			shown(where, string(flag.Variations[0].Value), variation)
		}
		created := me.Call(
			"POST",
			"/api/v1/flags",
			fmt.Sprintf(`{"key":%q,"type":%q,"defaultValue": %s , "flag_variations":[ {"name":"v","weight":1,"value": %s }]}`,
				key, kind, sent[0], sent[1]),
		)
		shownBy("the creation", created.Want(201), want[0], want[1])
		shown("an evaluation", me.Call("POST", nodetest.FlagPath(key, "/evaluate"), `{}`).Want(200).Raw("value"), want[0])
		me.Call("POST", nodetest.FlagPath(key, "/enable"), nil).Want(200)
		shown("an evaluation of a split",
			me.Call("POST", nodetest.FlagPath(key, "/evaluate"), `{"targetingKey":"u"}`).Want(200).Raw("value"), want[1])
		shownBy("the update", me.Call("PATCH", nodetest.FlagPath(key), `{"defaultValue": `+sent[2]+` }`).Want(200), want[2],
			want[1])
		shownBy("the flag", me.Call("GET", nodetest.FlagPath(key), nil).Want(200), want[2], want[1])
		var list []struct{ DefaultValue json.RawMessage }
		me.Call("GET", "/api/v1/flags?q="+key, nil).Want(200).Decode(&list)
		shown("the list", string(list[0].DefaultValue), want[2])
		var variations []struct{ Value json.RawMessage }
		me.Call("GET", nodetest.FlagPath(key, "/variations"), nil).Want(200).Decode(&variations)
		shown("the list of variations", string(variations[0].Value), want[1])
		if want[0] != want[2] {
			var history []struct {
				Changes map[string]struct{ From, To json.RawMessage }
			}
			me.Call("GET", nodetest.FlagPath(key, "/history?action=updated"), nil).Want(200).Decode(&history)
			shown("the history", string(history[0].Changes["defaultValue"].From), want[0])
			shown("the history", string(history[0].Changes["defaultValue"].To), want[2])
		}
		for e, err := range store.Read(t.Context(), events.FlagStream(me.Tenant, key), 0) {
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
