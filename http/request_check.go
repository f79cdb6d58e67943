package http

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

const (
	maxReason      = 500
	maxCorrelation = 128
)

// checkRequest refuses requests whose URL or headers cannot be stored, or whose body is compressed.
func checkRequest(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := requestOf(r.Context())
		if sent := r.Header.Get(correlationHeader); sent != "" {
			if !validText(sent, maxCorrelation) {
				writeProblem(
					w,
					r,
					newProblem(http.StatusBadRequest,
						fmt.Sprintf("X-Correlation-ID must be at most %d characters of UTF-8", maxCorrelation)),
				)
				return
			}
			req.correlation = sent
		}
		if req.reason = r.Header.Get(reasonHeader); !validText(req.reason, maxReason) {
			writeProblem(w, r,
				invalid(map[string]string{"X-Change-Reason": fmt.Sprintf("must be at most %d characters of UTF-8", maxReason)}))
			return
		}
		if !readable(r.URL) {
			writeProblem(w, r,
				newProblem(http.StatusBadRequest, "the path and the query must be percent-encoded UTF-8 without the character NUL"))
			return
		}
		if p := checkEncoding(r); p != nil {
			writeProblem(w, r, p)
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

func validText(text string, longest int) bool {
	return utf8.ValidString(text) && utf8.RuneCountInString(text) <= longest
}

// requireStarted refuses requests until the snapshot is loaded.
func (a *API) requireStarted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-a.Live.Ready():
			next.ServeHTTP(w, r)
		default:
			writeProblem(w, r, newProblem(http.StatusServiceUnavailable, "the service is starting"))
		}
	})
}
