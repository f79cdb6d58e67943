// Package eventstore is the event store on EventStoreDB, over its official client.
package eventstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/url"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"flagledger/events"
)

// Store is an events.Store over streams of an EventStoreDB database: those whose names begin with one of events.StreamPrefixes belong to it,
// and no others may write to them. An event's stored name is its type; its version stands in its metadata. All of its methods may be used at once.
type Store struct {
	config   esdb.Configuration
	log      *slog.Logger
	prefixes []string
	end      end

	mu      sync.Mutex // of what follows
	current *connection
	closed  bool
}

// openTimeout is how long Open looks for a node that answers.
const openTimeout = 10 * time.Second

// Open connects to the database that a connection string names (esdb://..., as the official client takes it), and fails if no node of it answers
// within ten seconds. It refuses a database older than 23.10, which does not tell subscribers when they have caught up, and credentials that the
// client would not send.
func Open(ctx context.Context, connectionString string, log *slog.Logger) (*Store, error) {
	config, err := parse(connectionString)
	if err != nil {
		return nil, fmt.Errorf("event store: %w", err)
	}
	s := &Store{config: config, log: log, prefixes: events.StreamPrefixes()}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	c, err := s.acquire(ctx)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("event store: %w", err)
	}
	defer s.release(c, nil)
	if c.version.Major < 23 || c.version.Major == 23 && c.version.Minor < 10 {
		s.Close()
		return nil, fmt.Errorf("event store: the server is EventStoreDB %d.%d; 23.10 or later is needed", c.version.Major, c.version.Minor)
	}
	return s, nil
}

func parse(connectionString string) (esdb.Configuration, error) {
	config, err := esdb.ParseConnectionString(connectionString)
	if bad, ok := errors.AsType[*url.Error](err); ok {
		err = bad.Err // the whole would show the password
	}
	if err != nil {
		return esdb.Configuration{}, fmt.Errorf("connection string: %w", err)
	}
	switch {
	case config.Username != "" && config.DisableTLS:
		return esdb.Configuration{}, errors.New("connection string: the client sends no credentials without TLS; leave out either them or tls=false")
	case config.Username != "" && config.Password == "":
		return esdb.Configuration{}, errors.New("connection string: the client sends no credentials without a password")
	}
	// A client whose attempts run out is dead, and whoever waits for it waits forever.
	config.MaxDiscoverAttempts = math.MaxInt
	return *config, nil
}

// Close disconnects once the calls under way have ended. The Store must not be used afterwards. While the server cannot be reached, the client
// goes on looking for it until it is found or the process ends: it has no way to be stopped.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	c := s.current
	s.mu.Unlock()
	if c != nil {
		s.retire(c)
	}
}

// Engine implements events.Store.
func (s *Store) Engine() string { return "eventstore" }

func unavailable(cause error) error { return fmt.Errorf("%w: %w", events.ErrUnavailable, cause) }

// classify marks an error of the client as events.ErrUnavailable unless the server has refused the call for good.
func classify(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return unavailable(ctx.Err())
	case final(err):
		return err
	case status.Code(err) == codes.DeadlineExceeded:
		return unavailable(fmt.Errorf("%w: %w", context.DeadlineExceeded, err))
	default:
		return unavailable(err)
	}
}

// final reports whether an error is the server's refusal. All others, among them the client's "EOF" for a connection that broke while it sent,
// leave open what has happened.
func final(err error) bool {
	if errors.Is(err, io.EOF) {
		return false
	}
	if e, ok := errors.AsType[*esdb.Error](err); ok {
		switch e.Code() {
		case esdb.ErrorCodeWrongExpectedVersion, esdb.ErrorCodeStreamDeleted:
			return true
		case esdb.ErrorCodeNotLeader:
			return false
		}
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.FailedPrecondition, codes.OutOfRange,
		codes.Unimplemented, codes.Unauthenticated:
		return true
	}
	return false
}
