// Package eventstore implements the event store with EventStoreDB and its official client.
package eventstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"flagledger/events"
)

// Store is an events.Store over the streams of an EventStoreDB database whose names begin with one of
// events.StreamPrefixes. Only the service may write to them. It is safe for concurrent use.
type Store struct {
	config        esdb.Configuration
	log           *slog.Logger
	prefixes      []string
	pageWait      time.Duration
	answerTimeout time.Duration
	end           end
	first         first

	mu            sync.Mutex // guards what follows
	current       *connection
	closed        bool
	silent        bool // the last connection was retired because its server hung
	refusalLogged time.Time
}

// openTimeout limits Open's search for a node that answers.
const openTimeout = 10 * time.Second

// Open connects to the database of a connection string (esdb://..., in the official client's format). It fails if no
// node answers within ten seconds, for refused or unsent credentials, for a node preference other than leader, and for
// a server older than 23.10, which does not tell subscribers when they have caught up.
func Open(ctx context.Context, connectionString string, log *slog.Logger) (*Store, error) {
	s, err := New(connectionString, log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := s.Check(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// New works like Open for a server that may be down: calls are unavailable until it can be reached. Check returns
// Open's other errors.
func New(connectionString string, log *slog.Logger) (*Store, error) {
	config, err := parse(connectionString)
	if err != nil {
		return nil, fmt.Errorf("event store: %w", err)
	}
	return &Store{
		config:        config,
		log:           log,
		prefixes:      events.StreamPrefixes(),
		pageWait:      pageWait,
		answerTimeout: answerTimeout,
		first:         first{looking: make(chan struct{}, 1)},
	}, nil
}

// Check returns an error for a server that Open refuses, and events.ErrUnavailable for one that cannot be reached.
func (s *Store) Check(ctx context.Context) error {
	err := s.checkVersion(ctx)
	if err == nil {
		err = s.checkAccess(ctx)
	}
	if err != nil {
		return fmt.Errorf("event store: %w", err)
	}
	return nil
}

func (s *Store) checkVersion(ctx context.Context) error {
	c, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer s.release(c, nil)
	if c.version.Major < 23 || c.version.Major == 23 && c.version.Minor < 10 {
		return fmt.Errorf("the server is EventStoreDB %d.%d; 23.10 or later is needed", c.version.Major, c.version.Minor)
	}
	return nil
}

// checkAccess reads from the log to check the credentials, because the client's search for a node sends none. It waits
// for a server that is not ready yet.
func (s *Store) checkAccess(ctx context.Context) error {
	for {
		_, err := s.tail(ctx)
		if refusal, ok := errors.AsType[*refusal](err); ok {
			return refusal
		}
		if !errors.Is(err, events.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(findTimeout):
		case <-ctx.Done():
		}
	}
}

func parse(connectionString string) (esdb.Configuration, error) {
	config, err := esdb.ParseConnectionString(connectionString)
	if bad, ok := errors.AsType[*url.Error](err); ok {
		err = bad.Err // without the URL, which holds the password
	}
	if err != nil {
		return esdb.Configuration{}, fmt.Errorf("connection string: %w", err)
	}
	switch {
	case config.Username != "" && config.DisableTLS:
		return esdb.Configuration{}, errors.New(
			"connection string: the client sends no credentials without TLS; leave out either them or tls=false",
		)
	case config.Username != "" && config.Password == "":
		return esdb.Configuration{}, errors.New("connection string: the client sends no credentials without a password")
	case config.NodePreference != esdb.NodePreferenceLeader:
		return esdb.Configuration{}, errors.New(
			"connection string: nodePreference must be leader; other nodes may not have all that was acknowledged",
		)
	}
	// A client without attempts left is dead, and its callers wait forever.
	config.MaxDiscoverAttempts = math.MaxInt
	if config.GossipTimeout == clientGossipTimeout {
		config.GossipTimeout = gossipTimeout
	}
	return *config, nil
}

// Close disconnects after the running calls; do not use the Store afterwards. A client that is looking for a server
// continues until it finds one or the process ends.
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
