package commands_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands/identity/local"
	"flagledger/commands/jobs"
	"flagledger/commands/keep/directory"
	"flagledger/commands/keep/inbox"
	"flagledger/commands/keep/keys"
	"flagledger/commands/people"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/postgres"
	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var errStep = errors.New("the step fails")

// steps counts the external calls of a use case and fails one of them.
type steps struct {
	failing int // from 1; 0 fails none

	mu    sync.Mutex
	taken []string
}

func (s *steps) take(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = append(s.taken, name)
	if len(s.taken) == s.failing {
		return errStep
	}
	return nil
}

// stepping is a store with appends as steps.
type stepping struct {
	events.Store
	*steps
}

func (s stepping) Append(
	ctx context.Context, stream string, expected events.Revision, list []events.Event,
) (events.Appended, error) {
	if err := s.take("append " + list[0].Fact.StoredName()); err != nil {
		return events.Appended{}, err
	}
	return s.Store.Append(ctx, stream, expected, list)
}

// world holds the real parts of use cases over a database of this test.
type world struct {
	*steps
	pool      *pgxpool.Pool
	store     events.Store
	writer    *writer.Writer
	directory *directory.Directory
	identity  *local.Provider
	links     *jobs.Links
	inbox     *inbox.Inbox
	quotas    refusing
}

// refusing is Quotas that refuse changes once refusal is set.
type refusing struct {
	writer.NoQuotas
	refusal error
}

func (r *refusing) Limits(tenantID string) writer.TenantLimits {
	l := r.NoQuotas.Limits(tenantID)
	l.Refusal = r.refusal
	return l
}

// shown reports that everything is current: the tests read the store.
func shown(context.Context, events.Position, []string) bool { return true }

func newWorld(t *testing.T) *world {
	t.Helper()
	pool, log := pgtest.Pool(t), slog.New(slog.DiscardHandler)
	store, err := postgres.Open(t.Context(), pool.Config().ConnString(), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	secret, err := keys.ParseSecret("a secret of thirty-two characters")
	if err != nil {
		t.Fatal(err)
	}
	signing, err := keys.Open(t.Context(), pool, secret, "", time.Now, log)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{steps: &steps{}, pool: pool, store: store, directory: directory.New(pool, time.Now)}
	w.writer = writer.NewWriter(stepping{store, w.steps}, shown, &w.quotas, time.Now)
	queue, err := jobs.Open(pool)
	if err != nil {
		t.Fatal(err)
	}
	w.links, w.inbox = jobs.NewLinks(queue), inbox.New(pool, queue, time.Now)
	w.identity = local.New(
		pool,
		local.Options{
			Keys:       signing,
			Issuer:     "http://localhost",
			Audience:   "flagledger",
			Links:      w.links,
			Now:        time.Now,
			HashMemory: 8,
		},
	)
	return w
}

// facts lists the stored names of the facts of a stream.
func (w *world) facts(t *testing.T, stream string) (names []string) {
	t.Helper()
	for r, err := range w.store.Read(t.Context(), stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, r.Name)
	}
	return names
}

// signUp creates a person with an account.
func (w *world) signUp(t *testing.T, email string) people.Session {
	t.Helper()
	session, err := w.identity.SignUp(t.Context(), email, "correct horse battery", "Ada Lovelace")
	if err != nil {
		t.Fatal(err)
	}
	return session
}
