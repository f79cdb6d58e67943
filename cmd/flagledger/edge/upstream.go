package edge

import (
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"

	"flagledger/http/rest"
)

// answeredUpstream are the headers of an answer that pass through the edge: it sets all others itself.
var answeredUpstream = []string{"Content-Type", "Retry-After", "WWW-Authenticate"}

// newUpstream returns a handler that has the service, or another edge, answer requests. While that is away it answers
// 503.
func newUpstream(from *url.URL, log *slog.Logger) http.Handler {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is net/http's
	transport.ResponseHeaderTimeout = reportTimeout
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(from)
			r.Out.Header.Del("Accept-Encoding") // the encoding of the answer is the transport's
		},
		Transport: transport,
		ModifyResponse: func(r *http.Response) error {
			kept := http.Header{}
			for _, name := range answeredUpstream {
				if value := r.Header.Get(name); value != "" {
					kept.Set(name, value)
				}
			}
			r.Header = kept
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			log.Warn("a report of usage is not passed on", "err", err)
			rest.WriteProblem(w, r, rest.NewProblem(http.StatusServiceUnavailable, "the service cannot be reached"))
		},
	}
}
