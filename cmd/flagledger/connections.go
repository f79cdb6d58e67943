package main

import (
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/net/netutil"

	"flagledger/http/limit"
)

const (
	mostConnections = 50_000 // some 22 KB each
	mostOfAnAddress = 2_000
	// otherFiles are kept for the database, the event store and files, of the files that the process may have open.
	otherFiles = 256
)

// bound bounds the connections to a listener: those of all clients, which otherwise wait until another is closed, and those of an address that is no proxy's.
func bound(listener net.Listener, proxies []netip.Prefix) net.Listener {
	all := mostConnections
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur < mostConnections+otherFiles {
		all = int(max(files.Cur/2, files.Cur-min(files.Cur, otherFiles)))
	}
	return limit.Connections(netutil.LimitListener(listener, all), min(mostOfAnAddress, all/4), proxies)
}
