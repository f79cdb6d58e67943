package main

import (
	"errors"
	"io"
	"net"
	nethttp "net/http"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/http"
)

// Connections beyond the setting are closed, and the metrics count them.
func TestRefusedConnectionsAreCounted(t *testing.T) {
	t.Parallel()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	metrics := prometheus.NewRegistry()
	listener := limitConnections(inner, settings.Config{AddressConnections: 1}, newRefusedConnections(metrics))
	accepted := make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				break
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
		accepted <- n
	}()
	for i := range 3 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if i == 0 {
			continue
		}
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a connection beyond the setting is kept: %v", err)
		}
	}
	_ = inner.Close()
	if n := <-accepted; n != 1 {
		t.Errorf("%d connections were accepted, want 1", n)
	}
	families, err := metrics.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "flagledger_connections_refused_total" ||
		families[0].GetMetric()[0].GetCounter().GetValue() != 2 {
		t.Errorf("the metrics are %v: %v", families, err)
	}
}

// A client reads a response to its end while it still sends. net/http does the same with its own responses, and soon
// closes the connection, which resets it.
func TestAConnectionIsHalfClosed(t *testing.T) {
	t.Parallel()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan net.Conn, 1)
	hijack := nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		conn, _, err := nethttp.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
		}
		taken <- conn
	})
	bounded := limitConnections(inner, settings.Config{AddressConnections: 10},
		newRefusedConnections(prometheus.NewRegistry()))
	graceful := http.NewGracefulServer(&nethttp.Server{Handler: hijack, ReadHeaderTimeout: time.Minute}, bounded, 0)
	go func() { _ = graceful.Serve() }()
	t.Cleanup(graceful.CloseListener)
	client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	server := <-taken
	t.Cleanup(func() { _ = server.Close() })
	for _, conn := range []net.Conn{client, server} {
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
	}
	if _, err := io.WriteString(server, "answer"); err != nil {
		t.Fatal(err)
	}
	half, ok := server.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		t.Fatal("the connection cannot be half closed")
	}
	if answer, err := io.ReadAll(client); err != nil || string(answer) != "answer" {
		t.Errorf("the answer is %q: %v", answer, err)
	}
	sent := make([]byte, 4)
	if _, err := io.WriteString(client, "more"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(server, sent); err != nil || string(sent) != "more" {
		t.Errorf("the server reads %q: %v", sent, err)
	}
}
