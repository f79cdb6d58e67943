package rest

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/http/quota"
)

// Header names in net/http's canonical form.
const (
	requestHeader     = "X-Request-Id"
	correlationHeader = "X-Correlation-Id"
	tenantHeader      = "X-Tenant-Id"
	EnvironmentHeader = "X-Environment"
	reasonHeader      = "X-Change-Reason"
	typeHeader        = "Content-Type"
	authHeader        = "Authorization"
	apiKeyHeader      = "X-Api-Key" //nolint:gosec // the name of a header
)

// request holds the state of a request. It is also its context, router context and response writer, which saves
// allocations.
type request struct {
	context.Context
	route  *chi.Context
	writer answerWriter

	ID          string
	idHeader    [1]string // the id as a response header
	Correlation string
	reason      string
	URL         *url.URL
	publicURL   string        // of the service
	publicPath  string        // its path
	answer      http.Header   // of the response
	received    *http.Request // the request before routing
	limiter     *quota.Limiter
	serviceLog  *slog.Logger

	credential    *Credential // of the request's token
	tokenRefusal  error       // why the token is invalid
	ReplayRefusal error       // if set, only replays the events of an earlier attempt, or refuses with this

	Unsigned   bool         // a webhook call without a verified signature
	readSlot   *quota.Slot  // for a read, or nil
	largeBody  bool         // the body has a slot for large ones
	changeSlot *quota.Slot  // for a change with a large body or expensive rules, or nil
	Once       *writer.Once // nil without an Idempotency-Key
	// schema errors of the body and errors of query parameters, by name
	wrong map[string]string
}

type requestKey struct{}

// RequestOf returns the state of a request.
func RequestOf(ctx context.Context) *request { return ctx.Value(requestKey{}).(*request) }

// Value implements context.Context.
func (req *request) Value(key any) any {
	switch key {
	case requestKey{}:
		return req
	case chi.RouteCtxKey:
		return req.route
	default:
		return req.Context.Value(key)
	}
}

// pauseChange returns a function that releases the slot of a large change while its command waits for the stream. It
// returns nil without such a slot.
func (req *request) pauseChange() func() (resume func(context.Context) error) {
	if req.changeSlot == nil {
		return nil
	}
	return func() func(context.Context) error {
		req.changeSlot.Leave()
		return req.changeSlot.Resume
	}
}

// Log returns the service's log with the request's id.
func (req *request) Log() *slog.Logger { return req.serviceLog.With("request", req.ID) }

// Now returns the time of the service's clock.
func (req *request) Now() time.Time { return req.writer.api.Now() }

// routes pools the router's contexts.
var routes = sync.Pool{New: func() any { return chi.NewRouteContext() }}

// ServeHTTP implements net/http.Handler. The request's id is the UUID in X-Request-ID, or else a new one.
func (a *Core) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := &request{
		Context:    r.Context(),
		route:      routes.Get().(*chi.Context),
		writer:     answerWriter{ResponseWriter: w},
		ID:         requestID(r.Header.Get(requestHeader)),
		publicURL:  a.PublicURL,
		publicPath: a.PublicPath,
		answer:     w.Header(),
		limiter:    a.Limiter,
		serviceLog: a.Log,
	}
	if sent := r.Header.Get(tenantHeader); sent != "" {
		r.Header[tenantHeader][0] = events.CanonicalID(sent)
	}
	req.writer.req, req.writer.api = req, a
	req.Correlation = req.ID
	req.idHeader[0] = req.ID
	req.answer[requestHeader] = req.idHeader[:]
	req.answer[NosniffHeader] = Nosniff
	if a.onlyHTTPS {
		req.answer[hstsHeader] = hsts
	}
	req.route.Reset()
	req.route.Routes = a.Router
	r = r.WithContext(req)
	a.withOwnPath(r)
	req.URL = r.URL
	a.Router.ServeHTTP(&req.writer, r)
	if req.writer.status == 0 { // net/http writes the header now
		req.writer.closeIfStopping()
	}
	routes.Put(req.route)
}

// routedPath returns a request's path as the router sees it: escaped letters remain escaped.
func routedPath(r *http.Request) string { return cmp.Or(r.URL.RawPath, r.URL.Path) }

func requestID(sent string) string {
	if sent != "" {
		if id, err := uuid.Parse(sent); err == nil {
			return id.String()
		}
	}
	return uuid.Must(uuid.NewV7()).String()
}

// RequestBy returns the metadata of a change by a person who is not signed in yet. The command adds the actor.
func RequestBy(ctx context.Context) writer.By {
	req := RequestOf(ctx)
	return writer.By{RequestID: req.ID, CorrelationID: req.Correlation, Reason: req.reason}
}
