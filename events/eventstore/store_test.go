package eventstore_test

import (
	"context"
	"iter"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"flagledger/events"
	"flagledger/events/eventstest"
	"flagledger/events/eventstore"
	"flagledger/events/eventstore/esdbtest"
)

// testStore holds the server of a store.
type testStore struct {
	*eventstore.Store
	server *esdbtest.Server
}

func open(t testing.TB) testStore {
	t.Helper()
	server := esdbtest.New(t)
	return testStore{connect(t, server.URL()), server}
}

func connect(t testing.TB, url string) *eventstore.Store {
	t.Helper()
	store, err := eventstore.Open(t.Context(), url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

func openURL(ctx context.Context, url string) (*eventstore.Store, error) {
	return eventstore.Open(ctx, url, slog.New(slog.DiscardHandler))
}

func TestSuite(t *testing.T) {
	if url := os.Getenv("FLAGLEDGER_TEST_EVENTSTORE_URL"); url != "" {
		eventstest.Run(t, eventstest.Engine{Open: func(t *testing.T) events.Store { return openReal(t, url) }})
		return
	}
	eventstest.Run(t, eventstest.Engine{
		Open:    func(t *testing.T) events.Store { return open(t) },
		Disrupt: func(_ *testing.T, s events.Store) { s.(testStore).server.Reset() },
		Begin: func(t *testing.T, s events.Store, stream string, e events.Event) func() {
			release := s.(testStore).server.Hold(stream)
			var appending sync.WaitGroup
			appending.Go(func() { mustAppend(t, s, stream, 0, e) })
			return func() {
				release()
				appending.Wait()
			}
		},
	})
}

// The suite's adaptation to a server with foreign events is tested here, without a real one.
func TestSuiteAmongOthers(t *testing.T) {
	server := esdbtest.New(t)
	server.Inject("project-1", "OrderPlaced", 100)
	eventstest.Run(t, eventstest.Engine{Open: func(t *testing.T) events.Store { return openReal(t, server.URL()) }})
}

func BenchmarkAppend(b *testing.B) { eventstest.BenchmarkAppend(b, openBench(b)) }

func BenchmarkCatchUp(b *testing.B) { eventstest.BenchmarkCatchUp(b, openBench(b)) }

func openBench(b *testing.B) events.Store {
	if url := os.Getenv("FLAGLEDGER_TEST_EVENTSTORE_URL"); url != "" {
		return openReal(b, url)
	}
	return open(b)
}

// realStore puts a unique name into each stream and ignores the others: a real server holds events of other tests and
// cannot be emptied.
type realStore struct {
	*eventstore.Store
	name string
}

func openReal(t testing.TB, url string) realStore {
	s := realStore{connect(t, url), "test" + uuid.NewString() + "-"}
	s.SetPrefixes(s.inside("flag-"), s.inside("project-"), s.inside("tenant-"), s.inside("user-"), s.inside("invitation-"))
	return s
}

func (s realStore) inside(stream string) string {
	return strings.Replace(stream, "-", "-"+s.name, 1)
}

func (s realStore) outside(e *events.Recorded) { e.Stream = strings.Replace(e.Stream, s.name, "", 1) }

func (s realStore) Append(
	ctx context.Context, stream string, expected events.Revision, list []events.Event,
) (events.Appended, error) {
	return s.Store.Append(ctx, s.inside(stream), expected, list)
}

func (s realStore) Read(ctx context.Context, stream string, from events.Revision) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for e, err := range s.Store.Read(ctx, s.inside(stream), from) {
			s.outside(&e)
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s realStore) Find(ctx context.Context, stream string, id uuid.UUID) (events.Revision, error) {
	return s.Store.Find(ctx, s.inside(stream), id)
}

func (s realStore) Subscribe(ctx context.Context, after events.Position) iter.Seq2[events.Page, error] {
	return func(yield func(events.Page, error) bool) {
		for page, err := range s.Store.Subscribe(ctx, after) {
			for i := range page.Events {
				s.outside(&page.Events[i])
			}
			if !yield(page, err) {
				return
			}
		}
	}
}
