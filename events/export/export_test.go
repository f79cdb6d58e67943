package export_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"flagledger/events"
	"flagledger/events/export"
)

func fact(n int) events.Recorded {
	stored := events.Stored{
		ID:      uuid.NewSHA1(uuid.Nil, []byte(fmt.Sprint(n))),
		Name:    "flag.of_tomorrow",
		Version: 7,
		Data:    []byte(`{"n":9007199254740993,"x":1.0,"s":"<&>\u00e9é"}`),
		At:      time.Date(2026, 1, 2, 3, 4, 5, 678_000, time.UTC),
	}
	metadata := events.Metadata{
		Time:   time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC),
		Actor:  events.Actor{Kind: events.UserActor, ID: "u1"},
		Reason: "<&>",
	}
	return events.Recorded{
		Event:    events.Event{ID: stored.ID, Metadata: metadata},
		Stream:   "flag-t.f",
		Revision: events.Revision(n),
		At:       stored.At,
		Name:     stored.Name,
		Stored:   stored,
	}
}

// written returns a file with the first n facts.
func written(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := export.NewWriter(&b, export.NewHeader("log 1/1", "t", "k"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := w.Add(fact(i + 1)); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := w.End()
	if err != nil || w.Facts() != n {
		t.Fatalf("%d facts, %v", w.Facts(), err)
	}
	lines := b.Bytes()[:bytes.LastIndexByte(bytes.TrimSpace(b.Bytes()), '\n')+1]
	if want := sha256.Sum256(lines); sum != hex.EncodeToString(want[:]) {
		t.Errorf("the SHA-256 is %s, want %x", sum, want)
	}
	return b.Bytes()
}

func read(file []byte) (list []events.Recorded, err error) {
	r, err := export.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	for e, err := range r.All() {
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

func TestAFileKeepsFactsAsTheyAreStored(t *testing.T) {
	t.Parallel()
	file := written(t, 3)
	line := `{"stream":"flag-t.f","revision":1,"id":"` + fact(
		1,
	).ID.String() + `","name":"flag.of_tomorrow","version":7,"recorded":"2026-01-02T03:04:05.000678Z",` +
		`"metadata":{"time":"2026-01-02T03:04:05.006Z","actor":{"kind":"user","id":"u1"},"reason":"<&>"},"data":{"n":9007199254740993,"x":1.0,"s":"<&>\u00e9é"}}`
	lines := strings.Split(string(file), "\n")
	if lines[0] != `{"format":"flagledger facts","version":1,"log":"log 1/1","tenant":"t","key":"k"}` || lines[1] != line {
		t.Errorf("the file is\n%s\nwant for its second line\n%s", file, line)
	}
	list, err := read(file)
	if err != nil || len(list) != 3 {
		t.Fatalf("%d facts, %v", len(list), err)
	}
	for i, got := range list {
		want := fact(i + 1)
		a, errA := events.LeafHash(want)
		b, errB := events.LeafHash(got)
		if a != b || errA != nil || errB != nil {
			t.Errorf("fact %d is read with other bytes: %v, %v", i+1, errA, errB)
		}
		want.Stored.Metadata = got.Stored.Metadata
		if diff := cmp.Diff(want.Stored, got.Fact); diff != "" {
			t.Errorf("fact %d is not ready to be appended (-want +got):\n%s", i+1, diff)
		}
	}
}

func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	file := string(written(t, 3))
	lines := strings.SplitAfter(file, "\n") // and an empty string
	without := func(i int) string { return strings.Join(append(append([]string{}, lines[:i]...), lines[i+1:]...), "") }
	for what, test := range map[string]struct{ file, says string }{
		"an empty file":           {"", "cut off"},
		"another file":            {"{}\n", "not a file of facts"},
		"a newer file":            {strings.Replace(file, `"version":1`, `"version":2`, 1), "version 2"},
		"no last line":            {without(4), "cut off"},
		"half a line":             {file[:len(file)/2], "cut off"},
		"a changed letter":        {strings.Replace(file, "of_tomorrow", "of_yesterday", 1), "damaged"},
		"another header":          {strings.Replace(file, `"tenant":"t"`, `"tenant":"u"`, 1), "damaged"},
		"a fact less":             {without(2), "damaged"},
		"a fact more":             {strings.Replace(file, lines[2], lines[2]+lines[2], 1), "damaged"},
		"another order":           {lines[0] + lines[2] + lines[1] + lines[3] + lines[4], "damaged"},
		"another number of facts": {strings.Replace(file, `{"facts":3`, `{"facts":4`, 1), "4"},
		"something after the end": {file + "\n", "continues after line 5"},
		"no JSON":                 {strings.Replace(file, lines[2], "?\n", 1), "line 3"},
		"an unknown stream":       {strings.Replace(file, "flag-t.f", "flog-t.f", 1), "line 2: stream"},
		"no revision":             {strings.Replace(file, `"revision":1,`, "", 1), "line 2"},
		"an unreadable time":      {strings.Replace(file, "03:04:05.000678Z", "soon", 1), "line 2: recorded"},
		"a line without end":      {lines[0] + strings.Repeat("x", 3*events.MaxEventBytes), "line 2 is longer"},
	} {
		if list, err := read([]byte(test.file)); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %d facts and %v, want an error that says %q", what, len(list), err, test.says)
		}
	}
}

// Faults that encoding/json overlooks are found even in a complete file with the right SHA-256: the hash would cover
// other content than the text.
func TestEveryLineIsAsItIsWritten(t *testing.T) {
	t.Parallel()
	lines := strings.SplitAfter(string(written(t, 2)), "\n")
	for what, test := range map[string]struct {
		line     int // from 1
		old, new string
	}{
		"a member twice":              {2, `"name":"flag.of_tomorrow"`, `"name":"flag.of_yesterday","name":"flag.of_tomorrow"`},
		"a member in another case":    {2, `"name":"flag.of_tomorrow"`, `"name":"flag.of_yesterday","Name":"flag.of_tomorrow"`},
		"an unknown member":           {2, `"version":7`, `"version":7,"approvedBy":"CEO"`},
		"data twice":                  {2, `"data":`, `"data":{"n":1},"data":`},
		"another order":               {2, `"revision":1,"id":"` + fact(1).ID.String() + `"`, `"id":"` + fact(1).ID.String() + `","revision":1`},
		"an id in capitals":           {2, fact(1).ID.String(), strings.ToUpper(fact(1).ID.String())},
		"white space":                 {2, `"version":7`, `"version": 7`},
		"metadata twice":              {2, `"metadata":`, `"metadata":{},"metadata":`},
		"an unknown member inside":    {2, `"reason":"<&>"`, `"reason":"<&>","approvedBy":"CEO"`},
		"a member inside, hidden":     {2, `"actor":{"kind":"user","id":"u1"}`, `"actor":{"id":"EVE"},"Actor":{"kind":"user","id":"u1"}`},
		"metadata, spelled otherwise": {2, `"reason":"<&>"`, `"reason":"\u003c&>"`},
		"an unknown member in front":  {1, `"tenant":"t"`, `"tenant":"t","of":"u"`},
		"a header with two tenants":   {1, `"tenant":"t"`, `"Tenant":"u","tenant":"t"`},
		"an unknown member last":      {4, `{"facts":2`, `{"facts":2,"all":false`},
		"a number twice":              {4, `{"facts":2`, `{"facts":9,"Facts":2`},
	} {
		list := append([]string{}, lines...)
		if list[test.line-1] = strings.Replace(
			list[test.line-1], test.old, test.new, 1,
		); list[test.line-1] == lines[test.line-1] {
			t.Fatalf("%s: nothing is altered in %s", what, list[test.line-1])
		}
		sum := sha256.Sum256([]byte(strings.Join(list[:3], "")))
		before := sha256.Sum256([]byte(strings.Join(lines[:3], "")))
		list[3] = strings.Replace(list[3], hex.EncodeToString(before[:]), hex.EncodeToString(sum[:]), 1)
		if got, err := read([]byte(strings.Join(list, ""))); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("line %d: ", test.line)) {
			t.Errorf("%s: %d facts and %v, want an error that names line %d", what, len(got), err, test.line)
		}
	}
}

// resumed continues an interrupted file of three facts, and returns the file.
func resumed(t *testing.T, stands []byte, key string) (result []byte, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "facts")
	if err := os.WriteFile(path, stands, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	next := 1
	w, err := export.Resume(file, export.NewHeader("log 1/1", "t", key), func(e events.Recorded) {
		if e.Revision != events.Revision(next) {
			t.Errorf("fact %d is visited as %d", e.Revision, next)
		}
		next++
	})
	if err != nil {
		result, unread := os.ReadFile(path)
		return result, errors.Join(err, unread)
	}
	for ; next <= 3; next++ {
		if err := w.Add(fact(next)); err != nil {
			return nil, err
		}
	}
	if _, err := w.End(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// A key that was created since is no contradiction: the file keeps its first line, because its SHA-256 covers it.
func TestAnExportThatWasBegunBeforeThereWasAKeyGoesOn(t *testing.T) {
	t.Parallel()
	whole, err := resumed(t, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := resumed(t, whole[:len(whole)-200], "k")
	if err != nil || !bytes.Equal(got, whole) {
		t.Fatalf("it becomes, %v\n%s\nwant\n%s", err, got, whole)
	}
	if list, err := read(got); err != nil || len(list) != 3 {
		t.Errorf("%d facts, %v", len(list), err)
	}
	if _, err := resumed(t, whole, "k"); !errors.Is(err, export.ErrComplete) {
		t.Errorf("a whole file: %v, want ErrComplete", err)
	}
	begun := written(t, 2)
	for _, key := range []string{"another", ""} {
		if _, err := resumed(t, begun[:len(begun)-5], key); err == nil || !strings.Contains(err.Error(), "audit key k") {
			t.Errorf("a file with a key, where there is the key %q: %v, want an error that names the file's", key, err)
		}
	}
}

// An export interrupted anywhere ends with the same file as an uninterrupted one.
func TestAnExportThatWasCutOffGoesOn(t *testing.T) {
	t.Parallel()
	whole := written(t, 3)
	var sizes []int // within each line, and at both its ends
	for i, b := range whole {
		if i%11 == 0 || b == '\n' || i > 0 && whole[i-1] == '\n' {
			sizes = append(sizes, i)
		}
	}
	for _, size := range sizes {
		if got, err := resumed(t, whole[:size], "k"); err != nil || !bytes.Equal(got, whole) {
			t.Fatalf("cut off after %d of %d bytes, it becomes, %v\n%s", size, len(whole), err, got)
		}
	}
	if _, err := resumed(t, whole, "k"); !errors.Is(err, export.ErrComplete) {
		t.Errorf("a whole file: %v, want ErrComplete", err)
	}
	other := bytes.Replace(whole, []byte("log 1/1"), []byte("log 2/1"), 1)
	if _, err := resumed(t, other[:len(other)-5], "k"); err == nil || !strings.Contains(err.Error(), "log 2/1") {
		t.Errorf("a file of another log: %v, want an error that names it", err)
	}
	stands, err := resumed(t, []byte("my holiday\n"), "k")
	if err == nil || errors.Is(err, io.EOF) {
		t.Errorf("another file: %v, want a refusal", err)
	}
	if string(stands) != "my holiday\n" {
		t.Errorf("another file becomes %q", stands)
	}
}
