package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/events/eventstore"
	"flagledger/events/eventstore/esdbtest"
	"flagledger/events/postgres"
	"flagledger/migrations/pgtest"
)

func emptyPostgres(t *testing.T) events.Store {
	t.Helper()
	url := pgtest.URL(t)
	if err := node.Migrate(t.Context(), url, nodetest.Log(t)); err != nil {
		t.Fatal(err)
	}
	store, err := postgres.Open(t.Context(), url, nodetest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

func emptyEventStore(t *testing.T) events.Store {
	t.Helper()
	store, err := eventstore.Open(t.Context(), esdbtest.New(t).URL(), nodetest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// write appends facts to the end of a stream.
func write(t *testing.T, store events.Store, stream string, after events.Revision, facts ...events.Fact) {
	t.Helper()
	var batch []events.Event
	for _, fact := range facts {
		batch = append(
			batch,
			events.Event{
				ID:       uuid.New(),
				Metadata: events.Metadata{Actor: events.Actor{Kind: events.SystemActor, ID: "test"}, Reason: "<&>"},
				Fact:     fact,
			},
		)
	}
	_, err := store.Append(t.Context(), stream, after, batch)
	// a busy machine may exceed the store's timeout: the append is idempotent
	for errors.Is(err, events.ErrUnavailable) {
		_, err = store.Append(t.Context(), stream, after, batch)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fill writes facts of several streams, with values whose spelling matters and a fact of an older version.
func fill(t *testing.T, store events.Store) {
	t.Helper()
	for i := range 50 {
		stream := events.FlagStream("t", fmt.Sprint(i))
		write(
			t,
			store,
			stream,
			0,
			events.FlagCreated{
				TenantID:     "t",
				Key:          fmt.Sprint(i),
				Type:         events.JSONFlag,
				DefaultValue: json.RawMessage(`{"n":9007199254740993,"s":"<\u00e9>"}`),
			},
			events.FlagStatusChanged{From: events.ActiveFlag, To: events.ArchivedFlag},
		)
	}
	write(t, store, "flag-t.0", 2, events.FlagDeleted{})
	write(t, store, "tenant-t", 0,
		events.Stored{Name: "tenant.created", Version: 1, Data: []byte(`{"id":"t","name":"Acme","sandbox":true}`)})
	large := events.ProjectUpdated{Description: &events.Change[string]{To: strings.Repeat("x", events.MaxEventBytes/3)}}
	for i := range events.Revision(5) {
		write(t, store, "project-p", i, large)
	}
}

// betweenEngines are the ways to move facts between engines.
var betweenEngines = map[string][2]func(*testing.T) events.Store{
	"from Postgres to EventStoreDB": {emptyPostgres, emptyEventStore},
	"from EventStoreDB to Postgres": {emptyEventStore, emptyPostgres},
}

func TestCopyMovesHouse(t *testing.T) {
	t.Parallel()
	for name, open := range betweenEngines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := open[0](t), open[1](t)
			fill(t, from)
			move := func() error {
				if err := copyEvents(t.Context(), from, to, AcceptTimes{}, nodetest.Log(t)); err != nil {
					return err
				}
				return compareStores(t.Context(), from, to, nodetest.Log(t))
			}
			if err := move(); err != nil {
				t.Fatal(err)
			}
			write(t, from, "flag-t.1", 2, events.FlagDeleted{})
			write(t, from, "user-v", 0, events.UserRegistered{ID: "v"})
			if err := compareStores(t.Context(), from, to, nodetest.Log(t)); err == nil {
				t.Error("stores that differ compare as equal")
			}
			if err := move(); err != nil {
				t.Errorf("a second copy does not go on after the first: %v", err)
			}
			var order [2][]string
			for i, store := range []events.Store{from, to} {
				for e, err := range allEvents(t.Context(), store, events.Position{}) {
					if err != nil {
						t.Fatal(err)
					}
					order[i] = append(order[i], e.ID.String())
				}
			}
			if fmt.Sprint(order[0]) != fmt.Sprint(order[1]) {
				t.Error("the copy has another order")
			}
		})
	}
}

func TestACopyThatWasCutOffGoesOn(t *testing.T) {
	t.Parallel()
	from, to := emptyPostgres(t), emptyEventStore(t)
	fill(t, from)
	half := 0
	for run, err := range runs(allEvents(t.Context(), from, events.Position{})) {
		if err != nil {
			t.Fatal(err)
		}
		if half++; half > 30 {
			break
		}
		e := run[0] // in the middle of a run
		if _, err := to.Append(
			t.Context(), e.Stream, e.Revision-1, []events.Event{{ID: e.ID, Metadata: e.Metadata, Fact: e.Stored}},
		); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyEvents(t.Context(), from, to, AcceptTimes{}, nodetest.Log(t)); err != nil {
		t.Fatal(err)
	}
	if err := compareStores(t.Context(), from, to, nodetest.Log(t)); err != nil {
		t.Error(err)
	}
}

func TestCopyRefusesAStoreThatHasOtherFacts(t *testing.T) {
	t.Parallel()
	from, to := emptyPostgres(t), emptyEventStore(t)
	write(t, from, "flag-t.a", 0, events.FlagCreated{TenantID: "t", Key: "a"}, events.FlagDeleted{})
	write(t, to, "flag-t.a", 0, events.FlagCreated{TenantID: "t", Key: "a"})
	if err := copyEvents(t.Context(), from, to, AcceptTimes{}, nodetest.Log(t)); err != nil {
		t.Fatal(err)
	}
	if err := compareStores(t.Context(), from, to, nodetest.Log(t)); err == nil ||
		!strings.Contains(err.Error(), "flag-t.a") {
		t.Errorf("compare: %v, want the stream that differs", err)
	}
}

func TestCopyNamesStreamOfTargetAlone(t *testing.T) {
	t.Parallel()
	from, to := emptyPostgres(t), emptyEventStore(t)
	write(t, from, "flag-t.a", 0, events.FlagCreated{TenantID: "t", Key: "a"})
	write(t, to, "user-v", 0, events.UserRegistered{ID: "v"})
	if err := copyEvents(t.Context(), from, to, AcceptTimes{}, nodetest.Log(t)); err != nil {
		t.Fatal(err)
	}
	if err := compareStores(t.Context(), from, to, nodetest.Log(t)); err == nil ||
		!strings.Contains(err.Error(), "user-v") {
		t.Errorf("compare: %v, want the stream that only the target has", err)
	}
}

func TestFactsRecordedAtOtherTimesDiffer(t *testing.T) {
	t.Parallel()
	from, to := emptyPostgres(t), emptyPostgres(t)
	list := []events.Event{{ID: uuid.New(), Fact: events.FlagCreated{TenantID: "t", Key: "a"}}}
	for _, store := range []events.Store{from, to} {
		if _, err := store.Append(t.Context(), "flag-t.a", 0, list); err != nil {
			t.Fatal(err)
		}
	}
	if err := compareStores(t.Context(), from, to, nodetest.Log(t)); err == nil ||
		!strings.Contains(err.Error(), "flag-t.a") {
		t.Errorf("compare: %v, want the stream whose facts were recorded at other times", err)
	}
}

// The jobs of the last facts run after a move too: the servers may have stopped before they created them.
func TestAMoveLosesNoJobs(t *testing.T) {
	t.Parallel()
	url, target := pgtest.Migrated(t), esdbtest.New(t).URL()
	store, err := postgres.Open(t.Context(), url, nodetest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	// as a server does at its start
	if _, err := db.Exec(
		t.Context(), `insert into keep.reactions (engine, commit, prepare, updated_at) values ('postgres', 0, 0, now())`,
	); err != nil {
		t.Fatal(err)
	}
	write(t, store, events.TenantStream("t"), 0, events.MemberInvited{ID: "m", Role: events.ViewerRole})
	if err := (copyCommand{From: url, To: target}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var members []string
	if err := db.QueryRow(t.Context(), `select array_agg(args ->> 'memberId') from jobs.river_job where kind = 'mail.member_invitation'`).
		Scan(&members); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(members, []string{"m"}) {
		t.Errorf("there are jobs for %v, want one for m", members)
	}
}

// A copy would miss the writes of a running server.
func TestNothingIsCopiedBesideAServerNorOntoItself(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	s.SignUp(nodetest.Address())
	target := esdbtest.New(t).URL()
	if err := (copyCommand{From: s.DatabaseURL, To: target}).Run(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "a server runs") {
		t.Errorf("beside a server: %v", err)
	}
	if err := (copyCommand{From: target, To: target}).Run(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "the same") {
		t.Errorf("onto itself: %v", err)
	}
}
