package http

import (
	"net/http"
	"time"

	"github.com/rs/cors"
)

// browserCache is how long browsers may remember the answer to a preflight request; none remembers it longer.
const browserCache = 2 * time.Hour

// crossOrigin lets pages of the configured origins, such as https://app.example.com, call the interface: "*" stands for all. It answers preflight
// requests itself, which carry no credentials. Cookies are never taken.
//
// Preflight requests show the limit of the address that they come from, and are neither counted nor refused: to answer one costs no more than to
// refuse it, a page could not tell why it was refused, and all who sit behind one address would share the limit.
func (a *API) crossOrigin(next http.Handler) http.Handler {
	answer := cors.New(cors.Options{
		AllowedOrigins: a.options.Origins,
		AllowedMethods: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"},
		AllowedHeaders: []string{
			"Authorization", "Content-Type", "X-Tenant-ID", "X-Environment", "If-Match", "If-None-Match", "Idempotency-Key", "X-Change-Reason",
			"X-Request-ID", "X-Correlation-ID", "Last-Event-ID",
		},
		ExposedHeaders: []string{
			"ETag", "Retry-After", "Location", "Link", "X-Total-Count", "X-Request-ID", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
			"Preference-Applied", "Idempotent-Replayed", "Deprecation",
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
