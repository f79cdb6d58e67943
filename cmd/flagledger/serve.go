package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	nethttp "net/http"
	"os"
	"time"

	"flagledger/cmd/flagledger/node"
	"flagledger/http"
)

const shutdownTimeout = 10 * time.Second

type serveCommand struct{}

// Run serves until ctx ends, lets calls under way finish, and stops all that it started.
func (serveCommand) Run(ctx context.Context) error {
	defer reserveHeap()()
	c, err := node.Load()
	if err != nil {
		return err
	}
	c.Build = build
	log := c.Logger()
	listener, err := listen(ctx, "FLAGLEDGER_ADDR", c.Addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	c.WarnOfExposure(log)
	var metricsListener net.Listener
	if c.MetricsAddr != "" {
		if metricsListener, err = listen(ctx, "FLAGLEDGER_METRICS_ADDR", c.MetricsAddr); err != nil {
			return err
		}
		defer metricsListener.Close()
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
	server := n.API.Server()
	served := make(chan error, 2)
	go func() {
		served <- server.Serve(http.WithNosniff(server, boundConnections(listener, c, n.API.Metrics)))
	}()
	if metricsListener != nil {
		metrics := n.API.MetricsServer()
		defer func() { _ = metrics.Close() }()
		go func() { served <- metrics.Serve(http.WithNosniff(metrics, metricsListener)) }()
	}
	ready := n.Ready
	for {
		select {
		case <-ready:
			ready = nil
			log.Info("serving", "url", c.PublicURL, "environment", c.Environment, "version", build)
			if c.Environment == "development" {
				greet(c.PublicURL)
			}
		case err := <-served:
			return err
		case <-ctx.Done():
			shutDown(server, log)
			return nil
		}
	}
}

// listen listens at the address of a setting.
func listen(ctx context.Context, setting, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return listener, nil
}

// shutDown lets calls under way finish.
func shutDown(server *nethttp.Server, log *slog.Logger) {
	log.Info("stopping")
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil && !errors.Is(err, nethttp.ErrServerClosed) {
		log.Warn("calls under way were cut off", "err", err)
	}
}

// startError is the error of a start, nil where it was told to end before it was done.
func startError(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// greet prints where the service is and the first calls to make.
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
