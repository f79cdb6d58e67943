package edge

import (
	"cmp"
	"context"
	"crypto/sha256"
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
	warned  bool // see warnWithoutEdge

	asOf      atomic.Pointer[time.Time] // when the replica was known to be current
	connected atomic.Bool
	refused   atomic.Bool // the service does not know the key
	lastError atomic.Pointer[string]
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
	f.loadCopy()
	return f, nil
}

// loadCopy loads the copy on disk, if there is one.
func (f *follower) loadCopy() {
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
		f.lastError.Store(&text)
		f.config.Log.Warn("feed disconnected", "retry_in", wait, "err", err)
	})
	f.saveCopy()
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
	f.refused.Store(answer.StatusCode == http.StatusUnauthorized)
	if f.refused.Load() { // revoked while the edge was not connected
		f.replica.Revoke(sha256.Sum256([]byte(f.key)))
		f.saveCopy()
	}
	if answer.StatusCode != http.StatusOK {
		return refusal(answer)
	}
	defer func() {
		if f.changed {
			f.saveCopy()
		}
	}()
	for e, err := range sse.Read(answer.Body, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		silence.Reset(maxSilence)
		known, err := f.apply(e)
		if err != nil {
			f.last = "" // begin anew
			return err
		}
		if known {
			progressed()
		}
	}
	return cmp.Or(context.Cause(ctx), errors.New("the service closed the feed"))
}

// refusal returns the error of an answer that is not a feed.
func refusal(answer *http.Response) error {
	var problem struct{ Detail string }
	_ = json.NewDecoder(io.LimitReader(answer.Body, 64<<10)).Decode(&problem)
	return fmt.Errorf("the service answers %s: %s", answer.Status, cmp.Or(problem.Detail, "without an explanation"))
}

// apply takes an event in. It returns true if the replica is known to be current after it.
func (f *follower) apply(received sse.Event) (known bool, err error) {
	if received.Type == "ping" {
		if f.last == "" { // within a reset
			return false, nil
		}
		f.last = received.LastEventID
	} else {
		var e snapshot.FeedEvent
		if err := json.Unmarshal([]byte(received.Data), &e); err != nil {
			return false, fmt.Errorf("an event of the feed cannot be read: %w", err)
		}
		if err := f.replica.Apply(e); err != nil {
			return false, err
		}
		f.changed = true
		if e.Type == snapshot.FeedReset { // until ready nothing is held that an id stands for
			f.last = ""
		}
		if e.Type != snapshot.FeedReady {
			return false, nil
		}
		f.last = e.Position
		f.warnWithoutEdge()
	}
	f.connected.Store(true)
	f.lastError.Store(nil)
	f.asOf.Store(new(f.config.Now()))
	if f.changed && f.config.Now().Sub(f.copied) >= copyInterval {
		f.saveCopy()
	}
	return true, nil
}

// warnWithoutEdge logs once that the key is none of an edge.
func (f *follower) warnWithoutEdge() {
	if key, ok := f.replica.EvaluationKey(sha256.Sum256([]byte(f.key))); ok && !key.Edge && !f.warned {
		f.warned = true
		f.config.Log.Warn("the key was created without edge: signed keys are refused here", "key_id", key.KeyID)
	}
}

// saveCopy writes the replica to disk if it has ever been complete.
func (f *follower) saveCopy() {
	contents := f.replica.Contents()
	asOf := f.asOf.Load()
	if contents == nil || asOf == nil || f.config.Folder == "" {
		return
	}
	f.copied = f.config.Now()
	if err := f.file.write(savedFeed{AsOf: *asOf, Events: contents}); err != nil {
		text := "the copy of the feed could not be written to disk: " + err.Error()
		f.lastError.Store(&text)
		f.config.Log.Warn("the copy of the feed could not be written to disk", "err", err)
		return
	}
	f.changed = false
}

// environmentID returns the id of the environment, empty before it is known and while the service refuses the key.
func (f *follower) environmentID() string {
	if f.refused.Load() {
		return ""
	}
	if t, ok := f.replica.OwnTenant(); ok {
		return t.Environments()[0].ID
	}
	return ""
}

// status reports how current the environment is.
func (f *follower) status() (s flaghttp.EdgeEnvironment) {
	if t, ok := f.replica.OwnTenant(); ok {
		s.TenantID = t.ID()
		s.Environment = t.Environments()[0].Name
	}
	s.AsOf, s.Stale = f.asOf.Load(), !f.connected.Load()
	if lastError := f.lastError.Load(); lastError != nil {
		s.Detail = *lastError
	}
	return s
}
