package eventstore_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/events/eventstore"
	"flagledger/events/eventstore/esdbtest"
)

// The client searches for a node without credentials, so it finds one even if they are wrong.
func TestOpenEndsWhenCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	secure, plain := esdbtest.NewTLS(t), esdbtest.New(t)
	secure.RequireCredentials("admin", "changeit")
	plain.RequireCredentials("admin", "changeit")
	for name, c := range map[string]struct{ url, want string }{
		"wrong password":      {secure.URLAs("admin", "sesame"), "wrong user or password"},
		"wrong user":          {secure.URLAs("sesame", "changeit"), "wrong user or password"},
		"none":                {secure.URL(), "the connection string has none"},
		"none, and tls=false": {plain.URL(), "tls=true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := openURL(t.Context(), c.url)
			if !errors.Is(err, eventstore.ErrCredentials) || errors.Is(err, events.ErrUnavailable) {
				t.Fatalf("open: %v, want ErrCredentials", err)
			}
			t.Log(err)
			if text := err.Error(); !strings.Contains(text, c.want) || strings.Contains(text, "sesame") ||
				strings.Contains(text, "\n") {
				t.Errorf("open: %v, want one line that says %q and tells no password", err, c.want)
			}
		})
	}
	s := connect(t, secure.URLAs("admin", "changeit"))
	mustAppend(t, s, "project-1", 0, renamed("a"))
	expect(t, follow(t, s, events.Position{}), 1, 1)
}

// lines counts the lines of a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestCredentialsAreRefusedLater(t *testing.T) {
	t.Parallel()
	server := esdbtest.NewTLS(t)
	server.RequireCredentials("admin", "changeit")
	log := &lines{}
	s, err := eventstore.Open(t.Context(), server.URLAs("admin", "changeit"), slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	mustAppend(t, s, "project-1", 0, renamed("a"))
	pages := follow(t, s, events.Position{})
	expect(t, pages, 1, 1)

	server.RequireCredentials("admin", "another")
	server.DropSubscriptions()
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, eventstore.ErrCredentials) || !errors.Is(err, events.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrCredentials and ErrUnavailable", what, err)
		}
	}
	for range 20 {
		// If the server refuses a stream before the client has sent everything, the client only sees the end of the stream.
		if _, err := s.Append(t.Context(), "project-1", 1, []events.Event{renamed("b")}); !errors.Is(err, events.ErrUnavailable) {
			t.Errorf("append: %v, want ErrUnavailable", err)
		}
		_, err := s.Head(t.Context())
		refused("head", err)
		for _, err := range s.Read(t.Context(), "project-1", 0) {
			refused("read", err)
		}
	}
	if n := strings.Count(log.String(), "refused the credentials"); n != 1 {
		t.Errorf("the log tells of the refusal %d times, want once\n%s", n, log.String())
	}

	server.RequireCredentials("admin", "changeit")
	mustAppend(t, s, "project-1", 1, renamed("b"))
	expect(t, pages, 2, 1)
}

func TestOpenNamesTheSettingOfTLS(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server   *esdbtest.Server
		from, to string
		want     string
	}{
		"the server wants TLS":     {esdbtest.NewTLS(t), "?tls=true&tlsVerifyCert=false", "?tls=false", "wants tls=true"},
		"the server speaks no TLS": {esdbtest.New(t), "?tls=false", "?tls=true", "needs tls=false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Without a response the credentials may be right: the server may be away.
			for limit := time.Second; limit < time.Minute; limit *= 2 {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				_, err := openURL(ctx, strings.Replace(c.server.URL(), c.from, c.to, 1))
				cancel()
				if err == nil {
					t.Fatal("open succeeded")
				}
				if strings.Contains(err.Error(), c.want) && !strings.Contains(err.Error(), "\n") {
					t.Log(err)
					return
				}
				t.Logf("within %v: %v", limit, err)
			}
			t.Errorf("no error says %q", c.want)
		})
	}
}

// Another node may lag, so its log may seem to end before positions read from the leader.
func TestOpenRefusesAnotherNodeThanTheLeader(t *testing.T) {
	t.Parallel()
	server := esdbtest.New(t)
	for _, preference := range []string{"follower", "random", "readonlyreplica"} {
		if _, err := openURL(t.Context(), server.URL()+"&nodePreference="+preference); err == nil ||
			!strings.Contains(err.Error(), "nodePreference must be leader") {
			t.Errorf("%s: %v", preference, err)
		}
	}
	connect(t, server.URL()+"&nodePreference=leader")
}

// A start waits for an unavailable server.
func TestOpenWaitsForTheServer(t *testing.T) {
	t.Parallel()
	server := esdbtest.New(t)
	server.Stop()
	log := &lines{}
	opened := make(chan error, 1)
	go func() {
		s, err := eventstore.Open(t.Context(), server.URL(),
			slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		if err == nil {
			s.Close()
		}
		opened <- err
	}()
	if !esdbtest.WaitFor(time.Minute, func() bool { return strings.Contains(log.String(), "discovery attempt 2/") }) {
		t.Error("the client does not look for the server again")
	}
	server.Start()
	if err := <-opened; err != nil {
		t.Error(err)
	}
}
