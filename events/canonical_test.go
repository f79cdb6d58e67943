package events

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func recorded(t *testing.T) Recorded {
	t.Helper()
	e := example(
		FlagUpdated{
			DefaultValue: &Change[json.RawMessage]{From: json.RawMessage(`1.50`), To: json.RawMessage(`9007199254740993`)},
		},
	)
	stored, err := Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	stored.Version = 2 // the value when the bytes below were recorded
	at := time.Date(2026, 1, 2, 4, 4, 5, 120_000_000, time.FixedZone("CET", 3600))
	return Recorded{Event: e, Stream: "flag-t1.checkout", Revision: 7, At: at, Name: stored.Name, Stored: stored}
}

// Signed checkpoints cover these bytes, so they never change.
func TestCanonicalBytes(t *testing.T) {
	const want = `flagledger fact v1
flag-t1.checkout
7
0198f1d2-0000-7000-8000-000000000001
flag.updated
2
2026-01-02T03:04:05.120000Z
126
{"time":"2026-01-02T03:04:05.006Z","actor":{"kind":"user","id":"u1"},"requestId":"r1","correlationId":"c1","reason":"because"}
52
{"defaultValue":{"from":1.50,"to":9007199254740993}}
`
	e := recorded(t)
	got, err := Canonical(e)
	if err != nil || string(got) != want {
		t.Fatalf("%v, got\n%s\nwant\n%s", err, got, want)
	}
	leaf, err := LeafHash(e)
	if err != nil || hex.EncodeToString(leaf[:]) != "15a0e09b5e3d0759341c5f66fdfc3e3fb44699c98ff7a179887d2b9dc71dbc2a" {
		t.Errorf("the leaf is %x, %v", leaf, err)
	}
}

func TestCanonicalBytesAreOfWhatIsStored(t *testing.T) {
	base, err := LeafHash(recorded(t))
	if err != nil {
		t.Fatal(err)
	}
	for what, test := range map[string]struct {
		change func(*Recorded)
		same   bool
	}{
		"stream":               {func(e *Recorded) { e.Stream += "x" }, false},
		"revision":             {func(e *Recorded) { e.Revision++ }, false},
		"id":                   {func(e *Recorded) { e.ID = uuid.New() }, false},
		"name":                 {func(e *Recorded) { e.Name += "x" }, false},
		"version":              {func(e *Recorded) { e.Stored.Version++ }, false},
		"recorded time":        {func(e *Recorded) { e.At = e.At.Add(time.Microsecond) }, false},
		"metadata":             {func(e *Recorded) { e.Reason = "" }, false},
		"spelling of a number": {func(e *Recorded) { e.Stored.Data = []byte(strings.Replace(string(e.Stored.Data), "1.50", "1.5", 1)) }, false},
		"order of members":     {func(e *Recorded) { e.Stored.Data = []byte(`{"defaultValue":{"to":9007199254740993,"from":1.50}}`) }, false},
		"white space":          {func(e *Recorded) { e.Stored.Data = []byte(strings.ReplaceAll(string(e.Stored.Data), ":", " :\n")) }, true},
		"position":             {func(e *Recorded) { e.Position = Position{9, 9} }, true},
		"an unknown fact":      {func(e *Recorded) { e.Fact, e.Err = nil, errors.New("unknown") }, true},
	} {
		e := recorded(t)
		test.change(&e)
		if leaf, err := LeafHash(e); err != nil || (leaf == base) != test.same {
			t.Errorf("%s: same leaf %v, want %v: %v", what, leaf == base, test.same, err)
		}
	}
	for what, change := range map[string]func(*Recorded){
		"line feed": func(e *Recorded) { e.Name = "flag\n.updated" },
		"metadata": func(e *Recorded) {
			e.Stored.Metadata, e.Metadata, e.Err = []byte(`[]`), Metadata{}, errors.New("metadata")
		},
		"data": func(e *Recorded) { e.Stored.Data = nil },
	} {
		e := recorded(t)
		change(&e)
		if _, err := LeafHash(e); err == nil || !strings.Contains(err.Error(), "flag-t1.checkout") ||
			!strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v, want an error that names the event and what is wrong", what, err)
		}
	}
}

func TestStoredMetadataAreCanonical(t *testing.T) {
	stored := string(recorded(t).Stored.Metadata)
	for what, test := range map[string]struct {
		metadata  string
		canonical bool
	}{
		"as written":                {stored, true},
		"white space":               {strings.ReplaceAll(stored, `,"`, " ,\n\""), true},
		"an unknown member":         {strings.Replace(stored, `"reason"`, `"approvedBy":"CEO","reason"`, 1), false},
		"a member that is hidden":   {strings.Replace(stored, `{"time"`, `{"reason":"none","time"`, 1), false},
		"one in another case":       {strings.Replace(stored, `"actor"`, `"actor":{"id":"EVE"},"Actor"`, 1), false},
		"one in an actor":           {strings.Replace(stored, `"kind"`, `"name":"Eve","kind"`, 1), false},
		"another spelling of texts": {strings.Replace(stored, `"because"`, `"\u0062ecause"`, 1), false},
	} {
		e := recorded(t)
		e.Stored.Metadata = []byte(test.metadata)
		decoded, err := Decode(e.Stored)
		if err != nil {
			t.Fatal(err)
		}
		e.Event = decoded
		if err := CheckMetadata(e); (err == nil) != test.canonical ||
			err != nil && !strings.Contains(err.Error(), "flag-t1.checkout@7") {
			t.Errorf("%s: %v, want an error that names the fact unless it is canonical", what, err)
		}
	}
}
