package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

const maxReason = 500

// MaxCorrelation is the longest X-Correlation-ID, in characters.
const MaxCorrelation = 128

// checkRequest refuses requests whose URL or headers cannot be stored, or whose body is compressed.
func checkRequest(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := RequestOf(r.Context())
		if sent := r.Header.Get(correlationHeader); sent != "" {
			if !ValidText(sent, MaxCorrelation) {
				WriteProblem(
					w,
					r,
					NewProblem(http.StatusBadRequest,
						fmt.Sprintf("X-Correlation-ID must be at most %d characters of UTF-8", MaxCorrelation)),
				)
				return
			}
			req.Correlation = sent
		}
		if req.reason = r.Header.Get(reasonHeader); !ValidText(req.reason, maxReason) {
			WriteProblem(w, r,
				Invalid(map[string]string{"X-Change-Reason": fmt.Sprintf("must be at most %d characters of UTF-8", maxReason)}))
			return
		}
		if !readable(r.URL) {
			WriteProblem(w, r,
				NewProblem(http.StatusBadRequest, "the path and the query must be percent-encoded UTF-8 without the character NUL"))
			return
		}
		if p := checkEncoding(r); p != nil {
			WriteProblem(w, r, p)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// readable reports whether a URL is text that Postgres can store. A partly malformed query is refused, as net/url would
// drop that part.
func readable(u *url.URL) bool {
	if u.RawQuery == "" {
		return utf8.ValidString(u.Path) && strings.IndexByte(u.Path, 0) < 0
	}
	query, err := url.QueryUnescape(u.RawQuery)
	if _, malformed := url.ParseQuery(u.RawQuery); malformed != nil || err != nil {
		return false
	}
	return utf8.ValidString(u.Path) && utf8.ValidString(query) && !strings.ContainsRune(u.Path+query, 0)
}

// ValidText reports whether a text is UTF-8 of at most so many characters.
func ValidText(text string, longest int) bool {
	return utf8.ValidString(text) && utf8.RuneCountInString(text) <= longest
}

// requireStarted refuses requests until the snapshot is loaded.
func (a *Core) requireStarted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-a.Live.Ready():
			next.ServeHTTP(w, r)
		default:
			WriteProblem(w, r, NewProblem(http.StatusServiceUnavailable, "the service is starting"))
		}
	})
}
