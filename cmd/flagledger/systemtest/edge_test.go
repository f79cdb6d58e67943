package systemtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/tmaxmax/go-sse"

	"flagledger/cmd/flagledger/edge"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/http/quota"
	"flagledger/migrations/pgtest"
)

// edgeServer is a running edge.
type edgeServer struct {
	*nodetest.Client // without a credential
	Folder           string
	stop             func()
}

// startEdge starts an edge with keys, and with what its folder has.
func startEdge(t *testing.T, from, folder string, open bool, keys ...string) *edgeServer {
	t.Helper()
	return startEdgeAt(t, time.Now, from, folder, open, keys...)
}

// startEdgeAt is startEdge with a clock.
func startEdgeAt(
	t *testing.T, now func() time.Time, from, folder string, open bool, keys ...string,
) *edgeServer {
	t.Helper()
	limits := quota.Default()
	limits.UnlimitedServers = true
	e, err := edge.New(edge.Config{
		From: from, Keys: keys, Open: open, Folder: folder, FollowHost: true, Limits: limits,
		Metrics: prometheus.NewRegistry(), Now: now, Log: nodetest.Log(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(e.API)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { e.Run(ctx); close(ended) }()
	s := &edgeServer{Folder: folder}
	s.Client = &nodetest.Client{Service: &nodetest.Service{T: t, URL: server.URL}}
	s.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
		e.API.Evaluation.EndStreams()
		e.API.Flagd.EndStreams()
		server.Close()
	})
	t.Cleanup(s.stop)
	return s
}

// serverKey creates a server key for an edge.
func serverKey(me *nodetest.Client, environment string) string {
	me.Service.T.Helper()
	return me.Call("POST", "/api/v1/evaluation-keys",
		map[string]any{"name": "edge", "kind": "server", "environment": environment, "edge": true}).
		Want(201).Object()["key"].(string)
}

// answers returns what all flags serve for some contexts, and one flag by each way of asking.
func answers(c *nodetest.Client, key string) string {
	c = c.WithToken(key)
	var b strings.Builder
	ask := func(path, body string) { b.WriteString(c.Attempt("POST", path, body).Body) }
	for _, context := range []string{`{}`, `{"targetingKey":"u1"}`, `{"targetingKey":"u2","attributes":{"plan":"pro","n":7}}`} {
		ask("/api/v1/flags/evaluate", context)
		ask(nodetest.FlagPath("f1", "/evaluate"), context)
	}
	ask("/ofrep/v1/evaluate/flags/f1", `{"context":{"targetingKey":"u3","plan":"pro"}}`)
	return b.String()
}

func TestAnEdgeAnswersAsTheService(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, pgtest.URL(t), settings.Config{Environment: "development"}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	keys := map[string]string{"production": serverKey(me, "production"), "development": serverKey(me, "development")}
	me.CreateFlag("f1", nil)
	e := startEdge(t, s.URL, t.TempDir(), false, keys["production"], keys["development"])
	further := startEdge(t, e.Service.URL, t.TempDir(), false, keys["production"])
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 12 {
		for range 4 {
			changeSomething(me, random)
		}
		equal := func(what string, c *nodetest.Client, key string) {
			var got, want string
			t.Cleanup(func() {
				if got != want {
					health := c.Attempt("GET", "/health", "").Body
					t.Errorf("%s of round %d answers\n%s, the service\n%s\nits health is %s", what, round, got, want, health)
				}
			})
			s.Eventually(what+" is equal", func() bool {
				got, want = answers(c, key), answers(s.Anonymous(), key)
				return got == want
			})
		}
		for environment, key := range keys {
			equal("the edge in "+environment, e.Client, key)
		}
		equal("the edge of the edge", further.Client, keys["production"])
	}
}

func TestAnEdgeEndsAKeyThatWasRevokedWhileItWasAway(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, pgtest.URL(t), settings.Config{Environment: "development"}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	key := serverKey(me, "production")
	id := me.Call("GET", "/api/v1/evaluation-keys", nil).Want(200).List()[0]["id"].(string)
	other := serverKey(me, "production")
	me.CreateEnabledFlag("k", nil)
	folder := t.TempDir()
	evaluates := func(e *edgeServer, status int) func() bool {
		return func() bool {
			for _, token := range []string{key, other} { // an edge that the service refuses cannot tell which are revoked
				if e.WithToken(token).Attempt("POST", nodetest.FlagPath("k", "/evaluate"), `{}`).Status != status {
					return false
				}
			}
			return true
		}
	}
	e := startEdge(t, s.URL, folder, false, key)
	s.Eventually("the edge evaluates", evaluates(e, 200))
	e.stop()
	me.Call("DELETE", "/api/v1/evaluation-keys/"+id, nil).Want(204)
	again := startEdge(t, s.URL, folder, false, key)
	s.Eventually("the key ends", evaluates(again, 401))
	again.stop()
	unreachable := startEdge(t, "http://127.0.0.1:1", folder, false, key)
	s.Eventually("the copy on disk has no such key", evaluates(unreachable, 401))
}

// What edges evaluate is counted by the service, once, for the keys that asked: also over a further edge, over a time
// without the service, and over a restart with a report that may have arrived.
func TestEdgesReportUsage(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, pgtest.URL(t), settings.Config{Environment: "development"}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	key := serverKey(me, "production")
	page := me.Call("POST", "/api/v1/evaluation-keys",
		map[string]any{"name": "page", "kind": "browser", "environment": "production"}).Want(201).Object()["key"].(string)
	me.CreateEnabledFlag("a", map[string]any{"clientSide": true})
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	var lost atomic.Bool // answers to reports
	way := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/usage" || !lost.Load() {
			proxy.ServeHTTP(w, r)
			return
		}
		proxy.ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(way.Close)
	folder := t.TempDir()
	e := startEdge(t, way.URL, folder, false, key)
	further := startEdge(t, e.Service.URL, t.TempDir(), false, key)
	evaluate := func(at *edgeServer, token string, n int) {
		t.Helper()
		s.Eventually("the edge evaluates", func() bool {
			return at.WithToken(token).Attempt("POST", nodetest.FlagPath("a", "/evaluate"), `{}`).Status == 200
		})
		for range n - 1 {
			if got := at.WithToken(token).Attempt("POST", nodetest.FlagPath("a", "/evaluate"), `{}`); got.Status != 200 {
				t.Fatal(got)
			}
		}
	}
	counted := func(want map[string]float64, all float64) {
		t.Helper()
		var shown map[string]any
		s.Eventually("all is counted", func() bool {
			shown = me.Call("GET", nodetest.FlagPath("a", "/metrics", "?environment=production"), nil).Want(200).Object()
			return shown["evaluations"].(float64) >= all
		})
		got := map[string]float64{}
		for _, c := range shown["clients"].([]any) {
			client := c.(map[string]any)
			got[client["name"].(string)] = client["reported"].(float64)
		}
		nodetest.Same(t, "evaluations by keys", got, want)
		nodetest.Same(t, "reported", shown["reported"], all)
	}
	evaluate(e, page, 3)
	if got := e.WithToken(page).Attempt("GET", "/api/v1/feed", ""); got.Status != 403 {
		t.Errorf("the feed with the key of a page: %v", got)
	}
	evaluate(further, key, 4)
	counted(map[string]float64{"page": 3, "edge": 4}, 7)

	lost.Store(true)
	evaluate(e, page, 5)
	e.stop() // it has reported, and has not heard that it arrived
	e = startEdge(t, way.URL, folder, false, key)
	evaluate(e, page, 2)
	lost.Store(false)
	e.stop()
	counted(map[string]float64{"page": 10, "edge": 4}, 14)

	// without its folder, and with a second key of the environment, whose first is gone
	gone := me.Call("GET", "/api/v1/evaluation-keys", nil).Want(200).List()[0]["id"].(string)
	second := serverKey(me, "production")
	folder = t.TempDir()
	e = startEdge(t, way.URL, folder, false, key, second)
	evaluate(e, second, 1)
	me.Call("DELETE", "/api/v1/evaluation-keys/"+gone, nil).Want(204)
	s.Eventually("the first key is gone", func() bool {
		return e.WithToken(key).Attempt("POST", nodetest.FlagPath("a", "/evaluate"), `{}`).Status == 401
	})
	s.Eventually("its folder is gone", func() bool { return os.RemoveAll(folder) == nil }) // it may write a file meanwhile
	evaluate(e, page, 3)
	s.Eventually("all is counted", func() bool {
		shown := me.Call("GET", nodetest.FlagPath("a", "/metrics", "?environment=production"), nil).Want(200).Object()
		return shown["reported"].(float64) >= 18
	})
}

// A stream of an edge hears of changes that were made while the edge was not connected.
func TestStreamsOfAnEdgeHearWhatItMissed(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, pgtest.URL(t), settings.Config{Environment: "development"}, nodetest.Log(t))
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	var cut atomic.Bool
	proxy := httputil.NewSingleHostReverseProxy(target)
	way := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cut.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(way.Close) // after the edge, which has a connection
	me := s.SignUp("me@example.com")
	key := serverKey(me, "production")
	me.CreateEnabledFlag("a", nil)
	me.CreateEnabledFlag("b", nil)
	e := startEdge(t, way.URL, t.TempDir(), false, key)
	s.Eventually("the edge evaluates", func() bool {
		return e.WithToken(key).Attempt("POST", nodetest.FlagPath("a", "/evaluate"), `{}`).Status == 200
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.Service.URL+"/api/v1/flags/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	stream, err := http.DefaultClient.Do(r) //nolint:bodyclose // it is closed below
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	events := make(chan string, 100)
	go func() {
		for event, err := range sse.Read(stream.Body, nil) {
			if err != nil {
				return
			}
			events <- event.Data
		}
	}()
	hears := func(texts ...string) {
		t.Helper()
		for {
			select {
			case got := <-events:
				texts = slices.DeleteFunc(texts, func(text string) bool { return strings.Contains(got, text) })
				if len(texts) == 0 {
					return
				}
			case <-time.After(time.Minute):
				t.Fatalf("the stream does not tell of %v", texts)
			}
		}
	}
	hears("connected")
	cut.Store(true)
	way.CloseClientConnections()
	me.Call("POST", nodetest.FlagPath("a", "/disable"), nil).Want(200)
	me.Call("POST", nodetest.FlagPath("b", "/disable"), nil).Want(200)
	serverKey(me, "production")
	cut.Store(false)
	hears(`"key":"a"`, `"key":"b"`)
}

// changeSomething makes a random change of one of a few flags. Some are refused.
func changeSomething(me *nodetest.Client, random *rand.Rand) {
	key := fmt.Sprintf("f%d", 1+random.IntN(5))
	environment := []string{"production", "development"}[random.IntN(2)]
	in := []string{"X-Environment", environment}
	switch random.IntN(8) {
	case 0:
		me.Attempt("POST", "/api/v1/flags", fmt.Sprintf(`{"key":%q,"type":"boolean","clientSide":true}`, key))
	case 1, 2:
		me.Attempt("POST", nodetest.FlagPath(key, "/enable"), "", in...)
	case 3:
		me.Attempt("POST", nodetest.FlagPath(key, "/disable"), "", in...)
	case 4:
		me.Attempt("PUT", nodetest.FlagPath(key, "/rules"),
			`{"rules":[{"name":"pro","conditions":[{"attribute":"plan","op":"in","values":["pro"]}],"serve":{"value":true}}]}`, in...)
	case 5:
		me.Attempt("PUT", nodetest.FlagPath(key, "/fallthrough"), fmt.Sprintf(`{"serve":{"value":%v}}`, random.IntN(2) == 0), in...)
	case 6:
		me.Attempt("POST", nodetest.FlagPath(key, "/variations"),
			fmt.Sprintf(`{"name":"v%d","value":true,"weight":10}`, random.IntN(100)))
	case 7:
		if key != "f1" && random.IntN(3) == 0 {
			me.Attempt("DELETE", nodetest.FlagPath(key), "")
		}
	}
}

func TestAnEdgeGoesOnWithoutTheService(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, pgtest.URL(t), settings.Config{Environment: "development"}, nodetest.Log(t))
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	way := httptest.NewServer(httputil.NewSingleHostReverseProxy(target)) // to the service, until it is closed
	defer way.Close()
	me := s.SignUp("me@example.com")
	key, leaving := serverKey(me, "production"), serverKey(me, "production")
	me.CreateEnabledFlag("k", nil)
	folder := t.TempDir()
	e := startEdge(t, way.URL, folder, true, key)
	path := nodetest.FlagPath("k", "/evaluate")
	evaluate := func(e *edgeServer, key string, headers ...string) nodetest.Reply {
		return e.WithToken(key).Attempt("POST", path, `{}`, headers...)
	}
	want := func(what string, got nodetest.Reply, status int, text string) {
		t.Helper()
		if got.Status != status || !strings.Contains(got.Body, text) {
			t.Errorf("%s: %v, want %d with %s", what, got, status, text)
		}
	}
	s.Eventually("the edge evaluates", func() bool { return evaluate(e, key).Status == 200 })
	want("a caller without a key", evaluate(e, ""), 200, `"value":true`)
	want("a caller with another key", evaluate(e, leaving), 200, `"value":true`)
	list := me.Call("GET", "/api/v1/evaluation-keys", nil).Want(200).List()
	me.Call("DELETE", "/api/v1/evaluation-keys/"+list[1]["id"].(string), nil).Want(204)
	s.Eventually("the revoked key ends", func() bool { return evaluate(e, leaving).Status == 401 })
	want("a web page", evaluate(e, "", "Origin", "https://evil.example"), 403, "web pages")
	want("a name of another machine", evaluate(e, "", "Host", "evil.example"), 403, "localhost")
	want("an unknown environment", evaluate(e, "", "X-Environment", "development"), 404, "environment")
	for _, path := range []string{"/api/v1/feed", "/api/v1/feed/", "//api/v1/feed", "/api/v1/feed?x=/api/v1/feed"} {
		want("the feed without a key at "+path, e.Attempt("GET", path, ""), 403, "feed")
	}
	want("what a proxy forwards", evaluate(e, "", "X-Forwarded-For", "198.51.100.7"), 403, "proxy")
	want("the feed with a key", e.WithToken(key).Attempt("GET", "/api/v1/feed", ""), 403, "feed")
	want("a page's image", e.Attempt("GET", "/health", "", "Sec-Fetch-Site", "cross-site"), 403, "web pages")
	want("the health for a web page", e.Attempt("GET", "/health", "", "Host", "evil.example"), 403, "localhost")
	want("a route of the service", e.WithToken(key).Attempt("GET", "/api/v1/flags", ""), 404, "route")
	want("a person", evaluate(e, me.Token), 401, "evaluation keys alone")
	me.Call("POST", nodetest.FlagPath("k", "/disable"), nil).Want(200)
	s.Eventually("the edge hears of the change", func() bool { return strings.Contains(evaluate(e, "").Body, `"value":false`) })
	e.stop()
	way.CloseClientConnections()
	way.Close()
	again := startEdge(t, way.URL, folder, true, key)
	want("the health without the service", again.Attempt("GET", "/health", ""), 200, `"status":"stale"`)
	want("a start without the service", evaluate(again, ""), 200, `"value":false`)
	want("the revoked key", evaluate(again, leaving), 401, "")
	both := startEdge(t, way.URL, folder, true, key, "sk_"+strings.Repeat("b", 26))
	want("a key beside a wrong one", evaluate(both, key), 200, `"value":false`)
	want("a key that may come", evaluate(both, leaving), 503, "not known here yet")
	other := startEdge(t, way.URL, folder, true, "sk_"+strings.Repeat("a", 26))
	want("a key without a copy", other.Attempt("GET", "/health", ""), 503, "starting")
	files, _ := filepath.Glob(filepath.Join(folder, "*"))
	for _, file := range files {
		if content, err := os.ReadFile(file); err != nil || strings.Contains(string(content), "tenantId") {
			t.Errorf("%s can be read: %v", file, err)
		}
	}
	if len(files) == 0 {
		t.Error("the edge has no copy on disk")
	}
}

// An edge whose clock jumps evaluates, follows changes, and reports what it has evaluated once.
func TestAnEdgeWhoseClockJumps(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, pgtest.URL(t), settings.Config{Environment: "development"}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	key := serverKey(me, "production")
	me.CreateEnabledFlag("a", nil)
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	folder := t.TempDir()
	e := startEdgeAt(t, now, s.URL, folder, false, key)
	for n, jump := range []time.Duration{0, 3 * time.Hour, -3 * time.Hour, 10 * time.Hour, 0} {
		ahead.Store(int64(jump))
		me.Call("PATCH", nodetest.FlagPath("a"), map[string]any{"defaultValue": n%2 == 0}).Want(200)
		s.Eventually("the edge answers as the service", func() bool {
			return e.WithToken(key).Attempt("POST", "/api/v1/flags/evaluate", `{}`).Body ==
				me.WithToken(key).Attempt("POST", "/api/v1/flags/evaluate", `{}`).Body
		})
		e.WithToken(key).Call("POST", nodetest.FlagPath("a", "/evaluate"), `{}`).Want(200)
		s.Eventually("it is reported", func() bool {
			shown := me.Call("GET", nodetest.FlagPath("a", "/metrics", "?environment=production"), nil).Want(200).Object()
			return shown["reported"].(float64) >= float64(n+1)
		})
	}
	e.stop()
	shown := me.Call("GET", nodetest.FlagPath("a", "/metrics", "?environment=production"), nil).Want(200).Object()
	nodetest.Same(t, "reported", shown["reported"], 5.0)
}

// What an edge counts while the service hangs is on its disk, and is counted once by an edge that begins with that.
func TestAnEdgeWritesCountsWhileTheServiceHangs(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, pgtest.URL(t), settings.Config{Environment: "development"}, nodetest.Log(t))
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	var reports atomic.Int64
	hangs := make(chan struct{})
	way := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/usage" {
			proxy.ServeHTTP(w, r)
			return
		}
		reports.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(way.Close)
	me := s.SignUp("me@example.com")
	key := serverKey(me, "production")
	me.CreateEnabledFlag("a", nil)
	folder := t.TempDir()
	e := startEdge(t, way.URL, folder, false, key)
	evaluate := func() bool {
		return e.WithToken(key).Attempt("POST", nodetest.FlagPath("a", "/evaluate"), `{}`).Status == 200
	}
	s.Eventually("the edge evaluates", evaluate)
	s.Eventually("it reports", func() bool { return reports.Load() == 1 })
	usage := func() string {
		files, _ := filepath.Glob(filepath.Join(folder, "*.usage"))
		if len(files) != 1 {
			t.Fatalf("the files of usage are %v", files)
		}
		content, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	before := usage()
	evaluate()
	evaluate()
	s.Eventually("the new counts are on disk", func() bool { return usage() != before })
	if reports.Load() > 1 {
		t.Error("they are on disk only after the report")
	}
	killed := t.TempDir()
	if err := os.CopyFS(killed, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	close(hangs)
	startEdge(t, s.URL, killed, false, key)
	s.Eventually("all is counted", func() bool {
		shown := me.Call("GET", nodetest.FlagPath("a", "/metrics", "?environment=production"), nil).Want(200).Object()
		return shown["reported"].(float64) == 3
	})
}

// The files of a key that is no longer configured go once the service would not take what they hold.
func TestAnEdgeRemovesFilesOfOldKeys(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const stays, goes = "edge-0011223344556677.usage", "edge-8899aabbccddeeff.usage"
	key := "sk_" + strings.Repeat("a", 26)
	old := time.Now().Add(-25 * time.Hour)
	for name, at := range map[string]time.Time{
		stays: time.Now().Add(-23 * time.Hour), goes: old, strings.Replace(goes, "usage", "feed", 1): old, "note.txt": old,
	} {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	startEdge(t, "http://127.0.0.1:1", folder, false, key).stop()
	var left []string
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	nodetest.Same(t, "the files", left, []string{stays, "note.txt"})
}

// The limits of browser keys hold at an edge, and server keys have none there.
func TestAnEdgeLimitsBrowserKeys(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, pgtest.URL(t), settings.Config{Environment: "development"}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	key := serverKey(me, "production")
	page := me.Call("POST", "/api/v1/evaluation-keys",
		map[string]any{"name": "page", "kind": "browser", "environment": "production"}).Want(201).Object()["key"].(string)
	me.CreateEnabledFlag("a", map[string]any{"clientSide": true})
	e := startEdge(t, s.URL, t.TempDir(), false, key)
	evaluate := func(key string) int {
		return e.WithToken(key).Attempt("POST", nodetest.FlagPath("a", "/evaluate"), `{}`).Status
	}
	s.Eventually("the edge evaluates", func() bool { return evaluate(page) == 200 })
	most := quota.Default().Browser
	for n := 0; evaluate(page) != 429; n++ { // a new minute may begin
		if n > 2*most {
			t.Fatal("the page has no limit")
		}
	}
	for range most + 1 {
		if status := evaluate(key); status != 200 {
			t.Fatalf("a server is answered %d", status)
		}
	}
}
