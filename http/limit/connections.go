package limit

import (
	"net"
	"net/netip"
	"sync"
)

// Connections accepts at most so many connections of a client address at once, by the IPv4 address or the IPv6 /48, and closes further ones at once, for each of
// which it calls refused. It does not bound those of proxies.
func Connections(listener net.Listener, each int, proxies []netip.Prefix, refused func()) net.Listener {
	return &connections{Listener: listener, each: each, proxies: proxies, refused: refused, open: map[netip.Prefix]int{}}
}

type connections struct {
	net.Listener
	each    int
	proxies []netip.Prefix
	refused func()

	mu   sync.Mutex
	open map[netip.Prefix]int
}

// Accept implements net.Listener.
func (l *connections) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := parseAddress(conn.RemoteAddr().String())
		if !address.IsValid() || contain(l.proxies, address) {
			return conn, nil
		}
		from := site(address)
		if l.take(from) {
			return &connection{Conn: conn, close: sync.OnceFunc(func() { l.giveBack(from) })}, nil
		}
		_ = conn.Close()
		l.refused()
	}
}

func (l *connections) take(from netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[from] >= l.each {
		return false
	}
	l.open[from]++
	return true
}

func (l *connections) giveBack(from netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[from]--; l.open[from] == 0 {
		delete(l.open, from)
	}
}

type connection struct {
	net.Conn
	close func()
}

// Close implements net.Conn.
func (c *connection) Close() error {
	err := c.Conn.Close()
	c.close()
	return err
}
