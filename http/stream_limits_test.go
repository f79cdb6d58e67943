package http_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	flagledgerhttp "flagledger/http"
	"flagledger/http/evaluation"
)

// streaming starts a service with stream limits, if given.
func streaming(t *testing.T, limits evaluation.StreamLimits) *nodetest.Service {
	t.Helper()
	t.Parallel()
	return nodetest.Start(t, nodetest.Database(t), settings.Config{Environment: "development", Streams: streamLimits(limits)},
		nodetest.Log(t))
}

func streamLimits(limits evaluation.StreamLimits) evaluation.StreamLimits {
	l := evaluation.DefaultStreamLimits()
	for _, field := range []struct{ to, from *int }{{&l.PerTenant, &limits.PerTenant}, {&l.PerCreator, &limits.PerCreator}} {
		if *field.from != 0 {
			*field.to = *field.from
		}
	}
	for _, field := range []struct{ to, from *time.Duration }{{&l.MaxAge, &limits.MaxAge}, {&l.Heartbeat, &limits.Heartbeat}, {&l.WriteTimeout, &limits.WriteTimeout}} {
		if *field.from != 0 {
			*field.to = *field.from
		}
	}
	return l
}

// openStreams returns the service's number of open streams from its metrics.
func openStreams(s *nodetest.Service) string {
	s.T.Helper()
	for line := range strings.Lines(string(s.Anonymous().Call("GET", "/metrics", nil).Body)) {
		if count, ok := strings.CutPrefix(line, "flagledger_streams "); ok {
			return strings.TrimSpace(count)
		}
	}
	s.T.Fatal("the metrics do not count streams")
	return ""
}

func TestASilentStreamHasAHeartbeat(t *testing.T) {
	me := streaming(t, evaluation.StreamLimits{Heartbeat: 20 * time.Millisecond}).SignUp("me@example.com")
	other := me.NewTenant("other")
	l := listen(me)
	began := l.last
	beat := func() told {
		t.Helper()
		select {
		case e := <-l.events:
			if e.Data != nil || e.ID == "" {
				t.Fatalf("heard %+v", e)
			}
			return e
		case <-time.After(testTimeout):
			t.Fatal("no heartbeat")
			return told{}
		}
	}
	position := func(id string) events.Position {
		t.Helper()
		p, known := streamIDs(me).Position(id)
		nodetest.Same(t, "the id is known", known, true)
		return p
	}
	quiet := beat().ID
	nodetest.Same(t, "the position while nothing happens", position(quiet), position(began))
	if quiet == began {
		t.Error("the id of a heartbeat tells that others have changed nothing")
	}
	other.CreateFlag("theirs", nil)
	me.Service.Eventually("the heartbeat has the position that others have moved",
		func() bool { l.last = beat().ID; return position(l.last) != position(began) })
	me.CreateFlag("mine", nil)
	l.hears("mine 1")
}

func TestATenantsStreamsAreLimited(t *testing.T) {
	me := streaming(t, evaluation.StreamLimits{PerTenant: 2, PerCreator: 3}).SignUp("me@example.com")
	first := listen(me)
	listen(me, "X-Environment", "development")
	saysWhenToRetry(me.Call("GET", streamPath, nil).Refused(429))
	listen(me.NewTenant("other"))
	nodetest.Same(t, "open streams", openStreams(me.Service), "3")
	third := me.NewTenant("third")
	saysWhenToRetry(third.Call("GET", streamPath, nil).Refused(429)) // one creator's free tenants count together
	saysWhenToRetry(third.Machine("flags:evaluate").Call("GET", streamPath, nil).Refused(429))
	listen(me.Service.SignUp("you@example.com")).hangUp()
	me.Service.Eventually("another's stream has ended", func() bool { return openStreams(me.Service) == "3" })
	first.hangUp()
	me.Service.Eventually("another may be opened",
		func() bool { return me.Call("HEAD", streamPath, nil).Status == 200 && openStreams(me.Service) == "2" })
	listen(me)
}

func TestAStreamIsOpenForALimitedTime(t *testing.T) {
	me := streaming(t, evaluation.StreamLimits{MaxAge: 200 * time.Millisecond}).SignUp("me@example.com")
	listen(me).ends()
}

func TestAStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	var later atomic.Int64
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development", Streams: streamLimits(evaluation.StreamLimits{Heartbeat: 10 * time.Millisecond}),
		Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
	}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	l, machines := listen(me), listen(me.Machine("flags:evaluate"))
	me.CreateFlag("k", nil)
	l.hears("k 1")
	machines.hears("k 1")
	later.Store(int64(time.Hour))
	l.ends()
	machines.ends()
}

// A stream lives longer than the server's read and write timeouts, and is not in the metrics' durations.
func TestAStreamOutlivesTheTimeOfARequest(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp("me@example.com")
	server := httptest.NewUnstartedServer(nil)
	server.Config = s.Node.API.Server()
	server.Config.ReadTimeout, server.Config.WriteTimeout = time.Second, time.Second
	server.Start()
	t.Cleanup(server.Close)
	there := *me
	there.Service = &nodetest.Service{T: t, URL: server.URL}
	l := listen(&there)
	select {
	case e := <-l.events:
		t.Fatalf("heard %+v", e)
	case <-time.After(2 * server.Config.ReadTimeout):
	}
	me.CreateFlag("k", nil)
	l.hears("k 1")
	l.hangUp()
	s.Eventually("the stream has ended", func() bool { return openStreams(s) == "0" })
	me.Call("GET", streamPath, nil, "X-Environment", "none").Refused(404)
	metrics := string(s.Anonymous().Call("GET", "/metrics", nil).Body)
	const series = `flagledger_http_request_duration_seconds_count{method="GET",route="/api/v1/flags/stream",status=`
	if !strings.Contains(metrics, series+`"4xx"} 1`) || strings.Contains(metrics, series+`"2xx"`) {
		t.Error("the durations of requests count streams")
	}
}

func TestAStreamEndsWithTheService(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp("me@example.com")
	server := s.Node.API.Server()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving, served := flagledgerhttp.NewGracefulServer(server, listener, 0), make(chan error, 1)
	go func() { served <- serving.Serve() }()
	there := *me
	there.Service = &nodetest.Service{T: t, URL: "http://" + listener.Addr().String()}
	streams := []*listening{listen(&there), listen(&there)}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	s.Node.API.Evaluation.EndStreams()
	if err := serving.Shutdown(ctx); err != nil {
		t.Fatal("the service waits for its streams:", err)
	}
	for _, l := range streams {
		l.ends()
	}
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// smallBuffers makes the network between client and server buffer little.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(1)
	}
	return c, err
}

// dialUnread starts a server and returns a connection to it that buffers little unread data.
func dialUnread(t *testing.T, server *httptest.Server) net.Conn {
	t.Helper()
	server.Listener = smallBuffers{server.Listener}
	server.Start()
	t.Cleanup(server.Close)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(1); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestASlowReaderIsDropped(t *testing.T) {
	s := streaming(t, evaluation.StreamLimits{WriteTimeout: time.Second, Heartbeat: time.Millisecond})
	me := s.SignUp("me@example.com")
	server := httptest.NewUnstartedServer(nil)
	server.Config = s.Node.API.Server()
	conn := dialUnread(t, server)
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nX-Tenant-ID: %s\r\n\r\n", streamPath,
		me.Token, me.Tenant)
	other := listen(me)
	s.Eventually("the streams are open", func() bool { return openStreams(s) == "2" })
	s.Eventually("the one that is not read is dropped", func() bool { return openStreams(s) == "1" })
	me.CreateFlag("k", nil)
	other.hears("k 1")
}

func TestAConnectionWhoseAnswersNobodyReadsIsClosed(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	server := httptest.NewUnstartedServer(nil)
	server.Config = s.Node.API.Server()
	if longest := server.Config.WriteTimeout; longest != time.Minute {
		t.Errorf("an answer may take %s", longest)
	}
	server.Config.WriteTimeout = min(server.Config.WriteTimeout, 300*time.Millisecond)
	closed := make(chan struct{})
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(closed)
		}
	}
	conn := dialUnread(t, server)
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", "/openapi.json")
	select {
	case <-closed:
	case <-time.After(testTimeout):
		t.Fatal("it holds its connection, and what it was to be answered")
	}
}

// streamIDs returns the ids of a person's streams.
func streamIDs(me *nodetest.Client) evaluation.StreamIDs {
	me.Service.T.Helper()
	ids, err := me.Service.Node.API.Evaluation.StreamIDs(me.Tenant)
	if err != nil {
		me.Service.T.Fatal(err)
	}
	return ids
}
