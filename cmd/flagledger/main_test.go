package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/events/export"
)

func TestMain(m *testing.M) { nodetest.Main(m) }

// An error must escape the control characters of a foreign file, which a terminal would obey.
func TestAnErrorHasNoControlCharactersOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "facts.ndjson")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := export.NewWriter(file, export.NewHeader("log", "t", ""))
	if err != nil {
		t.Fatal(err)
	}
	e := events.Recorded{
		Stream:   "flag-t.\x1b]0;title\a\u202e\u0085a",
		Revision: 2,
		Event:    events.Event{ID: uuid.New()},
		Name:     "flag.enabled",
		At:       time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Stored:   events.Stored{Version: 1, Data: []byte("{}")},
	}
	if err := w.Add(e); err != nil {
		t.Fatal(err)
	}
	if _, err := w.End(); err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	err = verifyTrailCommand{Export: path}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), e.Stream) {
		t.Fatalf("%v, want an error that names the stream", err)
	}
	got := oneLine(err)
	if strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) ||
		!strings.Contains(got, `flag-t.\x1b]0;title\a\u202e\u0085a has revision 2`) {
		t.Errorf("%q is printed", got)
	}
}
