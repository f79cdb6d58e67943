package database

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
)

// connections holds all connections of this process to one database.
type connections struct {
	mu     sync.Mutex
	open   map[*connection]struct{}
	writer string // the last server that accepted writes, by its start time
}

// connection is one of these connections.
type connection struct {
	net.Conn
	owner  *connections
	server string // its start time; empty if unknown
	closed atomic.Bool
}

// databases maps the text of a URL to this process's connections, because all pools of a node must leave a replaced
// server together. There are few URLs.
var databases sync.Map

func connectionsTo(url string) *connections {
	found, _ := databases.LoadOrStore(url, &connections{open: map[*connection]struct{}{}})
	return found.(*connections)
}

// add is a hook of pgconn for a new connection.
func (all *connections) add(_ context.Context, _ *pgconn.Config, opened net.Conn) (net.Conn, error) {
	c := &connection{Conn: opened, owner: all}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.open[c] = struct{}{}
	return c, nil
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.closed.Store(true)
	c.owner.mu.Lock()
	delete(c.owner.open, c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}

// isOpen reports whether this process has not closed the connection.
func isOpen(conn *pgconn.PgConn) bool {
	c, ok := conn.Conn().(*connection)
	return !ok || !c.closed.Load()
}

// admit records the server of a new connection. A server that accepts writes replaces all others: their connections
// are closed. It refuses a read-only one, with false, while there are connections to a server that accepted writes.
func (all *connections) admit(opened net.Conn, server string, readOnly bool) bool {
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
