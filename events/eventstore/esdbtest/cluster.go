package esdbtest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// cluster is a group of servers that share one log and have one leader.
type cluster struct {
	mu      sync.Mutex
	members []*Server
	leader  *Server
	dead    map[*Server]bool // from the view of the other servers
}

// NewCluster starts n servers with a shared log. The first one leads. Followers answer reads and refuse appends, as
// real ones do.
func NewCluster(t testing.TB, n int) []*Server {
	l, c := newLog(), &cluster{}
	list := make([]*Server, n)
	for i := range list {
		list[i] = start(t, l, c, nil)
	}
	return list
}

// ClusterURL returns the connection string with all servers of a cluster.
func ClusterURL(servers []*Server) string {
	addresses := make([]string, len(servers))
	for i, s := range servers {
		addresses[i] = s.address
	}
	return "esdb://" + strings.Join(addresses, ",") + "?tls=false"
}

func (c *cluster) join(s *Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = append(c.members, s)
	if c.leader == nil {
		c.leader = s
	}
}

// Elect makes the server the leader of its cluster. From then on all members report it, and the old leader as dead.
func (s *Server) Elect() {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	s.cluster.dead = map[*Server]bool{s.cluster.leader: true}
	s.cluster.leader = s
}

// lead refuses a call that only the leader may answer, and names the leader.
func (s *Server) lead(call grpc.ServerStream) error {
	s.cluster.mu.Lock()
	leader := s.cluster.leader
	s.cluster.mu.Unlock()
	if leader == s {
		return nil
	}
	host, port, err := net.SplitHostPort(leader.address)
	if err != nil {
		return err
	}
	call.SetTrailer(metadata.Pairs("exception", "not-leader", "leader-endpoint-host", host, "leader-endpoint-port", port))
	return status.Error(codes.NotFound, fmt.Sprintf("Leader info available: %s", leader.address))
}

// gossipService reports the members of the cluster and its leader.
type gossipService struct {
	gossip.UnimplementedGossipServer
	s *Server
}

func (g gossipService) Read(context.Context, *shared.Empty) (*gossip.ClusterInfo, error) {
	c := g.s.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	info := &gossip.ClusterInfo{}
	for _, m := range c.members {
		host, port, err := net.SplitHostPort(m.address)
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return nil, err
		}
		state := gossip.MemberInfo_Follower
		if m == c.leader {
			state = gossip.MemberInfo_Leader
		}
		info.Members = append(info.Members, &gossip.MemberInfo{
			State: state, IsAlive: !c.dead[m], HttpEndPoint: &gossip.EndPoint{Address: host, Port: uint32(n)},
		})
	}
	return info, nil
}
