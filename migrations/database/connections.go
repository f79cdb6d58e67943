package database

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
)

// connections are all connections of this process to one database.
type connections struct {
	mu     sync.Mutex
	open   map[*connection]struct{}
	writer string // the server that took writes last, by its start time
}

// connection is one of them.
type connection struct {
	net.Conn
	of     *connections
	server string // by its start time; empty until it has told
	closed atomic.Bool
}

var databases sync.Map // URLs to *connections

func connectionsTo(url string) *connections {
	found, _ := databases.LoadOrStore(url, &connections{open: map[*connection]struct{}{}})
	return found.(*connections)
}

// add is a hook of pgconn for a connection that was just opened.
func (all *connections) add(_ context.Context, _ *pgconn.Config, opened net.Conn) (net.Conn, error) {
	c := &connection{Conn: opened, of: all}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.open[c] = struct{}{}
	return c, nil
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.closed.Store(true)
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// isOpen reports whether this process has not closed the connection.
func isOpen(conn *pgconn.PgConn) bool {
	c, ok := conn.Conn().(*connection)
	return !ok || !c.closed.Load()
}

// joined notes the server of a new connection. One that takes writes replaces all others: connections to them end. One that takes none is refused, and joined
// returns false, while there are connections to another that did.
func (all *connections) joined(opened net.Conn, server string, readOnly bool) bool {
	all.mu.Lock()
	var others []*connection
	for c := range all.open {
		if c.server != "" && c.server != server && (!readOnly || c.server == all.writer) {
			others = append(others, c)
		}
	}
	if !readOnly {
		all.writer = server
	}
	if c, ok := opened.(*connection); ok {
		c.server = server
	}
	all.mu.Unlock()
	if readOnly {
		return len(others) == 0
	}
	for _, c := range others {
		_ = c.Close()
	}
	return true
}
