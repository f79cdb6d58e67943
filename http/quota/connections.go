package quota

import (
	"net"
	"net/netip"
	"sync"
)

// Connections limits the connections of a listener. Beyond all, Accept waits until one is closed. Beyond each per
// client network (an IPv4 address or IPv6 /48), a connection is closed at once and refused is called; proxies are
// exempt from that.
func Connections(listener net.Listener, all, each int, proxies []netip.Prefix, refused func()) net.Listener {
	return &connections{
		Listener: listener,
		slots:    make(chan struct{}, all),
		closed:   make(chan struct{}),
		each:     each,
		proxies:  proxies,
		refused:  refused,
		open:     map[netip.Prefix]int{},
	}
}

type connections struct {
	net.Listener
	slots   chan struct{} // full if the limit of connections is reached
	closed  chan struct{}
	closing sync.Once
	each    int
	proxies []netip.Prefix
	refused func()

	mu   sync.Mutex
	open map[netip.Prefix]int
}

// Accept implements net.Listener.
func (l *connections) Accept() (net.Conn, error) {
	for {
		select {
		case l.slots <- struct{}{}:
		case <-l.closed:
			return nil, net.ErrClosed
		}
		conn, err := l.Listener.Accept()
		if err != nil {
			<-l.slots
			return nil, err
		}
		address := parseAddress(conn.RemoteAddr().String())
		if !address.IsValid() || contain(l.proxies, address) {
			return &connection{Conn: conn, close: sync.OnceFunc(func() { <-l.slots })}, nil
		}
		from := site(address)
		if l.take(from) {
			return &connection{Conn: conn, close: sync.OnceFunc(func() {
				l.release(from)
				<-l.slots
			})}, nil
		}
		_ = conn.Close()
		<-l.slots
		l.refused()
	}
}

// Close implements net.Listener.
func (l *connections) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return l.Listener.Close()
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

func (l *connections) release(from netip.Prefix) {
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

// CloseWrite closes the write side, if the connection supports it, and leaves the read side open.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements net.Conn.
func (c *connection) Close() error {
	err := c.Conn.Close()
	c.close()
	return err
}
