package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/events/eventstest"
	"flagledger/events/postgres"
	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// testStore holds the database of a store.
type testStore struct {
	*postgres.Store
	url string
}

func open(t testing.TB) testStore {
	t.Helper()
	url := pgtest.Migrated(t)
	store, err := postgres.Open(t.Context(), url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return testStore{store, url}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// begin appends an event to a new stream in a transaction that stays open until commit is called.
func begin(t *testing.T, s events.Store, stream string, e events.Event) (commit func()) {
	stored, err := events.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := connect(t, s.(testStore).url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = tx.Exec(
		t.Context(),
		"select events.append($1, '{0}', '{1}', $2, $3, $4, $5, $6)",
		[]string{stream},
		[]string{
			stored.ID.String(),
		},
		[]string{stored.Name},
		[]int{stored.Version},
		[][]byte{stored.Data},
		[][]byte{stored.Metadata},
	)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Commit(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestSuite(t *testing.T) {
	eventstest.Run(t, eventstest.Engine{
		Open: func(t *testing.T) events.Store { return open(t) },
		Disrupt: func(t *testing.T, s events.Store) {
			conn := connect(t, s.(testStore).url)
			_, err := conn.Exec(
				t.Context(),
				"select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
			)
			if err != nil {
				t.Error(err)
			}
			_ = conn.Close(t.Context())
		},
		Begin: begin,
	})
}

func TestFactsCannotBeChanged(t *testing.T) {
	s := open(t)
	conn := connect(t, s.url)
	for _, statement := range []string{"update events.event set name = 'x'", "delete from events.event", "truncate events.event"} {
		if _, err := conn.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "events are facts") {
			t.Errorf("%s: %v, want a refusal", statement, err)
		}
	}
}

func TestReadsDoNotKeepAppendsWaiting(t *testing.T) {
	s := open(t)
	for i := range 10 { // together more than a connection buffers
		list := make([]events.Event, 10)
		for j := range list {
			list[j] = events.Event{ID: uuid.New(), Fact: events.FlagCreated{Description: strings.Repeat("long", 10_000)}}
		}
		if _, err := s.Append(t.Context(), "flag-t.long", events.Revision(10*i), list); err != nil {
			t.Fatal(err)
		}
	}
	ctx, end := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	defer reading.Wait()
	defer end()
	begun := make(chan struct{}, 100)
	for range 50 {
		reading.Go(func() {
			for _, err := range s.Read(ctx, "flag-t.long", 0) {
				if err == nil {
					begun <- struct{}{}
				}
				<-ctx.Done()
				return
			}
		})
	}
	for range postgres.Connections - 1 {
		<-begun
	}
	appending, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 3 {
		if _, err := s.Append(
			appending, fmt.Sprintf("flag-t.%d", i), 0, []events.Event{{ID: uuid.New(), Fact: events.FlagDeleted{}}},
		); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) { eventstest.BenchmarkAppend(b, open(b)) }

func BenchmarkCatchUp(b *testing.B) { eventstest.BenchmarkCatchUp(b, open(b)) }

func TestALargeEventIsCompressedFastAndDecodedOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	large := events.Event{
		ID:   uuid.New(),
		Fact: events.FlagCreated{DefaultValue: []byte(`"` + strings.Repeat("long", 10_000) + `"`)},
	}
	if _, err := s.Append(t.Context(), "flag-t.long", 0, []events.Event{large}); err != nil {
		t.Fatal(err)
	}
	var got, want string
	err := connect(t, s.url).QueryRow(t.Context(), `select pg_column_compression(data), case when exists (select from pg_settings
		where name = 'default_toast_compression' and 'lz4' = any (enumvals)) then 'lz4' else 'pglz' end from events.event`).
		Scan(&got, &want)
	if err != nil || got != want {
		t.Errorf("an event is compressed with %s, want %s: %v", got, want, err)
	}
	var values []*byte
	for range 2 {
		for page, err := range s.Subscribe(t.Context(), events.Position{}) {
			if err != nil || len(page.Events) != 1 {
				t.Fatalf("%d events, %v", len(page.Events), err)
			}
			values = append(values, &page.Events[0].Fact.(events.FlagCreated).DefaultValue[0])
			break
		}
	}
	if values[0] != values[1] {
		t.Error("two subscriptions decode a large event each for itself")
	}
}
