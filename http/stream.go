package http

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"

	"flagledger/events"
	"flagledger/http/strictjson"
	"flagledger/projections/snapshot"
)

const streamRoute = "/api/v1/flags/stream"

var streamAccess = access{
	who:             viewer,
	scope:           events.FlagsEvaluate,
	environment:     true,
	allEnvironments: true,
	unverified:      true,
}

// StreamLimits is what bounds streams of changes.
type StreamLimits struct {
	PerTenant  int           // that a node keeps open
	PerCreator int           // of all tenants that whoever created them has without paying
	Life       time.Duration // of one whose token lives longer
	Heartbeat  time.Duration // the longest that one is silent
	Write      time.Duration // the longest that a reader may keep a write waiting
}

// DefaultStreamLimits is the limits of streams where a service sets no others.
func DefaultStreamLimits() StreamLimits {
	return StreamLimits{
		PerTenant:  1000,
		PerCreator: 10_000,
		Life:       time.Hour,
		Heartbeat:  15 * time.Second,
		Write:      10 * time.Second,
	}
}

const (
	// maxTold is how many flags an event names. Where more have changed it is cheaper to fetch all.
	maxTold = 500
	// Clients reconnect after 1 to 3 s, not all at once: a node that ends has many.
	minReconnect, maxReconnect = 1000, 3000
)

// streamEvent is the data of an event, in the shape of OFREP's event streams, and says beside that what changed.
type streamEvent struct {
	Type         string        `json:"type" enum:"refetchEvaluation,connected"`
	Environment  string        `json:"environment,omitempty" doc:"Missing where the stream is of all" example:"production"`
	ETag         string        `json:"etag,omitempty" doc:"The id. An OFREP client sends it as flagConfigEtag when it fetches, and is answered once the node that it reaches knows of the change" example:"h0OtxRvfQkEMuEIAIcB2dPTWDa_JvIc5YOqtz4UBWlXK9EqfiXXa7cCTcfg"`
	LastModified int64         `json:"lastModified,omitzero" doc:"When the last of the changes was made, in seconds since 1970" example:"1771622898"`
	Flags        []changedFlag `json:"flags,omitempty" doc:"What changed. Without it anything may have: fetch all"`
}

type changedFlag struct {
	Key         string `json:"key" example:"new-checkout"`
	Version     uint64 `json:"version" example:"7"`
	Environment string `json:"environment,omitempty" doc:"In a stream of all environments, the one that changed; missing where the whole flag did" example:"development"`
	Deleted     bool   `json:"deleted,omitzero"`
}

const (
	refetchEvent   = "refetchEvaluation"
	connectedEvent = "connected"
)

func newStreamGauge() prometheus.Gauge {
	return prometheus.NewGauge(
		prometheus.GaugeOpts{Name: "flagledger_streams", Help: "Streams of changes that this node has open."},
	)
}

// streamCounts counts the streams that are open, by whom they count for.
type streamCounts struct {
	mu sync.Mutex
	of map[string]int
}

// take counts one more, unless so many are open.
func (c *streamCounts) take(who string, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[who] >= most {
		return false
	}
	c.of[who]++
	return true
}

func (c *streamCounts) leave(who string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[who]--; c.of[who] == 0 {
		delete(c.of, who)
	}
}

// stream tells a client what changes in an environment, or in all, for as long as it listens and may.
func (a *API) stream(w http.ResponseWriter, r *http.Request) {
	p, err := a.admit(r, streamAccess, "")
	if err != nil {
		writeProblem(w, r, problemOf(r.Context(), err))
		return
	}
	if !a.Now().Before(p.expires) { // but for what clocks may differ by
		writeProblem(w, r, newProblem(http.StatusUnauthorized, "the token has expired"))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return
	}
	quota := a.tenantQuota(p.tenant)
	if most := a.StreamLimits.PerCreator; !a.streams.take(quota, most) {
		h.Del("Cache-Control")
		writeProblem(
			w,
			r,
			noSlot(most,
				fmt.Sprintf("the tenants that the creator of this one pays nothing for have %d streams open already", most)),
		)
		return
	}
	defer a.streams.leave(quota)
	listener := a.Changes.Listen(p.tenant, p.environment.ID, a.StreamLimits.PerTenant)
	if listener == nil {
		h.Del("Cache-Control")
		most := a.StreamLimits.PerTenant
		writeProblem(w, r, noSlot(most, fmt.Sprintf("the tenant has %d streams open already", most)))
		return
	}
	defer listener.Close()
	ids, err := a.streamIDsOf(p.tenant.ID())
	if err != nil {
		writeProblem(w, r, problemOf(r.Context(), err))
		return
	}
	a.openStreams.Inc()
	defer a.openStreams.Dec()
	control := http.NewResponseController(w)
	s := &sender{w: w, control: control, limit: a.StreamLimits.Write}
	if a.tell(r.Context(), s, listener, ids, p, r.Header.Get("Last-Event-ID")) {
		_ = control.SetWriteDeadline(time.Now().Add(s.limit)) // for the end that the server writes
	}
}

// tell sends what a listener hears until the service ends, or the client may no longer listen; then it returns true. It
// returns false once the client no longer reads.
func (a *API) tell(
	ctx context.Context, s *sender, listener *snapshot.Listener, ids streamIDs, p *principal, lastEventID string,
) bool {
	heartbeat := time.NewTicker(a.StreamLimits.Heartbeat)
	defer heartbeat.Stop()
	end := time.NewTimer(min(p.expires.Sub(a.Now()), a.StreamLimits.Life))
	defer end.Stop()

	fmt.Fprintf(&s.text, "retry: %d\n\n", minReconnect+rand.IntN(maxReconnect-minReconnect)) //nolint:gosec // no secret
	unknown := false
	if lastEventID != "" {
		last, ok := ids.position(lastEventID)
		listener.Resume(last)
		unknown = !ok
	}
	for first, beat := true, false; ; first = false {
		update := listener.Next()
		if !a.stillAllowed(p, streamAccess) {
			return true
		}
		id := ids.id(update.Position)
		switch {
		case unknown || update.Gap:
			s.event(id, streamEvent{Type: refetchEvent, Environment: p.environment.Name})
		case len(update.Changes) > 0:
			last := ids.id(update.Changes[len(update.Changes)-1].Position)
			s.event(last, refetch(last, p, update.Changes))
		case beat:
			s.heartbeat(id)
		}
		if first {
			s.event(id, streamEvent{Type: connectedEvent, Environment: p.environment.Name})
		}
		if !s.send() {
			return false
		}
		unknown, beat = false, false
		select {
		case <-update.More:
		case <-heartbeat.C:
			beat = true
		case <-end.C:
			return true
		case <-a.ending:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// refetch is the event that tells of changes: each flag once, or once for each environment where the stream is of all,
// as it is now.
func refetch(id string, p *principal, list []snapshot.Change) streamEvent {
	e := streamEvent{
		Type:         refetchEvent,
		Environment:  p.environment.Name,
		ETag:         id,
		LastModified: list[len(list)-1].Time.Unix(),
	}
	at := map[changedFlag]int{} // by key and environment
	for _, c := range list {
		flag := changedFlag{Key: c.Key}
		if p.environment.ID == "" {
			flag.Environment = environmentName(p.tenant, c.Environment)
		}
		which := flag
		flag.Version, flag.Deleted = uint64(c.Version), c.Deleted
		if i, told := at[which]; told {
			e.Flags[i] = flag
			continue
		}
		if len(e.Flags) == maxTold {
			e.Flags = nil
			break
		}
		at[which] = len(e.Flags)
		e.Flags = append(e.Flags, flag)
	}
	return e
}

// environmentName is the name of an environment that a tenant has, empty for another.
func environmentName(t *snapshot.Tenant, id string) string {
	for _, e := range t.Environments() {
		if e.ID == id {
			return e.Name
		}
	}
	return ""
}

// sender writes events to a client.
type sender struct {
	w       http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration
	text    bytes.Buffer
}

func (s *sender) event(id string, e streamEvent) {
	fmt.Fprintf(&s.text, "id: %s\ndata: ", id)
	_ = strictjson.Write(&s.text, e)
	s.text.WriteString("\n\n")
}

// heartbeat tells the client how far it has heard, without an event.
func (s *sender) heartbeat(id string) { fmt.Fprintf(&s.text, ": heartbeat\nid: %s\n\n", id) }

// send sends what has been written. It reports whether the client took it in time, or may yet take it: more than what
// the network buffers waits for nobody.
func (s *sender) send() bool {
	if s.text.Len() == 0 {
		return true
	}
	if s.control.SetWriteDeadline(time.Now().Add(s.limit)) != nil {
		return false
	}
	_, err := s.text.WriteTo(s.w)
	return err == nil && s.control.Flush() == nil
}

func (a *API) documentStream() {
	doc := a.huma.OpenAPI()
	text := &huma.Schema{Type: huma.TypeString}
	op := operation("GET", streamRoute, "stream-flags", "Evaluation", "Hear of changes as they are made")
	op.Description = streamText
	op.Security = streamAccess.security()
	op.Parameters = []*huma.Param{
		tenantParam(false),
		{
			Name:        environmentHeader,
			In:          "header",
			Schema:      text,
			Description: "The environment of the stream: production without it, all of the tenant's with `*`",
		},
		{
			Name:   ticketParameter,
			In:     "query",
			Schema: text,
			Description: "In place of the headers Authorization, X-Tenant-ID and X-Environment, which browsers do not send: " +
				"part of the URLs in `eventStreams` of OFREP's answers",
		},
		{
			Name:        "Last-Event-ID",
			In:          "header",
			Schema:      text,
			Description: "The id of the last event that the client has seen",
			Example:     "h0OtxRvfQkEMuEIAIcB2dPTWDa_JvIc5YOqtz4UBWlXK9EqfiXXa7cCTcfg",
		},
	}
	op.Responses = map[string]*huma.Response{
		"200": {Description: "The stream, until it ends", Content: map[string]*huma.MediaType{"text/event-stream": {
			Schema: &huma.Schema{
				Type: huma.TypeArray, Description: "Each element stands for one event",
				Items: &huma.Schema{Type: huma.TypeObject, Required: []string{"id", "data"}, Properties: map[string]*huma.Schema{
					"id": text, "data": doc.Components.Schemas.Schema(reflect.TypeFor[streamEvent](), true, ""),
				}},
			},
			Example: streamExample,
		}}},
	}
	doc.AddOperation(&op)
}

const streamText = `Server-sent events: within moments of a change of a flag its environment's streams tell of it, on every node. A change of the whole flag (created,
updated, its status, its variations, deleted) is told in all environments. With ` + "`X-Environment: *`" + ` the stream is of all environments of the tenant, and tells for each flag in which it changed.

**Events** have no name, so that a browser's ` + "`EventSource`" + ` hands all of them to ` + "`onmessage`" + `; ` + "`type`" + ` in their data says what they are, as OFREP's event streams have it.
` + "`refetchEvaluation`" + `: flags have changed, those in ` + "`flags`" + `, or anything
	where it is missing: fetch what you need. ` + "`connected`" + `: from here on nothing is missed. Ignore other types.

**Resuming.** ` + "`id`" + ` stands for what the client has heard of; it is another one each time, and good for this tenant alone. A client that comes back with ` + "`Last-Event-ID`" + `, to
whichever node, first hears of what it missed; if that is too long ago, or the id is not known, of a ` + "`refetchEvaluation`" + ` without ` + "`flags`" + `.

**Its end.** A silent stream sends a comment every 15 s. It ends when the token expires, after an hour at the latest, when the caller may no longer listen, when the client reads too slowly,
and when the node stops: connect again. A tenant may have 1,000 streams open on each node, and all tenants of one creator that nobody pays for 10,000.

A machine needs the scope ` + "`flags:evaluate`" + `: who may evaluate flags may hear that they have changed.`

const streamExample = `retry: 1840

id: QSaYFl1ZGqZTg-TsWQaLOmtHEMhLGHUoNAtRvOB8iYdRcp9hBUH1IKa6x5s
data: {"type":"connected","environment":"production"}

id: h0OtxRvfQkEMuEIAIcB2dPTWDa_JvIc5YOqtz4UBWlXK9EqfiXXa7cCTcfg
data: {"type":"refetchEvaluation","environment":"production","etag":"h0OtxRvfQkEMuEIAIcB2dPTWDa_JvIc5YOqtz4UBWlXK9EqfiXXa7cCTcfg","lastModified":1771622898,"flags":[{"key":"new-checkout","version":7}]}

: heartbeat
id: Jm2Tn1c0e0nC5bTzq0kYyB3V8lqvM1hUO9Rk7dWfPpX4gZsE6iNwLQoGxHA

`
