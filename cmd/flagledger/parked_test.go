package main

import (
	"encoding/json"
	"testing"

	"flagledger/events"
)

func TestAStoredFactDrivesNoTerminal(t *testing.T) {
	for data, want := range map[string]string{
		"{\"name\":\"a\u009b2J<b>\u202e\"}": `{"name":"a\u009b2J<b>\u202e"}`,
		"no JSON \x1b[2J":                   `"no JSON \u001b[2J"`,
	} {
		line, err := storedFact(
			events.Recorded{Name: "flag.updated", Stored: events.Stored{Data: []byte(data), Metadata: []byte("{}")}},
		)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Data json.RawMessage }
		if err := json.Unmarshal(line, &got); err != nil || string(got.Data) != want {
			t.Errorf("%q is printed as %s, %v; want %s", data, got.Data, err, want)
		}
	}
}
