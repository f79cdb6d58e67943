package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"flagledger/cmd/flagledger/edge"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands/billing"
	"flagledger/http"
)

type edgeCommand struct {
	From   string   `env:"FLAGLEDGER_EDGE_FROM" required:"" placeholder:"URL" help:"The service, or another edge."`
	Key    []string `env:"FLAGLEDGER_EDGE_KEYS" required:"" sep:"," placeholder:"KEY" help:"Server keys created with --edge, one per environment."`
	Open   bool     `env:"FLAGLEDGER_EDGE_OPEN" help:"Callers on this machine need no key. Only with a loopback address or a unix socket."`
	Socket string   `env:"FLAGLEDGER_EDGE_SOCKET" placeholder:"PATH" help:"A unix socket to listen on instead of FLAGLEDGER_ADDR."`
}

// Run serves until ctx ends, and then lets running calls finish.
func (e edgeCommand) Run(ctx context.Context) error {
	setGCPercent(serverGCPercent)
	signal.Ignore(syscall.SIGPIPE) // the reader of the log may end first
	c, err := settings.Load()
	if err != nil {
		return err
	}
	log := c.Logger()
	if err := e.checkOpen(c.Addr); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return err
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	limits := c.Limits
	limits.UnlimitedServers = true
	server, err := edge.New(edge.Config{
		From: e.From, Keys: e.Key, Open: e.Open, Folder: c.Data, PublicURL: c.PublicURL,
		FollowHost: c.PublicURLAssumed, Limits: limits, FeedReaders: c.Streams.FeedReaders, Proxies: c.ProxyNetworks,
		Metrics: metrics, Now: time.Now, Log: log,
	})
	if err != nil {
		return err
	}
	inner, err := e.listen(ctx, c.Addr)
	if err != nil {
		return err
	}
	followCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() { server.Run(followCtx); close(ended) }()
	defer func() { stop(); <-ended }()
	limited := limitConnections(inner, c, newRefusedConnections(metrics))
	httpServer := http.NewGracefulServer(server.API.Server(), limited, shutdownTimeout/2)
	served := make(chan error, 1)
	go func() { served <- httpServer.Serve() }()
	go func() {
		select {
		case <-server.Ready():
			log.Info("serving", "address", inner.Addr(), "from", e.From, "version", build)
		case <-ctx.Done():
		}
	}()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		log.Info("stopping")
		server.API.BeginStop()
		shutDownEdge(server.API, httpServer, log)
		return nil
	}
}

var errOpen = errors.New("--open serves this machine alone: FLAGLEDGER_ADDR must be a loopback address, or " +
	"FLAGLEDGER_EDGE_SOCKET a unix socket")

// checkOpen refuses an open edge that others than this machine can reach.
func (e edgeCommand) checkOpen(address string) error {
	if !e.Open || e.Socket != "" {
		return nil
	}
	if billing.Loopback((&url.URL{Host: address}).Hostname()) {
		return nil
	}
	return errOpen
}

// listen listens on the socket or else the address. A socket that an earlier process left is replaced.
func (e edgeCommand) listen(ctx context.Context, address string) (net.Listener, error) {
	if e.Socket == "" {
		return listen(ctx, "FLAGLEDGER_ADDR", address)
	}
	if info, err := os.Lstat(e.Socket); err == nil && info.Mode()&os.ModeSocket != 0 {
		if other, err := new(net.Dialer).DialContext(ctx, "unix", e.Socket); err == nil {
			_ = other.Close()
			return nil, errors.New("FLAGLEDGER_EDGE_SOCKET: another process listens on it")
		}
		if err := os.Remove(e.Socket); err != nil {
			return nil, err
		}
	}
	var config net.ListenConfig
	return config.Listen(ctx, "unix", e.Socket)
}

// shutDownEdge ends streams, and ends connections after their calls.
func shutDownEdge(api *http.Edge, server *http.GracefulServer, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	server.CloseListener()
	api.Evaluation.EndStreams()
	api.Flagd.EndStreams()
	if err := server.Shutdown(ctx); err != nil {
		log.Warn("cut off running calls", "err", err)
	}
}
