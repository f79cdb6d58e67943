package http

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

// observe logs each request and counts its duration by route, and turns a panic into a 500, but for the one that breaks
// off an answer.
func (a *API) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		req := requestOf(r.Context())
		defer func() {
			cause := recover()
			brokenOff := cause == http.ErrAbortHandler //nolint:errorlint // a sentinel that is panicked with, not returned
			if cause != nil && !brokenOff {
				req.log().Error("handler panicked", "cause", cause, "stack", string(debug.Stack()))
				if req.writer.status == 0 {
					writeProblem(w, r, newProblem(http.StatusInternalServerError, kinds[http.StatusInternalServerError].example))
				}
			}
			// An answer without a body, such as that to HEAD, is written once the handler has returned.
			status, route := cmp.Or(req.writer.status, http.StatusOK), req.route.RoutePattern()
			if route == "" || status == http.StatusNotFound && route == "/*" {
				route = unknownRoute
			}
			took := time.Since(began)
			if route != streamRoute || status != http.StatusOK { // a stream takes as long as it is wanted
				a.durations.of(methodLabel(r.Method), route, statusClass(status)).Observe(took.Seconds())
			}
			level := slog.LevelInfo
			if status < 400 && evaluates(route) {
				level = slog.LevelDebug // thousands a second
			}
			if status == http.StatusTooManyRequests || preflight(r) || req.unsigned {
				level = slog.LevelDebug // as many as somebody sends
			}
			if a.Log.Enabled(r.Context(), level) {
				message := "request"
				if brokenOff {
					message = "request, whose answer was broken off"
				}
				req.log().Log(r.Context(), level, message,
					"method", methodLabel(r.Method), "path", a.loggedPath(r, route), "status", status, "took", took, "bytes",
					req.writer.bytes)
			}
			if brokenOff {
				panic(cause)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// unknownRoute stands for the paths that no route takes.
const unknownRoute = "unknown"

// maxLoggedPath is the longest path that the log has, in bytes: keys of flags fit.
const maxLoggedPath = 300

// loggedPath is the path of a request. It is the route alone if the path is long or may hold a secret or an address, as
// the token of a device or a path that no route takes.
func (a *API) loggedPath(r *http.Request, route string) string {
	path := r.URL.EscapedPath()
	if route == unknownRoute { // or refused before it got to its route
		return cmp.Or(a.router.Find(chi.NewRouteContext(), r.Method, path), unknownRoute)
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

// answerWriter notes the status and the size of an answer. http.ResponseController finds all else that the server's own
// writer can do.
type answerWriter struct {
	http.ResponseWriter
	status int // 0 until the header is written
	bytes  int // of the body
	req    *request
	api    *API
}

// WriteHeader implements net/http.ResponseWriter.
func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
		w.closeIfStopping()
	}
	w.ResponseWriter.WriteHeader(status)
}

// closeIfStopping has the answer say that its connection is closed, see BeginStop.
func (w *answerWriter) closeIfStopping() {
	if w.api.stopping.Load() {
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
