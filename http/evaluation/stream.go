package evaluation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"

	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/http/strictjson"
	"flagledger/projections/snapshot"
)

// StreamLimits limits the streams of changes.
type StreamLimits struct {
	PerTenant    int           // open streams per node
	PerCreator   int           // open streams of a creator's free tenants
	MaxAge       time.Duration // the longest duration of a stream
	Heartbeat    time.Duration // the longest silence
	WriteTimeout time.Duration // the timeout of a write
	FeedReaders  int           // open feeds of a tenant, or of a creator's free tenants, per node
}

// DefaultStreamLimits returns the default limits of streams.
func DefaultStreamLimits() StreamLimits {
	return StreamLimits{
		PerTenant:    1000,
		PerCreator:   10_000,
		MaxAge:       time.Hour,
		Heartbeat:    15 * time.Second,
		WriteTimeout: 10 * time.Second,
		FeedReaders:  1000,
	}
}

const (
	// browserStreamsPercent: browsers open no stream once a tenant has this part of its streams open.
	browserStreamsPercent = 80
	// browserStreamsPerNetwork limits the streams with a tenant's browser keys of a client network.
	browserStreamsPerNetwork = 100
	// Clients reconnect after a random time of 1 to 3 s, so that a stopping node's clients do not all reconnect at once.
	minReconnect, maxReconnect = 1000, 3000
)

// streamEvent is the data of an event: the fields of OFREP's event streams, and the changed flags.
type streamEvent struct {
	Type         string        `json:"type" enum:"refetchEvaluation,connected"`
	Environment  string        `json:"environment,omitempty" doc:"Missing in a stream of all environments" example:"production"`
	ETag         string        `json:"etag,omitempty" doc:"The event's id. An OFREP client sends it as flagConfigEtag when it fetches, and the node waits for the change" example:"h0OtxRvfQkEMuEIAIcB2dPTWDa_JvIc5YOqtz4UBWlXK9EqfiXXa7cCTcfg"`
	LastModified int64         `json:"lastModified,omitzero" doc:"The time of the last change, in seconds since 1970" example:"1771622898"`
	Flags        []changedFlag `json:"flags,omitempty" doc:"The changed flags. If missing, any flag may have changed: fetch all"`
}

type changedFlag struct {
	Key         string `json:"key" example:"new-checkout"`
	Version     uint64 `json:"version" example:"7"`
	Environment string `json:"environment,omitempty" doc:"In a stream of all environments, the environment of the change; missing for a change of the whole flag" example:"development"`
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

// stream sends a client the changes in one or all environments while it listens and has access.
func (a *API) stream(w http.ResponseWriter, r *http.Request) {
	p, err := a.Admit(r, rest.StreamAccess, "")
	if err == nil {
		err = checkKeyQuery(p, r.URL)
	}
	if err != nil {
		rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
		return
	}
	if !a.Now().Before(p.Expires) { // the token may have been accepted within the clock's tolerance
		rest.WriteProblem(w, r, rest.NewProblem(http.StatusUnauthorized, "the token has expired"))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return
	}
	most, ofCreator := a.StreamLimits.PerTenant, a.StreamLimits.PerCreator
	if p.HasBrowserKey() {
		most, ofCreator = browserStreams(most), browserStreams(ofCreator)
		network := a.Limiter.Network(r)
		address := "browsers of " + p.Tenant.ID() + " at " + network.String()
		if network.IsValid() && !a.streams.Take(address, browserStreamsPerNetwork) {
			h.Del("Cache-Control")
			rest.WriteProblem(w, r, rest.NoSlot(browserStreamsPerNetwork,
				fmt.Sprintf("the client's address already has %d open streams of browsers", browserStreamsPerNetwork)))
			return
		}
		if network.IsValid() {
			defer a.streams.Leave(address)
		}
	}
	quota := a.TenantQuota(p.Tenant)
	if !a.streams.Take(quota, ofCreator) {
		h.Del("Cache-Control")
		rest.WriteProblem(w, r, rest.NoSlot(ofCreator,
			fmt.Sprintf("the creator's free tenants already have %d open streams", ofCreator)))
		return
	}
	defer a.streams.Leave(quota)
	listener := a.Changes.Listen(p.Tenant, p.Environment.ID, most)
	if listener == nil {
		h.Del("Cache-Control")
		rest.WriteProblem(w, r, rest.NoSlot(most, fmt.Sprintf("the tenant already has %d open streams", most)))
		return
	}
	defer listener.Close()
	ids, err := a.StreamIDs(p.Tenant.ID())
	if err != nil {
		rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
		return
	}
	a.openStreams.Inc()
	defer a.openStreams.Dec()
	control := http.NewResponseController(w)
	s := &sender{w: w, control: control, limit: a.StreamLimits.WriteTimeout}
	if a.sendChanges(r.Context(), s, listener, ids, p, r.Header.Get("Last-Event-ID")) {
		_ = control.SetWriteDeadline(time.Now().Add(s.limit)) // for the last chunk, which the server writes
	}
}

// browserStreams returns how many of a limit of streams browsers may open.
func browserStreams(most int) int { return max(1, most*browserStreamsPercent/100) }

// sendChanges sends a listener's changes. It returns true when the service stops or the client loses access, and false
// once the client no longer reads.
func (a *API) sendChanges(
	ctx context.Context, s *sender, listener *snapshot.Listener, ids StreamIDs, p *rest.Principal, lastEventID string,
) bool {
	heartbeat := time.NewTicker(a.StreamLimits.Heartbeat)
	defer heartbeat.Stop()
	opened := time.Now()
	end := time.NewTimer(a.timeLeft(p, opened))
	defer end.Stop()

	fmt.Fprintf(&s.text, "retry: %d\n\n", minReconnect+rand.IntN(maxReconnect-minReconnect)) //nolint:gosec // no secret
	unknown := false
	if lastEventID != "" {
		last, ok := ids.Position(lastEventID)
		listener.Resume(last)
		unknown = !ok
	}
	for first, beat := true, false; ; first = false {
		update := listener.Next()
		if !a.StillAllowed(p, rest.StreamAccess) {
			return true
		}
		id := ids.ID(update.Position)
		if p.HasBrowserKey() {
			update.Changes = visibleToBrowsers(update.Changes)
		}
		switch {
		case unknown || update.Gap:
			s.event(id, streamEvent{Type: refetchEvent, Environment: p.Environment.Name})
		case len(update.Changes) > 0:
			last := ids.ID(update.Changes[len(update.Changes)-1].Position)
			s.event(last, refetch(last, p, update.Changes))
		case beat:
			s.heartbeat(id)
		}
		if first {
			s.event(id, streamEvent{Type: connectedEvent, Environment: p.Environment.Name})
		}
		if !s.send() {
			return false
		}
		unknown = false
		end.Reset(a.timeLeft(p, opened)) // its key may have changed
		var err error
		if beat, err = a.await(ctx, update.More, update.Turn, heartbeat, end); err != nil {
			return errors.Is(err, errStreamEnded)
		}
	}
}

// timeLeft returns how long a stream may stay open: up to the longest duration, and while its caller has access.
func (a *API) timeLeft(p *rest.Principal, opened time.Time) time.Duration {
	return min(a.AccessEnd(p.Credential).Sub(a.Now()), a.StreamLimits.MaxAge-time.Since(opened))
}

var (
	// errStreamEnded reports that a stream has reached its end, and that its client may read what is left.
	errStreamEnded = errors.New("the stream has ended")
	// errNotRead reports that the client no longer reads.
	errNotRead = errors.New("the client no longer reads")
)

// await waits for a heartbeat, or for a change and then for the stream's turn. Its error is errStreamEnded or
// errNotRead.
func (a *API) await(
	ctx context.Context, more <-chan struct{}, wait time.Duration, heartbeat *time.Ticker, end *time.Timer,
) (beat bool, err error) {
	var turn <-chan time.Time
	for {
		select {
		case <-more:
			more = nil
			turn = time.After(wait)
		case <-turn:
			return false, nil
		case <-heartbeat.C:
			return true, nil
		case <-end.C:
			return false, errStreamEnded
		case <-a.ending:
			return false, errStreamEnded
		case <-ctx.Done():
			return false, errNotRead
		}
	}
}

// visibleToBrowsers returns the changes that a browser may know of. A flag that it no longer sees is deleted for it.
func visibleToBrowsers(list []snapshot.Change) (visible []snapshot.Change) {
	for _, c := range list {
		if c.Dependents != nil {
			if c.Dependents = c.Dependents.ClientSide(); c.Dependents != nil {
				visible = append(visible, c)
			}
			continue
		}
		if c.ClientSide || c.WasClientSide {
			c.Deleted = !c.ClientSide
			visible = append(visible, c)
		}
	}
	return visible
}

// refetch returns the event for changes: each flag once in its current state, or once per environment in a stream of
// all.
func refetch(id string, p *rest.Principal, list []snapshot.Change) streamEvent {
	e := streamEvent{
		Type:         refetchEvent,
		Environment:  p.Environment.Name,
		ETag:         id,
		LastModified: list[len(list)-1].Time.Unix(),
	}
	at := map[changedFlag]int{} // by key and environment
	for _, c := range list {
		if c.Dependents != nil && c.Dependents.Many {
			e.Flags = nil
			return e
		}
		for _, flag := range changedFlags(p, &c) {
			which := changedFlag{Key: flag.Key, Environment: flag.Environment}
			if i, named := at[which]; named {
				e.Flags[i] = flag
				continue
			}
			if len(e.Flags) == snapshot.MaxNamedFlags {
				e.Flags = nil
				return e
			}
			at[which] = len(e.Flags)
			e.Flags = append(e.Flags, flag)
		}
	}
	return e
}

// changedFlags returns the flags that a change concerns: that flag, or those that depend on what has changed.
func changedFlags(p *rest.Principal, c *snapshot.Change) (flags []changedFlag) {
	add := func(key, environmentID string, version events.Revision, deleted bool) {
		flag := changedFlag{Key: key, Version: uint64(version), Deleted: deleted}
		if p.Environment.ID == "" {
			flag.Environment = environmentName(p.Tenant, environmentID)
		}
		flags = append(flags, flag)
	}
	if c.Dependents == nil {
		add(c.Key, c.Environment, c.Version, c.Deleted)
		return flags
	}
	for _, f := range c.Dependents.Flags {
		add(f.Key, f.EnvironmentID, f.Version, false)
	}
	return flags
}

// environmentName returns the name of a tenant's environment, or "" for an unknown id.
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

// heartbeat sends the client its position without an event.
func (s *sender) heartbeat(id string) { fmt.Fprintf(&s.text, ": heartbeat\nid: %s\n\n", id) }

// send sends the buffer. It returns false if the client did not read fast enough to take it within the write timeout.
func (s *sender) send() bool {
	if s.text.Len() == 0 {
		return true
	}
	if s.control.SetWriteDeadline(time.Now().Add(s.limit)) != nil {
		return false
	}
	return s.drain() && s.control.Flush() == nil
}

// maxBuffered limits what the buffer of a stream holds of shared bytes, and the memory that it has between events.
const maxBuffered = 4 << 10

// drain writes the buffer.
func (s *sender) drain() bool {
	_, err := s.text.WriteTo(s.w)
	if s.text.Cap() > 2*maxBuffered {
		s.text = bytes.Buffer{}
	}
	return err == nil
}

// update sends events within one write timeout. It does not copy large ones: copies for a thousand slow readers would
// fill the memory.
func (s *sender) update(u snapshot.FeedUpdate) bool {
	if s.control.SetWriteDeadline(time.Now().Add(s.limit)) != nil {
		return false
	}
	for i, data := range u.Events {
		if i == len(u.Events)-1 && u.ID != "" { // only then the reader holds all up to it
			fmt.Fprintf(&s.text, "id: %s\n", u.ID)
		}
		s.text.WriteString("data: ")
		if len(data) <= maxBuffered {
			s.text.Write(data)
		} else if !s.drain() || !s.write(data) {
			return false
		}
		s.text.WriteString("\n\n")
		if s.text.Len() > maxBuffered && !s.drain() {
			return false
		}
	}
	return s.drain() && s.control.Flush() == nil
}

func (s *sender) write(data []byte) bool {
	_, err := s.w.Write(data)
	return err == nil
}

func (a *API) documentStream() {
	doc := a.Huma.OpenAPI()
	text := &huma.Schema{Type: huma.TypeString}
	op := rest.Operation("GET", rest.StreamRoute, "stream-flags", "Evaluation", "Stream changes of flags")
	op.Description = streamText
	op.Security = rest.StreamAccess.Security()
	op.Parameters = []*huma.Param{
		tenantParam(true),
		{
			Name:        rest.EnvironmentHeader,
			In:          "header",
			Schema:      text,
			Description: "The environment of the stream; the default is production, and `*` means all of the tenant's",
		},
		{
			Name:   rest.TicketParameter,
			In:     "query",
			Schema: text,
			Description: "Replaces the headers Authorization, X-Tenant-ID and X-Environment, which browsers do not send. It " +
				"is part of the URLs in `eventStreams` of OFREP's responses",
		},
		{
			Name:        "Last-Event-ID",
			In:          "header",
			Schema:      text,
			Description: "The id of the last event that the client received",
			Example:     "h0OtxRvfQkEMuEIAIcB2dPTWDa_JvIc5YOqtz4UBWlXK9EqfiXXa7cCTcfg",
		},
	}
	op.Responses = map[string]*huma.Response{
		"200": {Description: "The stream, until it ends", Content: map[string]*huma.MediaType{"text/event-stream": {
			Schema: &huma.Schema{
				Type: huma.TypeArray, Description: "Each element is one event",
				Items: &huma.Schema{Type: huma.TypeObject, Required: []string{"id", "data"}, Properties: map[string]*huma.Schema{
					"id": text, "data": doc.Components.Schemas.Schema(reflect.TypeFor[streamEvent](), true, ""),
				}},
			},
			Example: streamExample,
		}}},
	}
	doc.AddOperation(&op)
}

const streamText = `Server-sent events that report each change of a flag shortly after it happens, on every node. Changes of the whole flag (created,
updated, its status, its variations, deleted) are sent to the streams of every environment. A change of a segment, or of a flag that others
require, names the flags that depend on it, whose versions stay. With ` + "`X-Environment: *`" + ` the stream covers all
environments of the tenant, and each flag names its environment.

**Events** have no name, so a browser's ` + "`EventSource`" + ` passes all of them to ` + "`onmessage`" + `. ` + "`type`" + ` in the data says what happened,
as in OFREP's event streams. ` + "`refetchEvaluation`" + `: the listed ` + "`flags`" + ` changed; without ` + "`flags`" + `, any flag may have changed. Fetch
what you need. ` + "`connected`" + `: the stream reports every change after this event. Ignore other types.

**Resuming.** ` + "`id`" + ` is the client's position. It is opaque, changes with every event and is valid only for this tenant. A client that
reconnects to any node with ` + "`Last-Event-ID`" + ` first gets the changes that it missed. If the position is too old or unknown, it gets
` + "`refetchEvaluation`" + ` without ` + "`flags`" + `.

**End.** An idle stream sends a comment every 15 s. A stream ends when the token expires, after one hour, when the caller loses access, when
the client reads too slowly, or when the node stops. Reconnect then. On each node a tenant may have 1,000 open streams, and all free tenants
of a creator 10,000.

A machine needs the scope ` + "`flags:evaluate`" + `.`

const streamExample = `retry: 1840

id: QSaYFl1ZGqZTg-TsWQaLOmtHEMhLGHUoNAtRvOB8iYdRcp9hBUH1IKa6x5s
data: {"type":"connected","environment":"production"}

id: h0OtxRvfQkEMuEIAIcB2dPTWDa_JvIc5YOqtz4UBWlXK9EqfiXXa7cCTcfg
data: {"type":"refetchEvaluation","environment":"production","etag":"h0OtxRvfQkEMuEIAIcB2dPTWDa_JvIc5YOqtz4UBWlXK9EqfiXXa7cCTcfg","lastModified":1771622898,"flags":[{"key":"new-checkout","version":7}]}

: heartbeat
id: Jm2Tn1c0e0nC5bTzq0kYyB3V8lqvM1hUO9Rk7dWfPpX4gZsE6iNwLQoGxHA

`

// Changes reports flag changes to streams. The snapshot implements it.
type Changes interface {
	// Listen subscribes to the changes in an environment of a tenant. It returns nil if the tenant already has most
	// listeners.
	Listen(t *snapshot.Tenant, environmentID string, most int) *snapshot.Listener
	// Await waits until a tenant's change at a position is applied, or until ctx ends.
	Await(ctx context.Context, t *snapshot.Tenant, position events.Position)
	// Position returns the position up to which the log is applied.
	Position() events.Position
	// LogName identifies the log that positions belong to.
	LogName() string
}
