package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/events/eventstore/esdbtest"
	"flagledger/events/export"
	"flagledger/events/proof"
	"flagledger/migrations/pgtest"
	"flagledger/projections"
	"flagledger/projections/models"
)

// auditKey creates a key that signs checkpoints, and the public key that verifies them.
func auditKey(t *testing.T) (signer note.Signer, verifier string) {
	t.Helper()
	private, verifier, err := note.GenerateKey(rand.Reader, "flagledger")
	if err != nil {
		t.Fatal(err)
	}
	if signer, err = note.NewSigner(private); err != nil {
		t.Fatal(err)
	}
	return signer, verifier
}

// factsIn returns the facts of a complete file.
func factsIn(t *testing.T, path string) (facts []events.Recorded) {
	t.Helper()
	err := readFacts(path, func(r *export.Reader) error {
		for e, err := range r.All() {
			if err != nil {
				return err
			}
			facts = append(facts, e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

// signedCheckpoint writes a checkpoint of the first facts to a file.
func signedCheckpoint(t *testing.T, signer note.Signer, tenantID string, facts []events.Recorded) (path string) {
	t.Helper()
	var tree proof.CompactRange
	for _, e := range facts {
		leaf, err := events.LeafHash(e)
		if err != nil {
			t.Fatal(err)
		}
		tree.Add(tlog.Hash(leaf))
	}
	signed, err := proof.Sign(proof.Checkpoint{TenantID: tenantID, Size: tree.Size(), Root: tree.Root()}, signer)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "checkpoint")
	if err := os.WriteFile(path, signed, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// foreignFact is the first fact of a stream.
func foreignFact(stream string) events.Recorded {
	stored := events.Stored{ID: uuid.New(), Name: "x.created", Version: 1, Data: []byte(`{}`), Metadata: []byte(`{}`)}
	return events.Recorded{
		Event:    events.Event{ID: stored.ID},
		Stream:   stream,
		Revision: 1,
		At:       time.Now(),
		Name:     stored.Name,
		Stored:   stored,
	}
}

// A checkpoint stored elsewhere reveals any change of an export, however consistent the file is.
func TestAnAlteredExportIsFound(t *testing.T) {
	t.Parallel()
	signer, key := auditKey(t)
	store := emptyPostgres(t)
	fill(t, store)
	dir := t.TempDir()
	original := filepath.Join(dir, "facts.ndjson")
	exported(t, store, "t", original)
	facts := factsIn(t, original)
	if len(facts) < 100 {
		t.Fatalf("%d facts", len(facts))
	}
	none, early, late := signedCheckpoint(t, signer, "t", nil), signedCheckpoint(t, signer, "t", facts[:40]), signedCheckpoint(t, signer, "t", facts)
	verify := func(list []events.Recorded, tenantID string, checkpoints ...string) error {
		t.Helper()
		path := filepath.Join(t.TempDir(), "facts.ndjson")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w, err := export.NewWriter(file, export.NewHeader("log", tenantID, "another key"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if err := w.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.End(); err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		return verifyTrailCommand{Tenant: "t", Export: path, Checkpoint: checkpoints, Key: key}.Run(t.Context())
	}
	if err := verify(facts, "t", none, early, late); err != nil {
		t.Fatalf("what was not altered: %v", err)
	}
	if err := verify(slices.Insert(slices.Clone(facts), 7, foreignFact("flag-t2.a")), "t", early, late); err == nil ||
		!strings.Contains(err.Error(), "line 9: flag-t2.a@1") {
		t.Errorf("another tenant's fact in the file of one: %v, want an error that names it", err)
	}
	if err := verify(slices.Insert(slices.Clone(facts), 7, foreignFact("user-u")), "t", early, late); err == nil ||
		!strings.Contains(err.Error(), "line 9: user-u@1") {
		t.Errorf("a person's fact in the file of a tenant: %v, want an error that names it", err)
	}
	if err := verify(slices.Insert(slices.Clone(facts), 7, foreignFact("flag-t2.a")), "", early, late); err != nil {
		t.Errorf("another tenant's fact in the file of all: %v", err)
	}
	if err := verify(append(slices.Clone(facts), facts[0]), "", late); err == nil ||
		!strings.Contains(err.Error(), "revision 1 after") {
		t.Errorf("a fact that stands twice: %v", err)
	}
	// Two facts of different streams.
	const at = 60
	other := at + 1
	for facts[other].Stream == facts[at].Stream {
		other++
	}
	last := 0 // the last fact of a stream, after the first checkpoint
	for i, e := range facts {
		if i > 40 && !slices.ContainsFunc(facts[i+1:], func(f events.Recorded) bool { return f.Stream == e.Stream }) {
			last = i
			break
		}
	}
	for what, test := range map[string]struct {
		alter func(list []events.Recorded) []events.Recorded
		says  string
	}{
		"data": {func(list []events.Recorded) []events.Recorded {
			list[at].Stored.Data = []byte(strings.Replace(string(list[at].Stored.Data), "flag", "flug", 1) + " ")
			list[at].Stored.Data = append([]byte(`{"x":1,`), list[at].Stored.Data[1:]...)
			return list
		}, "entries 40 to"},
		"metadata": {func(list []events.Recorded) []events.Recorded { list[at].Actor.ID = "somebody else"; return list }, "entries 40 to"},
		"recorded": {func(list []events.Recorded) []events.Recorded {
			list[at].At = list[at].At.Add(time.Second)
			return list
		}, "entries 40 to"},
		"name":    {func(list []events.Recorded) []events.Recorded { list[at].Name = "flag.disabled"; return list }, "entries 40 to"},
		"version": {func(list []events.Recorded) []events.Recorded { list[at].Stored.Version++; return list }, "entries 40 to"},
		"id":      {func(list []events.Recorded) []events.Recorded { list[at].ID = uuid.New(); return list }, "entries 40 to"},
		"order": {func(list []events.Recorded) []events.Recorded {
			list[at], list[other] = list[other], list[at]
			return list
		}, "entr"},
		"a fact less, the last of its stream": {func(list []events.Recorded) []events.Recorded { return slices.Delete(list, last, last+1) }, fmt.Sprintf("of the entries 40 to %d, 1 are missing", len(facts)-1)},
		"a fact less, amid its stream":        {func(list []events.Recorded) []events.Recorded { return slices.Delete(list, 0, 1) }, "entry 0"},
		"a fact more": {func(list []events.Recorded) []events.Recorded {
			e := list[at]
			e.Stream, e.Revision = events.FlagStream("t", "new"), 1
			return slices.Insert(list, at, e)
		}, "entries 40 to"},
		"the end":          {func(list []events.Recorded) []events.Recorded { return list[:len(list)-1] }, "missing"},
		"before the first": {func(list []events.Recorded) []events.Recorded { list[3].Actor.ID = "x"; return list }, "entries 0 to 39"},
	} {
		if err := verify(test.alter(slices.Clone(facts)), "t", early, late); err == nil ||
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want an error that says %q", what, err, test.says)
		}
	}
	foreign := signedCheckpoint(t, signer, "t2", facts)
	for what, cmd := range map[string]verifyTrailCommand{
		"another tenant's checkpoint": {Export: original, Checkpoint: []string{foreign}, Key: key},
		"another key":                 {Export: original, Checkpoint: []string{late}},
		"another tenant":              {Export: original, Tenant: "t2"},
		"no file":                     {Export: original + "x"},
		"nothing":                     {},
	} {
		if err := cmd.Run(t.Context()); err == nil {
			t.Errorf("%s: it is taken", what)
		}
	}
}

// An export that started before there was a key, and continued when there was one, is verified like any other: with the
// given key.
func TestAnExportThatWasBegunBeforeThereWasAKeyIsVerified(t *testing.T) {
	t.Parallel()
	signer, key := auditKey(t)
	store := emptyPostgres(t)
	fill(t, store)
	path := filepath.Join(t.TempDir(), "facts.ndjson")
	whole, _, err := exportFacts(t.Context(), store, "t", "", path, nodetest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file[:len(file)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if n, _, err := exportFacts(t.Context(), store, "t", key, path, nodetest.Log(t)); err != nil || n != whole {
		t.Fatalf("it goes on to %d facts, %v, want %d", n, err, whole)
	}
	facts := factsIn(t, path)
	cmd := verifyTrailCommand{Export: path, Checkpoint: []string{signedCheckpoint(t, signer, "t", facts)}, Key: key}
	if err := cmd.Run(t.Context()); err != nil {
		t.Error(err)
	}
	cmd.Key = ""
	if err := cmd.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "--key") {
		t.Errorf("without a key: %v, want an error that says how one is given", err)
	}
}

// A key in the file only shows that the file's author made the checkpoint too, and the command says so.
func TestVerifyTellsThatTheKeyIsTheFilesOwn(t *testing.T) {
	t.Parallel()
	signer, key := auditKey(t)
	store := emptyPostgres(t)
	fill(t, store)
	path := filepath.Join(t.TempDir(), "facts.ndjson")
	if _, _, err := exportFacts(t.Context(), store, "t", key, path, nodetest.Log(t)); err != nil {
		t.Fatal(err)
	}
	command := []string{"verify", "--export", path, "--checkpoint", signedCheckpoint(t, signer, "t", factsIn(t, path))}
	p := nodetest.Build(t)
	const own = "the key is the file's own"
	if told := run(p, nil, command...).succeeded().stdout; !strings.Contains(told, own) {
		t.Errorf("without a key it prints:\n%s", told)
	}
	if told := run(p, nil, append(command, "--key="+key)...).succeeded().stdout; strings.Contains(told, own) {
		t.Errorf("with a key it prints:\n%s", told)
	}
}

// verified checks a tenant of a service.
func verified(s *nodetest.Service, tenantID string) error {
	s.T.Helper()
	return verifyTrailCommand{Tenant: tenantID}.verifyStore(s.T.Context(), s.DatabaseURL, s.Store(), nodetest.Log(s.T))
}

func TestAnAlteredStoreIsFound(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp(nodetest.Address())
	project, _ := me.CreateProject("Web")
	for i := range 5 {
		me.CreateEnabledFlag(fmt.Sprint("k", i), map[string]any{"type": "boolean", "projectId": project})
	}
	me.Call("GET", "/api/v1/audit/checkpoint", nil).Want(200)
	me.CreateFlag("later", map[string]any{"type": "boolean"})
	if err := verified(s, me.Tenant); err != nil {
		t.Fatalf("what was not altered: %v", err)
	}
	if err := verified(s, "nobody"); err == nil {
		t.Error("an unknown tenant is verified")
	}
	stream := events.FlagStream(me.Tenant, "k3")
	later := events.FlagStream(me.Tenant, "later")
	trail, err := node.OpenTrailReader(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer trail.Close()
	tree, err := trail.Queries.AuditTree(t.Context(), me.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	entry, _, err := tree.FlagEntry(t.Context(), "k3", 2)
	if err != nil {
		t.Fatal(err)
	}
	s.Exec(`alter table events.event disable trigger never_changed`)
	// this makes positions interchangeable
	s.Exec(`alter table events.event drop constraint event_pkey, add primary key (position) deferrable`)
	restore := `drop table if exists saved; create table saved as select * from events.event`
	s.Exec(restore)
	alter := func(what, says, sql string, arguments ...any) {
		t.Helper()
		s.Exec(sql, arguments...)
		says = strings.ReplaceAll(says, "%n", fmt.Sprint(entry))
		if err := verified(s, me.Tenant); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error that says %q", what, err, says)
		}
		s.Exec(`truncate events.event`)
		s.Exec(`insert into events.event select * from saved order by position`)
	}
	alter("data", stream+"@2",
		`update events.event set data = '{"id":"e","name":"production"}' where stream = $1 and revision = 2`, stream)
	alter("metadata", stream+"@2",
		`update events.event set metadata = '{"time":"2026-01-01T00:00:00Z","actor":{"kind":"user","id":"x"}}' where stream = $1 and revision = 2`,
		stream)
	// The hash stays the same, because encoding/json ignores case, takes the last duplicate and drops unknown members.
	for what, sql := range map[string]string{
		"metadata with two actors":        `replace(metadata::text, '"actor":', '"actor":{"id":"EVE"},"Actor":')::json`,
		"metadata with an unknown member": `replace(metadata::text, '"actor":', '"approvedBy":"CEO","actor":')::json`,
		"metadata with a reason twice":    `regexp_replace(metadata::text, '^{', '{"requestId":"another",')::json`,
	} {
		alter(what, "entry %n: "+stream+"@2: metadata",
			`update events.event set metadata = `+sql+` where stream = $1 and revision = 2`, stream)
	}
	alter("recorded", stream+"@1",
		`update events.event set recorded = recorded + interval '1 microsecond' where stream = $1 and revision = 1`, stream)
	alter("a fact of a project", "project-"+project+"@1",
		`update events.event set recorded = recorded + interval '1 microsecond' where stream = $1`, "project-"+project)
	alter("a fact less", "entry %n is missing in the store: flag k3, version 2, flag.",
		`delete from events.event where stream = $1 and revision = 2`, stream)
	alter(
		"a fact less, and no gap",
		"entry %n",
		`with gone as (delete from events.event where stream = $1 and revision = 2 returning position)
		update events.event e set position = e.position - 1 from gone where e.position > gone.position`,
		stream,
	)
	// All earlier facts move down; the log's first fact, a person's, is lost.
	alter(
		"a fact more",
		"entry %n is not what the audit trail has: the store has flag-"+me.Tenant+".new@1",
		`with place as (select * from events.event where stream = $1 and revision = 2),
		moved as (update events.event e set position = e.position - 1 from place where e.position < place.position)
		insert into events.event select position - 1, 'flag-' || $2 || '.new', 1, gen_random_uuid(), name, version, data, metadata, recorded from place`,
		stream,
		me.Tenant,
	)
	const swap = `update events.event e set position = o.position from events.event o where (e.stream, e.revision, o.stream, o.revision) in (($1, $2, $3, $4), ($3, $4, $1, $2))`
	alter("two of a stream in another order", fmt.Sprintf("entry %d: %s has revision 2 after 0", entry-1, stream), swap,
		stream, 1, stream, 2)
	alter("two of different streams in another order",
		"entry %n is not what the audit trail has: the store has "+later+"@1", swap, stream, 2, later, 1)
	alter("the end", "missing",
		`with gone as (delete from events.event where stream = $1 returning position) update events.head set position = position`,
		later)
	if err := verified(s, me.Tenant); err != nil {
		t.Fatalf("restored: %v", err)
	}

	// Missing facts of others are not the tenant's fault if the trails know whose they were.
	s.Exec(`delete from events.event where stream like 'user-%'`)
	if err := verified(s, me.Tenant); err != nil {
		t.Errorf("a person's facts are gone: %v", err)
	}
	s.Exec(`delete from read.audit where commit = 1`)
	if err := verified(s, me.Tenant); err == nil || !strings.Contains(err.Error(), "gap") ||
		!strings.Contains(err.Error(), "not known") {
		t.Errorf("nobody knows whose fact is gone: %v", err)
	}
	s.Exec(`truncate events.event`)
	s.Exec(`insert into events.event select * from saved order by position`)

	// A trail that ends before the facts do, or lacks one of them, does not match them.
	s.Exec(`create table kept as select * from read.audit`)
	s.Exec(`alter table kept drop column time`) // it is generated
	for what, which := range map[string]string{"the end": `n >= $2 - 2`, "one amid": `n = $2 - 2`} {
		s.Exec(`delete from read.audit where tenant_id = $1 and `+which, me.Tenant, tree.Size)
		if err := verified(s, me.Tenant); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("entry %d ", tree.Size-2)) {
			t.Errorf("%s of the trail is missing: %v, want an error that names entry %d", what, err, tree.Size-2)
		}
		s.Exec(`insert into read.audit select * from kept on conflict do nothing`)
	}
	s.Exec(`drop table kept`)
	if err := verified(s, me.Tenant); err != nil {
		t.Fatalf("the trail is restored: %v", err)
	}

	// Before the trail is built, as after a restore, facts are compared with the checkpoints.
	s.Exec(`alter table read.audit rename to not_yet`)
	if err := verified(s, me.Tenant); err != nil {
		t.Errorf("there is no trail: %v", err)
	}
	alter("data, before there is a trail", "checkpoint of",
		`update events.event set data = '{"id":"e","name":"production"}' where stream = $1 and revision = 2`, stream)
	s.Exec(`alter table read.not_yet rename to audit`)

	// A checkpoint that was signed earlier reveals changed facts even if the trail was rebuilt.
	s.Exec(
		`update events.event set metadata = '{"time":"2026-01-01T00:00:00Z","actor":{"kind":"user","id":"x"}}' where stream = $1 and revision = 2`,
		stream,
	)
	rebuild(s.T.Context(), t, s)
	if err := verified(s, me.Tenant); err == nil || !strings.Contains(err.Error(), "checkpoint of") {
		t.Errorf("altered and rebuilt: %v, want an error that names the checkpoint", err)
	}
	me.Call("GET", "/api/v1/audit/checkpoint", nil).Refused(409)
	s.Exec(`truncate events.event`)
	s.Exec(`insert into events.event select * from saved order by position`)
	rebuild(s.T.Context(), t, s)
	if err := verified(s, me.Tenant); err != nil {
		t.Errorf("what was rebuilt and not altered: %v", err)
	}
	me.Call("GET", "/api/v1/audit/checkpoint", nil).Want(200)
}

// An export contains the checkpoints' key before the first checkpoint is requested.
func TestAServerMakesTheAuditKey(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	s.Eventually("there is a key", func() bool {
		trail, err := node.OpenTrailReader(t.Context(), s.DatabaseURL)
		if err != nil {
			t.Fatal(err)
		}
		defer trail.Close()
		return trail.Key != ""
	})
}

// On both engines, erasing a person and rebuilding leave the facts unchanged.
func TestAStoreIsVerifiedOnceSomebodyIsErased(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{"Postgres": func(testing.TB) string { return "" }, "EventStoreDB": func(t testing.TB) string { return esdbtest.New(t).URL() }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := nodetest.Start(t, pgtest.Migrated(t), settings.Config{EventStoreURL: url(t), Environment: "development"},
				nodetest.Log(t))
			me := s.SignUp(nodetest.Address())
			developer := me.Join("developer")
			developer.CreateEnabledFlag("k", nil)
			me.Call("GET", "/api/v1/audit/checkpoint", nil).Want(200)
			if err := node.EraseUser(
				t.Context(), s.Config, s.DatabaseURL, s.Store(), developer.UserID, nodetest.Log(t),
			); err != nil {
				t.Fatal(err)
			}
			s.Eventually("they are erased", func() bool {
				return me.Call("GET", "/api/v1/audit?limit=1", nil).Want(200).List()[0]["userName"] == "erased user"
			})
			if err := verified(s, me.Tenant); err != nil {
				t.Errorf("once somebody is erased: %v", err)
			}
			rebuild(t.Context(), t, s)
			if err := verified(s, me.Tenant); err != nil {
				t.Errorf("once the trail is rebuilt: %v", err)
			}
			me.Call("GET", "/api/v1/audit/checkpoint", nil).Want(200)
		})
	}
}

func rebuild(ctx context.Context, t *testing.T, s *nodetest.Service) {
	t.Helper()
	for _, p := range models.All() {
		if p.Name == "audit" {
			if err := projections.Rebuild(
				ctx, s.DatabaseURL, s.Store(), []projections.Projection{p}, projections.RebuildOptions{Force: true}, nodetest.Log(t),
			); err != nil {
				t.Fatal(err)
			}
		}
	}
}
