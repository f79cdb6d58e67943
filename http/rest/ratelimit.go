package rest

import (
	"net/http"
	"strconv"

	"flagledger/http/dashboard"
	"flagledger/http/quota"
)

// limit counts a request for the caller that identify found, and refuses it beyond the limit. The headers of every
// response show the remainder. The dashboard's assets are not counted.
func (a *Core) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := RequestOf(r.Context())
		if isWebhook(r) {
			a.limitUnsigned(w, r, next)
			return
		}
		var left quota.Budget
		if dashboard.IsAsset(r.URL.Path) { // a page has dozens; they are served from memory and cached by browsers
			left = a.Limiter.Peek(r)
			left.Exceeded = false
		} else {
			left = a.count(r, req)
		}
		left.Show(req.answer)
		if left.Exceeded {
			WriteProblem(w, r, TooManyRequests(left, ""))
			return
		}
		if err := a.LimitUnread(r.Context()); err != nil {
			WriteProblem(w, r, ProblemOf(r.Context(), err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isWebhook reports whether a request is to the webhook.
func isWebhook(r *http.Request) bool {
	return r.Method == http.MethodPost && routedPath(r) == WebhookRoute
}

// limitUnsigned counts a call of the webhook for the client's address, unless the payment provider signed it. Unsigned
// calls are logged only at debug level.
func (a *Core) limitUnsigned(w http.ResponseWriter, r *http.Request, next http.Handler) {
	req := RequestOf(r.Context())
	a.Limiter.Peek(r).Show(req.answer)
	req.Unsigned = true
	defer func() {
		if req.Unsigned {
			a.Limiter.CountAddress(r)
		}
	}()
	next.ServeHTTP(w, r)
}

// TooManyRequests returns a 429 that shows the budget in its headers. why is empty for the limit of requests.
func TooManyRequests(b quota.Budget, why string) *Problem {
	p := NewProblem(http.StatusTooManyRequests, why)
	p.Detail += ", in " + strconv.Itoa(b.Reset) + " s"
	p.headers.Set("Retry-After", strconv.Itoa(b.Reset))
	p.exceeded = &b
	return p
}
