package http_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
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
			Key         string
			Version     int
			Environment string
			Deleted     bool
		}
	}
}

// flags lists the keys of an event in short.
func (e told) flags() string {
	var list []string
	for _, f := range e.Data.Flags {
		text := fmt.Sprintf("%s %d", f.Key, f.Version)
		if f.Environment != "" {
			text += " in " + f.Environment
		}
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
	first  told   // the first event of a stream opened by listen
	last   string // the id of the last event that was read
}

// listen opens a stream and waits until it is connected.
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
	slow := time.AfterFunc(testTimeout, cancel) // initially
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

// testTimeout limits the wait for expected events. It slows no successful test.
const testTimeout = time.Minute

// await waits for the next event except heartbeats, or for the end of the stream: then ok is false. Heartbeats do not
// extend the timeout, so that a stream that should have ended fails its test.
func (l *listening) await(what string) (e told, ok bool) {
	l.t.Helper()
	timeout := time.After(testTimeout)
	for {
		select {
		case e, ok = <-l.events:
			if !ok {
				return e, false
			}
			if l.last = e.ID; e.Data != nil {
				return e, true
			}
		case <-timeout:
			l.t.Fatalf("%s does not come within %s", what, testTimeout)
		}
	}
}

// next waits for the next event except heartbeats.
func (l *listening) next() told {
	l.t.Helper()
	e, ok := l.await("the next event")
	if !ok {
		l.t.Fatal("the stream has ended")
	}
	return e
}

// hears checks that the next event reports changes of these flags.
func (l *listening) hears(flags string) {
	l.t.Helper()
	if e := l.next(); e.Data.Type != "refetchEvaluation" || e.flags() != flags {
		l.t.Errorf("heard %+v, want %s", *e.Data, flags)
	}
}

// ends waits for the end of the stream, before any other event.
func (l *listening) ends() {
	l.t.Helper()
	for {
		e, ok := l.await("the end of the stream")
		if !ok {
			return
		}
		l.t.Errorf("before its end it hears %+v", *e.Data)
	}
}

// createHeard creates a flag and waits until streams have reported it: later streams start after it.
func createHeard(c *nodetest.Client, key string) {
	c.Service.T.Helper()
	l := listen(c)
	c.CreateFlag(key, nil)
	l.hears(key + " 1")
	l.hangUp()
}

func enable(c *nodetest.Client, key, environment string) {
	c.Service.T.Helper()
	c.Call("POST", nodetest.FlagPath(key, "/enable"), nil, "X-Environment", environment).Want(200)
}
