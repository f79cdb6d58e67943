package postgres_test

import (
	"io"
	"log/slog"
	"net"
	"net/url"
	"testing"

	"flagledger/events/postgres"
	"flagledger/migrations/pgtest"
)

// A busy Postgres may not answer a connection in time. A start waits for it.
func TestOpenWaitsForASlowDatabase(t *testing.T) {
	t.Parallel()
	database, err := url.Parse(pgtest.Migrated(t))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	server := database.Host
	go func() {
		unanswered, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = unanswered.Close() }()
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			answering, err := net.Dial("tcp", server)
			if err != nil {
				t.Error(err)
				_ = client.Close()
				return
			}
			go relay(client, answering)
			go relay(answering, client)
		}
	}()
	database.Host = listener.Addr().String()
	store, err := postgres.Open(t.Context(), database.String(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
}

func relay(to io.WriteCloser, from io.Reader) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
}
