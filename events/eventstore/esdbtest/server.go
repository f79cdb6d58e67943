// Package esdbtest is a small server that speaks EventStoreDB's protocol as far as its official client asks for it, keeps its log in memory,
// and can be made to fail in the ways that a real one does. It is for tests.
package esdbtest

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// Version is the release of EventStoreDB that a Server says it is, unless told otherwise.
const Version = "24.2.0"

// Server is the server. All of its methods may be used at once.
type Server struct {
	t       testing.TB
	address string

	log    log
	faults faults

	mu      sync.Mutex // of what follows
	version string
	server  *grpc.Server // nil while stopped
	conns   map[*trackedConn]struct{}
	dials   int
}

// New starts a server on a free port of the loopback interface. It ends with the test.
func New(t testing.TB) *Server {
	s := &Server{t: t, address: "127.0.0.1:0", version: Version, conns: map[*trackedConn]struct{}{}}
	s.log.init()
	s.faults.init()
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// URL is the connection string of the server.
func (s *Server) URL() string { return "esdb://" + s.address + "?tls=false" }

// Start lets the server listen, again at its old address if it has been stopped. What was in the log still is.
func (s *Server) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return
	}
	var listener net.Listener
	var err error
	listens := func() bool {
		listener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", s.address)
		return err == nil
	}
	if !HoldsIn(time.Second, listens) { // the port is free again only when its last connection is gone
		s.t.Errorf("esdbtest: %v", err)
		return
	}
	s.address = listener.Addr().String()
	s.server = grpc.NewServer(
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.MaxRecvMsgSize(16<<20),
		grpc.UnaryInterceptor(s.slowUnary),
		grpc.StreamInterceptor(s.slowStream),
	)
	streams.RegisterStreamsServer(s.server, streamsService{s: s})
	serverfeatures.RegisterServerFeaturesServer(s.server, featuresService{s: s})
	gossip.RegisterGossipServer(s.server, gossipService{s: s})
	go func(server *grpc.Server) { _ = server.Serve(tracked{listener, s}) }(s.server)
}

// Stop breaks all connections and lets nobody connect until Start.
func (s *Server) Stop() {
	s.mu.Lock()
	server := s.server
	s.server = nil
	s.mu.Unlock()
	if server != nil {
		s.Reset()
		server.Stop()
	}
}

// Reset breaks all connections with a TCP reset, in the middle of whatever they do.
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

// Connections returns how many connections are open, and how many there have been in all.
func (s *Server) Connections() (open, ever int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns), s.dials
}

// SetVersion lets the server say that it is another release.
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

// gossipService tells of a cluster whose leader and only member is the server.
type gossipService struct {
	gossip.UnimplementedGossipServer
	s *Server
}

func (g gossipService) Read(context.Context, *shared.Empty) (*gossip.ClusterInfo, error) {
	host, port, err := net.SplitHostPort(g.s.address)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	return &gossip.ClusterInfo{Members: []*gossip.MemberInfo{{
		State: gossip.MemberInfo_Leader, IsAlive: true, HttpEndPoint: &gossip.EndPoint{Address: host, Port: uint32(n)},
	}}}, nil
}

// tracked notes the connections of a listener.
type tracked struct {
	net.Listener
	s *Server
}

func (l tracked) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &trackedConn{conn, l.s}
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

func (c *trackedConn) Close() error {
	c.s.mu.Lock()
	delete(c.s.conns, c)
	c.s.mu.Unlock()
	return c.Conn.Close()
}
