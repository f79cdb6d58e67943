package http

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/http/fair"
	"flagledger/http/limit"
)

// The names of headers as net/http keeps them.
const (
	requestHeader     = "X-Request-Id"
	correlationHeader = "X-Correlation-Id"
	tenantHeader      = "X-Tenant-Id"
	environmentHeader = "X-Environment"
	reasonHeader      = "X-Change-Reason"
	typeHeader        = "Content-Type"
	authHeader        = "Authorization"
)

// request is what is known of a request. It is the request's context, the router's and the writer of the answer in one,
// which saves allocations.
type request struct {
	context.Context
	route  *chi.Context
	writer answerWriter

	id          string
	idHeader    [1]string // the id as the answer's header
	correlation string
	reason      string
	url         *url.URL
	publicURL   string        // of the service
	publicPath  string        // its path
	answer      http.Header   // of the answer
	received    *http.Request // as it came, before the router
	limiter     *limit.Limiter
	serviceLog  *slog.Logger

	credential    *credential // of the token that the request bears
	tokenRefusal  error       // why the token does not hold
	replayRefusal error       // if set, no new facts are made: what the request did before is answered, or else this

	unsigned   bool           // a call of the webhook that is not known to be the payment provider's
	readSlot   *fair.Slot     // of a read; nil for others
	largeBody  bool           // the body has a slot for large ones
	changeSlot *fair.Slot     // of a change with a large body or costly rules; nil for others
	once       *commands.Once // nil without an Idempotency-Key
	// what of the body does not fit its schema, by field, and which query parameters are sent twice or are empty
	wrong map[string]string
}

type requestKey struct{}

func requestOf(ctx context.Context) *request { return ctx.Value(requestKey{}).(*request) }

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

// pauseChange is how a command gives the slot of a large change to others while it waits for its stream; nil where
// there is none.
func (req *request) pauseChange() func() (resume func(context.Context) error) {
	if req.changeSlot == nil {
		return nil
	}
	return func() func(context.Context) error {
		req.changeSlot.Leave()
		return req.changeSlot.Resume
	}
}

// log is the service's log, in which all entries bear the request's id.
func (req *request) log() *slog.Logger { return req.serviceLog.With("request", req.id) }

// routes are the router's contexts, which are used again.
var routes = sync.Pool{New: func() any { return chi.NewRouteContext() }}

// ServeHTTP implements net/http.Handler. It gives a request its id: the one that the caller sends in X-Request-ID if it
// is a UUID, else a new one.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := &request{
		Context:    r.Context(),
		route:      routes.Get().(*chi.Context),
		writer:     answerWriter{ResponseWriter: w},
		id:         requestID(r.Header.Get(requestHeader)),
		publicURL:  a.PublicURL,
		publicPath: a.publicPath,
		answer:     w.Header(),
		limiter:    a.limiter,
		serviceLog: a.Log,
	}
	if sent := r.Header.Get(tenantHeader); sent != "" {
		r.Header[tenantHeader][0] = events.CanonicalID(sent)
	}
	req.writer.req, req.writer.api = req, a
	req.correlation = req.id
	req.idHeader[0] = req.id
	req.answer[requestHeader] = req.idHeader[:]
	req.answer[nosniffHeader] = nosniff
	if a.onlyHTTPS {
		req.answer[hstsHeader] = hsts
	}
	req.route.Reset()
	req.route.Routes = a.router
	r = r.WithContext(req)
	a.withOwnPath(r)
	req.url = r.URL
	a.router.ServeHTTP(&req.writer, r)
	if req.writer.status == 0 { // net/http writes the header now
		req.writer.closeIfStopping()
	}
	routes.Put(req.route)
}

// routedPath is a request's path as the router compares it with its routes: a letter that is escaped stays so, and
// makes it another path.
func routedPath(r *http.Request) string { return cmp.Or(r.URL.RawPath, r.URL.Path) }

func requestID(sent string) string {
	if sent != "" {
		if id, err := uuid.Parse(sent); err == nil {
			return id.String()
		}
	}
	return uuid.Must(uuid.NewV7()).String()
}
