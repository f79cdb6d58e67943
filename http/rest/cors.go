package rest

import (
	"net/http"
	"strings"
	"time"

	"github.com/rs/cors"
)

// browserCache is how long browsers may cache the response to a preflight request. No browser allows more.
const browserCache = 2 * time.Hour

// evaluationHeaders are the headers with which web pages evaluate. Tracing libraries add some to every call of a page.
var evaluationHeaders = []string{
	"Authorization",
	"X-API-Key",
	"X-Flag-Context",
	"Content-Type",
	"If-None-Match",
	"Last-Event-ID",
	"X-Request-ID",
	"X-Correlation-ID",
	"X-Requested-With",
	"Traceparent",
	"Tracestate",
	"Baggage",
	"Sentry-Trace",
}

// exposedHeaders are the headers of answers that web pages may read.
var exposedHeaders = []string{
	"ETag",
	"Retry-After",
	"Location",
	"Link",
	"X-Total-Count",
	"X-Request-ID",
	"RateLimit-Limit",
	"RateLimit-Remaining",
	"RateLimit-Reset",
	"Preference-Applied",
	"Idempotent-Replayed",
	"Deprecation",
	EvaluatedAtHeader,
}

// crossOrigin allows pages of the configured origins ("*" for all) to call the interface, and answers preflight
// requests. These are not counted against rate limits: a page could not see why one was refused. A preflight of an
// evaluation is answered for every origin, as it has no evaluation key yet: the call itself is refused if the key does
// not allow its origin.
func (a *Core) crossOrigin(next http.Handler) http.Handler {
	configured := cors.New(cors.Options{
		AllowedOrigins: a.Origins,
		AllowedMethods: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"},
		AllowedHeaders: append([]string{
			"X-Tenant-ID", "X-Environment", "If-Match", "Idempotency-Key", "X-Change-Reason",
		}, evaluationHeaders...),
		ExposedHeaders: exposedHeaders,
		MaxAge:         int(browserCache.Seconds()),
	})
	anyOrigin := cors.New(cors.Options{
		AllowedOrigins: []string{"*"},
		AllowedMethods: []string{"GET", "HEAD", "POST"},
		AllowedHeaders: evaluationHeaders,
		MaxAge:         int(browserCache.Seconds()),
	}).Handler(next)
	answer := next
	if len(a.Origins) > 0 { // rs/cors allows all origins if it is given none
		answer = configured.Handler(next)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !preflight(r) {
			answer.ServeHTTP(w, r)
			return
		}
		a.Limiter.Peek(r).Show(RequestOf(r.Context()).answer)
		if takesBrowserKeys(routedPath(r)) && (len(a.Origins) == 0 || !configured.OriginAllowed(r)) {
			anyOrigin.ServeHTTP(w, r)
			return
		}
		answer.ServeHTTP(w, r)
	})
}

// takesBrowserKeys reports whether a path is one of the operations whose access has BrowserKeys.
func takesBrowserKeys(path string) bool {
	flag, hasPrefix := strings.CutPrefix(path, "/api/v1/flags/")
	flag, hasSuffix := strings.CutSuffix(flag, "/evaluate")
	return path == EvaluateManyRoute || path == StreamRoute || path == OFREPManyRoute ||
		strings.HasPrefix(path, OFREPManyRoute+"/") || hasPrefix && hasSuffix && !strings.Contains(flag, "/")
}

func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// EvaluatedAtHeader is the header with the time of a historical evaluation.
const EvaluatedAtHeader = "X-Evaluated-At"
