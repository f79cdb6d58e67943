package systemtest

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/projections"
)

// A start waits for a busy database. It does not fail even without a snapshot on disk.
func TestAStartWaitsForABusyDatabase(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(nodetest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int32
	relayed := refuseReaders(t, address.Host, func() bool { return refused.Add(1) <= 3 })
	address.Host, address.RawQuery = relayed, "sslmode=disable"
	n, err := node.Start(t.Context(),
		settings.Config{PublicURL: "http://localhost", Environment: "development", Secret: nodetest.Secret, Now: time.Now},
		address.String(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer n.Stop()
	if refused.Load() <= 3 {
		t.Errorf("%d connections were refused", refused.Load())
	}
}

// refuseReaders relays connections to a Postgres, and breaks those for reads while refuse says so.
func refuseReaders(t *testing.T, postgres string, refuse func() bool) (address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	reader := []byte("application_name\x00" + projections.ReaderName + "\x00")
	relay := func(caller net.Conn) {
		defer func() { _ = caller.Close() }()
		startup := make([]byte, 4096)
		n, err := caller.Read(startup)
		if err != nil || bytes.Contains(startup[:n], reader) && refuse() {
			return
		}
		server, err := net.Dial("tcp", postgres)
		if err != nil {
			return
		}
		defer func() { _ = server.Close() }()
		go func() {
			defer func() { _ = server.Close() }()
			if _, err := server.Write(startup[:n]); err == nil {
				_, _ = io.Copy(server, caller)
			}
		}()
		_, _ = io.Copy(caller, server)
	}
	go func() {
		for {
			caller, err := listener.Accept()
			if err != nil {
				return
			}
			go relay(caller)
		}
	}()
	return listener.Addr().String()
}
