package snapshot

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"flagledger/events"
	"flagledger/events/state"
)

// Readers that start at the same time share the bytes of the flags, until one changes.
func TestReadersShareFullState(t *testing.T) {
	s := newScribe()
	value := `"` + strings.Repeat("v", 1000) + `"`
	const flags = 200
	for i := range flags {
		flag := made(events.StringFlag, value)
		flag.Key = fmt.Sprintf("flag-%03d", i)
		s.flag("t", flag.Key, flag)
	}
	tenant, _ := s.Tenant("t")
	read := func(environmentID string) (chunks [][]byte) {
		t.Helper()
		feed := s.Feed(tenant, state.Environment{EnvironmentRef: events.EnvironmentRef{ID: environmentID}}, nil)
		defer feed.Close()
		for update, err := range feed.FullState() {
			if err != nil {
				t.Fatal(err)
			}
			for _, data := range update.Events {
				if bytes.HasPrefix(data, []byte(`{"type":"state","flags":`)) {
					chunks = append(chunks, data)
				}
			}
		}
		if got := bytes.Count(bytes.Join(chunks, nil), []byte(`"key":"flag-`)); got != flags {
			t.Fatalf("the full state has %d flags, want %d", got, flags)
		}
		return chunks
	}
	shared := func(a, b [][]byte) (n int) {
		for i := range min(len(a), len(b)) {
			if &a[i][0] == &b[i][0] {
				n++
			}
		}
		return n
	}
	first := read(production.ID)
	if again := read(production.ID); len(first) < 3 || shared(first, again) != len(first) {
		t.Errorf("%d of %d chunks are shared", shared(first, again), len(first))
	}
	if n := shared(first, read("e2")); n > 0 {
		t.Errorf("two environments share %d chunks", n)
	}
	s.flag("t", "flag-000", events.FlagEnabled{Environment: production})
	changed := read(production.ID)
	if n := shared(first, changed); n != len(first)-1 || !bytes.Contains(changed[0], []byte(production.ID)) {
		t.Errorf("after a change of one flag %d of %d chunks are shared", n, len(first))
	}
}
