package http_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	flagledgerhttp "flagledger/http"
)

const streamPath = "/api/v1/flags/stream"

// told is an event of a stream, or a heartbeat, which has an id alone.
type told struct {
	at   time.Time
	ID   string
	text string // of the data
	Data *struct {
		Type, Environment, ETag string
		LastModified            int64
		Flags                   []struct {
			Key     string
			Version int
			Deleted bool
		}
	}
}

// flags is what an event names, in short.
func (e told) flags() string {
	var list []string
	for _, f := range e.Data.Flags {
		text := fmt.Sprintf("%s %d", f.Key, f.Version)
		if f.Deleted {
			text += " deleted"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// listening is an open stream.
type listening struct {
	t      testing.TB
	events chan told // closed when the stream ends
	header http.Header
	retry  string
	hangUp func()
	first  told   // of one that was opened by listen
	last   string // the id of the last event that was looked at
}

// listen opens a stream, and waits until it is connected.
func listen(c *nodetest.Client, headers ...string) *listening {
	c.Service.T.Helper()
	l := openStream(c, streamPath, headers...)
	if l.first = l.next(); l.first.Data.Type != "connected" || l.first.ID == "" {
		c.Service.T.Fatalf("the stream begins with %+v", l.first)
	}
	return l
}

// openStream opens a stream.
func openStream(c *nodetest.Client, path string, headers ...string) *listening {
	c.Service.T.Helper()
	ctx, cancel := context.WithCancel(c.Service.T.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Service.URL+path, nil)
	if err != nil {
		c.Service.T.Fatal(err)
	}
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if c.Tenant != "" {
		r.Header.Set("X-Tenant-ID", c.Tenant)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	slow := time.AfterFunc(patience, cancel) // to begin with
	defer slow.Stop()
	response, err := http.DefaultClient.Do(r) //nolint:bodyclose // the reader below closes it
	if err != nil {
		c.Service.T.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		c.Service.T.Fatalf("the stream is refused with %d", response.StatusCode)
	}
	l := &listening{t: c.Service.T, events: make(chan told, 10_000), header: response.Header, hangUp: cancel}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && lines.Text() != "" {
		l.retry += lines.Text()
	}
	go func() {
		defer response.Body.Close()
		defer close(l.events)
		var e told
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ":")
			value = strings.TrimPrefix(value, " ")
			switch {
			case lines.Text() == "":
				e.at = time.Now()
				l.events <- e
				e = told{}
			case name == "id":
				e.ID = value
			case name == "data":
				e.text = value
				if strings.Contains(value, `"lastModified":0`) || strings.Contains(value, `"deleted":false`) {
					l.t.Errorf("an event tells what it does not know: %s", value)
				}
				if err := json.Unmarshal([]byte(value), &e.Data); err != nil {
					l.t.Errorf("%v in %s", err, value)
				}
			case name != "" || value != "heartbeat":
				l.t.Errorf("unexpected: %s", lines.Text())
			}
		}
	}()
	return l
}

// patience is how long a test waits for what must come. No test is quicker or slower for it.
const patience = 2 * time.Minute

// next waits for the next event that is no heartbeat.
func (l *listening) next() told {
	l.t.Helper()
	for {
		select {
		case e, ok := <-l.events:
			if !ok {
				l.t.Fatal("the stream has ended")
			}
			if l.last = e.ID; e.Data != nil {
				return e
			}
		case <-time.After(patience):
			l.t.Fatal("nothing is heard")
		}
	}
}

// hears checks that the next event tells of changes of these flags.
func (l *listening) hears(flags string) {
	l.t.Helper()
	if e := l.next(); e.Data.Type != "refetchEvaluation" || e.flags() != flags {
		l.t.Errorf("heard %+v, want %s", *e.Data, flags)
	}
}

// ends waits for the end of the stream, before which there is no other event.
func (l *listening) ends() {
	l.t.Helper()
	for {
		select {
		case e, ok := <-l.events:
			if !ok {
				return
			}
			if e.Data != nil {
				l.t.Errorf("before its end it hears %+v", *e.Data)
			}
		case <-time.After(patience):
			l.t.Fatal("the stream does not end")
		}
	}
}

func enable(c *nodetest.Client, key, environment string) {
	c.Service.T.Helper()
	c.Call("POST", nodetest.FlagPath(key, "/enable"), nil, "X-Environment", environment).Want(200)
}

func TestStream(t *testing.T) {
	nodetest.Cases{
		"it begins with how to come back and where it is": func(t *testing.T, me *nodetest.Client) {
			l := listen(me)
			nodetest.Same(t, "headers", []string{l.header.Get("Content-Type"), l.header.Get("Cache-Control"), l.header.Get("X-Accel-Buffering")}, []string{"text/event-stream", "no-store", "no"})
			var retry int
			if _, err := fmt.Sscanf(l.retry, "retry: %d", &retry); err != nil || retry < 1000 || retry > 3000 {
				t.Errorf("it begins with %q", l.retry)
			}
			nodetest.Same(t, "the first event", l.first.text, `{"type":"connected","environment":"production"}`)
			me.CreateFlag("k", nil)
			e := l.next()
			nodetest.Same(t, "the second event", e.text, fmt.Sprintf(`{"type":"refetchEvaluation","environment":"production","etag":%q,"lastModified":%d,"flags":[{"key":"k","version":1}]}`, e.ID, e.Data.LastModified))
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			nodetest.Same(t, "the flag in the third", strings.HasSuffix(l.next().text, `"flags":[{"key":"k","version":2,"deleted":true}]}`), true)
		},
		"each change is heard, in order": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			l := listen(me)
			for version := 2; version < 22; version++ {
				me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"description": fmt.Sprint(version)}).Want(200)
				e := l.next()
				nodetest.Same(t, "what changed", e.flags(), fmt.Sprintf("k %d", version))
				nodetest.Same(t, "type, environment and position", []string{e.Data.Type, e.Data.Environment, e.Data.ETag}, []string{"refetchEvaluation", "production", e.ID})
				if age := time.Since(time.Unix(e.Data.LastModified, 0)); age < 0 || age > time.Hour {
					t.Errorf("changed %v ago", age)
				}
			}
		},
		"what is heard can be evaluated": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			l := listen(me)
			var change sync.WaitGroup
			change.Go(func() { me.Call("POST", nodetest.FlagPath("k", "/enable"), nil) })
			l.hears("k 2")
			me.Evaluate("k", `{}`).Want(200).Shows(map[string]any{"flagVersion": 2})
			change.Wait()
		},
		"an environment's stream tells of its own changes, and of those of whole flags": func(_ *testing.T, me *nodetest.Client) {
			production, development := listen(me), listen(me, "X-Environment", "development")
			me.CreateFlag("k", map[string]any{"type": "string"})
			enable(me, "k", "development")
			enable(me, "k", "production")
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"n"}`).Want(200)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"status":"inactive"}`).Want(200)
			me.AddVariation("k", `{"name":"v","value":"a"}`)
			me.Call("POST", nodetest.FlagPath("k", "/disable"), nil, "X-Environment", "development").Want(200)
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			for _, flags := range []string{"k 1", "k 3", "k 4", "k 5", "k 6", "k 8 deleted"} {
				production.hears(flags)
			}
			for _, flags := range []string{"k 1", "k 2", "k 4", "k 5", "k 6", "k 7", "k 8 deleted"} {
				development.hears(flags)
			}
		},
		"a tenant hears nothing of another": func(_ *testing.T, me *nodetest.Client) {
			other := me.NewTenant("other")
			l, there := listen(me), listen(other)
			other.CreateFlag("theirs", nil)
			me.CreateFlag("mine", nil)
			l.hears("mine 1")
			there.hears("theirs 1")
		},
		"who comes back hears exactly what he missed": func(t *testing.T, me *nodetest.Client) {
			l := listen(me)
			me.CreateFlag("a", nil)
			l.hears("a 1")
			l.hangUp()
			enable(me, "a", "production")
			me.CreateFlag("b", nil)
			enable(me, "b", "development")
			me.CreateFlag("c", nil)
			me.Call("DELETE", nodetest.FlagPath("b"), nil).Want(204)
			me.NewTenant("other").CreateFlag("theirs", nil)

			again := openStream(me, streamPath, "Last-Event-ID", l.last)
			again.hears("a 2, b 3 deleted, c 1")
			nodetest.Same(t, "then", again.next().Data.Type, "connected")
			enable(me, "c", "production")
			again.hears("c 2")
			nodetest.Same(t, "who missed nothing", listen(me, "Last-Event-ID", again.last).retry != "", true)
		},
		"after an id that nobody knows all is to be fetched": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("a", nil)
			engine, _, _ := strings.Cut(listen(me).last, ":")
			for _, id := range []string{"x", "1/1", "other:1/1", engine + ":99999999999/99999999999"} {
				l := openStream(me, streamPath, "Last-Event-ID", id)
				l.hears("")
				nodetest.Same(t, "then", l.next().Data.Type, "connected")
				l.hangUp()
			}
		},
		"it is refused as any other call": func(_ *testing.T, me *nodetest.Client) {
			nobody := *me
			nobody.Token = ""
			nobody.Call("GET", streamPath, nil).Refused(401)
			me.Call("GET", streamPath+"?token="+me.Token, nil, "Authorization", "").Refused(401)
			me.Call("GET", streamPath, nil, "X-Environment", "none").Refused(404)
			stranger := withToken(me, newAccount(me).token)
			stranger.Tenant = me.Tenant
			stranger.Call("GET", streamPath, nil).Refused(403)
			me.Call("POST", streamPath, nil).Refused(405)
			listen(me.Join("viewer"))
		},
		"HEAD answers its headers alone": func(t *testing.T, me *nodetest.Client) {
			nodetest.Same(t, "its type", me.Call("HEAD", streamPath, nil).Want(200).Header.Get("Content-Type"), "text/event-stream")
			me.Call("HEAD", streamPath, nil, "X-Environment", "none").Want(404)
		},
		"it ends when its session does": func(_ *testing.T, me *nodetest.Client) {
			email := nodetest.Address()
			first := me.Service.SignUp(email)
			l, other := listen(first), listen(me)
			first.Call("POST", "/api/v1/auth/logout", nil).Want(200)
			l.ends()
			me.CreateFlag("k", nil)
			other.hears("k 1")
		},
		"it ends when the member goes": func(_ *testing.T, me *nodetest.Client) {
			member := me.Join("developer")
			l, other := listen(member), listen(me)
			me.Call("DELETE", usersPath(me, member.UserID), nil).Want(204)
			l.ends()
			me.CreateFlag("k", nil)
			other.hears("k 1")
		},
		"it ends with its environment": func(_ *testing.T, me *nodetest.Client) {
			l, other := listen(me, "X-Environment", "development"), listen(me)
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant+"/environments/development", nil).Want(204)
			l.ends()
			me.CreateFlag("k", nil)
			other.hears("k 1")
		},
		"it ends with its tenant": func(_ *testing.T, me *nodetest.Client) {
			l := listen(me)
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant, nil).Want(204)
			l.ends()
		},
		"a machine needs to evaluate flags, and hears until it is deleted": func(_ *testing.T, me *nodetest.Client) {
			machine := me.Machine("flags:evaluate")
			l := listen(machine)
			me.CreateFlag("k", nil)
			l.hears("k 1")
			me.Machine("flags:read", "flags:write", "projects:read").Call("GET", streamPath, nil).Refused(403)
			machine.Call("GET", streamPath, nil, "X-Tenant-ID", me.NewTenant("other").Tenant).Refused(403)
			me.Call("DELETE", "/api/v1/oauth/clients/"+machine.UserID, nil).Want(204)
			l.ends()
		},
		"200 streams hear of one change": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			streams := make([]*listening, 200)
			for i := range streams {
				streams[i] = listen(me)
			}
			began := time.Now()
			enable(me, "k", "production")
			var last time.Time
			for _, l := range streams {
				e := l.next()
				nodetest.Same(t, "what changed", e.flags(), "k 2")
				if e.at.After(last) {
					last = e.at
				}
			}
			t.Logf("the last one heard %v after the change was asked for", last.Sub(began))
		},
	}.Run(t)
}

// streamURL is the path and the query of the stream that OFREP's bulk answer tells of.
func streamURL(c *nodetest.Client, headers ...string) string {
	c.Service.T.Helper()
	streams := callOFREP(c, "", `{}`, headers...).Want(200).Object()["eventStreams"].([]any)
	if len(streams) != 1 {
		c.Service.T.Fatalf("the answer tells of the streams %v", streams)
	}
	stream := streams[0].(map[string]any)
	nodetest.Members(c.Service.T, "a stream", stream, "type", "url")
	path, ok := strings.CutPrefix(stream["url"].(string), c.Service.Config.PublicURL)
	if !ok || stream["type"] != "sse" || !strings.HasPrefix(path, streamPath+"?ticket=") {
		c.Service.T.Fatalf("the answer tells of %v", stream)
	}
	return path
}

func TestStreamURL(t *testing.T) {
	nodetest.Cases{
		"it opens the stream without a header": func(_ *testing.T, me *nodetest.Client) {
			machine := me.Machine("flags:evaluate")
			other := me.NewTenant("other")
			browser := me.Service.Anonymous()
			var streams []*listening
			for _, url := range []string{streamURL(me), streamURL(machine), streamURL(me.Join("viewer"), "X-Environment", "production")} {
				l := openStream(browser, url)
				l.next()
				streams = append(streams, l)
			}
			development := openStream(browser, streamURL(me, "X-Environment", "development"))
			development.next()
			theirs := openStream(browser, streamURL(other), "X-Tenant-ID", me.Tenant, "X-Environment", "none")
			theirs.next()
			me.CreateFlag("k", nil)
			enable(me, "k", "production")
			enable(me, "k", "development")
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			other.CreateFlag("theirs", nil)
			for _, l := range streams {
				l.hears("k 1")
				l.hears("k 2")
				l.hears("k 4 deleted")
			}
			for _, flags := range []string{"k 1", "k 3", "k 4 deleted"} {
				development.hears(flags)
			}
			theirs.hears("theirs 1")
			again := openStream(browser, streamURL(me), "Last-Event-ID", streams[0].last)
			nodetest.Same(streams[0].t, "who missed nothing hears", again.next().Data.Type, "connected")
		},
		"it stays the same with its token, and so does the tag of the answer": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			a := callOFREP(me, "", `{}`).Want(200)
			tag := a.Header.Get("ETag")
			nodetest.Same(t, "the answer", string(callOFREP(me, "", `{}`, "If-None-Match", `"other"`).Want(200).Body), string(a.Body))
			callOFREP(me, "", `{}`, "If-None-Match", tag).Want(304)
			for what, other := range map[string]*nodetest.Answer{
				"another environment": callOFREP(me, "", `{}`, "X-Environment", "development"),
				"another person":      callOFREP(me.Join("viewer"), "", `{}`),
				"a machine":           callOFREP(me.Machine("flags:evaluate"), "", `{}`),
			} {
				if other.Want(200).Header.Get("ETag") == tag {
					t.Errorf("%s has the same answer", what)
				}
			}
		},
		"it opens nothing but the stream": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			query := strings.TrimPrefix(streamURL(me), streamPath)
			sealed := strings.TrimPrefix(query, "?ticket=")
			nobody := me.Service.Anonymous()
			for _, path := range []string{"/api/v1/flags", nodetest.FlagPath("k"), "/api/v1/tenants", "/api/v1/projects"} {
				nobody.Call("GET", path+query, nil).Refused(401)
				nobody.Call("GET", path, nil, "Authorization", "Bearer "+sealed).Refused(401)
			}
			nobody.Call("POST", ofrepPath+query, `{"context":{}}`).Want(401)
			nobody.Call("GET", streamPath, nil, "Authorization", "Bearer "+sealed).Refused(401)
			nobody.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": sealed}).Refused(401)
		},
		"no other token opens it": func(_ *testing.T, me *nodetest.Client) {
			sealed := strings.TrimPrefix(streamURL(me), streamPath+"?ticket=")
			parts := strings.Split(sealed, ".")
			others := strings.Split(strings.TrimPrefix(streamURL(me.NewTenant("other")), streamPath+"?ticket="), ".")
			for _, token := range []string{
				me.Token, me.Machine("flags:evaluate").Token, "x", sealed + "x", sealed[:len(sealed)-1],
				parts[0] + "." + others[1] + "." + parts[2], parts[0] + "." + parts[1] + ".",
			} {
				me.Call("GET", streamPath+"?ticket="+token, nil).Refused(401)
			}
		},
		"it ends with its session": func(_ *testing.T, me *nodetest.Client) {
			person := me.Service.SignUp(nodetest.Address())
			url, browser := streamURL(person), me.Service.Anonymous()
			l := openStream(browser, url)
			l.next()
			person.Call("POST", "/api/v1/auth/logout", nil).Want(200)
			l.ends()
			browser.Call("GET", url, nil).Refused(401)
		},
		"it ends for who is no member any more": func(_ *testing.T, me *nodetest.Client) {
			member := me.Join("viewer")
			url, browser := streamURL(member), me.Service.Anonymous()
			l := openStream(browser, url)
			l.next()
			me.Call("DELETE", usersPath(me, member.UserID), nil).Want(204)
			l.ends()
			browser.Call("GET", url, nil).Refused(403)
		},
		"it ends with its machine": func(_ *testing.T, me *nodetest.Client) {
			machine := me.Machine("flags:evaluate")
			url, browser := streamURL(machine), me.Service.Anonymous()
			l := openStream(browser, url)
			l.next()
			me.Call("DELETE", "/api/v1/oauth/clients/"+machine.UserID, nil).Want(204)
			l.ends()
			browser.Call("GET", url, nil).Refused(401)
		},
		"it ends with its environment and its tenant": func(_ *testing.T, me *nodetest.Client) {
			url, browser := streamURL(me, "X-Environment", "development"), me.Service.Anonymous()
			l := openStream(browser, url)
			l.next()
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant+"/environments/development", nil).Want(204)
			l.ends()
			browser.Call("GET", url, nil).Refused(404)
			url = streamURL(me)
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant, nil).Want(204)
			browser.Call("GET", url, nil).Refused(403)
		},
	}.Run(t)
}

// The other node of this test is one that knows the position of a change before there is one.
func TestWhoHasHeardOfAChangeAtAnotherNodeWaitsForIt(t *testing.T) {
	me := streaming(t, flagledgerhttp.StreamLimits{}).SignUp("me@example.com")
	me.CreateFlag("k", nil)
	l := listen(me)
	enable(me, "k", "production")
	var commit uint64
	if _, err := fmt.Sscanf(l.next().ID[strings.Index(l.last, ":")+1:], "%d/", &commit); err != nil {
		t.Fatal(err)
	}
	engine, _, _ := strings.Cut(l.last, ":")
	next := fmt.Sprintf("%s?flagConfigLastModified=1771622898&flagConfigEtag=%s:%d/%d", ofrepPath, engine, commit+1, commit+1)
	var fetched sync.WaitGroup
	fetched.Go(func() {
		if flag := me.Call("POST", next, `{"context":{}}`).Object()["flags"].([]any)[0].(map[string]any); flag["reason"] != "DISABLED" {
			t.Errorf("the answer is from before the change: %v", flag)
		}
	})
	me.Call("POST", nodetest.FlagPath("k", "/disable"), nil).Want(200)
	fetched.Wait()
	me.Call("POST", ofrepPath+"?flagConfigEtag="+engine+":99999999999/99999999999", `{"context":{}}`).Want(200)
	me.Call("POST", ofrepPath+"?flagConfigEtag=%22abc%22", `{"context":{}}`).Want(200)
}

func TestStreamURLsAreTheSameOnAllNodesAndNotLogged(t *testing.T) {
	t.Parallel()
	book := &nodetest.LogBook{}
	var later atomic.Int64
	c := node.Config{
		EventStoreURL: nodetest.EngineURL(t), Environment: "development", Streams: flagledgerhttp.DefaultStreamLimits(),
		Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
	}
	s := nodetest.Start(t, nodetest.Database(t), c, slog.New(slog.NewJSONHandler(book, &slog.HandlerOptions{Level: slog.LevelDebug})))
	me := s.SignUp("me@example.com")
	there := *me
	there.Service = s.SecondNode()
	url := streamURL(me)
	nodetest.Same(t, "the URL on another node", streamURL(&there), url)
	browser := there.Service.Anonymous()
	l := openStream(browser, url)
	l.next()
	me.CreateFlag("k", nil)
	l.hears("k 1")
	s.Anonymous().Call("HEAD", url, nil).Want(200)
	s.Anonymous().Call("GET", url+"x", nil).Refused(401)
	s.Anonymous().Call("GET", "/nowhere"+strings.TrimPrefix(url, streamPath), nil).Refused(404)
	later.Store(int64(time.Hour))
	s.Anonymous().Call("GET", url, nil).Refused(401)
	if text := book.String(); !strings.Contains(text, streamPath) || strings.Contains(text, strings.Split(url, ".")[1]) {
		t.Error("the log shows tickets, or no streams")
	}
}

// streaming starts a service with limits of streams, where they are given.
func streaming(t *testing.T, limits flagledgerhttp.StreamLimits) *nodetest.Service {
	t.Helper()
	t.Parallel()
	return nodetest.Start(t, nodetest.Database(t), node.Config{EventStoreURL: nodetest.EngineURL(t), Environment: "development", Streams: streamLimits(limits)}, nodetest.Log(t))
}

func streamLimits(limits flagledgerhttp.StreamLimits) flagledgerhttp.StreamLimits {
	l := flagledgerhttp.DefaultStreamLimits()
	if limits.PerTenant != 0 {
		l.PerTenant = limits.PerTenant
	}
	for _, field := range []struct{ to, from *time.Duration }{{&l.Life, &limits.Life}, {&l.Heartbeat, &limits.Heartbeat}, {&l.Write, &limits.Write}} {
		if *field.from != 0 {
			*field.to = *field.from
		}
	}
	return l
}

// openStreams is how many streams the service has open, as its metrics say.
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
	me := streaming(t, flagledgerhttp.StreamLimits{Heartbeat: 20 * time.Millisecond}).SignUp("me@example.com")
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
		case <-time.After(patience):
			t.Fatal("no heartbeat")
			return told{}
		}
	}
	nodetest.Same(t, "the position while nothing happens", beat().ID, began)
	other.CreateFlag("theirs", nil)
	me.Service.Eventually("the heartbeat tells the position that others have moved", func() bool { l.last = beat().ID; return l.last != began })
	me.CreateFlag("mine", nil)
	l.hears("mine 1")
}

func TestATenantsStreamsAreLimited(t *testing.T) {
	me := streaming(t, flagledgerhttp.StreamLimits{PerTenant: 2}).SignUp("me@example.com")
	first := listen(me)
	listen(me, "X-Environment", "development")
	saysWhenToRetry(me.Call("GET", streamPath, nil).Refused(429))
	listen(me.NewTenant("other"))
	nodetest.Same(t, "open streams", openStreams(me.Service), "3")
	first.hangUp()
	me.Service.Eventually("another may be opened", func() bool { return me.Call("HEAD", streamPath, nil).Status == 200 && openStreams(me.Service) == "2" })
	listen(me)
}

func TestAStreamIsOpenForALimitedTime(t *testing.T) {
	me := streaming(t, flagledgerhttp.StreamLimits{Life: 200 * time.Millisecond}).SignUp("me@example.com")
	listen(me).ends()
}

func TestAStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	var later atomic.Int64
	s := nodetest.Start(t, nodetest.Database(t), node.Config{
		EventStoreURL: nodetest.EngineURL(t), Environment: "development", Streams: streamLimits(flagledgerhttp.StreamLimits{Heartbeat: 10 * time.Millisecond}),
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

// A stream outlives what the server allows for reading a request and for answering it, and is no duration among the metrics.
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
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	there := *me
	there.Service = &nodetest.Service{T: t, URL: "http://" + listener.Addr().String()}
	streams := []*listening{listen(&there), listen(&there)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Fatal("the service waits for its streams:", err)
	}
	for _, l := range streams {
		l.ends()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// smallBuffers makes the network between client and server hold little.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(1)
	}
	return c, err
}

func TestASlowReaderIsDropped(t *testing.T) {
	s := streaming(t, flagledgerhttp.StreamLimits{Write: time.Second, Heartbeat: time.Millisecond})
	me := s.SignUp("me@example.com")
	server := httptest.NewUnstartedServer(nil)
	server.Config = s.Node.API.Server()
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
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nX-Tenant-ID: %s\r\n\r\n", streamPath, me.Token, me.Tenant)
	other := listen(me)
	s.Eventually("the streams are open", func() bool { return openStreams(s) == "2" })
	s.Eventually("the one that is not read is dropped", func() bool { return openStreams(s) == "1" })
	me.CreateFlag("k", nil)
	other.hears("k 1")
}

func TestAConnectionWhoseAnswersNobodyReadsIsClosed(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
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
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", "/openapi.json")
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("it holds its connection, and what it was to be answered")
	}
}

func TestAStreamHearsOfOtherNodes(t *testing.T) {
	t.Parallel()
	first := nodetest.New(t)
	second := first.SecondNode()
	me := first.SignUp("me@example.com")
	there := *me
	there.Service = second
	second.Eventually("the other node knows the tenant", func() bool { return there.Call("HEAD", streamPath, nil).Status == 200 })
	l := listen(&there)
	for i := range 5 {
		began := time.Now()
		me.CreateFlag(fmt.Sprintf("k%d", i), nil)
		e := l.next()
		nodetest.Same(t, "what changed", e.flags(), fmt.Sprintf("k%d 1", i))
		t.Logf("heard on the other node %v after the change was asked for", e.at.Sub(began))
	}
	// A client goes on at the node that it reaches next.
	l.hangUp()
	enable(me, "k0", "production")
	again := openStream(me, streamPath, "Last-Event-ID", l.last)
	again.hears("k0 2")
	again.next()
	// A node that starts anew has not forgotten.
	third := first.SecondNode()
	there.Service = third
	openStream(&there, streamPath, "Last-Event-ID", l.last).hears("k0 2")
	me.Call("POST", "/api/v1/auth/logout", nil).Want(200)
	again.ends()
}

// Whoever hears of a change and reads at once finds it, on the node that told of it.
func TestAStreamTellsOfAChangeWhenListsShowIt(t *testing.T) {
	t.Parallel()
	const changes = 100
	first := nodetest.New(t)
	second := first.SecondNode()
	me := first.SignUp("me@example.com")
	there := *me
	there.Service = second
	second.Eventually("the other node knows the tenant", func() bool { return there.Call("HEAD", streamPath, nil).Status == 200 })
	streams := map[*nodetest.Client]*listening{me: listen(me), &there: listen(&there)}
	me.CreateFlag("k", nil)
	for c, l := range streams {
		l.hears("k 1")
		c.Call("GET", nodetest.FlagPath("k"), nil).Want(200)
	}
	late := 0
	for version := 2; version < changes+2; version++ {
		changed := make(chan struct{})
		began := time.Now()
		go func() {
			defer close(changed)
			enableOrDisable := map[bool]string{true: "/enable", false: "/disable"}[version%2 == 0]
			me.Call("POST", nodetest.FlagPath("k", enableOrDisable), nil).Want(200)
		}()
		for c, l := range streams {
			e := l.next()
			row := c.Call("GET", "/api/v1/flags", nil).Want(200).List()[0]
			history := c.History("k", "")
			if row["version"] == float64(version) && len(history) == version {
				continue
			}
			if late++; e.at.Sub(began) < time.Second {
				t.Errorf("version %d was heard of after %v, and the lists show version %v and %d entries", version, e.at.Sub(began), row["version"], len(history))
			}
		}
		<-changed
	}
	t.Logf("%d of %d reads were too early because the read models lagged for a second", late, 2*changes)
}

// BenchmarkStream is the time from a change's being asked for until each of 1,000 streams has heard of it.
func BenchmarkStream(b *testing.B) {
	s := nodetest.New(b)
	me := s.SignUp("me@example.com")
	me.CreateFlag("k", nil)
	streams := make([]*listening, 1000)
	for i := range streams {
		streams[i] = listen(me)
	}
	var took nodetest.Samples
	version := 1
	for b.Loop() {
		version++
		began, last := time.Now(), time.Time{}
		me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"description": fmt.Sprint(version)}).Want(200)
		for _, l := range streams {
			if e := l.next(); e.at.After(last) {
				last = e.at
			}
		}
		took.Add(last.Sub(began))
	}
	slices.Sort(took.List)
	took.Report(b, 50)
	took.Report(b, 99)
}
