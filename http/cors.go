package http

import (
	"net/http"
	"time"

	"github.com/rs/cors"
)

// browserCache is how long browsers may remember the answer to a preflight request; none remembers it longer.
const browserCache = 2 * time.Hour

// crossOrigin lets pages of the configured origins call the interface, "*" for all, and answers preflight requests
// itself. Preflight requests show the rate limit of their address, but are not counted: answering one costs no more
// than refusing it, and a page could not tell why it was refused.
func (a *API) crossOrigin(next http.Handler) http.Handler {
	answer := cors.New(cors.Options{
		AllowedOrigins: a.Origins,
		AllowedMethods: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"},
		AllowedHeaders: []string{
			"Authorization",
			"Content-Type",
			"X-Tenant-ID",
			"X-Environment",
			"If-Match",
			"If-None-Match",
			"Idempotency-Key",
			"X-Change-Reason",
			"X-Request-ID",
			"X-Correlation-ID",
			"Last-Event-ID",
			"X-Requested-With",
			"Traceparent",
			"Tracestate",
			"Baggage",
			"Sentry-Trace", // which libraries for tracing add to every call of a page
		},
		ExposedHeaders: []string{
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
			evaluatedAtHeader,
		},
		MaxAge: int(browserCache.Seconds()),
	}).Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if preflight(r) {
			a.limiter.Peek(r).Show(requestOf(r.Context()).answer)
		}
		answer.ServeHTTP(w, r)
	})
}

func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}
