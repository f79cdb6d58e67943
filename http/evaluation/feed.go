package evaluation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
)

// Feeds opens feeds. The snapshot implements it.
type Feeds interface {
	Feed(t *snapshot.Tenant, environment state.Environment, secrets func(string) ([]string, error)) *snapshot.Feed
}

// resumeWait is how long a feed waits for changes that its reader has and this node has not.
const resumeWait = 5 * time.Second

// feed sends a server what it needs to evaluate the flags of an environment: the full state, and then what changes.
func (a *API) feed(w http.ResponseWriter, r *http.Request) {
	p, err := a.Admit(r, rest.SyncFlags, "")
	if a.NeedsNoCredentials() {
		err = rest.NewProblem(http.StatusForbidden, "an open edge does not serve the feed")
	}
	if err == nil && p.Machine == nil {
		err = rest.NewProblem(http.StatusForbidden, "the feed is for server keys and machines")
	}
	if err != nil {
		rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return
	}
	most := a.StreamLimits.FeedReaders
	reader := "feed of " + a.TenantQuota(p.Tenant)
	if !a.streams.Take(reader, most) {
		h.Del("Cache-Control")
		rest.WriteProblem(w, r, rest.NoSlot(most, fmt.Sprintf("the tenant already has %d readers of the feed", most)))
		return
	}
	defer a.streams.Leave(reader)
	a.openStreams.Inc()
	defer a.openStreams.Dec()
	secrets := a.SigningSecrets
	if key := p.EvaluationKey(); key == nil || !key.Edge {
		secrets = nil
	}
	feed := a.Feeds.Feed(p.Tenant, p.Environment, secrets)
	defer feed.Close()
	control := http.NewResponseController(w)
	s := &sender{w: w, control: control, limit: a.StreamLimits.WriteTimeout}
	resumed := false
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		wait, cancel := context.WithTimeout(r.Context(), resumeWait)
		resumed = feed.Resume(wait, id)
		cancel()
	}
	if a.sendFeed(r.Context(), s, feed, p, resumed) {
		_ = control.SetWriteDeadline(time.Now().Add(s.limit)) // for the last chunk, which the server writes
	}
}

// sendFeed sends a feed while its reader has access. It returns false once the reader no longer reads.
func (a *API) sendFeed(ctx context.Context, s *sender, feed *snapshot.Feed, p *rest.Principal, resumed bool) bool {
	heartbeat := time.NewTicker(a.StreamLimits.Heartbeat)
	defer heartbeat.Stop()
	opened := time.Now()
	end := time.NewTimer(a.timeLeft(p, opened))
	defer end.Stop()
	if !resumed {
		if err := a.sendFullState(ctx, s, feed, p); err != nil {
			return a.feedFailed(err)
		}
	}
	for beat := false; ; {
		update, err := feed.Next()
		if err != nil {
			return a.feedFailed(err)
		}
		allowed := a.StillAllowed(p, rest.SyncFlags)
		switch {
		case update.Reset && allowed:
			if err := a.sendFullState(ctx, s, feed, p); err != nil {
				return a.feedFailed(err)
			}
			continue
		case len(update.Events) > 0:
			if !s.update(update) {
				return false
			}
		case beat:
			fmt.Fprintf(&s.text, "event: ping\nid: %s\ndata: {}\n\n", update.ID)
		}
		if !s.send() {
			return false
		}
		if !allowed { // it was told before that its key is gone
			return true
		}
		end.Reset(a.timeLeft(p, opened)) // its key may have changed
		if beat, err = a.await(ctx, update.More, update.Turn, heartbeat, end); err != nil {
			return a.feedFailed(err)
		}
	}
}

// feedFailed logs why a feed ends, unless that is its reader or its time. It returns whether the reader may read more.
func (a *API) feedFailed(err error) bool {
	switch {
	case errors.Is(err, errNotRead):
		return false
	case errors.Is(err, errStreamEnded):
		return true
	}
	a.Log.Error("feed failed", "err", err)
	return true
}

// sendFullState sends the full state in chunks. It returns an error if a chunk cannot be built or sent. A chunk is built
// in a slot, so that readers that start again and again leave others the processor.
func (a *API) sendFullState(ctx context.Context, s *sender, feed *snapshot.Feed, p *rest.Principal) error {
	slot, err := a.Queues.CPU.Enter(ctx, "feeds of "+a.TenantQuota(p.Tenant))
	if err != nil { // the reader connects again
		return errStreamEnded
	}
	defer slot.Leave()
	for update, err := range feed.FullState() {
		if err != nil {
			return err
		}
		slot.Leave()
		select {
		case <-a.ending:
			return errStreamEnded
		case <-ctx.Done():
			return errNotRead
		default:
		}
		if !a.StillAllowed(p, rest.SyncFlags) {
			return errStreamEnded
		}
		if !s.update(update) || slot.Resume(ctx) != nil {
			return errNotRead
		}
	}
	return nil
}

func (a *API) documentFeed() {
	text := &huma.Schema{Type: huma.TypeString}
	op := rest.Operation("GET", rest.FeedRoute, "feed", "Evaluation", "Stream an environment for evaluation elsewhere")
	op.Description = feedText
	op.Security = rest.SyncFlags.Security()
	op.Parameters = []*huma.Param{
		tenantParam(true),
		environmentParam(),
		{
			Name: "Last-Event-ID", In: "header", Schema: text,
			Description: "The id of the last event that the reader received",
			Example:     "cG9zdGdyZXMgMDE5OGM1YTA.73.0",
		},
	}
	op.Responses = map[string]*huma.Response{
		"200": {Description: "The feed, until it ends", Content: map[string]*huma.MediaType{"text/event-stream": {
			Schema:  &huma.Schema{Type: huma.TypeArray, Description: "Each element is one event", Items: &huma.Schema{Type: huma.TypeObject}},
			Example: feedExample,
		}}},
	}
	a.Huma.OpenAPI().AddOperation(&op)
}

var feedText = `Server-sent events with everything needed to evaluate the flags of one environment, for ` + "`flagledger edge`" + ` and other evaluators. It shows
rules and salts: a server key or a machine with the scope ` + "`" + string(events.FlagsSync) + "`" + ` may read it, browsers and people may not.

First ` + "`reset`" + `, then ` + "`state`" + ` events with the flags, the segments and the evaluation keys (of server keys the SHA-256) in pieces, and
` + "`ready`" + `; then one event for each ` + "`flag`" + `, ` + "`segment`" + ` or ` + "`key`" + ` that changes or is ` + "`gone`" + ` (with ` + "`deleted`" + ` for a flag that others require), and ` + "`ready`" + ` after those that came together. A ` + "`state`" + ` without a ` + "`reset`" + ` before it has the
environment and all its keys. ` + "`ping`" + ` comes every 15 s. Ignore what you do not know. docs/api/feed.md has the members.

**Resuming.** A reader that sends ` + "`Last-Event-ID`" + ` to any node gets what has changed since, of each flag the newest state. If the id is
too old or of another log, it gets ` + "`reset`" + ` and everything anew.

**End.** A feed ends after one hour, when the reader loses access or reads too slowly, or when the node stops. Reconnect then.`

var feedExample = `data: {"type":"reset","version":` + strconv.Itoa(snapshot.FeedVersion) + `,"environment":{"tenantId":"0198c5a0-e4d1-7f2a-b6c8-4d0e9a7b5c13","environment":{"id":"0198c5a0-e4d2-7c11-8a55-1f0e3d2c4b5a","name":"production"},"plan":"standard"}}

data: {"type":"state","flags":[{"tenantId":"0198c5a0-e4d1-7f2a-b6c8-4d0e9a7b5c13","key":"new-checkout","id":"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77","name":"","type":"boolean","defaultValue":false,"salt":"h7","exists":true,"status":"active","version":7}]}

id: cG9zdGdyZXMgMDE5OGM1YTA.73.0
data: {"type":"ready","position":"cG9zdGdyZXMgMDE5OGM1YTA.73.0"}

`
