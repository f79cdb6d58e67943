package flagd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	apihttp "flagledger/http"
)

const syncPath = "/flagd.sync.v1.FlagSyncService/SyncFlags"

// bareClient is a connection of HTTP/2 in clear whose client does as it likes.
type bareClient struct {
	*http2.Framer
	conn    net.Conn
	block   bytes.Buffer
	headers *hpack.Encoder
	next    uint32 // the id of the next stream
}

// connectBare opens a connection with settings, and ends it with the test.
func connectBare(s *nodetest.Service, settings ...http2.Setting) *bareClient {
	s.T.Helper()
	conn, err := (&net.Dialer{}).DialContext(s.T.Context(), "tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { _ = conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	_ = conn.SetDeadline(time.Now().Add(3 * time.Minute))
	c := &bareClient{Framer: http2.NewFramer(conn, conn), conn: conn, next: 1}
	c.headers = hpack.NewEncoder(&c.block)
	_, err = conn.Write([]byte(http2.ClientPreface))
	if err := errors.Join(err, c.WriteSettings(settings...)); err != nil {
		s.T.Fatal(err)
	}
	return c
}

// call begins a call of SyncFlags with headers, and ends it or waits for a message.
func (c *bareClient) call(end bool, headers ...string) error {
	c.block.Reset()
	headers = append([]string{
		":method", "POST", ":scheme", "http", ":authority", "localhost", ":path", syncPath,
		"content-type", "application/grpc", "te", "trailers",
	}, headers...)
	for i := 0; i < len(headers); i += 2 {
		_ = c.headers.WriteField(hpack.HeaderField{Name: headers[i], Value: headers[i+1]})
	}
	block := c.block.Bytes()
	first := block[:min(len(block), 16<<10)]
	block = block[len(first):]
	err := c.WriteHeaders(http2.HeadersFrameParam{
		StreamID: c.next, BlockFragment: first, EndStream: end, EndHeaders: len(block) == 0,
	})
	for len(block) > 0 && err == nil {
		part := block[:min(len(block), 16<<10)]
		block = block[len(part):]
		err = c.WriteContinuation(c.next, len(block) == 0, part)
	}
	c.next += 2
	return err
}

// empty sends the message of the last call: one of gRPC without fields.
func (c *bareClient) empty() error { return c.WriteData(c.next-2, true, make([]byte, 5)) }

// read reads until the connection ends or a frame is wanted, and returns that.
func (c *bareClient) read(wanted func(http2.Frame) bool) (http2.Frame, error) {
	for {
		frame, err := c.ReadFrame()
		if err != nil || wanted(frame) {
			return frame, err
		}
	}
}

func nothing(http2.Frame) bool { return false }

// Clients that flood a connection lose it or are served, and others are answered meanwhile.
func TestFloodsLeaveOthersTheirs(t *testing.T) { //nolint:paralleltest // it measures memory
	s := nodetest.New(t)
	me := s.SignUp(nodetest.Address())
	me.CreateEnabledFlag("k", nil)
	_, key := serverKey(me)
	authorization := []string{"authorization", "Bearer " + key}
	other := newClient(s, "Bearer "+key, "")
	value := strings.Repeat("x", 3000)
	for name, flood := range map[string]struct {
		read bool
		most int // times, unless the connection ends before; 0 for a flood that must end it
		send func(c *bareClient) error
	}{
		"pings whose answers are not read": {send: func(c *bareClient) error {
			return c.WritePing(false, [8]byte{})
		}},
		"settings whose answers are not read": {most: 20_000, send: func(c *bareClient) error {
			return c.WriteSettings(http2.Setting{ID: http2.SettingEnablePush})
		}},
		"pings": {read: true, most: 20_000, send: func(c *bareClient) error {
			return c.WritePing(false, [8]byte{})
		}},
		"calls that are reset": {read: true, most: 10_000, send: func(c *bareClient) error {
			return errors.Join(c.call(false, authorization...), c.empty(), c.WriteRSTStream(c.next-2, http2.ErrCodeCancel))
		}},
		"calls that are reset before their message": {read: true, most: 10_000, send: func(c *bareClient) error {
			return errors.Join(c.call(false), c.WriteRSTStream(c.next-2, http2.ErrCodeCancel))
		}},
		"headers without an end": {send: func(c *bareClient) error {
			if c.next == 1 {
				c.next++
				return c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: nil})
			}
			return c.WriteContinuation(1, false, bytes.Repeat([]byte{0, 1, 'a', 1, 'b'}, 3000))
		}},
		"metadata of a MiB": {read: true, most: 20, send: func(c *bareClient) error {
			return c.call(true, "large", strings.Repeat("x", 1<<20))
		}},
		"metadata that is small when compressed": {read: true, most: 20, send: func(c *bareClient) error {
			fields := make([]string, 0, 20_000)
			for range 10_000 {
				fields = append(fields, "large", value)
			}
			return c.call(true, fields...)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.In(t)
			stop, largest := make(chan struct{}), make(chan uint64)
			runtime.GC()
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			go func() { largest <- nodetest.LargestHeap(stop) }()
			c := connectBare(s)
			var reading sync.WaitGroup
			if flood.read {
				reading.Go(func() { _, _ = c.read(nothing) })
			}
			flooded := make(chan error, 1)
			go func() {
				var err error
				for n := 0; (n < flood.most || flood.most == 0) && err == nil; n++ {
					err = flood.send(c)
				}
				flooded <- err
			}()
			for running := true; running; {
				select {
				case err := <-flooded:
					var late net.Error
					if errors.As(err, &late) && late.Timeout() {
						t.Errorf("the connection ends with %v", err)
					}
					running = false
				default:
				}
				if _, err := other.fetch(t.Context()); err != nil {
					t.Fatalf("another is answered with %v", err)
				}
			}
			_ = c.conn.Close()
			reading.Wait()
			close(stop)
			if grown := int64(<-largest) - int64(before.HeapInuse); grown > 64<<20 {
				t.Errorf("the heap has grown by %d MiB", grown>>20)
			}
		})
	}
	s.Eventually("no stream is left", func() bool { return openStreams(s) == "0" })
}

// openStreams returns the service's number of open streams from its metrics.
func openStreams(s *nodetest.Service) string {
	s.T.Helper()
	for line := range strings.Lines(string(s.Anonymous().Call("GET", "/metrics", nil).Body)) {
		if count, ok := strings.CutPrefix(line, "flagledger_flagd_streams "); ok {
			return strings.TrimSpace(count)
		}
	}
	s.T.Fatal("the metrics do not count streams")
	return ""
}

// Streams that do not read share the bytes of their message.
func TestSlowStreamsShareMessage(t *testing.T) { //nolint:paralleltest // it measures memory
	s := nodetest.New(t)
	me := s.SignUp(nodetest.Address())
	for i := range 50 {
		me.CreateFlag(fmt.Sprint("large-", i), map[string]any{"type": "string", "defaultValue": strings.Repeat("x", 60_000)})
	}
	_, key := serverKey(me)
	if _, err := newClient(s, "Bearer "+key, "").fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const connections, each = 5, 90
	for range connections {
		c := connectBare(s, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for range each {
			if err := errors.Join(c.call(false, "authorization", "Bearer "+key), c.empty()); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Eventually("the streams are open", func() bool { return openStreams(s) == fmt.Sprint(connections*each) })
	me.CreateFlag("one-more", nil)
	s.Eventually("another is sent the new flags", func() bool { // its turn may come late on a busy machine
		flags, err := newClient(s, "Bearer "+key, "").fetch(t.Context())
		return err == nil && len(flags) == 51
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 100<<20 {
		t.Errorf("%d streams of 3 MB take %d MiB", connections*each, grown>>20)
	}
}

// A stream outlives the timeouts of a request. A call that sends no message does not: it has shown no credentials.
func TestStreamOutlivesTimeoutsOfRequest(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	me := s.SignUp(nodetest.Address())
	me.CreateEnabledFlag("k", nil)
	_, key := serverKey(me)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := s.Node.API.Flagd.SyncServer()
	config.ReadTimeout, config.WriteTimeout = time.Second, time.Second
	server := apihttp.NewGracefulServer(config, listener, 0)
	go func() { _ = server.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = server.Shutdown(ctx)
	})
	there := *s
	there.T, there.URL = t, "http://"+listener.Addr().String()
	documents, _ := received(t, t.Context(), newClient(&there, "Bearer "+key, ""))
	next(t, documents)
	c := connectBare(&there)
	if err := c.call(false); err != nil {
		t.Fatal(err)
	}
	if _, err := c.read(func(f http2.Frame) bool { // its trailers, after both timeouts
		return f.Header().StreamID == 1 && (f.Header().Type == http2.FrameRSTStream ||
			f.Header().Type == http2.FrameHeaders && f.Header().Flags.Has(http2.FlagHeadersEndStream))
	}); err != nil {
		t.Errorf("a call without a message stays: %v", err)
	}
	me.CreateEnabledFlag("more", nil)
	for last := ""; !strings.Contains(last, `"more"`); {
		last = next(t, documents)
	}
}

// Streams that wait for a message, which takes a slot, end when their client leaves and when the node stops.
func TestStreamsThatWaitForMessageEnd(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t),
		settings.Config{Environment: "development", WaitTimeout: time.Hour}, nodetest.Log(t))
	me := s.SignUp(nodetest.Address())
	me.CreateEnabledFlag("k", nil)
	_, key := serverKey(me)
	queue := s.Node.API.Flagd.Queues.CPU
	for i := range queue.Limits().Slots {
		slot := must(queue.Enter(t.Context(), fmt.Sprint("flow ", i)))
		defer slot.Leave()
	}
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	received(t, ctx, newClient(s, "Bearer "+key, ""))
	received(t, ctx, newClient(s, "Bearer "+key, ""))
	s.Eventually("two wait", func() bool { return openStreams(s) == "2" })
	_, ended := received(t, t.Context(), newClient(s, "Bearer "+key, ""))
	s.Eventually("three wait", func() bool { return openStreams(s) == "3" })
	hangUp()
	s.Eventually("two have left", func() bool { return openStreams(s) == "1" })
	s.Node.API.Flagd.EndStreams()
	if err := next(t, ended); !strings.Contains(err.Error(), "stopping") {
		t.Errorf("the stream ends with %v", err)
	}
}

// A message counts as one prefetch of the flags that it defines, each time that it is sent.
func TestSentMessageCountsAsPrefetchOnce(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	me := s.SignUp(nodetest.Address())
	me.CreateEnabledFlag("k", nil)
	me.CreateEnabledFlag("tagged", map[string]any{"tags": []any{"t"}})
	me.CreateEnabledFlag("left-out", nil)
	me.SetRules("left-out", `{"rules":[{"conditions":[{"attribute":"a","op":"matches","values":["^a.*b$"]}],"serve":{"value":true}}]}`).Want(200)
	_, key := serverKey(me)
	prefetches := func(want map[string]float64) {
		t.Helper()
		got := map[string]float64{}
		s.Eventually(fmt.Sprint("the prefetches are ", want), func() bool {
			for key := range want {
				got[key] = me.Call("GET", nodetest.FlagPath(key, "/metrics", "?environment=production"), nil).
					Want(200).Object()["prefetches"].(float64)
			}
			return fmt.Sprint(got) == fmt.Sprint(want)
		})
	}
	all, _ := received(t, t.Context(), newClient(s, "Bearer "+key, ""))
	next(t, all)
	tagged, _ := received(t, t.Context(), newClient(s, "Bearer "+key, "tag=t"))
	next(t, tagged)
	must(newClient(s, "Bearer "+key, "").fetch(t.Context()))
	prefetches(map[string]float64{"k": 2, "tagged": 3, "left-out": 0})
	me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "development").Want(200) // sends nothing
	me.Call("POST", nodetest.FlagPath("k", "/disable"), nil).Want(200)
	next(t, all)
	prefetches(map[string]float64{"k": 3, "tagged": 4, "left-out": 0})
	me.Call("POST", nodetest.FlagPath("tagged", "/disable"), nil).Want(200)
	next(t, all)
	next(t, tagged)
	prefetches(map[string]float64{"k": 4, "tagged": 6, "left-out": 0})
}

// A stream ends when its key expires, also if that was set once it was open.
func TestStreamEndsWhenItsKeyExpires(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	me := s.SignUp(nodetest.Address())
	me.CreateEnabledFlag("k", nil)
	id, key := serverKey(me)
	documents, ended := received(t, t.Context(), newClient(s, "Bearer "+key, ""))
	next(t, documents)
	end := time.Now().Add(2 * time.Second).Format(time.RFC3339Nano)
	me.Call("PATCH", "/api/v1/evaluation-keys/"+id, map[string]any{"expiresAt": end}).Want(200)
	if err := next(t, ended); status.Code(err) != codes.Unauthenticated {
		t.Errorf("the stream ended with %v", err)
	}
}

// A key that ends together with a change ends its stream, too.
func TestKeyThatEndsAfterChangeEndsStream(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	me := s.SignUp(nodetest.Address())
	me.CreateEnabledFlag("k", nil)
	id, key := serverKey(me)
	documents, ended := received(t, t.Context(), newClient(s, "Bearer "+key, ""))
	next(t, documents)
	me.Call("POST", nodetest.FlagPath("k", "/disable"), nil).Want(200)
	me.Call("DELETE", "/api/v1/evaluation-keys/"+id, nil).Want(204) // while the stream collects changes
	if err := next(t, ended); err == nil {
		t.Error("the stream ended without an error")
	}
}
