// Package nodetest provides tests with a running node over real databases, and a client that calls it.
package nodetest

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/events"
	"flagledger/http/evaluation"
	"flagledger/http/quota"
	"flagledger/migrations/pgtest"
	"flagledger/projections"
	"flagledger/projections/models"
)

// waitTimeout limits how long tests and their services wait for each other: a machine may be busy.
const waitTimeout = 5 * time.Minute

// Secret is the secret of all test nodes.
const Secret = "the secret of all nodes of tests"

// Service is a node that serves on a loopback address. A failed call or check fails T.
type Service struct {
	T           testing.TB
	URL         string
	DatabaseURL string
	Config      settings.Config
	Node        *node.Node
	// Chunked makes clients send every call without its body's length, as some proxies do.
	Chunked bool
	// Seen, if set, is called with each response to a client.
	Seen func(*Answer)

	opened *openedStore // for Store; nil for a server process
}

// openedStore opens an event store on first use and closes it with its service, because each opening takes new
// connections.
type openedStore struct {
	sync.Mutex
	t     testing.TB
	store events.Store
}

// New starts a service over a new database. It stops with the test.
func New(t testing.TB) *Service {
	t.Helper()
	return On(t, Database(t))
}

// migrated holds the URLs of migrated databases: checking one takes a node four connections.
var migrated sync.Map

// Database creates a database as a first node leaves it, with read model tables and a signing key. Its event store has
// no events.
func Database(t testing.TB) (url string) {
	t.Helper()
	defer func() { migrated.Store(url, true) }()
	kind := "node"
	if onEventStoreDB(t) {
		kind = "node-" + eventStoreDB
	}
	return pgtest.Filled(t, kind, func(ctx context.Context, url string) error {
		log := slog.New(slog.DiscardHandler)
		if err := node.Migrate(ctx, url, log); err != nil {
			return err
		}
		c := settings.Config{
			EventStoreURL: EventStoreURL(t, url),
			PublicURL:     "http://localhost",
			Environment:   "development",
			Secret:        Secret,
			Now:           time.Now,
		}
		n, err := node.Start(ctx, c, url, log)
		if err != nil {
			return err
		}
		defer n.Stop()
		return waitUntilBuilt(ctx, c, url, log)
	})
}

// waitUntilBuilt waits, up to waitTimeout, until all read models of a database are built.
func waitUntilBuilt(ctx context.Context, c settings.Config, url string, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	store, closeStore, err := node.OpenStore(ctx, c, url, log)
	if err != nil {
		return err
	}
	defer closeStore()
	pool, err := node.OpenPool(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	for {
		statuses, err := projections.Statuses(ctx, pool, models.All(), store)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(statuses, func(s projections.Status) bool { return !s.Built }) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// On starts a service over a database, new or used.
func On(t testing.TB, databaseURL string) *Service {
	t.Helper()
	return WithLog(t, databaseURL, Log(t))
}

// WithLog starts a service over a database, with a log.
func WithLog(t testing.TB, databaseURL string, log *slog.Logger) *Service {
	t.Helper()
	return Start(t, databaseURL, settings.Config{Environment: "development"}, log)
}

// Generous holds rate limits that no test reaches.
var Generous = quota.Limits{
	Plans:     map[events.Plan]int{events.FreePlan: 1_000_000_000},
	Anonymous: 1_000_000_000,
	Auth:      1_000_000_000,
	Browser:   1_000_000_000,
}

// Start starts a service over a database and an event store, new or used, and returns when it is healthy and has built
// its read models. It listens on c.Addr, or else on a free port. Unset limits are Generous, and so are then the limits
// of invitations.
func Start(t testing.TB, databaseURL string, c settings.Config, log *slog.Logger) *Service {
	t.Helper()
	if c.EventStoreURL == "" {
		c.EventStoreURL = EventStoreURL(t, databaseURL)
	}
	if _, done := migrated.Load(databaseURL); !done {
		if err := node.Migrate(t.Context(), databaseURL, log); err != nil {
			t.Fatal(err)
		}
		migrated.Store(databaseURL, true)
	}
	server := httptest.NewUnstartedServer(nil)
	if c.Addr != "" {
		listenAt(t, server, c.Addr)
	}
	url := "http://" + server.Listener.Addr().String()
	if c.PublicURL == "" {
		c.PublicURL = url
	}
	c.Build = "dev"
	if c.Secret == "" {
		c.Secret = Secret
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if _, benchmark := t.(*testing.B); !benchmark {
		c = quickConfig(c)
	}
	if c.Limits.Anonymous == 0 {
		c.Limits, c.InvitationsPerDay = Generous, cmp.Or(c.InvitationsPerDay, 1_000_000)
	}
	if c.Streams.PerTenant == 0 {
		c.Streams = evaluation.DefaultStreamLimits()
	}
	n, err := node.Start(t.Context(), c, databaseURL, log)
	if err != nil {
		t.Fatal(err)
	}
	server.Config = n.API.Server()
	server.Config.ReadHeaderTimeout, server.Config.ReadTimeout = waitTimeout, waitTimeout
	server.Config.WriteTimeout = waitTimeout
	server.Start()
	t.Cleanup(func() {
		server.Close()
		n.Stop()
	})
	s := &Service{T: t, URL: url, DatabaseURL: databaseURL, Config: c, Node: n, opened: &openedStore{t: t}}
	s.Eventually("the service is healthy", func() bool {
		return strings.Contains(string(s.Anonymous().Call("GET", "/health", nil).Body), `"status":"ok"`)
	})
	if c.EventStoreURL != "" { // a shared log may be long
		if err := waitUntilBuilt(t.Context(), c, databaseURL, log); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// listenAt makes a server listen on an address instead of its own.
func listenAt(t testing.TB, server *httptest.Server, address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = server.Listener.Close()
	server.Listener = listener
}

// quickConfig shortens what a test need not wait for, unless it is set.
func quickConfig(c settings.Config) settings.Config {
	if c.HashMemory == 0 {
		c.HashMemory = 8 // the minimum of argon2: with the race detector, the recommended one takes most of a test's time
	}
	if c.FlushEvery == 0 {
		c.FlushEvery = 100 * time.Millisecond
	}
	return c
}

// In returns the same service for a subtest.
func (s *Service) In(t testing.TB) *Service {
	c := *s
	c.T = t
	return &c
}

// Cases are subtests by the behaviour that they show. They share a person on the Shared service, with a tenant each.
type Cases map[string]func(t *testing.T, me *Client)

// Run runs the cases one after another, in parallel with other tests.
func (c Cases) Run(t *testing.T) {
	t.Parallel()
	owner := Shared(t).SignUp(Address())
	for name, test := range c {
		t.Run(name, func(t *testing.T) {
			me := *owner
			me.Service = owner.Service.In(t)
			test(t, me.NewTenant(name))
		})
	}
}

// Log returns a log that is printed if FLAGLEDGER_TEST_LOG is set.
func Log(t testing.TB) *slog.Logger {
	if os.Getenv("FLAGLEDGER_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Eventually waits until a condition holds. It fails the test after waitTimeout.
func (s *Service) Eventually(what string, holds func() bool) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	// a check takes a few milliseconds itself
	for pause := 5 * time.Millisecond; !holds(); pause = min(pause*3/2, 100*time.Millisecond) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			s.T.Fatalf("waited in vain until %s; its health is %s", what, s.Anonymous().Call("GET", "/health", nil).Body)
		}
	}
}

// SecondNode starts another node over the same databases.
func (s *Service) SecondNode() *Service {
	s.T.Helper()
	return Start(s.T, s.DatabaseURL, s.Config, Log(s.T))
}

// Written lists the names of the facts after a position for which mine returns true. Other tests may write to the same
// store.
func (s *Service) Written(store events.Store, after events.Position, mine func(events.Recorded) bool) (names []string) {
	s.T.Helper()
	for page, err := range store.Subscribe(s.T.Context(), after) {
		if err != nil {
			s.T.Fatal(err)
		}
		for _, e := range page.Events {
			if mine(e) {
				names = append(names, e.Stream+": "+e.Name)
			}
		}
		if page.Live {
			break
		}
	}
	return names
}

// Store returns the service's event store, opened once more.
func (s *Service) Store() events.Store {
	s.T.Helper()
	opened := s.opened
	if opened == nil {
		opened = &openedStore{t: s.T}
	}
	opened.Lock()
	defer opened.Unlock()
	if opened.store == nil {
		store, closeStore, err := node.OpenStore(opened.t.Context(), s.Config, s.DatabaseURL, Log(opened.t))
		if err != nil {
			s.T.Fatal(err)
		}
		opened.t.Cleanup(closeStore)
		opened.store = store
	}
	return opened.store
}
