package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/http"
)

const (
	// listenAfter is when a node that cannot evaluate flags yet begins to listen, and answers that it is starting.
	// Before that, callers find no listener and try another node.
	listenAfter     = 10 * time.Second
	shutdownTimeout = 10 * time.Second
)

type serveCommand struct{}

// Run serves until ctx ends, continues for the drain time, lets running calls finish, and stops everything.
func (serveCommand) Run(ctx context.Context) error {
	setGCPercent(serverGCPercent)
	signal.Ignore(syscall.SIGPIPE) // the reader of the log may end first
	c, err := settings.Load()
	if err != nil {
		return err
	}
	c.Build = build
	log := c.Logger()
	if err := checkAddress(ctx, c.Addr); err != nil {
		return err
	}
	c.WarnOfExposure(log)
	c.LogPublicURL(log)
	var metricsListener net.Listener
	if c.MetricsAddr != "" {
		if metricsListener, err = listen(ctx, "FLAGLEDGER_METRICS_ADDR", c.MetricsAddr); err != nil {
			return err
		}
		defer metricsListener.Close()
	}
	var syncListener net.Listener
	if c.SyncAddr != "" {
		if syncListener, err = listen(ctx, "FLAGLEDGER_SYNC_ADDR", c.SyncAddr); err != nil {
			return err
		}
		defer syncListener.Close()
	}
	var n *node.Node
	if url, stopDatabase, unopened := node.OpenDatabase(ctx, c, log); unopened == nil {
		defer stopDatabase()
		n, err = node.Start(ctx, c, url, log)
	} else {
		n, err = node.StartWithoutDatabase(ctx, c, unopened, log)
	}
	if err != nil {
		return startError(ctx, err)
	}
	defer n.Stop()
	served := make(chan error, 3)
	if metricsListener != nil {
		metrics := n.API.MetricsServer()
		defer func() { _ = metrics.Close() }()
		go func() { served <- http.NewGracefulServer(metrics, metricsListener, 0).Serve() }()
	}
	select {
	case <-n.Ready:
	case <-time.After(listenAfter):
		log.Warn("the node listens before flags can be evaluated: until then it answers 503")
	case err := <-served:
		return err
	case <-ctx.Done():
		return nil
	}
	inner, err := listen(ctx, "FLAGLEDGER_ADDR", c.Addr)
	if err != nil {
		return startError(ctx, err)
	}
	idleGrace := min(c.DrainFor, shutdownTimeout/2) // a slow client has the drain's time, within the shutdown's
	refused := newRefusedConnections(n.API.Metrics)
	server := http.NewGracefulServer(n.API.Server(), limitConnections(inner, c, refused), idleGrace)
	go func() { served <- server.Serve() }()
	servers := []*http.GracefulServer{server}
	if syncListener != nil {
		syncServer := http.NewGracefulServer(n.API.Flagd.SyncServer(), limitConnections(syncListener, c, refused), 0)
		servers = append(servers, syncServer)
		go func() { served <- syncServer.Serve() }()
	}
	ready, evaluating := n.Ready, false
	for {
		select {
		case <-ready:
			ready, evaluating = nil, true
			log.Info("serving", "url", c.PublicURL, "environment", c.Environment, "version", build)
			if c.Environment == "development" {
				greet(c.PublicURL)
			}
		case err := <-served:
			return err
		case <-ctx.Done():
			log.Info("stopping", "drain", c.DrainFor)
			n.API.BeginStop()
			if evaluating { // otherwise a balancer sends no calls anyway
				time.Sleep(c.DrainFor)
			}
			stopAccepting(inner)
			shutDown(n.API, servers, log)
			return nil
		}
	}
}

// checkAddress checks that the node can listen on its address before it changes anything.
func checkAddress(ctx context.Context, address string) error {
	listener, err := listen(ctx, "FLAGLEDGER_ADDR", address)
	if err != nil {
		return err
	}
	return listener.Close()
}

// listen listens on the address of a setting. Multipath TCP does not support the filter of stopAccepting.
func listen(ctx context.Context, setting, address string) (net.Listener, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return listener, nil
}

// shutDown ends streams, and ends connections after their calls.
func shutDown(api *http.API, servers []*http.GracefulServer, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	for _, server := range servers {
		server.CloseListener() // so that clients open their streams on another node
	}
	api.Evaluation.EndStreams()
	api.Flagd.EndStreams()
	var ended sync.WaitGroup
	for _, server := range servers {
		ended.Go(func() {
			if err := server.Shutdown(ctx); err != nil {
				log.Warn("cut off running calls", "err", err)
			}
		})
	}
	ended.Wait()
}

// startError returns the error of a start, or nil if the start was asked to end.
func startError(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// greet prints the service's address and the first calls to make.
func greet(url string) {
	fmt.Fprintf(os.Stdout, `
flagledger is ready at %[1]s. Its interface is explained at %[1]s/docs. First calls:

  curl -s %[1]s/auth/signup -H 'Content-Type: application/json' -d '{"email":"me@example.com","password":"correct horse"}'
  export TOKEN=...    # "token" of the answer
  curl -s %[1]s/api/v1/tenants -H "Authorization: Bearer $TOKEN"
  export TENANT=...   # "id" of the answer
  curl -s %[1]s/api/v1/flags -H "Authorization: Bearer $TOKEN" -H "X-Tenant-ID: $TENANT" \
       -H 'Content-Type: application/json' -d '{"key":"new-checkout","type":"boolean"}'

`, url)
}
