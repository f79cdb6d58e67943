package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/events/export"
)

func exported(t *testing.T, store events.Store, tenantID, path string) (facts int) {
	t.Helper()
	facts, _, err := exportFacts(t.Context(), store, tenantID, "key", path, nodetest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

func imported(t *testing.T, store events.Store, path string) (added, present int, err error) {
	t.Helper()
	return importFacts(t.Context(), path, store, AcceptTimes{}, nodetest.Log(t), func(string) error { return nil })
}

func length(t *testing.T, store events.Store) (n int) {
	t.Helper()
	for _, err := range allEvents(t.Context(), store, events.Position{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestFactsAreExportedAndImported(t *testing.T) {
	t.Parallel()
	for name, open := range betweenEngines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := open[0](t), open[1](t)
			fill(t, from)
			path := filepath.Join(t.TempDir(), "facts.ndjson")
			n := exported(t, from, "", path)
			if added, present, err := imported(t, to, path); err != nil || added != n || present != 0 || n == 0 {
				t.Fatalf("%d facts were added, %d were there: %v; want %d", added, present, err, n)
			}
			if err := compareStores(t.Context(), from, to, nodetest.Log(t)); err != nil {
				t.Error(err)
			}
			// The store continues, and the file is imported again: everything exists already.
			write(t, to, "flag-t.1", 2, events.FlagDeleted{})
			if added, present, err := imported(t, to, path); err != nil || added != 0 || present != n {
				t.Errorf("%d facts were added, %d were there: %v; want %d that were", added, present, err, n)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the file has mode %v, %v", info.Mode(), err)
			}
			if _, _, err := exportFacts(t.Context(), from, "", "key", path, nodetest.Log(t)); !errors.Is(err, export.ErrComplete) {
				t.Errorf("an export to a whole file: %v, want ErrComplete", err)
			}
		})
	}
}

func TestATenantIsExported(t *testing.T) {
	t.Parallel()
	from, to := emptyPostgres(t), emptyPostgres(t)
	fill(t, from)
	write(t, from, "project-mine", 0, events.ProjectCreated{ID: "mine", TenantID: "t2"})
	write(t, from, "project-other", 0, events.ProjectCreated{ID: "other", TenantID: "t"})
	write(t, from, "tenant-t2", 0, events.TenantCreated{ID: "t2"})
	write(t, from, events.FlagStream("t2", "a"), 0, events.FlagCreated{TenantID: "t2", Key: "a"}, events.FlagDeleted{})
	write(t, from, events.FlagStream("t22", "a"), 0, events.FlagCreated{TenantID: "t22", Key: "a"})
	path := filepath.Join(t.TempDir(), "facts.ndjson")
	exported(t, from, "t2", path)
	// This simulates a crash: the end of the file is lost, and facts arrive meanwhile.
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file[:len(file)*2/3], 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, from, "project-mine", 1, events.ProjectDeleted{})
	exported(t, from, "t2", path)
	if added, _, err := imported(t, to, path); err != nil || added != 5 {
		t.Fatalf("%d facts were added, want 5: %v", added, err)
	}
	var streams []string
	for e, err := range allEvents(t.Context(), to, events.Position{}) {
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, fmt.Sprintf("%s@%d", e.Stream, e.Revision))
	}
	if got := strings.Join(streams, " "); got != "project-mine@1 tenant-t2@1 flag-t2.a@1 flag-t2.a@2 project-mine@2" {
		t.Errorf("the tenant's facts are %s", got)
	}
	defer func() {
		if _, err := os.Stat(path + "3"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a file without facts stands: %v", err)
		}
	}()
	if _, _, err := exportFacts(t.Context(), from, "t3", "key", path+"3", nodetest.Log(t)); err == nil ||
		!strings.Contains(err.Error(), "t3") {
		t.Errorf("an unknown tenant: %v, want an error that names it", err)
	}
}

func TestAnImportThatWasCutOffGoesOn(t *testing.T) {
	t.Parallel()
	from, to := emptyPostgres(t), emptyEventStore(t)
	fill(t, from)
	path := filepath.Join(t.TempDir(), "facts.ndjson")
	n := exported(t, from, "", path)
	half := 0
	for e, err := range allEvents(t.Context(), from, events.Position{}) {
		if half++; err != nil || half > 50 {
			break
		}
		if _, err := to.Append(
			t.Context(), e.Stream, e.Revision-1, []events.Event{{ID: e.ID, Metadata: e.Metadata, Fact: e.Stored}},
		); err != nil {
			t.Fatal(err)
		}
	}
	if added, present, err := imported(t, to, path); err != nil || added != n-50 || present != 50 {
		t.Fatalf("%d facts were added, %d were there: %v; want %d that were", added, present, err, 50)
	}
	if err := compareStores(t.Context(), from, to, nodetest.Log(t)); err != nil {
		t.Error(err)
	}
}

func TestNothingIsImportedOfADamagedFileNorOverOtherFacts(t *testing.T) {
	t.Parallel()
	from := emptyPostgres(t)
	write(t, from, "flag-t.b", 0, events.FlagCreated{TenantID: "t", Key: "b"})
	write(t, from, "flag-t.a", 0, events.FlagCreated{TenantID: "t", Key: "a"},
		events.FlagStatusChanged{To: events.ArchivedFlag}, events.FlagDeleted{})
	path := filepath.Join(t.TempDir(), "facts.ndjson")
	exported(t, from, "", path)
	var list []events.Recorded
	for e, err := range from.Read(t.Context(), "flag-t.a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	for what, facts := range map[string][]events.Event{
		"a fact differs":                {{ID: list[0].ID, Metadata: list[0].Metadata, Fact: list[0].Stored}, {ID: uuid.New(), Fact: events.FlagDeleted{}}},
		"the store has more, and other": {{ID: list[0].ID, Metadata: list[0].Metadata, Fact: list[0].Stored}, {ID: uuid.New()}, {ID: uuid.New()}, {ID: uuid.New()}},
		"it was recorded at other time": {{ID: list[0].ID, Metadata: list[0].Metadata, Fact: list[0].Stored}, {ID: list[1].ID, Metadata: list[1].Metadata, Fact: list[1].Fact}},
	} {
		to := emptyEventStore(t)
		for i := range facts {
			if facts[i].Fact == nil {
				facts[i].Fact = events.FlagDeleted{}
			}
		}
		if _, err := to.Append(t.Context(), "flag-t.a", 0, facts); err != nil {
			t.Fatal(err)
		}
		if _, _, err := imported(t, to, path); err == nil || !strings.Contains(err.Error(), "flag-t.a@2") {
			t.Errorf("%s: %v, want an error that names flag-t.a@2", what, err)
		}
		if n := length(t, to); n != len(facts) {
			t.Errorf("%s: the store has %d facts, of which %d were there", what, n, len(facts))
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := emptyPostgres(t)
	if err := os.WriteFile(path, []byte(strings.Replace(string(file), `"archived"`, `"inactive"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := imported(t, to, path); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged file: %v", err)
	}
	if n := length(t, to); n > 0 {
		t.Errorf("%d facts of a damaged file were written", n)
	}
}
