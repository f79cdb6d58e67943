package main

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

	flagledgerhttp "flagledger/http"
	"flagledger/migrations/pgtest"
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
func (c *client) listen(headers ...string) *listening {
	c.s.t.Helper()
	l := c.open(streamPath, headers...)
	if l.first = l.next(); l.first.Data.Type != "connected" || l.first.ID == "" {
		c.s.t.Fatalf("the stream begins with %+v", l.first)
	}
	return l
}

// open opens a stream.
func (c *client) open(path string, headers ...string) *listening {
	c.s.t.Helper()
	ctx, cancel := context.WithCancel(c.s.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.s.url+path, nil)
	if err != nil {
		c.s.t.Fatal(err)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.tenant != "" {
		r.Header.Set("X-Tenant-ID", c.tenant)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r) //nolint:bodyclose // the reader below closes it
	if err != nil {
		c.s.t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		c.s.t.Fatalf("the stream is refused with %d", response.StatusCode)
	}
	l := &listening{t: c.s.t, events: make(chan told, 10_000), header: response.Header, hangUp: cancel}
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

const patience = 30 * time.Second

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

func (c *client) enable(key, environment string) {
	c.s.t.Helper()
	c.call("POST", flagPath(key, "/enable"), nil, "X-Environment", environment).want(200)
}

func TestStream(t *testing.T) {
	cases{
		"it begins with how to come back and where it is": func(t *testing.T, me *client) {
			l := me.listen()
			same(t, "headers", []string{l.header.Get("Content-Type"), l.header.Get("Cache-Control"), l.header.Get("X-Accel-Buffering")}, []string{"text/event-stream", "no-store", "no"})
			var retry int
			if _, err := fmt.Sscanf(l.retry, "retry: %d", &retry); err != nil || retry < 1000 || retry > 3000 {
				t.Errorf("it begins with %q", l.retry)
			}
			same(t, "the first event", l.first.text, `{"type":"connected","environment":"production"}`)
			me.createFlag("k", nil)
			e := l.next()
			same(t, "the second event", e.text, fmt.Sprintf(`{"type":"refetchEvaluation","environment":"production","etag":%q,"lastModified":%d,"flags":[{"key":"k","version":1}]}`, e.ID, e.Data.LastModified))
			me.call("DELETE", flagPath("k"), nil).want(204)
			same(t, "the flag in the third", strings.HasSuffix(l.next().text, `"flags":[{"key":"k","version":2,"deleted":true}]}`), true)
		},
		"a change is heard at once": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			l := me.listen()
			var slowest time.Duration
			for version := 2; version < 22; version++ {
				began := time.Now()
				me.call("PATCH", flagPath("k"), map[string]any{"description": fmt.Sprint(version)}).want(200)
				e := l.next()
				slowest = max(slowest, e.at.Sub(began))
				same(t, "what changed", e.flags(), fmt.Sprintf("k %d", version))
				same(t, "type, environment and position", []string{e.Data.Type, e.Data.Environment, e.Data.ETag}, []string{"refetchEvaluation", "production", e.ID})
				if age := time.Since(time.Unix(e.Data.LastModified, 0)); age < 0 || age > time.Minute {
					t.Errorf("changed %v ago", age)
				}
			}
			t.Logf("heard at most %v after the change was asked for", slowest)
			if slowest > 2*time.Second {
				t.Errorf("heard only %v after the change was asked for", slowest)
			}
		},
		"what is heard can be evaluated": func(_ *testing.T, me *client) {
			me.createFlag("k", nil)
			l := me.listen()
			var change sync.WaitGroup
			change.Go(func() { me.call("POST", flagPath("k", "/enable"), nil) })
			l.hears("k 2")
			me.evaluate("k", `{}`).want(200).shows(map[string]any{"flagVersion": 2})
			change.Wait()
		},
		"an environment's stream tells of its own changes, and of those of whole flags": func(_ *testing.T, me *client) {
			production, development := me.listen(), me.listen("X-Environment", "development")
			me.createFlag("k", map[string]any{"type": "string"})
			me.enable("k", "development")
			me.enable("k", "production")
			me.call("PATCH", flagPath("k"), `{"name":"n"}`).want(200)
			me.call("PATCH", flagPath("k"), `{"status":"inactive"}`).want(200)
			me.addVariation("k", `{"name":"v","value":"a"}`)
			me.call("POST", flagPath("k", "/disable"), nil, "X-Environment", "development").want(200)
			me.call("DELETE", flagPath("k"), nil).want(204)
			for _, flags := range []string{"k 1", "k 3", "k 4", "k 5", "k 6", "k 8 deleted"} {
				production.hears(flags)
			}
			for _, flags := range []string{"k 1", "k 2", "k 4", "k 5", "k 6", "k 7", "k 8 deleted"} {
				development.hears(flags)
			}
		},
		"a tenant hears nothing of another": func(_ *testing.T, me *client) {
			other := me.newTenant("other")
			l, there := me.listen(), other.listen()
			other.createFlag("theirs", nil)
			me.createFlag("mine", nil)
			l.hears("mine 1")
			there.hears("theirs 1")
		},
		"who comes back hears exactly what he missed": func(t *testing.T, me *client) {
			l := me.listen()
			me.createFlag("a", nil)
			l.hears("a 1")
			l.hangUp()
			me.enable("a", "production")
			me.createFlag("b", nil)
			me.enable("b", "development")
			me.createFlag("c", nil)
			me.call("DELETE", flagPath("b"), nil).want(204)
			me.newTenant("other").createFlag("theirs", nil)

			again := me.open(streamPath, "Last-Event-ID", l.last)
			again.hears("a 2, b 3 deleted, c 1")
			same(t, "then", again.next().Data.Type, "connected")
			me.enable("c", "production")
			again.hears("c 2")
			same(t, "who missed nothing", me.listen("Last-Event-ID", again.last).retry != "", true)
		},
		"after an id that nobody knows all is to be fetched": func(t *testing.T, me *client) {
			me.createFlag("a", nil)
			engine, _, _ := strings.Cut(me.listen().last, ":")
			for _, id := range []string{"x", "1/1", "other:1/1", engine + ":99999999999/99999999999"} {
				l := me.open(streamPath, "Last-Event-ID", id)
				l.hears("")
				same(t, "then", l.next().Data.Type, "connected")
				l.hangUp()
			}
		},
		"it is refused as any other call": func(_ *testing.T, me *client) {
			nobody := *me
			nobody.token = ""
			nobody.call("GET", streamPath, nil).refused(401)
			me.call("GET", streamPath+"?token="+me.token, nil, "Authorization", "").refused(401)
			me.call("GET", streamPath, nil, "X-Environment", "none").refused(404)
			stranger := me.with(me.account().token)
			stranger.tenant = me.tenant
			stranger.call("GET", streamPath, nil).refused(403)
			me.call("POST", streamPath, nil).refused(405)
			me.join("viewer").listen()
		},
		"HEAD answers its headers alone": func(t *testing.T, me *client) {
			same(t, "its type", me.call("HEAD", streamPath, nil).want(200).header.Get("Content-Type"), "text/event-stream")
			me.call("HEAD", streamPath, nil, "X-Environment", "none").want(404)
		},
		"it ends when its session does": func(_ *testing.T, me *client) {
			email := address()
			first := me.s.signUp(email)
			l, other := first.listen(), me.listen()
			first.call("POST", "/api/v1/auth/logout", nil).want(200)
			l.ends()
			me.createFlag("k", nil)
			other.hears("k 1")
		},
		"it ends when the member goes": func(_ *testing.T, me *client) {
			member := me.join("developer")
			l, other := member.listen(), me.listen()
			me.call("DELETE", usersPath(me, member.userID), nil).want(204)
			l.ends()
			me.createFlag("k", nil)
			other.hears("k 1")
		},
		"it ends with its environment": func(_ *testing.T, me *client) {
			l, other := me.listen("X-Environment", "development"), me.listen()
			me.call("DELETE", "/api/v1/tenants/"+me.tenant+"/environments/development", nil).want(204)
			l.ends()
			me.createFlag("k", nil)
			other.hears("k 1")
		},
		"it ends with its tenant": func(_ *testing.T, me *client) {
			l := me.listen()
			me.call("DELETE", "/api/v1/tenants/"+me.tenant, nil).want(204)
			l.ends()
		},
		"a machine needs to evaluate flags, and hears until it is deleted": func(_ *testing.T, me *client) {
			machine := me.machine("flags:evaluate")
			l := machine.listen()
			me.createFlag("k", nil)
			l.hears("k 1")
			me.machine("flags:read", "flags:write", "projects:read").call("GET", streamPath, nil).refused(403)
			machine.call("GET", streamPath, nil, "X-Tenant-ID", me.newTenant("other").tenant).refused(403)
			me.call("DELETE", "/api/v1/oauth/clients/"+machine.userID, nil).want(204)
			l.ends()
		},
		"200 streams hear of one change": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			streams := make([]*listening, 200)
			for i := range streams {
				streams[i] = me.listen()
			}
			began := time.Now()
			me.enable("k", "production")
			var last time.Time
			for _, l := range streams {
				e := l.next()
				same(t, "what changed", e.flags(), "k 2")
				if e.at.After(last) {
					last = e.at
				}
			}
			t.Logf("the last one heard %v after the change was asked for", last.Sub(began))
		},
	}.run(t)
}

// streamURL is the path and the query of the stream that OFREP's bulk answer tells of.
func (c *client) streamURL(headers ...string) string {
	c.s.t.Helper()
	streams := c.ofrep("", `{}`, headers...).want(200).object()["eventStreams"].([]any)
	if len(streams) != 1 {
		c.s.t.Fatalf("the answer tells of the streams %v", streams)
	}
	stream := streams[0].(map[string]any)
	members(c.s.t, "a stream", stream, "type", "url")
	path, ok := strings.CutPrefix(stream["url"].(string), c.s.config.PublicURL)
	if !ok || stream["type"] != "sse" || !strings.HasPrefix(path, streamPath+"?ticket=") {
		c.s.t.Fatalf("the answer tells of %v", stream)
	}
	return path
}

func TestStreamURL(t *testing.T) {
	cases{
		"it opens the stream without a header": func(_ *testing.T, me *client) {
			machine := me.machine("flags:evaluate")
			other := me.newTenant("other")
			browser := me.s.anonymous()
			var streams []*listening
			for _, url := range []string{me.streamURL(), machine.streamURL(), me.join("viewer").streamURL("X-Environment", "production")} {
				l := browser.open(url)
				l.next()
				streams = append(streams, l)
			}
			development := browser.open(me.streamURL("X-Environment", "development"))
			development.next()
			theirs := browser.open(other.streamURL(), "X-Tenant-ID", me.tenant, "X-Environment", "none")
			theirs.next()
			me.createFlag("k", nil)
			me.enable("k", "production")
			me.enable("k", "development")
			me.call("DELETE", flagPath("k"), nil).want(204)
			other.createFlag("theirs", nil)
			for _, l := range streams {
				l.hears("k 1")
				l.hears("k 2")
				l.hears("k 4 deleted")
			}
			for _, flags := range []string{"k 1", "k 3", "k 4 deleted"} {
				development.hears(flags)
			}
			theirs.hears("theirs 1")
			again := browser.open(me.streamURL(), "Last-Event-ID", streams[0].last)
			same(streams[0].t, "who missed nothing hears", again.next().Data.Type, "connected")
		},
		"it stays the same with its token, and so does the tag of the answer": func(t *testing.T, me *client) {
			me.enabled("k", nil)
			a := me.ofrep("", `{}`).want(200)
			tag := a.header.Get("ETag")
			same(t, "the answer", string(me.ofrep("", `{}`, "If-None-Match", `"other"`).want(200).body), string(a.body))
			me.ofrep("", `{}`, "If-None-Match", tag).want(304)
			for what, other := range map[string]*answer{
				"another environment": me.ofrep("", `{}`, "X-Environment", "development"),
				"another person":      me.join("viewer").ofrep("", `{}`),
				"a machine":           me.machine("flags:evaluate").ofrep("", `{}`),
			} {
				if other.want(200).header.Get("ETag") == tag {
					t.Errorf("%s has the same answer", what)
				}
			}
		},
		"it opens nothing but the stream": func(_ *testing.T, me *client) {
			me.createFlag("k", nil)
			query := strings.TrimPrefix(me.streamURL(), streamPath)
			sealed := strings.TrimPrefix(query, "?ticket=")
			nobody := me.s.anonymous()
			for _, path := range []string{"/api/v1/flags", flagPath("k"), "/api/v1/tenants", "/api/v1/projects"} {
				nobody.call("GET", path+query, nil).refused(401)
				nobody.call("GET", path, nil, "Authorization", "Bearer "+sealed).refused(401)
			}
			nobody.call("POST", ofrepPath+query, `{"context":{}}`).want(401)
			nobody.call("GET", streamPath, nil, "Authorization", "Bearer "+sealed).refused(401)
			nobody.call("POST", "/api/v1/auth/login", map[string]string{"idToken": sealed}).refused(401)
		},
		"no other token opens it": func(_ *testing.T, me *client) {
			sealed := strings.TrimPrefix(me.streamURL(), streamPath+"?ticket=")
			parts := strings.Split(sealed, ".")
			others := strings.Split(strings.TrimPrefix(me.newTenant("other").streamURL(), streamPath+"?ticket="), ".")
			for _, token := range []string{
				me.token, me.machine("flags:evaluate").token, "x", sealed + "x", sealed[:len(sealed)-1],
				parts[0] + "." + others[1] + "." + parts[2], parts[0] + "." + parts[1] + ".",
			} {
				me.call("GET", streamPath+"?ticket="+token, nil).refused(401)
			}
		},
		"it ends with its session": func(_ *testing.T, me *client) {
			person := me.s.signUp(address())
			url, browser := person.streamURL(), me.s.anonymous()
			l := browser.open(url)
			l.next()
			person.call("POST", "/api/v1/auth/logout", nil).want(200)
			l.ends()
			browser.call("GET", url, nil).refused(401)
		},
		"it ends for who is no member any more": func(_ *testing.T, me *client) {
			member := me.join("viewer")
			url, browser := member.streamURL(), me.s.anonymous()
			l := browser.open(url)
			l.next()
			me.call("DELETE", usersPath(me, member.userID), nil).want(204)
			l.ends()
			browser.call("GET", url, nil).refused(403)
		},
		"it ends with its machine": func(_ *testing.T, me *client) {
			machine := me.machine("flags:evaluate")
			url, browser := machine.streamURL(), me.s.anonymous()
			l := browser.open(url)
			l.next()
			me.call("DELETE", "/api/v1/oauth/clients/"+machine.userID, nil).want(204)
			l.ends()
			browser.call("GET", url, nil).refused(401)
		},
		"it ends with its environment and its tenant": func(_ *testing.T, me *client) {
			url, browser := me.streamURL("X-Environment", "development"), me.s.anonymous()
			l := browser.open(url)
			l.next()
			me.call("DELETE", "/api/v1/tenants/"+me.tenant+"/environments/development", nil).want(204)
			l.ends()
			browser.call("GET", url, nil).refused(404)
			url = me.streamURL()
			me.call("DELETE", "/api/v1/tenants/"+me.tenant, nil).want(204)
			browser.call("GET", url, nil).refused(403)
		},
	}.run(t)
}

// The other node of this test is one that knows the position of a change before there is one.
func TestWhoHasHeardOfAChangeAtAnotherNodeWaitsForIt(t *testing.T) {
	me := streaming(t, flagledgerhttp.StreamLimits{}).signUp("me@example.com")
	me.createFlag("k", nil)
	l := me.listen()
	me.enable("k", "production")
	var commit uint64
	if _, err := fmt.Sscanf(l.next().ID[strings.Index(l.last, ":")+1:], "%d/", &commit); err != nil {
		t.Fatal(err)
	}
	engine, _, _ := strings.Cut(l.last, ":")
	next := fmt.Sprintf("%s?flagConfigLastModified=1771622898&flagConfigEtag=%s:%d/%d", ofrepPath, engine, commit+1, commit+1)
	var fetched sync.WaitGroup
	fetched.Go(func() {
		if flag := me.call("POST", next, `{"context":{}}`).object()["flags"].([]any)[0].(map[string]any); flag["reason"] != "DISABLED" {
			t.Errorf("the answer is from before the change: %v", flag)
		}
	})
	me.call("POST", flagPath("k", "/disable"), nil).want(200)
	fetched.Wait()
	me.call("POST", ofrepPath+"?flagConfigEtag="+engine+":99999999999/99999999999", `{"context":{}}`).want(200)
	me.call("POST", ofrepPath+"?flagConfigEtag=%22abc%22", `{"context":{}}`).want(200)
}

func TestStreamURLsAreTheSameOnAllNodesAndNotLogged(t *testing.T) {
	t.Parallel()
	book := &logBook{}
	var later atomic.Int64
	c := config{
		EventStoreURL: engineURL(t), Environment: "development", streams: flagledgerhttp.DefaultStreamLimits(),
		now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
	}
	s := serviceWith(t, pgtest.URL(t), c, slog.New(slog.NewJSONHandler(book, &slog.HandlerOptions{Level: slog.LevelDebug})))
	me := s.signUp("me@example.com")
	there := *me
	there.s = s.secondNode()
	url := me.streamURL()
	same(t, "the URL on another node", there.streamURL(), url)
	browser := there.s.anonymous()
	l := browser.open(url)
	l.next()
	me.createFlag("k", nil)
	l.hears("k 1")
	s.anonymous().call("HEAD", url, nil).want(200)
	s.anonymous().call("GET", url+"x", nil).refused(401)
	s.anonymous().call("GET", "/nowhere"+strings.TrimPrefix(url, streamPath), nil).refused(404)
	later.Store(int64(time.Hour))
	s.anonymous().call("GET", url, nil).refused(401)
	if text := book.String(); !strings.Contains(text, streamPath) || strings.Contains(text, strings.Split(url, ".")[1]) {
		t.Error("the log shows tickets, or no streams")
	}
}

// streaming starts a service with limits of streams, where they are given.
func streaming(t *testing.T, limits flagledgerhttp.StreamLimits) *service {
	t.Helper()
	t.Parallel()
	return serviceWith(t, pgtest.URL(t), config{EventStoreURL: engineURL(t), Environment: "development", streams: streamLimits(limits)}, testLog(t))
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

// streams is how many streams the service has open, as its metrics say.
func (s *service) streams() string {
	s.t.Helper()
	for line := range strings.Lines(string(s.anonymous().call("GET", "/metrics", nil).body)) {
		if count, ok := strings.CutPrefix(line, "flagledger_streams "); ok {
			return strings.TrimSpace(count)
		}
	}
	s.t.Fatal("the metrics do not count streams")
	return ""
}

func TestASilentStreamHasAHeartbeat(t *testing.T) {
	me := streaming(t, flagledgerhttp.StreamLimits{Heartbeat: 20 * time.Millisecond}).signUp("me@example.com")
	other := me.newTenant("other")
	l := me.listen()
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
	same(t, "the position while nothing happens", beat().ID, began)
	other.createFlag("theirs", nil)
	me.s.eventually("the heartbeat tells the position that others have moved", func() bool { l.last = beat().ID; return l.last != began })
	me.createFlag("mine", nil)
	l.hears("mine 1")
}

func TestATenantsStreamsAreLimited(t *testing.T) {
	me := streaming(t, flagledgerhttp.StreamLimits{PerTenant: 2}).signUp("me@example.com")
	first := me.listen()
	me.listen("X-Environment", "development")
	me.call("GET", streamPath, nil).refused(429).waits()
	me.newTenant("other").listen()
	same(t, "open streams", me.s.streams(), "3")
	first.hangUp()
	me.s.eventually("another may be opened", func() bool { return me.call("HEAD", streamPath, nil).status == 200 && me.s.streams() == "2" })
	me.listen()
}

func TestAStreamIsOpenForALimitedTime(t *testing.T) {
	me := streaming(t, flagledgerhttp.StreamLimits{Life: 200 * time.Millisecond}).signUp("me@example.com")
	me.listen().ends()
}

func TestAStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	var later atomic.Int64
	s := serviceWith(t, pgtest.URL(t), config{
		EventStoreURL: engineURL(t), Environment: "development", streams: streamLimits(flagledgerhttp.StreamLimits{Heartbeat: 10 * time.Millisecond}),
		now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
	}, testLog(t))
	me := s.signUp("me@example.com")
	l, machines := me.listen(), me.machine("flags:evaluate").listen()
	me.createFlag("k", nil)
	l.hears("k 1")
	machines.hears("k 1")
	later.Store(int64(time.Hour))
	l.ends()
	machines.ends()
}

// A stream outlives what the server allows for reading a request and for answering it, and is no duration among the metrics.
func TestAStreamOutlivesTheTimeOfARequest(t *testing.T) {
	t.Parallel()
	s := newService(t)
	me := s.signUp("me@example.com")
	server := httptest.NewUnstartedServer(nil)
	server.Config = s.node.api.Server()
	server.Config.ReadTimeout, server.Config.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
	server.Start()
	t.Cleanup(server.Close)
	there := *me
	there.s = &service{t: t, url: server.URL}
	l := there.listen()
	select {
	case e := <-l.events:
		t.Fatalf("heard %+v", e)
	case <-time.After(3 * server.Config.ReadTimeout):
	}
	me.createFlag("k", nil)
	l.hears("k 1")
	l.hangUp()
	s.eventually("the stream has ended", func() bool { return s.streams() == "0" })
	me.call("GET", streamPath, nil, "X-Environment", "none").refused(404)
	metrics := string(s.anonymous().call("GET", "/metrics", nil).body)
	const series = `flagledger_http_request_duration_seconds_count{method="GET",route="/api/v1/flags/stream",status=`
	if !strings.Contains(metrics, series+`"4xx"} 1`) || strings.Contains(metrics, series+`"2xx"`) {
		t.Error("the durations of requests count streams")
	}
}

func TestAStreamEndsWithTheService(t *testing.T) {
	t.Parallel()
	s := newService(t)
	me := s.signUp("me@example.com")
	server := s.node.api.Server()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	there := *me
	there.s = &service{t: t, url: "http://" + listener.Addr().String()}
	streams := []*listening{there.listen(), there.listen()}
	ctx, cancel := context.WithTimeout(t.Context(), shutdownTimeout/2)
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
	s := streaming(t, flagledgerhttp.StreamLimits{Write: 300 * time.Millisecond, Heartbeat: time.Millisecond})
	me := s.signUp("me@example.com")
	server := httptest.NewUnstartedServer(nil)
	server.Config = s.node.api.Server()
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
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nX-Tenant-ID: %s\r\n\r\n", streamPath, me.token, me.tenant)
	other := me.listen()
	s.eventually("the streams are open", func() bool { return s.streams() == "2" })
	s.eventually("the one that is not read is dropped", func() bool { return s.streams() == "1" })
	me.createFlag("k", nil)
	other.hears("k 1")
}

func TestAConnectionWhoseAnswersNobodyReadsIsClosed(t *testing.T) {
	t.Parallel()
	s := newService(t)
	server := httptest.NewUnstartedServer(nil)
	server.Config = s.node.api.Server()
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
	case <-time.After(patience / 3):
		t.Fatal("it holds its connection, and what it was to be answered")
	}
}

func TestAStreamHearsOfOtherNodes(t *testing.T) {
	t.Parallel()
	first := newService(t)
	second := first.secondNode()
	me := first.signUp("me@example.com")
	there := *me
	there.s = second
	second.eventually("the other node knows the tenant", func() bool { return there.call("HEAD", streamPath, nil).status == 200 })
	l := there.listen()
	for i := range 5 {
		began := time.Now()
		me.createFlag(fmt.Sprintf("k%d", i), nil)
		e := l.next()
		same(t, "what changed", e.flags(), fmt.Sprintf("k%d 1", i))
		t.Logf("heard on the other node %v after the change was asked for", e.at.Sub(began))
	}
	// A client goes on at the node that it reaches next.
	l.hangUp()
	me.enable("k0", "production")
	again := me.open(streamPath, "Last-Event-ID", l.last)
	again.hears("k0 2")
	again.next()
	// A node that starts anew has not forgotten.
	third := first.secondNode()
	there.s = third
	there.open(streamPath, "Last-Event-ID", l.last).hears("k0 2")
	me.call("POST", "/api/v1/auth/logout", nil).want(200)
	again.ends()
}

// BenchmarkStream is the time from a change's being asked for until each of 1,000 streams has heard of it.
func BenchmarkStream(b *testing.B) {
	s := newService(b)
	me := s.signUp("me@example.com")
	me.createFlag("k", nil)
	streams := make([]*listening, 1000)
	for i := range streams {
		streams[i] = me.listen()
	}
	var took samples
	version := 1
	for b.Loop() {
		version++
		began, last := time.Now(), time.Time{}
		me.call("PATCH", flagPath("k"), map[string]any{"description": fmt.Sprint(version)}).want(200)
		for _, l := range streams {
			if e := l.next(); e.at.After(last) {
				last = e.at
			}
		}
		took.add(last.Sub(began))
	}
	slices.Sort(took.list)
	took.report(b, 50)
	took.report(b, 99)
}
