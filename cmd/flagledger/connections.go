package main

import (
	"net"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/http/quota"
)

const (
	mostConnections = 50_000 // some 22 KB each
	// otherFiles is reserved for the database, the event store and files, out of the process's limit of open files.
	otherFiles = 256
)

// limitConnections limits a listener's connections. Beyond the limit of all clients, new ones wait. Beyond the limit of
// an address that is not a proxy's, new ones are refused and counted in the metrics.
func limitConnections(listener net.Listener, c settings.Config, refused prometheus.Counter) net.Listener {
	all := mostConnections
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur < mostConnections+otherFiles {
		all = int(max(files.Cur/2, files.Cur-min(files.Cur, otherFiles)))
	}
	return quota.Connections(listener, all, min(c.AddressConnections, all/4), c.ProxyNetworks, refused.Inc)
}

// newRefusedConnections returns the counter for limitConnections.
func newRefusedConnections(metrics *prometheus.Registry) prometheus.Counter {
	refused := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "flagledger_connections_refused_total",
		Help: "Connections closed at once, because their client address had reached its limit.",
	})
	metrics.MustRegister(refused)
	return refused
}
