package http_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
)

// reader is the client's end of a response. If gate is set, each write blocks until it is closed, except the first
// bytes, which fit into a server's buffers.
type reader struct {
	header  http.Header
	status  int
	body    bytes.Buffer
	gate    chan struct{}
	leaves  bool          // disconnects when gate is closed
	waiting *atomic.Int64 // number of blocked writes of all readers
	largest int           // write
}

func (r *reader) Header() http.Header    { return r.header }
func (r *reader) WriteHeader(status int) { r.status = status }

func (r *reader) Write(b []byte) (int, error) {
	r.largest = max(r.largest, len(b))
	if r.gate != nil && r.body.Len()+len(b) > 4<<10 {
		r.waiting.Add(1)
		<-r.gate
		if r.leaves {
			return 0, errors.New("the reader has left")
		}
	}
	return r.body.Write(b)
}

// answer lets a service respond to a reader. It reports whether the response was aborted.
func answer(c *nodetest.Client, method, path, body string, to *reader) (broken bool) {
	defer func() {
		if cause := recover(); cause != nil {
			if broken = cause == http.ErrAbortHandler; !broken {
				panic(cause)
			}
		}
	}()
	r := httptest.NewRequestWithContext(c.Service.T.Context(), method, path, io.NopCloser(strings.NewReader(body)))
	r.Header = http.Header{
		"Authorization": {"Bearer " + c.Token},
		"X-Tenant-Id":   {c.Tenant},
		"Content-Type":  {"application/json"},
	}
	to.header = http.Header{}
	c.Service.Node.API.ServeHTTP(to, r)
	return false
}

// fill creates flags of several megabytes in total, every third of them large, and returns their keys in order.
func fill(c *nodetest.Client, flags int) (keys []string) {
	c.Service.T.Helper()
	large := strings.Repeat("v", 60_000)
	for i := range flags {
		key, value := fmt.Sprintf("k%03d", i), "small"
		if i%3 == 2 {
			value = large
		}
		c.CreateFlag(key, map[string]any{"type": "string", "defaultValue": value})
		keys = append(keys, key)
	}
	return keys
}

func asAny(keys []string) []any {
	list := make([]any, len(keys))
	for i, key := range keys {
		list[i] = key
	}
	return list
}

func TestLongAnswersComeInPieces(t *testing.T) {
	t.Parallel()
	me := nodetest.Shared(t).SignUp(nodetest.Address())
	keys := fill(me, 60)
	checkPages(t, me, "/api/v1/flags?type=string", "key", asAny(keys))
	page := me.Call("GET", "/api/v1/flags?limit=45&offset=5", nil).Want(200)
	nodetest.Same(t, "a page of several pieces", nodetest.Column(page.List(), "key"), keys[5:50])
	nodetest.Same(t, "its headers", []string{page.Header.Get("X-Total-Count"), nextPage(page)},
		[]string{"60", `</api/v1/flags?limit=45&offset=50>; rel="next"`})

	const most = 256 << 10
	for _, call := range []struct{ method, path, body string }{
		{"GET", "/api/v1/flags", ""}, {"POST", manyPath, "{}"}, {"POST", ofrepPath, `{"context":{}}`},
	} {
		whole := me.Call(call.method, call.path, nil)
		if call.method == "POST" {
			whole = me.Call(call.method, call.path, call.body)
		}
		whole.Want(200)
		to := &reader{}
		if broken := answer(me, call.method, call.path, call.body, to); broken || !bytes.Equal(to.body.Bytes(), whole.Body) {
			t.Errorf("%s: the answer is broken or another", call.path)
		}
		if len(whole.Body) < 4*most || to.largest > most {
			t.Errorf("%s: a write of %d bytes of %d", call.path, to.largest, len(whole.Body))
		}
	}
}

func TestAnAnswerThatCannotBeReadToItsEndIsBrokenOff(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp("me@example.com")
	fill(me, 60)
	pool, err := node.OpenPool(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	rename := func(from, to string) {
		if _, err := pool.Exec(t.Context(), "alter table read."+from+" rename to "+to); err != nil {
			t.Fatal(err)
		}
	}
	to := &reader{gate: make(chan struct{}), waiting: &atomic.Int64{}}
	broken := make(chan bool)
	go func() { broken <- answer(me, "GET", "/api/v1/flags", "", to) }()
	s.Eventually("the first piece is written", func() bool { return to.waiting.Load() == 1 })
	rename("flags", "gone")
	close(to.gate)
	if !<-broken {
		t.Errorf("the answer looks whole, with %d bytes", to.body.Len())
	}
	me.Call("GET", "/api/v1/flags", nil).Refused(503)
	rename("gone", "flags")
	me.Call("GET", "/api/v1/flags", nil).Want(200)
}

// stalled starts readers of each call that read nothing of a long response, and disconnect when release is called.
func stalled(c *nodetest.Client, each int, calls ...[3]string) (release func()) {
	c.Service.T.Helper()
	var waiting atomic.Int64
	gate := make(chan struct{})
	var all sync.WaitGroup
	for _, call := range calls {
		for range each {
			all.Go(func() {
				answer(c, call[0], call[1], call[2], &reader{gate: gate, leaves: true, waiting: &waiting})
				waiting.Add(1)
			})
		}
	}
	c.Service.Eventually("all have been answered, or a first piece",
		func() bool { return int(waiting.Load()) == each*len(calls) })
	return func() {
		close(gate)
		all.Wait()
	}
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Stalled readers hold neither the memory of their responses nor resources of others.
func TestReadersWhoStallHoldLittle(t *testing.T) {
	s := nodetest.New(t)
	me, other := s.SignUp("me@example.com"), s.SignUp("other@example.com")
	fill(me, 150) // 3 MB
	other.CreateEnabledFlag("k", nil)
	before := heap()
	release := stalled(me, 34, [3]string{"GET", "/api/v1/flags"}, [3]string{"POST", manyPath, "{}"},
		[3]string{"POST", ofrepPath, `{"context":{}}`})
	if held := heap() - before; held > 100<<20 {
		t.Errorf("they hold %d MB", held>>20)
	}
	other.Evaluate("k", `{"targetingKey":"u"}`).Want(200)
	nodetest.Same(t, "the flags of another", other.FlagKeys(""), []string{"k"})
	other.Call("POST", manyPath, `{}`).Want(200)
	other.CreateFlag("l", nil)
	release()
}

// A caller that leaves many responses unread gets no more, and other callers are not affected. The test uses the
// largest responses in memory: a history entry that replaced all rules, a flag of 500 KB, and a file of such facts.
func TestACallerWhoReadsNothingIsAnsweredNoMore(t *testing.T) {
	s := nodetest.New(t)
	me, other := s.SignUp("me@example.com"), s.SignUp("other@example.com")
	var variations []map[string]any
	for i := range 8 {
		variations = append(variations, map[string]any{"name": fmt.Sprint(i), "value": strings.Repeat("v", 63_000)})
	}
	me.CreateFlag("large", map[string]any{"type": "string", "flag_variations": variations})
	me.CreateEnabledFlag("ruled", nil)
	values := make([]string, 900)
	for i := range values {
		values[i] = fmt.Sprintf(`"%095d"`, i)
	}
	for _, salt := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		rule := `{"conditions":[{"attribute":"` + salt + `","op":"in","values":[` + strings.Join(values, ",") + `]}],"serve":{"value":false}}`
		me.SetRules("ruled", `{"rules":[`+rule+","+rule+","+rule+`]}`).Want(200)
	}
	other.CreateEnabledFlag("k", nil)
	for _, path := range []string{"/api/v1/flags/ruled/history", "/api/v1/flags/large", "/api/v1/flags/ruled/rules", factsPath} {
		before := heap()
		release := stalled(me, 100, [3]string{"GET", path})
		if held := heap() - before; held > 90<<20 {
			t.Errorf("%s: 100 readers hold %d MB", path, held>>20)
		}
		// On a busy machine some readers are refused as too many, so fewer stall.
		releases := []func(){release}
		var refused *nodetest.Answer
		s.Eventually("a further one is refused", func() bool {
			refused = me.Call("GET", path, nil)
			if refused.Status == 200 {
				releases = append(releases, stalled(me, 10, [3]string{"GET", path}))
			}
			return refused.Status != 200
		})
		refused.Refused(429)
		nodetest.Same(t, "Retry-After", refused.Header.Get("Retry-After"), refused.Header["Ratelimit-Reset"][0])
		other.Evaluate("k", `{"targetingKey":"u"}`).Want(200)
		nodetest.Same(t, "the flags of another", other.FlagKeys(""), []string{"k"})
		for _, release := range releases {
			release()
		}
		me.Call("GET", path, nil).Want(200)
	}
}
