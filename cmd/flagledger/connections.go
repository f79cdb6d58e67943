package main

import (
	"net"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"

	"flagledger/cmd/flagledger/node"
	"flagledger/http/limit"
)

const (
	mostConnections = 50_000 // some 22 KB each
	// otherFiles are kept for the database, the event store and files, of the files that the process may have open.
	otherFiles = 256
)

// boundConnections bounds the connections to a listener: those of all clients, which otherwise wait until another is
// closed, and those of an address that is no proxy's, which are refused and counted in the metrics.
func boundConnections(listener net.Listener, c node.Config, metrics *prometheus.Registry) net.Listener {
	refused := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "flagledger_connections_refused_total",
		Help: "Connections that were closed at once, since their client address had as many as it may have.",
	})
	metrics.MustRegister(refused)
	all := mostConnections
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur < mostConnections+otherFiles {
		all = int(max(files.Cur/2, files.Cur-min(files.Cur, otherFiles)))
	}
	return limit.Connections(listener, all, min(c.AddressConnections, all/4), c.ProxyNetworks, refused.Inc)
}
