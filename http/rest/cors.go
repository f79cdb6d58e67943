package rest

import (
	"net/http"
	"time"

	"github.com/rs/cors"
)

// browserCache is how long browsers may cache the response to a preflight request. No browser allows more.
const browserCache = 2 * time.Hour

// crossOrigin allows pages of the configured origins ("*" for all) to call the interface, and answers preflight
// requests. These are not counted against rate limits: a page could not see why one was refused.
func (a *Core) crossOrigin(next http.Handler) http.Handler {
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
			"Sentry-Trace", // tracing libraries add it to every call of a page
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
			EvaluatedAtHeader,
		},
		MaxAge: int(browserCache.Seconds()),
	}).Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if preflight(r) {
			a.Limiter.Peek(r).Show(RequestOf(r.Context()).answer)
		}
		answer.ServeHTTP(w, r)
	})
}

func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// EvaluatedAtHeader is the header with the time of a historical evaluation.
const EvaluatedAtHeader = "X-Evaluated-At"
