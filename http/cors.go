package http

import (
	"net/http"
	"time"

	"github.com/rs/cors"
)

// browserCache is how long browsers may remember the answer to a preflight request; none remembers it longer.
const browserCache = 2 * time.Hour

// crossOrigin lets pages of the given origins, such as https://app.example.com, call the interface: "*" stands for all. It answers preflight
// requests itself, which carry no credentials. Cookies are never taken.
func crossOrigin(origins []string) func(http.Handler) http.Handler {
	return cors.New(cors.Options{
		AllowedOrigins: origins,
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
	}).Handler
}
