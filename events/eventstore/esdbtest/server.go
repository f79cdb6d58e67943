// Package esdbtest is a small EventStoreDB server for tests. It implements the part of the protocol that the official
// client uses, stores its log in memory, and simulates the faults of a real server.
package esdbtest

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

// Version is the EventStoreDB release that a Server reports by default.
const Version = "24.2.0"

// Server is the server. It is safe for concurrent use.
type Server struct {
	t       testing.TB
	address string      // set by the first Start
	tls     *tls.Config // nil without TLS

	log     *log
	cluster *cluster
	faults  faults
	sent    atomic.Int64 // events

	mu             sync.Mutex // guards the fields below
	version        string
	server         *grpc.Server // nil while stopped
	conns          map[*trackedConn]struct{}
	dials          int
	user, password string // required for streams, unless empty
}

// New starts a server on a free loopback port. It stops with the test.
func New(t testing.TB) *Server { return NewCluster(t, 1)[0] }

// NewTLS starts a server that speaks only TLS, with a self-signed certificate.
func NewTLS(t testing.TB) *Server { return start(t, newLog(), &cluster{}, selfSigned(t)) }

func start(t testing.TB, l *log, c *cluster, tls *tls.Config) *Server {
	s := &Server{t: t, tls: tls, log: l, cluster: c, version: Version, conns: map[*trackedConn]struct{}{}}
	s.faults.init()
	s.Start()
	c.join(s)
	t.Cleanup(s.Stop)
	return s
}

// URL returns the server's connection string, without credentials.
func (s *Server) URL() string { return s.url("") }

// URLAs returns the server's connection string for a user.
func (s *Server) URLAs(user, password string) string { return s.url(user + ":" + password + "@") }

func (s *Server) url(credentials string) string {
	options := "?tls=false"
	if s.tls != nil {
		options = "?tls=true&tlsVerifyCert=false"
	}
	return "esdb://" + credentials + s.address + options
}

// anyAddress returns a random port below the range of outgoing connections, which could occupy it while the server is
// stopped.
func anyAddress() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.IntN(10_000))) //nolint:gosec // no secret
}

// Start makes the server listen, after a stop on its old address and with its old log.
func (s *Server) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return
	}
	var listener net.Listener
	var err error
	listens := func() bool {
		address := s.address
		if address == "" {
			address = anyAddress()
		}
		listener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
		return err == nil
	}
	if !WaitFor(time.Minute, listens) { // the port is free when its last connection is closed
		s.t.Errorf("esdbtest: %v", err)
		return
	}
	s.address = listener.Addr().String()
	options := []grpc.ServerOption{
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.MaxRecvMsgSize(16 << 20),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
	}
	if s.tls != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(s.tls)))
	}
	s.server = grpc.NewServer(options...)
	streams.RegisterStreamsServer(s.server, streamsService{s: s})
	serverfeatures.RegisterServerFeaturesServer(s.server, featuresService{s: s})
	gossip.RegisterGossipServer(s.server, gossipService{s: s})
	go func(server *grpc.Server) { _ = server.Serve(tracked{listener, s}) }(s.server)
}

// Stop breaks all connections and refuses new ones until Start.
func (s *Server) Stop() {
	s.mu.Lock()
	server := s.server
	s.server = nil
	s.mu.Unlock()
	if server != nil {
		s.Thaw()
		s.Reset()
		server.Stop()
	}
}

// Reset breaks all connections with a TCP reset, even during a call.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		if tcp, ok := conn.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Conn.Close()
	}
}

// Connections returns the numbers of open connections and of all connections so far.
func (s *Server) Connections() (open, ever int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns), s.dials
}

// Sent returns how many events the server has sent, in responses and over subscriptions.
func (s *Server) Sent() int { return int(s.sent.Load()) }

// SetVersion changes the release that the server reports.
func (s *Server) SetVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

type featuresService struct {
	serverfeatures.UnimplementedServerFeaturesServer
	s *Server
}

func (f featuresService) GetSupportedMethods(context.Context, *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return &serverfeatures.SupportedMethods{EventStoreServerVersion: f.s.version}, nil
}

// tracked is a listener that records its connections.
type tracked struct {
	net.Listener
	s *Server
}

func (l tracked) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &trackedConn{conn, l.s} // also while the server hangs: the system accepts for it
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.conns[c] = struct{}{}
	l.s.dials++
	return c, nil
}

type trackedConn struct {
	net.Conn
	s *Server
}

func (c *trackedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.s.faults.frozen()
	return n, err
}

func (c *trackedConn) Write(b []byte) (int, error) {
	c.s.faults.frozen()
	return c.Conn.Write(b)
}

func (c *trackedConn) Close() error {
	c.s.mu.Lock()
	delete(c.s.conns, c)
	c.s.mu.Unlock()
	return c.Conn.Close()
}
