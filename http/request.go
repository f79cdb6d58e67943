package http

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/puzpuzpuz/xsync/v4"

	"flagledger/commands"
)

// The names of headers as net/http keeps them: to ask for them in another spelling allocates.
const (
	requestHeader     = "X-Request-Id"
	correlationHeader = "X-Correlation-Id"
	tenantHeader      = "X-Tenant-Id"
	environmentHeader = "X-Environment"
	reasonHeader      = "X-Change-Reason"
)

// request is what is known of a request from its arrival on. It is the request's context, and the router's, in one.
type request struct {
	context.Context
	route *chi.Context

	id          string
	correlation string
	reason      string
	url         *url.URL
	publicURL   string      // of the service
	answer      http.Header // of the answer
	serviceLog  *slog.Logger

	credential *credential // of the token that the request bears
	refusal    error       // why it bears none that holds, or its caller may not make it any more

	once  *commands.Once    // nil without an Idempotency-Key
	wrong map[string]string // what of the body does not fit its schema, by field
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

// log is the service's log, in which all entries bear the request's id.
func (req *request) log() *slog.Logger { return req.serviceLog.With("request", req.id) }

const (
	maxReason      = 500
	maxCorrelation = 128
)

// routes are the router's contexts, which are used again.
var routes = sync.Pool{New: func() any { return chi.NewRouteContext() }}

// ServeHTTP implements net/http.Handler. It gives a request its id: the one that the caller sends in X-Request-ID if it is a UUID, else a new one.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := &request{
		Context: r.Context(), route: routes.Get().(*chi.Context), id: requestID(r.Header.Get(requestHeader)),
		url: r.URL, publicURL: a.options.PublicURL, answer: w.Header(), serviceLog: a.options.Log,
	}
	req.correlation = req.id
	req.answer[requestHeader] = []string{req.id}
	req.route.Reset()
	req.route.Routes = a.router
	a.router.ServeHTTP(w, r.WithContext(req))
	routes.Put(req.route)
}

func requestID(sent string) string {
	if sent != "" {
		if id, err := uuid.Parse(sent); err == nil {
			return id.String()
		}
	}
	return uuid.Must(uuid.NewV7()).String()
}

// check refuses requests whose address and whose headers cannot be kept.
func check(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := requestOf(r.Context())
		if sent := r.Header.Get(correlationHeader); sent != "" {
			if !validText(sent, maxCorrelation) {
				writeProblem(w, r, newProblem(http.StatusBadRequest, "X-Correlation-ID must be at most 128 characters of UTF-8"))
				return
			}
			req.correlation = sent
		}
		if req.reason = r.Header.Get(reasonHeader); !validText(req.reason, maxReason) {
			writeProblem(w, r, invalid(map[string]string{"X-Change-Reason": "must be at most 500 characters of UTF-8"}))
			return
		}
		if !readable(r.URL) {
			writeProblem(w, r, newProblem(http.StatusBadRequest, "the path and the query must be percent-encoded UTF-8 without the character NUL"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// readable reports whether a URL is text that Postgres can keep. A query that is malformed in part would be read without that part.
func readable(u *url.URL) bool {
	query, err := url.QueryUnescape(u.RawQuery)
	if _, malformed := url.ParseQuery(u.RawQuery); malformed != nil || err != nil {
		return false
	}
	return utf8.ValidString(u.Path) && utf8.ValidString(query) && !strings.ContainsRune(u.Path+query, 0)
}

func validText(text string, longest int) bool {
	return utf8.ValidString(text) && utf8.RuneCountInString(text) <= longest
}

// observe logs each request and counts its duration by route, and turns a panic into a 500.
func (a *API) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		wrapped := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		defer func() {
			if cause := recover(); cause != nil {
				if cause == http.ErrAbortHandler { //nolint:errorlint // a sentinel that is panicked with, not returned
					panic(cause)
				}
				requestOf(r.Context()).log().Error("handler panicked", "cause", cause, "stack", string(debug.Stack()))
				if wrapped.Status() == 0 {
					writeProblem(wrapped, r, newProblem(http.StatusInternalServerError, kinds[http.StatusInternalServerError].example))
				}
			}
			route := chi.RouteContext(r.Context()).RoutePattern()
			if route == "" || wrapped.Status() == http.StatusNotFound && route == "/*" {
				route = "unknown"
			}
			took := time.Since(began)
			if route != streamRoute || wrapped.Status() != http.StatusOK { // a stream takes as long as it is wanted
				a.durations.of(methodLabel(r.Method), route, statusClass(wrapped.Status())).Observe(took.Seconds())
			}
			level := slog.LevelInfo
			if wrapped.Status() < 400 && evaluates(route) {
				level = slog.LevelDebug // thousands a second
			}
			if wrapped.Status() == http.StatusTooManyRequests || preflight(r) {
				level = slog.LevelDebug // as many as somebody sends
			}
			if a.options.Log.Enabled(r.Context(), level) {
				requestOf(r.Context()).log().Log(r.Context(), level, "request",
					"method", r.Method, "path", r.URL.Path, "status", wrapped.Status(), "took", took, "bytes", wrapped.BytesWritten())
			}
		}()
		next.ServeHTTP(wrapped, r)
	})
}

// evaluates reports whether a route is one of those that applications call all the time.
func evaluates(route string) bool {
	switch route {
	case evaluateRoute, legacyEvaluateRoute, evaluateManyRoute, ofrepRoute, ofrepManyRoute:
		return true
	default:
		return false
	}
}

// durations is how long requests take, by method, route and class of status.
type durations struct {
	*prometheus.HistogramVec
	known *xsync.Map[[3]string, prometheus.Observer] // found sooner than in the vector
}

func newDurations() *durations {
	return &durations{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "flagledger_http_request_duration_seconds",
		Help:    "Duration of requests by method, route and class of status.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
	}, []string{"method", "route", "status"}), xsync.NewMap[[3]string, prometheus.Observer]()}
}

func (d *durations) of(method, route, status string) prometheus.Observer {
	labels := [3]string{method, route, status}
	o, ok := d.known.Load(labels)
	if !ok {
		o = d.WithLabelValues(method, route, status)
		d.known.Store(labels, o)
	}
	return o
}

// methodLabel keeps callers from making series of metrics up.
func methodLabel(method string) string {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return method
	default:
		return "other"
	}
}

func statusClass(status int) string {
	switch status / 100 {
	case 2:
		return "2xx"
	case 3:
		return "3xx"
	case 4:
		return "4xx"
	default:
		return "5xx"
	}
}

// started lets requests pass only once evaluation can be answered.
func (a *API) started(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-a.queries.Snapshot().Ready():
			next.ServeHTTP(w, r)
		default:
			writeProblem(w, r, newProblem(http.StatusServiceUnavailable, "the service is starting"))
		}
	})
}
