package quota

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"
)

// acceptAll returns the connections of a listener until it is closed.
func acceptAll(listener net.Listener) <-chan net.Conn {
	accepted := make(chan net.Conn, 100)
	go func() {
		defer close(accepted)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	return accepted
}

func TestConnectionsOfAnAddressAreBounded(t *testing.T) {
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int64
	listener := Connections(inner, 100, 2, []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}, func() { refused.Add(1) })
	accepted := acceptAll(listener)
	dial := func(from string) net.Conn {
		t.Helper()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: time.Minute}
		conn, err := dialer.DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	next := func() net.Conn {
		t.Helper()
		select {
		case conn := <-accepted:
			return conn
		case <-time.After(time.Minute):
			t.Fatal("a connection is not accepted")
			return nil
		}
	}
	dial("127.0.0.1")
	first := next()
	dial("127.0.0.1")
	next()
	over := dial("127.0.0.1")
	if _, err := over.Read(make([]byte, 1)); err == nil || len(accepted) > 0 {
		t.Error("a third connection is accepted")
	}
	for range 3 {
		dial("127.0.0.9") // a proxy
		next()
	}
	dial("127.0.0.2")
	if from := next().RemoteAddr().(*net.TCPAddr).IP.String(); from != "127.0.0.2" {
		t.Errorf("the connection accepted is from %s", from)
	}
	_ = first.Close()
	_ = first.Close()
	dial("127.0.0.1")
	next()
	over = dial("127.0.0.1")
	if _, err := over.Read(make([]byte, 1)); err == nil {
		t.Error("a connection that is closed twice makes room for two")
	}
	_ = inner.Close()
	for range accepted {
		t.Error("more connections are accepted")
	}
	if n := refused.Load(); n != 2 {
		t.Errorf("%d connections were refused, want 2", n)
	}
}

// Beyond the total limit a connection waits until another is closed, also one of a proxy. A waiting Accept ends when
// the listener is closed.
func TestConnectionsTogetherAreBounded(t *testing.T) {
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := Connections(inner, 2, 1, []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		func() { t.Error("a proxy is refused") })
	accepted := acceptAll(listener)
	for range 3 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	first := <-accepted
	second := <-accepted
	t.Cleanup(func() { _ = second.Close() })
	if n := len(listener.(*connections).slots); n != 2 || len(accepted) != 0 {
		t.Errorf("%d slots are taken and %d more connections accepted, want 2 and none", n, len(accepted))
	}
	_ = first.Close()
	_ = first.Close()
	third := <-accepted
	t.Cleanup(func() { _ = third.Close() })
	_ = listener.Close()
	_ = listener.Close()
	for range accepted {
		t.Error("more connections are accepted")
	}
}
