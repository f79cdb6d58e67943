package http_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tmaxmax/go-sse"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/projections/snapshot"
)

const feedPath = "/api/v1/feed"

// feedReader reads a feed.
type feedReader struct {
	t      testing.TB
	events chan snapshot.FeedEvent // closed when the feed ends
	last   string                  // the id of the last event that was read
	ids    chan string
	hangUp func()
}

// readFeed opens a feed.
func readFeed(c *nodetest.Client, headers ...string) *feedReader {
	c.Service.T.Helper()
	ctx, cancel := context.WithCancel(c.Service.T.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Service.URL+feedPath, nil)
	if err != nil {
		c.Service.T.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r) //nolint:bodyclose // the reader below closes it
	if err != nil {
		c.Service.T.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		c.Service.T.Fatalf("the feed is refused with %d", response.StatusCode)
	}
	f := &feedReader{
		t: c.Service.T, events: make(chan snapshot.FeedEvent, 1000), ids: make(chan string, 1000), hangUp: cancel,
	}
	go func() {
		defer response.Body.Close()
		defer close(f.events)
		for e, err := range sse.Read(response.Body, &sse.ReadConfig{MaxEventSize: 1 << 20}) {
			if err != nil {
				return
			}
			if e.Type == "ping" {
				continue
			}
			var event snapshot.FeedEvent
			if err := json.Unmarshal([]byte(e.Data), &event); err != nil {
				f.t.Errorf("%v in %s", err, e.Data)
			}
			f.ids <- e.LastEventID
			f.events <- event
		}
	}()
	return f
}

// next waits for the next event.
func (f *feedReader) next() snapshot.FeedEvent {
	f.t.Helper()
	select {
	case e, ok := <-f.events:
		if !ok {
			f.t.Fatal("the feed has ended")
		}
		if id := <-f.ids; id != "" {
			f.last = id
		}
		return e
	case <-time.After(testTimeout):
		f.t.Fatalf("no event comes within %s", testTimeout)
		return snapshot.FeedEvent{}
	}
}

// of waits for the next event, which must have a type.
func (f *feedReader) of(kind snapshot.FeedType) snapshot.FeedEvent {
	f.t.Helper()
	e := f.next()
	for kind != snapshot.FeedReady && e.Type == snapshot.FeedReady { // of the events before
		e = f.next()
	}
	if e.Type != kind {
		f.t.Fatalf("the feed sends %+v, want %s", e, kind)
	}
	return e
}

// all reads everything, from the reset to the ready.
func (f *feedReader) all() (everything snapshot.FeedEvent) {
	f.t.Helper()
	everything.Environment = f.of(snapshot.FeedReset).Environment
	for {
		e := f.next()
		if e.Type == snapshot.FeedReady {
			return everything
		}
		everything.Flags = append(everything.Flags, e.Flags...)
		everything.Keys = append(everything.Keys, e.Keys...)
	}
}

// ends waits for the end of the feed, before which only ready may come.
func (f *feedReader) ends() {
	f.t.Helper()
	timeout := time.After(testTimeout)
	for {
		select {
		case e, ok := <-f.events:
			if !ok {
				return
			}
			if e.Type != snapshot.FeedReady {
				f.t.Errorf("before its end the feed sends %+v", e)
			}
		case <-timeout:
			f.t.Fatal("the feed does not end")
		}
	}
}

func TestFeed(t *testing.T) {
	nodetest.Cases{
		"has everything, and then what changes": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", map[string]any{"description": "said to people"})
			enable(me, "k", "development")
			me.SetRules("k", `{"rules":[{"conditions":[],"serve":{"value":true}}]}`, "X-Environment", "development").Want(200)
			me.CreateFlag("last", nil)
			_, server := createKey(me, "server", nil)
			createKey(me, "server", map[string]any{"environment": "development"})
			feed := readFeed(server)
			everything := feed.all()
			nodetest.Same(t, "the environment", everything.Environment.Environment.Name, "production")
			nodetest.Same(t, "flags and keys", []int{len(everything.Flags), len(everything.Keys)}, []int{2, 1})
			k := everything.Flags[0]
			nodetest.Same(t, "the flag", []any{k.Key, len(k.Enabled), len(k.Rules), k.Description}, []any{"k", 1, 0, ""})
			me.SetRules("k", `{"rules":[{"conditions":[],"serve":{"value":true}}]}`).Want(200)
			changed := feed.of(snapshot.FeedFlag).Flag
			nodetest.Same(t, "the changed flag", []any{changed.Key, len(changed.Rules), changed.Version}, []any{"k", 1, k.Version + 1})
			me.Call("DELETE", nodetest.FlagPath("last"), nil).Want(204)
			nodetest.Same(t, "the deleted flag", feed.of(snapshot.FeedGone).FlagKey, "last")
		},
		"goes on where its reader was": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("a", nil)
			me.CreateFlag("b", nil)
			_, server := createKey(me, "server", nil)
			feed := readFeed(server)
			feed.all()
			feed.hangUp()
			enable(me, "a", "production")
			enable(me, "a", "development")
			gone, _ := createKey(me, "browser", nil)
			me.Call("DELETE", keysPath+"/"+gone["id"].(string), nil).Want(204)
			again := readFeed(server, "Last-Event-ID", feed.last)
			nodetest.Same(t, "keys", len(again.of(snapshot.FeedState).Keys), 1)
			nodetest.Same(t, "the changed flag", again.of(snapshot.FeedFlag).Flag.Key, "a")
			me.CreateFlag("c", nil)
			nodetest.Same(t, "the next flag", again.of(snapshot.FeedFlag).Flag.Key, "c")
			log, _, _ := strings.Cut(again.last, ".")
			for _, id := range []string{"x", "b3RoZXI.1.1", log + ".999999999999.0"} {
				other := readFeed(server, "Last-Event-ID", id)
				nodetest.Same(t, "flags after "+id, len(other.all().Flags), 3)
				other.hangUp()
			}
		},
		"has keys, and secrets for an edge alone": func(t *testing.T, me *nodetest.Client) {
			_, server := createKey(me, "server", nil)
			_, edge := createKey(me, "server", map[string]any{"edge": true})
			plain, whole := readFeed(server), readFeed(edge)
			plain.all()
			whole.all()
			signed, _ := createKey(me, "browser", map[string]any{"signed": true})
			if key := plain.of(snapshot.FeedKey).Key; key.KeyID != signed["id"] || key.SigningSecrets != nil {
				t.Errorf("a server without edge is sent %+v", key)
			}
			key := whole.of(snapshot.FeedKey).Key
			nodetest.Same(t, "the secret", key.SigningSecrets[key.SigningID], []string{signed["signingSecret"].(string)})
			me.Call("DELETE", keysPath+"/"+signed["id"].(string), nil).Want(204)
			nodetest.Same(t, "the deleted key", whole.of(snapshot.FeedGone).KeyID, signed["id"])
		},
		"ends with its key, which it tells": func(t *testing.T, me *nodetest.Client) {
			key, server := createKey(me, "server", nil)
			feed := readFeed(server)
			feed.all()
			me.Call("DELETE", keysPath+"/"+key["id"].(string), nil).Want(204)
			nodetest.Same(t, "the deleted key", feed.of(snapshot.FeedGone).KeyID, key["id"])
			feed.ends()
		},
		"is for servers alone": func(_ *testing.T, me *nodetest.Client) {
			_, browser := createKey(me, "browser", nil)
			_, server := createKey(me, "server", nil)
			browser.Call("GET", feedPath, nil).Refused(403)
			me.Call("GET", feedPath, nil).Refused(403)
			me.Machine("flags:read", "flags:evaluate").Call("GET", feedPath, nil).Refused(403)
			server.Call("GET", feedPath, nil, "X-Environment", "development").Refused(403)
			other := me.NewTenant("another's").Tenant
			for _, c := range []*nodetest.Client{server, me.Machine("flags:sync")} {
				c.Call("GET", feedPath, nil, "X-Tenant-ID", other).Refused(403)
			}
			_, theirs := createKey(me.Service.SignUp(nodetest.Address()), "server", nil)
			theirs.Call("GET", feedPath, nil, "X-Tenant-ID", me.Tenant).Refused(403)
			nodetest.Same(t, "the tenant of another's key", readFeed(theirs).all().Environment.TenantID == me.Tenant, false)
			readFeed(me.Machine("flags:sync"), "X-Environment", "development").all()
		},
	}.Run(t)
}

// The full states of a tenant are built by turns with the work of others.
func TestFullStatesOfATenantWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp(nodetest.Address())
	me.CreateEnabledFlag("k", nil)
	_, server := createKey(me, "server", nil)
	free := occupy(s.Node.API.Queues.CPU, "feeds of "+me.UserID)
	select {
	case e, ok := <-readFeed(server).events:
		if ok {
			t.Errorf("without a slot it is sent %+v", e)
		}
	case <-time.After(testTimeout):
		t.Error("without a slot the feed does not end")
	}
	server.Call("POST", manyPath, `{}`).Want(200)
	free()
	nodetest.Same(t, "flags", len(readFeed(server).all().Flags), 1)
}
