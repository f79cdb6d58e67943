package edge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tmaxmax/go-sse"

	flaghttp "flagledger/http"
	"flagledger/projections/snapshot"
	"flagledger/retry"
)

const (
	// maxEvent limits an event of a feed, in bytes: a piece has a large flag at most.
	maxEvent = 16 << 20
	// maxSilence is how long a feed may send nothing: it pings every 15 s.
	maxSilence = 45 * time.Second
	// copyInterval is the least time between two copies of a feed on disk.
	copyInterval = 10 * time.Second
)

// follower follows the feed of one key.
type follower struct {
	config  Config
	key     string
	replica *snapshot.Replica
	client  *http.Client
	file    copyFile

	last    string // the id of the last event
	changed bool   // since the copy on disk
	copied  time.Time

	asOf      atomic.Pointer[time.Time] // when the replica was known to be current
	connected atomic.Bool
	trouble   atomic.Pointer[string]
}

// newFollower returns a follower that begins with its copy on disk.
func newFollower(c Config, key string) (*follower, error) {
	secret, err := secretOf(key)
	if err != nil {
		return nil, err
	}
	box, err := secret.Box("copy of a feed")
	if err != nil {
		return nil, err
	}
	f := &follower{
		config: c, key: key, replica: snapshot.NewReplica(), client: &http.Client{}, file: newCopyFile(c.Folder, key, box),
	}
	f.begin()
	return f, nil
}

// begin takes in the copy on disk, if there is one.
func (f *follower) begin() {
	saved, err := f.file.read()
	if err != nil {
		f.config.Log.Warn("the copy of the feed on disk is ignored", "because", err)
		return
	}
	if saved == nil {
		return
	}
	for _, e := range saved.Events {
		if err := f.replica.Apply(e); err != nil {
			f.config.Log.Warn("the copy of the feed on disk is ignored", "because", err)
			f.replica = snapshot.NewReplica()
			return
		}
		f.last = e.Position
	}
	f.asOf.Store(&saved.AsOf)
	f.config.Log.Info("the edge begins with its copy on disk", "as_of", saved.AsOf)
}

// run follows the feed until ctx ends, and then copies it to disk.
func (f *follower) run(ctx context.Context) {
	retry.Forever(ctx, func(progressed func()) error {
		err := f.follow(ctx, progressed)
		f.connected.Store(false)
		return err
	}, func(err error, wait time.Duration) {
		text := err.Error()
		f.trouble.Store(&text)
		f.config.Log.Warn("the feed is not followed", "retry_in", wait, "err", err)
	})
	f.copy()
}

// follow reads the feed once, until it ends.
func (f *follower) follow(ctx context.Context, progressed func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(maxSilence, func() { cancel(fmt.Errorf("it was silent for %v", maxSilence)) })
	defer silence.Stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.config.From+"/api/v1/feed", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+f.key)
	if f.last != "" {
		r.Header.Set("Last-Event-ID", f.last)
	}
	answer, err := f.client.Do(r)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return refusal(answer)
	}
	for e, err := range sse.Read(answer.Body, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		silence.Reset(maxSilence)
		if err := f.apply(e); err != nil {
			f.last = "" // begin anew
			return err
		}
		progressed()
	}
	return cmp.Or(context.Cause(ctx), errors.New("the service has ended it"))
}

// refusal returns the error of an answer that is not a feed.
func refusal(answer *http.Response) error {
	var problem struct{ Detail string }
	_ = json.NewDecoder(io.LimitReader(answer.Body, 64<<10)).Decode(&problem)
	return fmt.Errorf("the service answers %s: %s", answer.Status, cmp.Or(problem.Detail, "without an explanation"))
}

// apply takes an event in.
func (f *follower) apply(received sse.Event) error {
	if received.Type != "ping" {
		var e snapshot.FeedEvent
		if err := json.Unmarshal([]byte(received.Data), &e); err != nil {
			return fmt.Errorf("an event of the feed cannot be read: %w", err)
		}
		if err := f.replica.Apply(e); err != nil {
			return err
		}
		f.changed = true
		if e.Type == snapshot.FeedReset { // until ready nothing is held that an id stands for
			f.last = ""
			return nil
		}
	}
	if received.LastEventID == "" {
		return nil
	}
	f.last = received.LastEventID
	f.connected.Store(true)
	f.trouble.Store(nil)
	f.asOf.Store(new(f.config.Now()))
	if f.changed && f.config.Now().Sub(f.copied) >= copyInterval {
		f.copy()
	}
	return nil
}

// copy writes the copy on disk, if there is something new.
func (f *follower) copy() {
	contents := f.replica.Contents()
	asOf := f.asOf.Load()
	if contents == nil || asOf == nil || f.config.Folder == "" {
		return
	}
	f.copied = f.config.Now()
	if err := f.file.write(savedFeed{AsOf: *asOf, Events: contents}); err != nil {
		text := "the copy of the feed could not be written to disk: " + err.Error()
		f.trouble.Store(&text)
		f.config.Log.Warn("the copy of the feed could not be written to disk", "err", err)
		return
	}
	f.changed = false
}

// status reports how current the environment is.
func (f *follower) status() (s flaghttp.EdgeEnvironment) {
	if t, ok := f.replica.OwnTenant(); ok {
		s.TenantID = t.ID()
		s.Environment = t.Environments()[0].Name
	}
	s.AsOf, s.Stale = f.asOf.Load(), !f.connected.Load()
	if trouble := f.trouble.Load(); trouble != nil {
		s.Detail = *trouble
	}
	return s
}
