package rest

import (
	"cmp"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/puzpuzpuz/xsync/v4"
)

// observe logs each request, measures its duration by route, and turns a panic into a 500, except the panic of
// AbortResponse.
func (a *Core) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		req := RequestOf(r.Context())
		defer func() {
			cause := recover()
			aborted := cause == http.ErrAbortHandler //nolint:errorlint // a sentinel that is panicked with, not returned
			if cause != nil && !aborted {
				req.Log().Error("handler panicked", "cause", cause, "stack", string(debug.Stack()))
				if req.writer.status == 0 {
					WriteProblem(w, r, NewProblem(http.StatusInternalServerError, kinds[http.StatusInternalServerError].example))
				}
			}
			// A response without a body, such as one to HEAD, is written after the handler has returned.
			status, route := cmp.Or(req.writer.status, http.StatusOK), req.route.RoutePattern()
			if route == "" || status == http.StatusNotFound && route == "/*" {
				route = unknownRoute
			}
			took := time.Since(began)
			if !streams(route) || status != http.StatusOK { // a stream's duration is the client's choice
				a.durations.observer(methodLabel(r.Method), route, statusClass(status)).Observe(took.Seconds())
			}
			level := slog.LevelInfo
			if status < 400 && evaluates(route) {
				level = slog.LevelDebug // thousands a second
			}
			if status == http.StatusTooManyRequests || preflight(r) || req.Unsigned {
				level = slog.LevelDebug // an attacker could flood the log
			}
			if a.Log.Enabled(r.Context(), level) {
				message := "request"
				if aborted {
					message = "request with aborted response"
				}
				req.Log().Log(r.Context(), level, message,
					"method", methodLabel(r.Method), "path", a.loggedPath(r, route), "status", status, "took", took, "bytes",
					req.writer.bytes)
			}
			if aborted {
				panic(cause)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// unknownRoute is the label of paths without a route.
const unknownRoute = "unknown"

// maxLoggedPath is the longest logged path in bytes. Keys of flags fit.
const maxLoggedPath = 300

// loggedPath returns the path of a request, or only its route if the path is long or may hold a secret or an address,
// such as the token of a device.
func (a *Core) loggedPath(r *http.Request, route string) string {
	path := r.URL.EscapedPath()
	if route == unknownRoute { // or refused before routing
		return cmp.Or(a.Router.Find(chi.NewRouteContext(), r.Method, path), unknownRoute)
	}
	special := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("/._-", c)
	}
	if len(path) > maxLoggedPath || strings.HasSuffix(route, "/{token}") || strings.HasSuffix(route, "*") ||
		strings.ContainsFunc(path, special) {
		return route
	}
	return path
}

// answerWriter records the status and size of a response. http.ResponseController reaches the server's own writer
// through Unwrap.
type answerWriter struct {
	http.ResponseWriter
	status int // 0 until the header is written
	bytes  int // of the body
	req    *request
	api    *Core
}

// WriteHeader implements net/http.ResponseWriter.
func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
		w.closeIfStopping()
	}
	w.ResponseWriter.WriteHeader(status)
}

// closeIfStopping announces the end of the connection if the service is stopping: see BeginStop.
func (w *answerWriter) closeIfStopping() {
	if w.api.Stopping.Load() {
		w.Header().Set("Connection", "close")
	}
}

// Write implements net/http.ResponseWriter.
func (w *answerWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
		w.closeIfStopping()
	}
	if w.bytes+len(p) > sentAtOnce {
		quota := w.api.answerQuota(w.req)
		w.api.unread.add(quota, 1)
		defer w.api.unread.add(quota, -1)
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += n
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// streams reports whether a route answers with a stream.
func streams(route string) bool {
	return route == StreamRoute || route == FeedRoute || route == SyncRoute
}

// evaluates reports whether a route is an evaluation, which applications call most often.
func evaluates(route string) bool {
	switch route {
	case EvaluateRoute, LegacyEvaluateRoute, EvaluateManyRoute, OFREPRoute, OFREPManyRoute:
		return true
	default:
		return false
	}
}

// durations measures the duration of requests by method, route and status class.
type durations struct {
	*prometheus.HistogramVec
	known *xsync.Map[[3]string, prometheus.Observer] // faster to look up than in the vector
}

func newDurations() *durations {
	return &durations{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "flagledger_http_request_duration_seconds",
		Help:    "Duration of requests by method, route and class of status.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
	}, []string{"method", "route", "status"}), xsync.NewMap[[3]string, prometheus.Observer]()}
}

func (d *durations) observer(method, route, status string) prometheus.Observer {
	labels := [3]string{method, route, status}
	o, ok := d.known.Load(labels)
	if !ok {
		o = d.WithLabelValues(method, route, status)
		d.known.Store(labels, o)
	}
	return o
}

// methodLabel maps unknown methods to one label, so that callers cannot create metric series.
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

// AbortResponse ends a call whose status has been sent, so that the client notices that the response is incomplete. It
// does not return.
func AbortResponse() { panic(http.ErrAbortHandler) }
