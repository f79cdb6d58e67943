package http

import (
	"bytes"
	"net"
	"slices"
)

// ForbidSniffing returns a listener on which the answers bear X-Content-Type-Options too that net/http writes by itself, without a handler: those to requests
// that it cannot read, and to an Expect that it does not know.
func ForbidSniffing(listener net.Listener) net.Listener { return sniffless{listener} }

type sniffless struct{ net.Listener }

// Accept implements net.Listener.
func (l sniffless) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return snifflessConn{conn}, nil
}

type snifflessConn struct{ net.Conn }

// Write implements net.Conn.
func (c snifflessConn) Write(p []byte) (int, error) {
	if at := missingNosniff(p); at > 0 {
		if _, err := c.Conn.Write(slices.Insert(slices.Clone(p), at, []byte("X-Content-Type-Options: nosniff\r\n")...)); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// CloseWrite has net/http end an answer before it closes the connection, so that a client that still sends gets it.
func (c snifflessConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// missingNosniff is where the header belongs in an answer of net/http's own, and 0 in anything else. net/http writes each of these in one call. No body of the service has
// CR and LF, so that a piece of one is not taken for such an answer.
func missingNosniff(p []byte) int {
	const status = len("HTTP/1.1 ")
	if !bytes.HasPrefix(p, []byte("HTTP/1.")) || len(p) < status+3 || p[status] < '4' {
		return 0
	}
	line := bytes.Index(p, []byte("\r\n")) + 2
	if bytes.HasPrefix(p[status:], []byte("417 ")) || bytes.HasPrefix(p[max(line, 0):], []byte("Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")) {
		return line
	}
	return 0
}
